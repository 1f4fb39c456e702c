"""Hashes of the token ids that went into a forward, from the saved input of its embedding; the ids stay where they are read."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locales import _
from stages.dumps.outline import EMBEDDING
from stages.dumps.reading import said
from stages.dumps.steps import Step
from stages.sides import Side

FRONT, BACK, PADDING, OTHER = "front", "back", "padding", "other"
_LARGEST = 1 << 28  # bytes of a file of ids
_PAYLOAD = Path(__file__).with_name("payload_ids.py")


@dataclass(frozen=True)
class Ids:
    """``sha256`` of all ids that went in. Where the log has another hash, ``real`` says at which end the prompt was found in
    them, and ``rest`` whether the others are all alike (padding) or not. ``error``: why nothing is known."""

    rows: int | None = None
    sha256: str | None = None
    real: str | None = None
    rest: str | None = None
    error: str = ""


def read_ids(side: Side, steps: Sequence[Step]) -> list[Ids]:
    """Of each step, in their order, with one question to the side's interpreter. Raises SideError when it does not answer."""
    found: list[Ids | None] = []
    asked: list[dict[str, Any]] = []
    for step in steps:
        path, error = input_file(step)
        found.append(Ids(error=error) if path is None else None)
        if path is not None:
            alone = step.line if step.line is not None and len(step.line.request_ids) == 1 else None
            wanted = alone.prompt_sha256[0] if alone else None
            asked.append({"path": str(path), "sha256": wanted, "tokens": alone.prompt_tokens[0] if alone else None})
    if not asked:
        return [one or Ids() for one in found]
    answers = side.ask(_script(), asked)
    if not isinstance(answers, list) or len(answers) != len(asked):
        answers = [None] * len(asked)
    read = iter(answers)
    return [one if one is not None else _ids(next(read)) for one in found]


def input_file(step: Step) -> tuple[Path | None, str]:
    """The file of the embedding's input, or why there is none; never one outside of the step's own folder."""
    heads = step.outline.heads
    if not heads or heads[0].source != EMBEDDING:
        return None, _("the dump has no input of a token embedding")
    name = heads[0].data_name
    if name is None:
        return None, _("the dump has no tensors: its task is {task}").format(task=said(str(step.outline.task)))
    shown = said(name, 80)
    if "/" in name or "\\" in name or "\0" in name or not name.endswith(".pt"):
        return None, _("data_name {name} is no file of the dump").format(name=shown)
    folder = step.folder.path / "dump_tensor_data"
    path = folder / name
    try:
        about = path.lstat()
    except (OSError, ValueError) as error:
        return None, _("{name} cannot be read: {why}").format(name=shown, why=getattr(error, "strerror", "") or error)
    if folder.is_symlink() or not stat.S_ISREG(about.st_mode):
        return None, _("{name} is no regular file").format(name=shown)
    if about.st_size > _LARGEST:
        return None, _("{name} is too large for token ids").format(name=shown)
    return path.absolute(), ""


def _script() -> str:
    source = _PAYLOAD.read_text(encoding="utf-8")
    return f"_scope = {{'__name__': 'probe'}}\nexec({source!r}, _scope)\nanswer(_scope['probe'](GIVEN))\n"


def _ids(answer: Any) -> Ids:
    """An answer, whatever it is."""
    if isinstance(answer, dict) and answer.get("error"):
        return Ids(error=said(str(answer["error"])))
    rows, sha256 = (answer.get("rows"), answer.get("sha256")) if isinstance(answer, dict) else (None, None)
    if type(rows) is not int or not isinstance(sha256, str):
        return Ids(error=_("the interpreter gave no answer for it"))
    real, rest = answer.get("real"), answer.get("rest")
    return Ids(rows, sha256, real if real in (FRONT, BACK) else None, rest if rest in (PADDING, OTHER) else None)
