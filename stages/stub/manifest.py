"""What was prepared for a round: beside the files, so that the folder tells by itself what it is and what it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from codemods.errors import InvalidError, UsageError
from locales import _
from stages.dumps.streaming import open_regular
from stages.stub.form import problems

NAME = "stub_source.json"
FORMAT = "probepatch/stub-source/1"
_LARGEST = 256 << 20  # bytes
_TEXT = {"type": "string"}
_FILE = {
    **dict.fromkeys(("path", "entry", "argument", "dtype", "sha256"), _TEXT),
    "step": {"type": "integer"},
    "shape": {"type": "array", "items": {"type": "integer"}},
}
_FORM: dict[str, Any] = {
    "format": {"const": FORMAT},
    "round": {"type": "integer"},
    "target_side": {"enum": ["train", "infer"]},
    "source_side": {"enum": ["train", "infer"]},
    "isolate_boundary": _TEXT,
    "dump_after_load": {"type": "boolean"},
    "step": {"type": "integer"},
    "all_ranks": {"type": "boolean"},
    "target": _TEXT,
    "left": {"type": "array", "items": _TEXT},
}


class StubSourceError(InvalidError):
    """The folder of sources is none of ours, or was changed."""


@dataclass(frozen=True)
class Prepared:
    """One file. ``path`` from the folder on; ``before`` where the target's own value is, if it was kept."""

    path: str
    entry: str
    argument: str
    step: int
    rank: int | None
    shape: list[int]
    dtype: str
    sha256: str
    before: str | None


@dataclass(frozen=True)
class Manifest:
    """``folder`` is where it was read; ``target`` the dump that the entries were checked on; ``ranks`` and ``all_ranks`` as in the
    plan."""

    folder: Path
    round: int
    target_side: str
    source_side: str
    isolate_boundary: str
    dump_after_load: bool
    step: int
    ranks: list[int] | None
    all_ranks: bool
    target: str
    files: tuple[Prepared, ...]
    left: list[str]

    @property
    def entries(self) -> list[str]:
        return list(dict.fromkeys(one.entry for one in self.files))

    def as_json(self) -> dict[str, Any]:
        told = {name: value for name, value in asdict(self).items() if name not in ("folder", "files")}
        return {"format": FORMAT, **told, "files": [asdict(one) for one in self.files]}


def read_manifest(folder: Path) -> Manifest:
    """Raises UsageError, StubSourceError."""
    path = folder / NAME
    try:
        with open_regular(path) as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(
            _("there are no prepared sources in {path}").format(path=folder),
            why=error.strerror or str(error),
            todo=_("`probepatch stub prepare INSTRUCTION` makes them"),
        ) from error
    try:
        data = json.loads(text[:_LARGEST].decode("utf-8"))
        _check(data, {"type": "object", "properties": _FORM, "required": list(_FORM)}, Manifest, ("folder",))
        files = tuple(_prepared(one) for one in data["files"])
        known = {name: data[name] for name in Manifest.__dataclass_fields__ if name not in ("folder", "files")}
        if not files:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StubSourceError(_("this is no list of prepared sources"), where=str(path)) from error
    return Manifest(folder=folder, files=files, **known)


def _prepared(one: Mapping[str, Any]) -> Prepared:
    """Raises ValueError for what we did not write; a path that leads out among it."""
    _check(one, {"type": "object", "properties": _FILE, "required": list(_FILE)}, Prepared, ())
    path = PurePosixPath(one["path"])
    if path.is_absolute() or ".." in path.parts:
        raise ValueError
    return Prepared(**one)


def _check(data: Any, form: dict[str, Any], kind: Any, beside: tuple[str, ...]) -> None:
    """Raises ValueError. Keys beside the form's are looked at by those who read them."""
    lacking = set(kind.__dataclass_fields__) - set(data) - set(beside)
    known = {name: value for name, value in data.items() if name in form["properties"]}
    ranks = [data.get("rank"), *(data.get("ranks") or [])]
    if lacking or any(problems(form, known)) or any(one is not None and type(one) is not int for one in ranks):
        raise ValueError
