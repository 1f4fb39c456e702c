"""Reading commands: lists, pipelines, compound commands, functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from locales import _
from stages.inputs.shell.nodes import (
    Case,
    Chain,
    Counting,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Script,
    Source,
    Word,
)
from stages.inputs.shell.simple import ASSIGN, REDIRECT, SimpleCommands
from stages.inputs.shell.words import NAME

_FUNCTION = re.compile(r"(?:function[ \t]+)?([^\s;&|<>()$'\"`=]+)[ \t]*\([ \t]*\)")
_NAMED = re.compile(r"function[ \t]+([^\s;&|<>()$'\"`=]+)")


def parse(source: Source) -> Script:
    """Raises ShellSyntaxError with the line."""
    reader = _Commands(source)
    nodes = reader.commands()
    return Script(source, nodes)


class _Commands(SimpleCommands):
    def commands(self, *ends: str) -> Sequence[Node]:
        self.deeper()
        found = self._commands(*ends)
        self.depth -= 1
        return found

    def _commands(self, *ends: str) -> Sequence[Node]:
        found: list[Node] = []
        while True:
            self._separators()
            if self.at >= len(self.text) or self.at_word(*ends):
                return tuple(found)
            if self.here == ")" or self.peek(";;"):
                if ")" in ends or ";;" in ends:
                    return tuple(found)
                raise self.error(_("this is not where a command can begin"))
            before = self.at
            found.append(self._chain())
            if self.at == before:
                raise self.error(_("this is not where a command can begin"))

    def _separators(self) -> None:
        while True:
            self.blanks()
            if self.here == "\n":
                self.newline()
            elif self.here in (";", "&") and self.here and not self.peek(";;") and not self.peek("&>"):
                self.at += 1
            else:
                return

    def _chain(self) -> Node:
        start, nodes, operators = self.at, [self._pipeline()], []
        while True:
            self.blanks()
            if not (self.peek("&&") or self.peek("||")):
                break
            operators.append(self.text[self.at : self.at + 2])
            self.at += 2
            self.lines()
            nodes.append(self._pipeline())
        return nodes[0] if not operators else Chain(tuple(nodes), tuple(operators), start)

    def _pipeline(self) -> Node:
        start, negated = self.at, False
        while self.at_word("!", "time"):
            negated ^= self.here == "!"
            self.at += 1 if self.here == "!" else 4
            self.blanks()
        nodes = [self._command()]
        while True:
            self.blanks()
            if self.here != "|" or self.peek("||"):
                break
            self.at += 2 if self.peek("|&") else 1
            self.lines()
            nodes.append(self._command())
        return nodes[0] if len(nodes) == 1 and not negated else Pipeline(tuple(nodes), negated, start)

    def _command(self) -> Node:
        node = self._compound()
        if node is None:
            return self.simple()
        self.blanks()
        while REDIRECT.match(self.text, self.at):
            self.redirect()
            self.blanks()
        return node

    def _compound(self) -> Node | None:
        start = self.at
        if self.peek("(("):
            end = self.closing("((", self.at)
            if end is not None:
                self.at = end
                return Counting(self.text[start + 2 : end - 2], start)
        if self.here == "(":
            self.at += 1
            return Group(self._nested(start), True, start)
        if self.at_word("{"):
            self.at += 1
            return Group(self._until(start, "}")[0], False, start)
        for word, read in (
            ("if", self._if),
            ("for", self._for),
            ("select", self._for),
            ("while", self._while),
            ("until", self._while),
            ("case", self._case),
        ):
            if self.at_word(word):
                self.at += len(word)
                return read(word, start)
        return self._function(start)

    def _until(self, start: int, *words: str) -> tuple[Sequence[Node], str]:
        """Commands up to one of the words, which is read over and given back."""
        body = self.commands(*words)
        for word in words:
            if self.at_word(word):
                self.at += len(word)
                return body, word
        raise self.error(_("`{word}` is missing for what begins here").format(word=words[-1]), start)

    def _if(self, word: str, start: int) -> Node:
        branches: list[tuple[Sequence[Node], Sequence[Node]]] = []
        otherwise: Sequence[Node] = ()
        end = "elif"
        while end == "elif":
            condition, _then = self._until(start, "then")
            body, end = self._until(start, "elif", "else", "fi")
            branches.append((condition, body))
        if end == "else":
            otherwise, _fi = self._until(start, "fi")
        return If(tuple(branches), otherwise, start)

    def _while(self, word: str, start: int) -> Node:
        condition, _do = self._until(start, "do")
        body, _done = self._until(start, "done")
        return Loop(word, body, start, condition=condition)

    def _for(self, word: str, start: int) -> Node:
        self.blanks()
        if self.peek("(("):
            self.at = self.closing("((", self.at) or len(self.text)
            name, words = "", None
        else:
            found = NAME.match(self.text, self.at)
            if found is None:
                raise self.error(_("a variable's name is missing"))
            name, words = found.group(), None
            self.at = found.end()
            self.lines()
            if self.at_word("in"):
                self.at += 2
                words = tuple(self._words())
        self._separators()
        if self.at_word("{"):
            self.at += 1
            body, _end = self._until(start, "}")
        else:
            self._until(start, "do")
            body, _end = self._until(start, "done")
        return Loop(word, body, start, name, words)

    def _words(self) -> list[Word]:
        found = []
        self.blanks()
        while self.here and self.here not in "\n;&|)<>":
            found.append(self.word())
            self.blanks()
        return found

    def _case(self, word: str, start: int) -> Node:
        self.blanks()
        subject = self.word()
        self.lines()
        if not self.at_word("in"):
            raise self.error(_("`{word}` is missing for what begins here").format(word="in"), start)
        self.at += 2
        arms: list[tuple[tuple[Word, ...], Sequence[Node]]] = []
        while True:
            self._separators()
            if self.at_word("esac"):
                self.at += 4
                return Case(subject, tuple(arms), start)
            if self.here == "(":
                self.at += 1
            patterns = []
            self.blanks()
            while self.here and self.here not in ")\n":
                patterns.append(self.word())
                self.blanks()
                if self.here == "|":
                    self.at += 1
                self.blanks()
                if patterns[-1].start == patterns[-1].end:
                    break
            if self.here != ")":
                raise self.error(_("a pattern is not closed"), start)
            self.at += 1
            arms.append((tuple(patterns), self.commands(";;", "esac")))
            if self.peek(";;"):
                self.at += 3 if self.peek(";;&") else 2

    def _function(self, start: int) -> Node | None:
        found = _FUNCTION.match(self.text, self.at) or _NAMED.match(self.text, self.at)
        if found is None or ASSIGN.match(found.group()):
            return None
        self.at = found.end()
        self.lines()
        body = self._compound()
        if body is None:
            raise self.error(_("a function has no body"), start)
        return Function(found.group(1), (body,), start)
