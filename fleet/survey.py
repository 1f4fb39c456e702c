"""Ask every node the same, and tell the trees that they see; a node that has no answer is trouble, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleet.cluster import Answer, Cluster, Node, Progress
from fleet.trees import WHERE, Group, Said, Seen, Trouble, grouped, lost, said
from locales import _

_HERE = "identify"


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


@dataclass(frozen=True)
class Survey:
    """``groups``: the trees, with what the first node of each said; ``troubles``: nodes without a usable answer."""

    groups: tuple[Group, ...]
    troubles: tuple[Trouble, ...]


def look(
    cluster: Cluster, where: Where, calls: Sequence[Sequence[str]], progress: Progress, recipes: Sequence[str] = ()
) -> Survey:
    """``calls`` on every node, after an ``identify`` that tells where the tree is. Their answers are ``seen.said[1:]``."""
    first = [_HERE, *where.words, *recipes, "--json"]
    answers = cluster.ask(cluster.nodes, [first, *calls], progress=progress)
    roots: dict[Node, str] = {}
    troubles = lost(answers)
    seen: list[tuple[Answer, tuple[Said, ...]]] = []
    for answer in answers:
        if answer.lost:
            continue
        told = tuple(said(call) for call in answer.calls)
        root = told[0].data.get("checkout", {}).get("import_root") if told[0].data else None
        if not root:
            troubles.append(Trouble(answer.node, told[0].error or _("it has no such tree")))
            continue
        roots[answer.node] = str(root)
        seen.append((answer, told))
    places, more = _places(cluster, roots)
    troubles += more
    found = [
        Seen(answer.node, places[answer.node], roots[answer.node], told, f"{answer.version} {answer.machine}")
        for answer, told in seen
        if answer.node in places
    ]
    return Survey(tuple(grouped(found)), tuple(troubles))


def _places(cluster: Cluster, roots: Mapping[Node, str]) -> tuple[dict[Node, str], list[Trouble]]:
    """Which folder each root really is; nodes with the same root are asked together."""
    places: dict[Node, str] = {}
    troubles: list[Trouble] = []
    for root in dict.fromkeys(roots.values()):
        nodes = [node for node, its in roots.items() if its == root]
        for answer in cluster.ask(nodes, [["-c", WHERE, root]]):
            told = said(answer.calls[0]) if not answer.lost else None
            if told is None or not isinstance(told.data.get("value"), str):
                troubles.append(Trouble(answer.node, answer.lost or (told.error if told else "")))
            else:
                places[answer.node] = told.data["value"]
    return places, troubles
