"""Taking everything out of every tree that can be reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleet.cluster import Answer, Cluster, Progress
from fleet.standing import Fleet, standing
from fleet.survey import Where, ask_trees
from fleet.trees import Group, said
from locales import _


@dataclass(frozen=True)
class Reverted:
    """One tree. ``exact``: nothing of ours is left in it; ``receipt`` is its own; ``marks``: what still looks like ours, if
    it was searched."""

    group: Group
    exact: bool
    why: str = ""
    receipt: dict[str, Any] | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Out:
    """``before``: what stood on the trees."""

    before: Fleet
    trees: tuple[Reverted, ...]

    @property
    def finished(self) -> bool:
        """Nothing of ours is left here, and nobody who may hold something of it is away."""
        away = self.before.absent if self.before.holds else ()
        return all(one.exact for one in self.trees) and not self.before.troubles and not away


def revert(cluster: Cluster, where: Where, options: Sequence[str], search: bool, progress: Progress) -> Out:
    """A tree that fails does not stop the others. With ``search`` each tree is searched for marks of ours. Raises BusyError."""
    with cluster.alone():
        before = standing(cluster, where, progress)
        groups = [one.group for one in before.trees]
        calls = [["revert", *where.words, *options, "--json"], *([where.tree("--marks")] if search else [])]
        answers = ask_trees(cluster, groups, calls, progress)
    return Out(before, tuple(_reverted(group, answer) for group, answer in zip(groups, answers, strict=True)))


def _reverted(group: Group, answer: Answer) -> Reverted:
    if answer.lost:
        return Reverted(group, False, answer.lost)
    done, *searched = map(said, answer.calls)
    if "files" not in done.data:
        return Reverted(group, False, done.error)
    why = "" if done.code == 0 else _("an edit had to stay, or a trace is left")
    marks: list[str] = []
    for tree in searched:
        if not isinstance(tree.data.get("marks"), list):
            return Reverted(group, False, why or tree.error or _("it could not be searched for marks"), done.data)
        marks = [f"{one['path']}:{one['line']}" if one["line"] else str(one["path"]) for one in tree.data["marks"]]
    why = why or (_("marks of ours are left") if marks else "")
    return Reverted(group, not why, why, done.data, tuple(marks))
