"""Here-documents: they are announced by a redirection, and begin on the next line."""

from __future__ import annotations

from collections.abc import Iterator

from stages.inputs.shell.nodes import Lit, Part, Redirect, Word
from stages.inputs.shell.words import Words


class HereDocuments(Words):
    """Lines and the documents between them."""

    def newline(self) -> None:
        """Over a line's end, and the here-documents that begin there."""
        self.at += 1
        waiting, self.pending = self.pending, []
        for redirect in waiting:
            self._document(redirect)

    def _document(self, redirect: Redirect) -> None:
        end = "".join(part.text for part in redirect.target.parts if isinstance(part, Lit))
        quoted = redirect.target.plain is None
        start = at = self.at
        while at < len(self.text):
            stop = self.text.find("\n", at)
            stop = len(self.text) if stop < 0 else stop
            line = self.text[at:stop]
            if (line.lstrip("\t") if redirect.op == "<<-" else line) == end:
                break
            at = stop + 1
        at = min(at, len(self.text))
        parts: list[Part] = []
        for first, last in self._body(start, at, redirect.op == "<<-"):
            if quoted:
                parts.append(Lit(self.text[first:last], first, last, "<<'"))
            else:
                parts += self._expanded(first, last)
        redirect.body = Word(tuple(parts), start, at)
        stop = self.text.find("\n", at)
        self.at = len(self.text) if stop < 0 else stop + 1

    def _expanded(self, start: int, end: int) -> tuple[Part, ...]:
        self.at = start
        return self.parts(lambda: self.at >= end, "<<")

    def _body(self, start: int, end: int, indented: bool) -> Iterator[tuple[int, int]]:
        """The text of a here-document; line by line without its leading tabs for ``<<-``."""
        if not indented:
            yield start, end
            return
        while start < end:
            stop = self.text.find("\n", start, end) + 1 or end
            while start < stop and self.text[start] == "\t":
                start += 1
            yield start, stop
            start = stop
