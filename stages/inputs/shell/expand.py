"""From words to arguments: parameters with their defaults, arrays, arithmetic, the few substitutions that can be told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from locales import _
from stages.inputs.shell.arithmetic import calculate
from stages.inputs.shell.nodes import Arith, Lit, Node, Opaque, Param, Part, Source, Sub, Word
from stages.inputs.shell.scope import Scope
from stages.inputs.shell.splitting import atoms, has_blank, resplit, runs, spaced, transform
from stages.inputs.shell.values import (
    Arg,
    Piece,
    Value,
    Var,
    assuming,
    assumptions,
    leaves,
    literal,
    shown,
    text_of,
    unknown,
    weight,
)

ARGUMENTS = "$@"
"""Assumed of a script that was read as if it were called without arguments."""
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
Substitute = Callable[[Source, Scope, Sequence[Node]], "Value | None"]
Spend = Callable[[int, str], None]


def from_environment(name: str) -> str:
    """Why a variable is unknown that the script does not set."""
    return _("${name} is not set in the script: it comes from the environment").format(name=name)


class Expander:
    """Expands the words of one source in a scope. ``substitute`` tells the output of commands, where it can; ``spend`` is told how
    many pieces come to be."""

    def __init__(self, source: Source, scope: Scope, substitute: Substitute, spend: Spend) -> None:
        self.source, self.scope, self.substitute, self._spend = source, scope, substitute, spend

    # --- whole words ---------------------------------------------------------------------------------------------------

    def args(self, words: Sequence[Word]) -> Iterator[Arg]:
        for word in words:
            yield from self.fields(word)

    def fields(self, word: Word) -> list[Arg]:
        """The arguments that a word becomes: none, one, or many."""
        array = self._whole_array(word)
        if array is not None:
            self._spend(sum(1 + weight(arg.value) for arg in array), self.source.where(word.start))
            return array
        texts: list[list[Piece]] = []
        current: list[Piece] = []
        started = split = False
        for number, part in enumerate(word.parts):
            pieces = self.part(part, first=not number)
            quoted = bool(part.quote) if isinstance(part, Lit) else getattr(part, "quoted", True)
            if quoted or isinstance(part, Lit) or not has_blank(pieces):
                current += pieces
                started |= quoted or bool(shown(pieces)) or any(leaf.text is None for leaf in leaves(pieces))
                continue
            for piece in atoms(pieces):
                for number, run in enumerate(runs(piece)):
                    if number and started:
                        texts.append(current)
                        current, started, split = [], False, True
                    if run is not None:
                        current.append(run)
                        started |= bool(shown((run,)))
                    split = True
        if started:
            texts.append(current)
        if not split:
            return [self._arg(texts[0], word)] if texts else []
        return [self._split(pieces, word) for pieces in texts if pieces]

    def _arg(self, pieces: list[Piece], word: Word) -> Arg:
        bare = "".join(part.text if isinstance(part, Lit) and not part.quote else "\0" for part in word.parts)
        if _BRACES.search(bare) and len(bare) > 2:
            why = _("the shell expands braces in {word}").format(word=self.source.text[word.start : word.end][:60])
            return Arg(unknown(why, self.source, word.start, word.end), self.source, word.start, word.end)
        unquoted = any(isinstance(part, (Param, Sub)) and not part.quoted for part in word.parts)
        return Arg(tuple(pieces), self.source, word.start, word.end, unquoted=unquoted)

    def _split(self, pieces: list[Piece], word: Word) -> Arg:
        """One of the arguments that a text became at its blanks: it stands where its pieces were written."""
        one = all(piece.source is pieces[0].source for piece in pieces) and pieces[0].source is not None
        if one and all(a.end == b.start for a, b in pairwise(pieces)):
            return Arg(tuple(pieces), pieces[0].source, pieces[0].start, pieces[-1].end, whole=False, unquoted=True)
        return Arg(tuple(pieces), self.source, word.start, word.end, whole=False, loose=True, unquoted=True)

    def _whole_array(self, word: Word) -> list[Arg] | None:
        """The elements, where the word is nothing but ``"${name[@]}"``, ``${name[@]}`` or ``"$@"``."""
        if len(word.parts) != 1 or not isinstance(word.parts[0], Param):
            return None
        part = word.parts[0]
        if part.flag or (part.op and part.op not in ("+", ":+", "-", ":-")):
            return None
        if part.name in ("@", "*") and not (part.name == "*" and part.quoted):
            return self._arguments(part)
        if part.index not in ("@", "*") or (part.index == "*" and part.quoted):
            return None
        if part.op in ("+", ":+") and part.arg is not None:  # "${name[@]+"${name[@]}"}"
            inner = [one for one in part.arg.parts if isinstance(one, Param)]
            return self._whole_array(Word((inner[0],), word.start, word.end)) if len(inner) == 1 else None
        var = self.scope.variables.get(part.name)
        if var is None:
            return []
        elements = list(var.array) if var.array is not None else [Arg(var.value, self.source, word.start, word.end)]
        if var.open:
            elements.append(Arg(unknown(var.open), self.source, word.start, word.end, maybe=var.open))
        return elements if part.quoted else [one for element in elements for one in resplit(element)]

    def _arguments(self, part: Param) -> list[Arg]:
        return list(self.scope.arguments or ())

    # --- parts ---------------------------------------------------------------------------------------------------------

    def value(self, word: Word) -> Value:
        """The text of a word that is not split: the right side of an assignment, a here-document."""
        return tuple(piece for number, part in enumerate(word.parts) for piece in self.part(part, first=not number))

    def part(self, part: Part, first: bool = False) -> Value:
        if isinstance(part, Lit):
            if first and not part.quote and re.match(r"~(?:/|$)", part.text):
                home = unknown(_("~ is the home folder of whoever runs it"), self.source, part.start, part.start + 1)
                return (*home, Piece(part.text[1:], self.source, part.start + 1, part.end))
            return (Piece(part.text, self.source, part.start, part.end, part.quote),)
        inner, quote = self._expansion(part), '"' if getattr(part, "quoted", False) else ""
        self._spend(weight(inner), self.source.where(part.start))
        return (Piece(None, self.source, part.start, part.end, quote, inner=inner),)

    def _expansion(self, part: Part) -> Value:
        if isinstance(part, Param):
            return self.param(part)
        if isinstance(part, Arith):
            return self._arith(part)
        if isinstance(part, Sub):
            found = self.substitute(self.source, self.scope, part.body)
            if found is not None:
                return found
        assert isinstance(part, (Sub, Opaque))
        text = " ".join(self.source.text[part.start : part.end].split())
        why = _("what {command} prints is not known before it runs").format(
            command=text if len(text) < 60 else text[:57] + "…"
        )
        return unknown(why, self.source, part.start, part.end)

    def _arith(self, part: Arith) -> Value:
        assumed: set[str] = set()

        def variable(name: str) -> str | None:
            value = self.named(name)
            assumed.update(assumptions(value))
            return text_of(value)

        found = calculate(re.sub(r"\$\{(\w+):-(\d+)\}", r"\1", part.text), variable)
        if found is None:
            return unknown(
                _("{text} cannot be calculated from what the script says").format(text=f"$(({part.text.strip()}))")
            )
        return assuming(literal(str(found)), frozenset(assumed))

    def named(self, name: str) -> Value:
        """The value of ``$name``."""
        if name == "#":
            count = len(self.scope.arguments or ())
            return (
                literal(str(count))
                if self.scope.arguments is not None
                else assuming(literal("0"), frozenset({ARGUMENTS}))
            )
        if name in ("@", "*"):
            return spaced(self.scope.arguments or ())
        if name.isdigit() and name != "0":
            given = self.scope.arguments
            if given is None:
                return unknown(_("${name} is an argument of the script").format(name=name))
            return given[int(name) - 1].value if int(name) <= len(given) else literal("")
        if name == "0" and self.source.path is not None:
            return literal(str(self.source.path))
        var = self.scope.variables.get(name)
        if var is not None:
            return var.value if var.array is None else (var.array[0].value if var.array else literal(""))
        if name == "BASH_SOURCE" and self.source.path is not None:
            return literal(str(self.source.path))
        if name == "PWD" and self.scope.folder:
            return self.scope.folder
        if name in self.scope.unset:
            return literal("")
        return unknown(from_environment(name))

    def is_set(self, name: str) -> bool | None:
        """None when only the environment knows."""
        if name.isdigit():
            return None if self.scope.arguments is None else int(name) <= len(self.scope.arguments)
        if name in self.scope.variables:
            return True
        return False if name in self.scope.unset else None

    def param(self, part: Param) -> Value:
        if part.flag == "!":
            target = text_of(self.named(part.name))
            return (
                self.named(target)
                if target
                else unknown(_("${{!{name}}} names another variable").format(name=part.name))
            )
        value = self._indexed(part)
        if part.flag == "#":
            var = self.scope.variables.get(part.name)
            if part.index in ("@", "*"):
                return literal(str(len(var.array))) if var and var.array is not None and not var.open else unknown("")
            text = text_of(value)
            return literal(str(len(text))) if text is not None else value
        if not part.op:
            return value
        if part.op in (":-", "-", ":=", "=", ":+", "+", ":?", "?"):
            return self._default(part, value)
        return self._changed(part, value)

    def _indexed(self, part: Param) -> Value:
        if part.index is None or part.name == "BASH_SOURCE":
            return self.named(part.name)
        var = self.scope.variables.get(part.name)
        if var is None:
            return literal("") if part.index in ("@", "*") else self.named(part.name)
        elements = var.array if var.array is not None else (Arg(var.value, None, 0, 0),)
        if var.open:
            return unknown(var.open)
        if part.index in ("@", "*"):
            return spaced(elements)
        number = calculate(part.index, lambda name: text_of(self.named(name)))
        if number is None:
            return unknown(_("which element of {name} is not known").format(name=part.name))
        return elements[number].value if -len(elements) <= number < len(elements) else literal("")

    def _default(self, part: Param, value: Value) -> Value:
        """``${x:-y}`` and its kin. A variable that only the environment could have set is taken as not set, and that is noted."""
        given = self.is_set(part.name)
        there: bool | None = given
        if given and part.op.startswith(":"):
            text = text_of(value)
            there = None if text is None else bool(text)
            if there is None:
                return (
                    value
                    if part.op != ":+"
                    else unknown(_("whether {name} is empty is not known").format(name=part.name))
                )
        assumed = frozenset() if there is not None else frozenset({ARGUMENTS if part.name.isdigit() else part.name})
        arg = part.arg or Word((), 0, 0)
        if part.op in (":+", "+"):
            return assuming(self.value(arg) if there else literal(""), assumed)
        if there:
            return value
        if part.op in (":?", "?"):
            return unknown(_("${name} has to be set in the environment").format(name=part.name))
        found = assuming(self.value(arg) or literal(""), assumed)
        if part.op in (":=", "="):
            self.scope.set(part.name, Var(found))
        return found

    def _changed(self, part: Param, value: Value) -> Value:
        text, arg = text_of(value), shown(self.value(part.arg or Word((), 0, 0)), "")
        if text is None:
            return value
        changed = transform(part.op, text, arg)
        if changed is None:
            return unknown(_("{text} is not followed").format(text=self.source.text[part.start : part.end]))
        return assuming(literal(changed), assumptions(value))
