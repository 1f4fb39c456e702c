"""The sources of a round, transformed and laid out as the target's `load` looks them up."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from codemods.errors import FindingError, RefusedError
from locales import _
from stages.sides import Side
from stages.stub.instruction import Instruction
from stages.stub.manifest import NAME, Manifest, Prepared, read_manifest
from stages.stub.plan import MSPROBE_PATH, Item, Plan, make_plan
from stages.stub.sending import ask
from stages.stub.staging import staged

_SHOWN = 12


class StubTransformError(FindingError):
    """A source cannot be read, or does not become what the target needs; nothing was left behind."""


def prepare(instruction: Instruction, source: Path, target: Path, out: Path, side: Side) -> Manifest:
    """``out`` is made, whole or not at all. Raises StubPlanError, StubDumpError, StubTransformError, RefusedError, SideError."""
    plan = make_plan(instruction, source, target)
    _check_path(out)
    with staged(out) as part:
        told = ask(side, "transform", {"items": [_given(one, part) for one in plan.items]}, _rules(plan))
        _refuse(plan, told["items"])
        files = tuple(_files(plan, told["items"]))
        _expect(part, files)
        manifest = _manifest(instruction, plan, target, out, files)
        origin = {"instruction": instruction.data, "sources": [one["sources"] for one in told["items"]]}
        _write(part / NAME, {**manifest.as_json(), **origin, "torch": told["torch"]})
    return read_manifest(out)


def _check_path(out: Path) -> None:
    """Raises RefusedError where msprobe would not open what is prepared."""
    if not MSPROBE_PATH.fullmatch(str(out.resolve())):
        raise RefusedError(
            _("msprobe opens no file below {path}").format(path=out),
            why=_("its paths hold letters, digits and _ . : / - only"),
            todo=_("another artefact root"),
        )


def _given(item: Item, part: Path) -> dict[str, Any]:
    """The folders are made here, so that what another user writes into them can be taken away again."""
    writes = []
    for write in item.writes:
        path = part.resolve() / write.path
        path.parent.mkdir(parents=True, exist_ok=True)
        writes.append({"path": str(path), "rank": write.rank, "shape": list(write.shape), "dtype": write.dtype})
    return {"sources": list(map(str, item.sources)), "transform": list(item.transform), "writes": writes}


def _rules(plan: Plan) -> list[str]:
    return sorted({rule["rule"] for item in plan.items for rule in item.transform})


def _refuse(plan: Plan, answers: list[dict[str, Any]]) -> None:
    wrong = [
        f"modules[{item.module}]: {one['wrong']}" + (f" ({one['where']})" if one["where"] else "")
        for item, one in zip(plan.items, answers, strict=True)
        if one["wrong"]
    ]
    if wrong:
        raise StubTransformError(
            _("the sources do not become what the target needs: {first}").format(first=wrong[0]),
            why=_("nothing was left behind"),
            details=tuple(wrong[1:_SHOWN]),
        )


def _files(plan: Plan, answers: list[dict[str, Any]]) -> list[Prepared]:
    return [
        Prepared(
            *(write.path, write.entry, write.argument, write.step, write.rank),
            *(written["shape"], written["dtype"], written["sha256"], str(write.before) if write.before else None),
        )
        for item, answer in zip(plan.items, answers, strict=True)
        for write, written in zip(item.writes, answer["written"], strict=True)
    ]


def _expect(part: Path, files: tuple[Prepared, ...]) -> None:
    """Raises RefusedError when the side wrote into another file system than this one."""
    gone = [one.path for one in files if not (part / one.path).is_file()]
    if gone:
        raise RefusedError(
            _("the side's interpreter wrote {path}, and it is not here").format(path=gone[0]),
            why=_("the artefact root is not the same folder behind the side's prefix"),
        )


def _manifest(instruction: Instruction, plan: Plan, target: Path, out: Path, files: tuple[Prepared, ...]) -> Manifest:
    return Manifest(
        out,
        instruction.round,
        instruction.target_side,
        instruction.source_side,
        instruction.isolate_boundary,
        instruction.dump_after_load,
        plan.step,
        None if plan.ranks is None else list(plan.ranks),
        plan.all_ranks,
        str(target),
        files,
        list(plan.left),
    )


def _write(path: Path, data: Any) -> None:
    with path.open("x", encoding="utf-8") as file:
        json.dump(data, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
