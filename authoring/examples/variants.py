"""The same file in other clothes: CR LF, a byte-order mark, tabs, no final newline. What an edit makes must not depend on them."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass

from codemods.layout import SnippetError, inside_strings
from locales import _

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=]", re.MULTILINE)
_BOM = "\ufeff"


class NotApplicable(Exception):
    """The variant cannot be written for this file; ``str()`` says why."""


@dataclass(frozen=True)
class Variant:
    """``dress`` turns an example's text, or what the edits make of it, into the variant's. Raises NotApplicable."""

    name: str
    dress: Callable[[str], str]


def variants(before: str) -> tuple[Variant, ...]:
    """The variants of an example; each is to be tried on ``before`` first."""
    unit = _unit_of(before)
    return (
        Variant("crlf", lambda text: _crlf(text, before)),
        Variant("bom", _bom),
        Variant("tabs", lambda text: _tabs(text, unit)),
        Variant("no-final-newline", _no_final_newline),
    )


def _crlf(text: str, before: str) -> str:
    if "\r" in text:
        raise NotApplicable(_("it has CR LF already"))
    if "\n" not in before:
        raise NotApplicable(_("it is a single line without an end"))
    return text.replace("\n", "\r\n")


def _bom(text: str) -> str:
    if text.startswith(_BOM):
        raise NotApplicable(_("it has a byte-order mark already"))
    if _COOKIE.search("\n".join(text.split("\n")[:2])):
        raise NotApplicable(_("its coding line says what the encoding is"))
    return _BOM + text


def _no_final_newline(text: str) -> str:
    if not text.endswith("\n"):
        raise NotApplicable(_("it has no final newline anyway"))
    if text.endswith(("\n\n", "\r\n")):
        raise NotApplicable(_("it ends with an empty line"))
    return text[:-1]


def _unit_of(text: str) -> int:
    """Blanks in one step of indentation; 0 when there is none, or it is not made of equal steps of blanks."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return 0
    indents = [token.string for token in tokens if token.type == tokenize.INDENT]
    widths = [len(indent) for indent in indents]
    unit = min(widths, default=0)
    return unit if unit and all(set(i) == {" "} and len(i) % unit == 0 for i in indents) else 0


def _tabs(text: str, unit: int) -> str:
    """A tab for each step; lines that begin inside a string keep their bytes."""
    if not unit:
        raise NotApplicable(_("its lines are not indented by equal steps of blanks"))
    try:
        inside = inside_strings(text)
    except SnippetError as error:
        raise NotApplicable(str(error.why or error.what)) from error
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        code = line.lstrip(" ")
        width = len(line) - len(code)
        kept = number in inside or not code.strip()
        lines.append(line if kept else "\t" * (width // unit) + " " * (width % unit) + code)
    return "\n".join(lines)
