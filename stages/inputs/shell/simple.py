"""Reading simple commands: assignments, words, redirections, ``[[ … ]]``."""

from __future__ import annotations

import re

from locales import _
from stages.inputs.shell.heredocs import HereDocuments
from stages.inputs.shell.nodes import Assign, Lit, Redirect, Simple, Word

ASSIGN = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]\n]*)\])?(\+?)=")
REDIRECT = re.compile(r"\d*(?:<<<|<<-|<<|<>|<&|>&|>>|>\||<|>)|&>>|&>|\{\w+\}[<>]")
DECLARING = ("export", "declare", "typeset", "local", "readonly")


class SimpleCommands(HereDocuments):
    """Builds on the reading of words; compound commands build on it."""

    def lines(self) -> None:
        self.blanks()
        while self.here == "\n":
            self.newline()
            self.blanks()

    def at_word(self, *words: str) -> bool:
        """Whether one of the reserved words stands here, as a word."""
        for word in words:
            if self.peek(word):
                following = self.text[self.at + len(word) : self.at + len(word) + 1]
                if word in (")", ";;", "}") or not following or following in " \t\n;&|<>()":
                    return True
        return False

    def simple(self) -> Simple:
        start = end = self.at
        assigns: list[Assign] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            if not self.here or self.here in "\n;|" or (self.here == "&" and not self.peek("&>")):
                break
            if REDIRECT.match(self.text, self.at) and not self._process():
                redirects.append(self.redirect())
            elif self.here in "()":
                break
            elif (not words or words[0].plain in DECLARING) and ASSIGN.match(self.text, self.at):
                assigns.append(self._assign())
            elif not words and self.at_word("[["):
                words = self._test()
            else:
                words.append(self.word())
            end = self.at
        if not assigns and not words and not redirects:
            raise self.error(_("this is not where a command can begin"))
        return Simple(tuple(assigns), tuple(words), tuple(redirects), start, end)

    def _test(self) -> list[Word]:
        """``[[ … ]]`` as words; its operators are words, too."""
        words = []
        start = self.at
        while True:
            self.lines()
            if not self.here:
                raise self.error(_("`{word}` is missing for what begins here").format(word="]]"), start)
            begin = self.at
            if self.peek("&&") or self.peek("||"):
                self.at += 2
            elif self.here in "()<>;|&" and self.here:
                self.at += 1
            else:
                words.append(self.word())
                if words[-1].plain == "]]":
                    return words
                continue
            words.append(Word((Lit(self.text[begin : self.at], begin, self.at),), begin, self.at))

    def _assign(self) -> Assign:
        found = ASSIGN.match(self.text, self.at)
        assert found is not None
        start, self.at = self.at, found.end()
        name, index, append = found.group(1), found.group(2), bool(found.group(3))
        if self.here != "(":
            return Assign(name, self.word(), start, append, index)
        self.at += 1
        words: list[Word] = []
        while True:
            self.lines()
            if self.here == ")":
                self.at += 1
                return Assign(name, tuple(words), start, append, index)
            before = self.at
            words.append(self.word())
            if self.at == before:
                raise self.error(_("an array is not closed"), start)

    def redirect(self) -> Redirect:
        found = REDIRECT.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        op = found.group().lstrip("0123456789")
        self.blanks()
        redirect = Redirect(op, self.word())
        if op in ("<<", "<<-"):
            self.pending.append(redirect)
        return redirect
