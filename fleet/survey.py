"""Ask every node the same, and tell the trees that they see; a node that has no answer is trouble, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.cluster import Answer, Cluster, Progress
from fleet.trees import Group, Seen, Trouble, grouped, said
from locales import _


@dataclass(frozen=True)
class Where:
    """The framework on each node: a folder of the same path everywhere, or the package that the workers would import."""

    path: str | None = None
    package: str | None = None

    @property
    def words(self) -> list[str]:
        if self.path is not None:
            return [self.path]
        assert self.package is not None
        return ["--package", self.package, "--python", "{python}"]

    def tree(self, *options: str) -> list[str]:
        """The call that tells of a tree."""
        return ["fleet", "tree", *options, *self.words, "--json"]


@dataclass(frozen=True)
class Survey:
    """``groups``: the trees, with what the first node of each said; ``troubles``: nodes without a usable answer."""

    groups: tuple[Group, ...]
    troubles: tuple[Trouble, ...]


def look(cluster: Cluster, where: Where, calls: Sequence[Sequence[str]], progress: Progress) -> Survey:
    """What every node tells of its tree, and its answers to ``calls`` (``seen.said``)."""
    seen: list[Seen] = []
    troubles: list[Trouble] = []
    for answer in cluster.ask(cluster.nodes, [where.tree(), *calls], progress):
        if answer.lost:
            troubles.append(Trouble(answer.node, answer.lost))
            continue
        tree, *more = map(said, answer.calls)
        if "place" not in tree.data:
            troubles.append(Trouble(answer.node, tree.error or _("it has no such tree")))
            continue
        seen.append(Seen(answer.node, tree.data, tuple(more), answer.python))
    return Survey(tuple(grouped(seen)), tuple(troubles))


def ask_trees(
    cluster: Cluster, groups: Sequence[Group], calls: Sequence[Sequence[str]], progress: Progress
) -> list[Answer]:
    """One answer for each tree, by the first of its nodes that gives one: for calls that may be repeated."""
    found: dict[Group, Answer] = {}
    for turn in range(max((len(group.seen) for group in groups), default=0)):
        open_ = [group for group in groups if turn < len(group.seen) and (group not in found or found[group].lost)]
        if open_:
            found |= zip(open_, cluster.ask([group.seen[turn].node for group in open_], calls, progress), strict=True)
    return [found[group] for group in groups]
