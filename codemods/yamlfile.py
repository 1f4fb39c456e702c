"""A YAML file, read strictly: every value knows its line, every key is declared, and nothing in it can run or explode."""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import InvalidError
from codemods.fields import Field
from locales import _

MAX_BYTES = 1_000_000
MAX_DEPTH = 30
_TAG = "tag:yaml.org,2002:"


class RecipeError(InvalidError):
    """A recipe, or another YAML file of ours, is not valid."""


@dataclass(frozen=True)
class Located:
    """A table that was read, with the line of the table and of each key."""

    values: Mapping[str, Any]
    path: Path
    line: int
    lines: Mapping[str, int]

    def where(self, key: str | None = None) -> str:
        return f"{self.path}:{self.lines.get(key, self.line) if key else self.line}"

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self.values


class _Reader:
    """Turns composed YAML nodes into plain values, checked against the declared fields."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, node: Any, what: str, todo: str | None = None) -> RecipeError:
        return RecipeError(what, where=_at(self.path, node.start_mark), todo=todo)

    def pairs(self, node: Any) -> Iterator[tuple[str, Any, Any]]:
        if node.id != "mapping":
            raise self.error(node, _("a table of `key: value` lines is wanted here"))
        known: set[str] = set()
        for key, value in node.value:
            if key.id != "scalar" or key.tag != _TAG + "str":
                raise self.error(key, _("a key has to be a plain word"))
            if key.value in known:
                raise self.error(key, _("the key `{key}` stands here twice").format(key=key.value))
            known.add(key.value)
            yield key.value, key, value

    def table(self, node: Any, fields: Mapping[str, Field]) -> Located:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for name, key, value in self.pairs(node):
            if name not in fields:
                near = difflib.get_close_matches(name, fields, 1)
                hint = (
                    _("did you mean `{near}`?").format(near=near[0])
                    if near
                    else _("known: {keys}").format(keys=", ".join(fields))
                )
                raise self.error(key, _("unknown key `{key}`").format(key=name), hint)
            if fields[name].kind in ("tables", "texts") and value.id == "scalar" and not value.value:
                todo = _("take the `# ` off a candidate that is a comment, or write an entry")
                raise self.error(key, _("there is no entry below `{key}` yet").format(key=name), todo)
            values[name] = self.value(value, fields[name])
            lines[name] = key.start_mark.line + 1
        for name, field in fields.items():
            if field.required and name not in values:
                raise self.error(node, _("the key `{key}` is missing").format(key=name), wanted(name, field))
        return Located(values, self.path, node.start_mark.line + 1, lines)

    def value(self, node: Any, field: Field) -> Any:
        if field.kind == "table":
            return self.table(node, field.fields)
        if field.kind == "mapping":
            return {name: self.table(value, field.fields) for name, _key, value in self.pairs(node)}
        if field.kind in ("tables", "texts"):
            if node.id != "sequence":
                raise self.error(node, _("a list is wanted here"))
            one = (
                Field("text", field.help) if field.kind == "texts" else Field("table", field.help, fields=field.fields)
            )
            return [self.value(item, one) for item in node.value]
        if node.id != "scalar":
            raise self.error(node, _("a single value is wanted here"))
        return self.scalar(node, field)

    def scalar(self, node: Any, field: Field) -> Any:
        tag = node.tag.removeprefix(_TAG)
        if field.kind == "integer" or (field.kind == "value" and tag == "int"):
            if tag != "int" or not node.value.lstrip("+-").isdigit() or len(node.value) > 18:
                raise self.error(node, _("a whole number is wanted here"))
            return int(node.value)
        if field.kind == "flag" or (field.kind == "value" and tag == "bool"):
            if tag != "bool":
                raise self.error(node, _("`true` or `false` is wanted here"))
            return node.value.lower() == "true"
        if tag != "str":
            raise self.error(
                node,
                _("`{value}` is a YAML {kind} here; text is wanted").format(value=node.value, kind=tag),
                _('put it in quotes: "{value}"').format(value=node.value),
            )
        if field.kind == "choice" and node.value not in field.choices:
            raise self.error(
                node, _("`{value}` is none of: {choices}").format(value=node.value, choices=", ".join(field.choices))
            )
        if not node.value.strip():
            raise self.error(node, _("the value is empty"))
        return node.value


def wanted(key: str, field: Field) -> str:
    """What to do about a key that is missing."""
    return _("add `{key}:` ({help})").format(key=key, help=field.help)


def read_yaml(path: Path, fields: Mapping[str, Field], without: tuple[str, ...] = ()) -> Located:
    """Read ``path`` as a table with these fields. Raises RecipeError with line and column.

    The lines of the top-level keys ``without`` are left out unread.
    """
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    data = _bytes_of(path)
    try:
        text = data.decode("utf-8-sig")
        for key in without:
            block = re.compile(rf"^{key}:.*?(?=^[^\s#-]|\Z)", re.MULTILINE | re.DOTALL)
            text = block.sub(lambda found: "\n" * found.group().count("\n"), text)
        node = _compose(path, text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem).split())
        raise RecipeError(
            _("this is not valid YAML"),
            where=_at(path, mark) if mark else str(path),
            why=problem,
            todo=_quoting(text, problem, mark.line if mark else 0),
        ) from error
    except (YAMLError, UnicodeDecodeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise RecipeError(_("this is not valid YAML"), where=str(path), why=why) from error
    if node is None:
        raise RecipeError(_("the file is empty"), where=str(path))
    return _Reader(path).table(node, fields)


_SIGN = re.compile(r"^[ -]*[\w.-]+: +((?:[>|%@`&*!]|\? )\S?.*)")


def _quoting(text: str, problem: str, line: int) -> str | None:
    """Where quotes are missing: around a value that YAML reads as syntax. ``line`` counts from 0."""
    if "mapping values" in problem:
        return _("a value that ends with `:` or holds `: ` has to be in quotes")
    lines = text.splitlines()
    found = _SIGN.match(lines[line]) if line < len(lines) else None
    if found is None:
        return None
    return _('a value that begins with `{sign}` has to be in quotes: "{value}"').format(
        sign=found.group(1)[0], value=found.group(1).strip()
    )


def _compose(path: Path, text: str) -> Any:
    """The node tree, by libyaml where it is installed. Deep nesting would take that down, so the events are looked at first."""
    from ruamel.yaml import YAML
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = 0
    for event in YAML(typ="safe").parse(io.StringIO(text)):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise RecipeError(_("the YAML nests too deep"), where=_at(path, event.start_mark))
        if isinstance(event, AliasEvent):
            raise RecipeError(
                _("YAML aliases are not allowed here"),
                where=_at(path, event.start_mark),
                todo=_("write the value out"),
            )
    return YAML(typ="safe").compose(io.StringIO(text))


def _at(path: Path, mark: Any) -> str:
    return f"{path}:{mark.line + 1}:{mark.column + 1}"


def _bytes_of(path: Path) -> bytes:
    try:
        if not path.is_file():
            what = _("this is no regular file") if path.exists() else _("there is no such file")
            raise RecipeError(what, where=str(path))
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecipeError(_("the file cannot be read"), where=str(path), why=error.strerror) from error
    if len(data) > MAX_BYTES:
        raise RecipeError(_("the file is larger than {size} bytes").format(size=MAX_BYTES), where=str(path))
    return data
