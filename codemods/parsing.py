"""LibCST's parser, guarded: it recurses over what it reads, and raises more than its own errors."""

from __future__ import annotations

import libcst as cst

from codemods.nesting import MAX_DEPTH, nesting

MAX_SNIPPET = 100_000  # characters of a pattern or of code to insert


class UnparsableError(Exception):
    """``str()`` says why in one line."""


def parse_module(text: str) -> cst.Module:
    """Raises UnparsableError, whatever LibCST raises."""
    if nesting(text) > MAX_DEPTH:
        raise UnparsableError("it nests too deep to be parsed safely")
    try:
        return cst.parse_module(text)
    except Exception as error:  # LibCST raises TypeError and RecursionError beside its own
        raise UnparsableError(" ".join(str(error).split())[:300]) from error


def parse_snippet(text: str) -> cst.Module:
    """A pattern, or code to insert. Raises UnparsableError."""
    if len(text) > MAX_SNIPPET:
        raise UnparsableError(f"it is longer than {MAX_SNIPPET} characters")
    return parse_module(text)
