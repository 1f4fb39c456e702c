"""What stands on the trees, which run it belongs to, and whether that run is whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleet.cluster import Cluster, Progress
from fleet.runs import Run
from fleet.survey import Where, look
from fleet.trees import Group, Trouble
from locales import _

CLEAN, PATCHED, CHANGED, INTERRUPTED = "clean", "patched", "changed", "interrupted"


@dataclass(frozen=True)
class TreeState:
    """``state``: clean, patched (as apply left it), changed (an edit is not as it was made), interrupted. ``run``: the last that it
    took part in, also when nothing of it stands any more."""

    group: Group
    state: str
    edits: tuple[str, ...] = ()
    run: Run | None = None
    why: str = ""

    @property
    def holds(self) -> bool:
        """Something of ours is in it, or may be."""
        return self.state != CLEAN


@dataclass(frozen=True)
class Fleet:
    """``last``: the last run that a tree here knows of; ``absent``: who took part in it and is not in the cluster now."""

    trees: tuple[TreeState, ...]
    troubles: tuple[Trouble, ...]
    last: Run | None
    absent: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Something of ours is in one of the trees, or may be."""
        return any(one.holds for one in self.trees)

    @property
    def even(self) -> bool:
        """Every tree is the same: all patched alike, with nobody absent, or all clean."""
        if (
            self.troubles
            or any(one.state not in (CLEAN, PATCHED) for one in self.trees)
            or (self.holds and self.absent)
        ):
            return False
        return len({one.edits for one in self.trees}) <= 1


def standing(cluster: Cluster, where: Where, progress: Progress) -> Fleet:
    """Writes nothing."""
    found = look(cluster, where, [], progress)
    trees = tuple(_state(group) for group in found.groups)
    last = max((one.run for one in trees if one.run is not None), key=lambda run: run.id, default=None)
    return Fleet(trees, found.troubles, last, _absent(cluster, trees, last))


def _absent(cluster: Cluster, trees: tuple[TreeState, ...], last: Run | None) -> tuple[str, ...]:
    """A node may come back under another name: its tree knows the old one. Who names nodes asks for these only."""
    if last is None or cluster.nodes != cluster.all_nodes:
        return ()
    here = {node.name for node in cluster.nodes}
    here |= {one.run.node for one in trees if one.run is not None and one.run.id == last.id}
    return tuple(name for name in last.nodes if name not in here)


def _state(group: Group) -> TreeState:
    tree = group.first.tree
    edits = tuple(sorted(f"{one['recipe']}/{one['edit']}" for one in tree["edits"]))
    run = _run(tree["run"])
    if cut := tree["interrupted"]:
        if cut["worker"] is not None:
            return TreeState(
                group, INTERRUPTED, edits, run, _("process {pid} is at work in it").format(pid=cut["worker"])
            )
        return TreeState(group, INTERRUPTED, edits, run, _("an apply or a revert was cut off; the next one repairs it"))
    if not edits:
        return TreeState(group, CLEAN, (), run)
    bad = next((one for one in tree["edits"] if not one["fine"]), None)
    if bad is not None:
        return TreeState(group, CHANGED, edits, run, f"{bad['path']}: {bad['state']}")
    return TreeState(group, PATCHED, edits, run)


def _run(told: dict[str, Any] | None) -> Run | None:
    return Run(told["id"], told["trees"], tuple(told["nodes"]), told["node"]) if told is not None else None
