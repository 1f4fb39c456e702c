"""The recorded recipe as YAML that people read: short values plain, code in blocks, what the author has to fill in marked."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codemods.recipe_fields import SELECT
from locales import _

TODO = "TODO"
_PLAIN = re.compile(r"[A-Za-z_][\w./ ,+()=*\[\]-]*")
_CODE = re.compile(r"[A-Za-z_@][^\n]*")


@dataclass(frozen=True)
class Line:
    """An edit as it is written. ``marker``: whether its lines carry our comment."""

    id: str
    file: str
    symbol: str
    select: Mapping[str, Any]
    fields: Mapping[str, str]
    nth: int | None
    expect: int
    marker: bool


@dataclass(frozen=True)
class Shown:
    """An example: what the edits of one file make of a small one."""

    edits: tuple[str, ...]
    before: str
    after: str


@dataclass(frozen=True)
class Page:
    """Everything that the YAML says. ``opening`` are comment lines at its top; ``verified`` may be empty."""

    id: str
    framework: str
    side: str
    versions: str
    verified: str
    opening: Sequence[str]
    edits: Sequence[Line]
    parameters: Mapping[str, tuple[str, str, Any]] = field(default_factory=dict)
    switches: Sequence[str] = ()
    examples: Sequence[Shown] = ()
    todo: Mapping[str, str] = field(default_factory=dict)


def written(page: Page) -> str:
    return "\n".join(_lines(page)) + "\n"


def _lines(page: Page) -> Iterator[str]:
    for text in page.opening:
        yield f"# {text}" if text else "#"
    yield from _pair("recipe", page.id, 0)
    yield from _pair("framework", page.framework, 0)
    yield from _noted(page, "side", page.side)
    yield from _noted(page, "versions", _quoted(page.versions))
    if page.verified:
        yield f"verified: [{_quoted(page.verified)}]"
    yield f"why: {_quoted(TODO + ': ' + page.todo['why'])}"
    if page.parameters:
        yield "parameters:"
    for name, (kind, env, default) in page.parameters.items():
        yield f"  {name}:"
        yield f"    type: {kind}"
        yield f"    env: {env}"
        if default is not None:
            yield f"    default: {json.dumps(default, ensure_ascii=False)}"
        yield f"    help: {_quoted(TODO + ': ' + page.todo['help'])}"
    if page.switches:
        yield f"switches: [{', '.join(page.switches)}]"
    yield "edits:"
    last = ""
    for edit in page.edits:
        if last and edit.file != last:
            yield ""
        last = edit.file
        yield from _edit(edit, page.todo["edit"])
    if page.examples:
        yield ""
        yield "examples:"
    for example in page.examples:
        yield f"  - edits: [{', '.join(example.edits)}]"
        yield from _pair("before", example.before, 4, exact=True)
        yield from _pair("after", example.after, 4, exact=True)


def _noted(page: Page, key: str, value: str) -> Iterator[str]:
    note = page.todo.get(key)
    yield f"{key}: {value}  # {TODO}: {note}" if note else f"{key}: {value}"


def _edit(edit: Line, todo: str) -> Iterator[str]:
    yield f"  - id: {edit.id}"
    yield f"    why: {_quoted(TODO + ': ' + todo)}"
    yield from _pair("file", edit.file, 4)
    if edit.symbol:
        yield from _pair("in", edit.symbol, 4)
    if edit.select:
        inner = ", ".join(f"{key}: {_scalar(value)}" for key, value in edit.select.items() if key in SELECT)
        yield f"    select: {{{inner}}}"
    if "around_body" in edit.fields:
        yield "    around_body:"
        for key, value in edit.fields.items():
            if key != "around_body":
                yield from _pair(key, value, 6)
    else:
        for key, value in edit.fields.items():
            yield from _pair(key, value, 4)
    if edit.expect > 1:
        yield f"    expect: {edit.expect}"
    if edit.nth is not None:
        yield f"    nth: {edit.nth}"
    if not edit.marker:
        yield "    marker: false"


def _scalar(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _pair(key: str, text: str, indent: int, exact: bool = False) -> Iterator[str]:
    blanks = " " * indent
    if "\n" not in text:
        yield f"{blanks}{key}: {text if _reads_the_same(text) else _quoted(text)}"
        return
    if not _fits_a_block(text):
        yield f"{blanks}{key}: {_quoted(text)}"
        return
    chomp = "" if not exact else {0: "-", 1: ""}.get(len(text) - len(text.rstrip("\n")), "+")
    lines = (text.rstrip("\n") if chomp != "+" else text[:-1]).split("\n")
    opening = "2" if lines[0][:1] == " " or not lines[0] else ""
    if lines[0] and not lines[0].strip():
        yield f"{blanks}# {_('the line of blanks below is the blank line above the code')}"
    yield f"{blanks}{key}: |{opening}{chomp}"
    for line in lines:
        yield f"{blanks}  {line}" if line else ""


def _fits_a_block(text: str) -> bool:
    return all(c == "\n" or c == "\t" or c.isprintable() for c in text) and not any(
        line[:1] == "\t" for line in text.split("\n")
    )


def _reads_the_same(text: str) -> bool:
    """Whether YAML reads the text as it stands, without quotes, as this text."""
    if not _CODE.fullmatch(text) or ": " in text or " #" in text or text.endswith((":", " ")) or text.startswith("@"):
        return False
    if _PLAIN.fullmatch(text) and len(text) > 5:
        return True
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return bool(YAML(typ="safe", pure=True).load(io.StringIO(f"k: {text}\n")) == {"k": text})
    except YAMLError:
        return False
