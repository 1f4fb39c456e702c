"""What stands on the trees, which run it belongs to, and whether that run is whole; and taking it out everywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleet.cluster import Cluster, Progress
from fleet.runs import Run, run_of
from fleet.survey import Survey, Where, look
from fleet.trees import Group, Trouble, said
from locales import _

CLEAN, PATCHED, CHANGED, INTERRUPTED, UNKNOWN = "clean", "patched", "changed", "interrupted", "unknown"
_MARKS = """
import json, sys
from pathlib import Path
from stages.restore.marks import marks
print(json.dumps({"marks": [one.as_json() for one in marks(Path(sys.argv[1]))]}))
"""


@dataclass(frozen=True)
class TreeState:
    """``state``: clean, patched (as apply left it), changed (an edit is not as it was made), interrupted, unknown."""

    group: Group
    state: str
    edits: tuple[str, ...] = ()
    run: Run | None = None
    why: str = ""


@dataclass(frozen=True)
class Fleet:
    """``absent``: nodes that took part in a run and are not in the cluster now."""

    trees: tuple[TreeState, ...]
    troubles: tuple[Trouble, ...]
    absent: tuple[str, ...]

    @property
    def even(self) -> bool:
        """Every tree is the same: all patched alike, or all clean."""
        if self.troubles or self.absent or any(one.state not in (CLEAN, PATCHED) for one in self.trees):
            return False
        return len({one.edits for one in self.trees}) <= 1


def standing(cluster: Cluster, where: Where, progress: Progress) -> Fleet:
    """Writes nothing."""
    calls = [["status", *where.words, "--json"], ["ledger", "show", *where.words, "--json"]]
    found = look(cluster, where, calls, progress)
    trees = tuple(_state(group) for group in found.groups)
    here = {node.name for node in cluster.nodes}
    runs = {one.run.id: one.run for one in trees if one.run is not None}
    absent = dict.fromkeys(name for run in runs.values() for name in run.nodes if name not in here)
    return Fleet(trees, found.troubles, tuple(absent))


def _state(group: Group) -> TreeState:
    told, record = group.first.said[1], group.first.said[2]
    if told.code not in (0, 1) or "edits" not in told.data:
        return TreeState(group, UNKNOWN, why=told.error or _("its status is not known"))
    edits = tuple(sorted(f"{one['recipe']}/{one['edit']}" for one in told.data["edits"]))
    run = run_of(record.data.get("transactions", [])) if edits or told.data["interrupted"] else None
    if told.data["interrupted"]:
        return TreeState(group, INTERRUPTED, edits, run, _("an apply or a revert was cut off; the next one repairs it"))
    if not edits:
        return TreeState(group, CLEAN)
    bad = [one for one in told.data["edits"] if one["state"] not in ("applied", "nearby", "committed")]
    if bad:
        return TreeState(group, CHANGED, edits, run, f"{bad[0]['path']}: {bad[0]['state']}")
    return TreeState(group, PATCHED, edits, run)


@dataclass(frozen=True)
class Reverted:
    """One tree after a revert. ``exact``: nothing of ours is left in it; ``receipt`` is its own."""

    group: Group
    exact: bool
    why: str = ""
    receipt: dict[str, Any] | None = None
    marks: tuple[str, ...] = ()


def revert(
    cluster: Cluster, where: Where, options: Sequence[str], search: bool, progress: Progress
) -> tuple[list[Reverted], Survey, tuple[str, ...]]:
    """Take every edit out of every tree that can be reached. With ``search`` each tree is searched for marks of ours. Also the
    survey from before, and the nodes that took part and are not here."""
    before = standing(cluster, where, progress)
    groups = [one.group for one in before.trees]
    calls = [["revert", *where.words, *options, "--json"]]
    answers = cluster.ask([group.first.node for group in groups], calls, {}, progress)
    out = []
    for group, answer in zip(groups, answers, strict=True):
        told = said(answer.calls[0]) if not answer.lost else None
        if told is None or told.code is None or "files" not in told.data:
            out.append(Reverted(group, False, answer.lost or (told.error if told else "")))
            continue
        exact = told.code == 0
        why = "" if exact else _("an edit had to stay, or a trace is left")
        out.append(Reverted(group, exact, why, told.data))
    if search:
        out = _searched(cluster, out, progress)
    return out, Survey(tuple(groups), before.troubles), before.absent


def _searched(cluster: Cluster, done: list[Reverted], progress: Progress) -> list[Reverted]:
    out = []
    for one in done:
        (answer,) = cluster.ask([one.group.first.node], [["-c", _MARKS, one.group.first.root]], {}, progress)
        text = "" if answer.lost else answer.calls[0].out
        try:
            found = json.loads(text)["marks"]
        except (ValueError, KeyError, TypeError):
            why = answer.lost or _("it could not be searched for marks")
            out.append(Reverted(one.group, False, one.why or why, one.receipt))
            continue
        marks = tuple(f"{each['path']}:{each['line']}" if each["line"] else str(each["path"]) for each in found)
        why = one.why or (_("marks of ours are left") if marks else "")
        out.append(Reverted(one.group, one.exact and not marks, why, one.receipt, marks))
    return out
