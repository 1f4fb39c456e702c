"""Literals that look like paths, and the parameters that a payload's header may make of some.

The recipe language takes a value in one way only: as a literal in the header line ``PARAMETERS: dict = {}`` of a file that the
recipe adds. So the values of such a header become parameters, and a path written anywhere else stays where it is and is named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from authoring.record.hunks import between
from codemods.errors import ProbePatchError
from codemods.nesting import syntax
from codemods.source import read_source

_HEADER = re.compile(rb"^(PARAMETERS\b[^\n]*= )(\{[^\n]+\})((?:  # probepatch: parameters)?)(?=\r?$)", re.MULTILINE)
_ENV = re.compile(r"[A-Z][A-Z0-9_]*")
_ROOTED = re.compile(r"(?:~|\.{1,2})?/[\w.+@-][\w.+@/ -]*")
_FILE = re.compile(r"[\w.+@-]+(?:/[\w.+@-]+)+\.(?:jsonl?|ya?ml|toml|pt|pth|npy|npz|csv|log|txt|safetensors|bin)")
_READ = re.compile(r"(?:environ(?:\.get\(|\[)|getenv\()\s*[\"']([A-Z][A-Z0-9_]*)[\"']")


@dataclass(frozen=True)
class Literal:
    """A string that looks like a path, by its file and 1-based line."""

    file: str
    line: int
    text: str


def looks_like_path(text: str) -> bool:
    if _FILE.fullmatch(text):
        return True
    rooted = _ROOTED.fullmatch(text)
    return rooted is not None and ("/" in text.strip("/~.") or text.startswith(("~", ".")) or "." in text)


def path_literals(file: str, base: bytes, edited: bytes) -> Iterator[Literal]:
    """Those in the lines that were edited."""
    try:
        source = read_source(file, edited)
        before = read_source(file, base).text
        tree = syntax(source.text.decode("utf-8"))
    except (ProbePatchError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    added = _added(before, source.text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not looks_like_path(node.value):
            continue
        if node.lineno in added:
            yield Literal(file, node.lineno, node.value)


def _added(before: bytes, after: bytes) -> set[int]:
    lines, shift = set(), 0
    for hunk in between(before, after):
        first = after.count(b"\n", 0, hunk.start + shift) + 1
        lines |= set(range(first, first + hunk.text.count(b"\n") + 1))
        shift += len(hunk.text) - (hunk.end - hunk.start)
    return lines


def header_parameters(data: bytes) -> tuple[bytes, Mapping[str, tuple[str, Any]]]:
    """A new file with an empty header, and what stood in it: name -> (environment variable, value)."""
    found = _HEADER.search(data)
    if found is None or not found.group(3):
        return data, {}
    try:
        values = ast.literal_eval(found.group(2).decode("utf-8"))
    except (ValueError, SyntaxError, UnicodeDecodeError, RecursionError, MemoryError):
        return data, {}
    if not isinstance(values, dict) or not all(_is_parameter(name, value) for name, value in values.items()):
        return data, {}
    return data[: found.start(2)] + b"{}" + data[found.end(2) :], values


def _is_parameter(name: object, value: object) -> bool:
    return (
        isinstance(name, str)
        and name.isidentifier()
        and isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], str)
        and _ENV.fullmatch(value[0]) is not None
        and (value[1] is None or isinstance(value[1], (str, int)))
    )


def parameter_type(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "path" if value is None or looks_like_path(str(value)) else "text"


def switches_in(code: str) -> list[str]:
    """The environment variables that the code reads by name."""
    return _READ.findall(code)
