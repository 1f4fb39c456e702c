"""Paths in recorded edits as parameters: an added file holds their values in its header, and the edits ask it by name."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from authoring.record.literals import looks_like_path
from authoring.record.names import slug
from authoring.record.yaml import Line

MODULE = "probepatch_values"
PAYLOAD = f"{MODULE}.py"
_TEXT = '''"""Values of a run. The environment variable wins over what `apply --set` wrote into the header."""

import os

PARAMETERS: dict = {}  # probepatch: parameters


def value(name):
    """The parameter's value; None when neither the environment nor `--set` gave one."""
    variable, given = PARAMETERS[name]
    return os.environ.get(variable) or given
'''
_CODE: tuple[str, ...] = (
    "insert",
    "enter",
    "finally",
    "with",
    "argument",
    "item",
    "decorator",
    "body_start",
    "body_end",
)
_CODE += ("before_each_return", "add_method", "add_function", "add_attribute")


@dataclass
class Parametrised:
    """``lines`` with the calls in place of the paths; ``values`` by name: environment variable and default. ``texts`` say which
    literal a call stands for, ``imports`` the line that each file got."""

    lines: list[Line]
    values: dict[str, tuple[str, str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)

    @property
    def payload(self) -> bytes:
        return _TEXT.encode()

    @property
    def added(self) -> frozenset[str]:
        """The ids of the edits that are there for the parameters alone."""
        return frozenset(line.id for line in self.lines[: len(self.imports) + 1]) if self.values else frozenset()

    def with_literals(self, made: bytes) -> bytes:
        """A file with the literals themselves in place of the calls."""
        for call, literal in self.texts.items():
            made = made.replace(call.encode(), literal.encode("utf-8"))
        return made


def parametrised(lines: Sequence[Line]) -> Parametrised:
    """The same edits with every path in their code as a parameter; no value at all when there is none."""
    found = Parametrised([])
    for line in lines:
        fields = {key: _without_paths(text, found) if key in _CODE else text for key, text in line.fields.items()}
        if fields != line.fields and line.file not in found.imports:
            found.imports[line.file] = f"from {line.file.partition('/')[0]} import {MODULE}"
        found.lines.append(replace(line, fields=fields))
    if found.values:
        found.lines = [*_files(found), *found.lines]
    return found


def _files(found: Parametrised) -> list[Line]:
    package = next(iter(found.imports)).partition("/")[0]
    lines = [Line("add-values", f"{package}/{PAYLOAD}", "", {}, {"add_file": PAYLOAD}, None, 1, True)]
    for number, (file, code) in enumerate(found.imports.items(), 1):
        name = "import-values" if number == 1 else f"import-values-{number}"
        lines.append(Line(name, file, "", {}, {"add_import": code}, None, 1, True))
    return lines


def _without_paths(code: str, found: Parametrised) -> str:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return code
    lines = code.split("\n")
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        path = _path(tokens, place)
        if path is None or token.start[0] != token.end[0]:
            continue
        call = _call(path, token.string, _keyword(tokens, place), found)
        line = lines[token.start[0] - 1]
        lines[token.start[0] - 1] = line[: token.start[1]] + call + line[token.end[1] :]
    return "\n".join(lines)


def _path(tokens: Sequence[tokenize.TokenInfo], place: int) -> str | None:
    """The token's value when it is a path by itself: no docstring, no part of a longer literal."""
    if tokens[place].type != tokenize.STRING:
        return None
    around = (tokens[place - 1] if place else None, tokens[place + 1] if place + 1 < len(tokens) else None)
    if any(one is not None and one.type == tokenize.STRING for one in around):
        return None
    try:
        value = ast.literal_eval(tokens[place].string)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str) and looks_like_path(value) else None


def _keyword(tokens: Sequence[tokenize.TokenInfo], place: int) -> str:
    """The name in ``name="…"``; empty for anything else."""
    if place > 1 and tokens[place - 1].string == "=" and tokens[place - 2].type == tokenize.NAME:
        return tokens[place - 2].string
    return ""


def _call(path: str, literal: str, name: str, found: Parametrised) -> str:
    words = re.split(r"\W+", path.rstrip("/").rpartition("/")[2].partition(".")[0])
    wanted = re.sub(r"\W+", "_", slug(name or "_".join(words)).replace("-", "_")).strip("_") or "path"
    wanted = f"path_{wanted}" if wanted[0].isdigit() else wanted
    name, number = wanted, 1
    while name in found.values and (found.values[name][1] != path or found.texts[_asking(name)] != literal):
        number += 1
        name = f"{wanted}_{number}"
    found.values[name] = (f"PROBEPATCH_{name.upper()}", path)
    found.texts[_asking(name)] = literal
    return _asking(name)


def _asking(name: str) -> str:
    return f'{MODULE}.value("{name}")'
