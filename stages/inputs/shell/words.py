"""Reading words: quotes, expansions, line continuations, here-documents."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from codemods.errors import FindingError
from locales import _
from stages.inputs.shell.nodes import Arith, Lit, Node, Opaque, Param, Part, Redirect, Source, Sub, Word

NAME = re.compile(r"[A-Za-z_]\w*")
_META = " \t\n;&|<>()"
_SPECIAL = "@*#?$!-"
_OPERATORS = (
    ":-",
    ":=",
    ":+",
    ":?",
    "##",
    "%%",
    "//",
    "^^",
    ",,",
    "-",
    "=",
    "+",
    "?",
    "#",
    "%",
    "/",
    "^",
    ",",
    ":",
    "@",
)
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "e": "\x1b", "0": "\0"}
_DEEPEST, _MOST = 60, 100_000  # levels; words and parts of words in a script


class ShellSyntaxError(FindingError):
    """The script cannot be read as bash from this line on."""


class Words(ABC):
    """A cursor over a script's text. The commands of ``$(…)`` are read by the parser of commands, which is built on it."""

    def __init__(self, source: Source) -> None:
        self.source, self.text, self.at = source, source.text, 0
        self.pending: list[Redirect] = []
        self.depth = self.count = 0

    @abstractmethod
    def commands(self, *ends: str) -> Sequence[Node]:
        """Commands up to one of the closing words."""

    # --- the cursor ----------------------------------------------------------------------------------------------------

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    @property
    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def error(self, what: str, at: int | None = None) -> ShellSyntaxError:
        return ShellSyntaxError(what, where=self.source.where(self.at if at is None else at))

    def deeper(self) -> None:
        """One level down. Raises ShellSyntaxError long before Python's own stack ends."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(_("it is nested too deep to be read"))

    def one_more(self) -> None:
        """Raises ShellSyntaxError for a text of more pieces than a script has."""
        self.count += 1
        if self.count > _MOST:
            raise self.error(_("it has more than {count} words, and is not read").format(count=_MOST))

    def blanks(self) -> None:
        """Over blanks, continued lines and a comment."""
        while True:
            if self.here in (" ", "\t") and self.here:
                self.at += 1
            elif self.peek("\\\n"):
                self.at += 2
            elif self.here == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    # --- words ---------------------------------------------------------------------------------------------------------

    def word(self) -> Word:
        start = self.at
        parts = self.parts(lambda: self.here in _META and not self._process(), "")
        return Word(parts, start, self.at)

    def _process(self) -> bool:
        return self.peek("<(") or self.peek(">(")

    def parts(self, done: Callable[[], bool], mode: str) -> tuple[Part, ...]:
        """``mode``: empty for a bare word, ``"`` in double quotes, ``<<`` in a here-document, ``{`` in ``${x:-…}``."""
        self.deeper()
        self.one_more()
        parts: list[Part] = []
        begin = self.at

        def flush() -> None:
            if self.at > begin:
                quote = "" if mode == "{" else mode
                parts.append(Lit(self.text[begin : self.at], begin, self.at, quote))

        bare = mode in ("", "{")
        while self.at < len(self.text) and not done():
            c = self.here
            if c == "\\":
                flush()
                self._escape(parts, mode)
            elif c == "'" and bare:
                flush()
                self._single(parts)
            elif c == '"' and mode != "<<":
                flush()
                self._double(parts)
            elif c == "$":
                flush()
                self._dollar(parts, quoted=not bare)
            elif c == "`":
                flush()
                self._backquote(parts)
            elif bare and self._process():
                flush()
                start = self.at
                self.at += 2
                self._nested(start)
                parts.append(Opaque(start, self.at))
            else:
                self.at += 1
                continue
            self.one_more()
            begin = self.at
        flush()
        self.depth -= 1
        return tuple(parts)

    def _escape(self, parts: list[Part], mode: str) -> None:
        start, following = self.at, self.text[self.at + 1 : self.at + 2]
        self.at += 1 + len(following)
        if following == "\n":
            return
        if mode in ("", "{"):
            parts.append(Lit(following or "\\", start, self.at, "\\"))
        elif following in ("$", "`", "\\") or (following == '"' and mode == '"'):
            parts.append(Lit(following, start, self.at, mode))
        else:
            parts.append(Lit("\\" + following, start, self.at, mode))

    def _single(self, parts: list[Part]) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise self.error(_("a single quote is not closed"))
        parts.append(Lit(self.text[self.at + 1 : end], self.at + 1, end, "'"))
        self.at = end + 1

    def _double(self, parts: list[Part]) -> None:
        start = self.at
        self.at += 1
        inner = self.parts(lambda: self.here == '"', '"')
        if self.here != '"':
            raise self.error(_("a double quote is not closed"), start)
        parts.extend(inner or (Lit("", self.at, self.at, '"'),))
        self.at += 1

    def _backquote(self, parts: list[Part]) -> None:
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise self.error(_("a backquote is not closed"))
        parts.append(Opaque(self.at, end + 1))
        self.at = end + 1

    # --- expansions ----------------------------------------------------------------------------------------------------

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
        start = self.at
        if self.peek("$((") and self._arithmetic(parts, quoted):
            return
        if self.peek("$("):
            self.at += 2
            body = self._nested(start)
            parts.append(Sub(body, start, self.at, quoted))
        elif self.peek("${"):
            parts.append(self._braced(quoted))
        elif self.peek("$'") and not quoted:
            self._ansi(parts)
        elif self.peek('$"') and not quoted:
            self.at += 1
        else:
            found = NAME.match(self.text, self.at + 1)
            name = found.group() if found else self.text[self.at + 1 : self.at + 2]
            if not found and not (name and (name in _SPECIAL or name.isdigit())):
                self.at += 1
                parts.append(Lit("$", start, self.at, '"' if quoted else ""))
                return
            self.at += 1 + len(name)
            parts.append(Param(name, start, self.at, quoted))

    def _nested(self, start: int) -> Sequence[Node]:
        """The commands of ``$(…)``, the cursor behind the closing parenthesis."""
        waiting, self.pending = self.pending, []
        body = self.commands(")")
        if self.here != ")":
            raise self.error(_("a parenthesis is not closed"), start)
        self.at += 1
        self.pending = waiting
        return body

    def _arithmetic(self, parts: list[Part], quoted: bool) -> bool:
        end = self.closing("((", self.at + 1)
        if end is None:
            return False
        parts.append(Arith(self.text[self.at + 3 : end - 2], self.at, end, quoted))
        self.at = end
        return True

    def closing(self, opening: str, at: int) -> int | None:
        """The offset behind the ``))`` that closes the ``((`` at ``at``."""
        depth, place = 0, at
        while place < len(self.text):
            c = self.text[place]
            depth += (c == "(") - (c == ")")
            place += 1
            if depth == 0:
                return place if self.text[place - 2 : place] == "))" else None
        return None

    def _ansi(self, parts: list[Part]) -> None:
        start, at, out = self.at, self.at + 2, []
        while at < len(self.text) and self.text[at] != "'":
            if self.text[at] == "\\" and at + 1 < len(self.text):
                out.append(_ANSI.get(self.text[at + 1], "\\" + self.text[at + 1]))
                at += 2
            else:
                out.append(self.text[at])
                at += 1
        if at >= len(self.text):
            raise self.error(_("a single quote is not closed"))
        self.at = at + 1
        parts.append(Lit("".join(out), start, self.at, "$'"))

    def _braced(self, quoted: bool) -> Param:
        start = self.at
        self.at += 2
        flag = ""
        if self.here in ("#", "!") and self.text[self.at + 1 : self.at + 2] not in ("}", ""):
            flag = self.here
            self.at += 1
        found = NAME.match(self.text, self.at) or re.compile(r"\d+").match(self.text, self.at)
        name = found.group() if found else self.here
        self.at += len(name)
        index = None
        if self.here == "[":
            end = self.text.find("]", self.at)
            if end < 0:
                raise self.error(_("a bracket is not closed"), start)
            index = self.text[self.at + 1 : end]
            self.at = end + 1
        op = next((op for op in _OPERATORS if self.peek(op)), "") if self.here != "}" else ""
        self.at += len(op)
        begin = self.at
        inner = self.parts(lambda: self.here == "}", '"' if quoted and op not in ("/", "//") else "{")
        if self.here != "}":
            raise self.error(_("a brace is not closed"), start)
        arg = Word(inner, begin, self.at) if op else None
        self.at += 1
        return Param(name, start, self.at, quoted, index, op, arg, flag)
