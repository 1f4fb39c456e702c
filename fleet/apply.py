"""All trees or none: plan on every node, compare, commit on every tree, and take it all back if one of them would not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codemods.errors import FindingError
from fleet.cluster import Answer, Cluster, Progress
from fleet.runs import Run, new_run
from fleet.survey import Survey, Where, look
from fleet.trees import Group, Said, Trouble, said
from locales import _

WRITTEN, ALREADY, REFUSED, LOST, TAKEN_BACK, LEFT = "written", "already", "refused", "lost", "taken-back", "left"
RUN = "PROBEPATCH_RUN"


class FleetPlanError(FindingError):
    """A node cannot take part, or the trees differ; nothing was written anywhere."""


@dataclass(frozen=True)
class Done:
    """What became of one tree. ``state``: written, already (patched before), refused, lost (no answer: what it did is not known),
    taken-back, left (it was to be taken back, and was not)."""

    group: Group
    state: str
    why: str = ""


@dataclass(frozen=True)
class Applied:
    """``complete``: every tree is patched; otherwise none is, but for those that are lost or left."""

    run: Run
    recipes: tuple[str, ...]
    done: tuple[Done, ...]

    @property
    def complete(self) -> bool:
        return all(one.state in (WRITTEN, ALREADY) for one in self.done)


def plan(cluster: Cluster, where: Where, wish: Sequence[str], progress: Progress) -> Survey:
    """Every node's plan, in ``said[1]``, with ``status`` in ``said[2]``. Raises FleetPlanError."""
    files = [word for word in wish if "{bundle}" in word or word == "--recipe-file"]
    calls = [["diff", *where.words, *wish, "--json"], ["status", *where.words, "--json"]]
    found = look(cluster, where, calls, progress, files)
    troubles = [*found.troubles]
    for group in found.groups:
        made = group.first.said[1]
        if made.code != 0:
            troubles.append(Trouble(group.first.node, made.error or _("it made no plan")))
        elif conflict := _other_edits(group):
            troubles.append(Trouble(group.first.node, conflict))
    if troubles:
        raise FleetPlanError(
            _("nothing was written: {n} of {m} nodes cannot take part").format(n=len(troubles), m=len(cluster.nodes)),
            todo=_("mend these, or name the nodes that shall take part with --node"),
            details=tuple(f"{one.node.name}: {one.why}" for one in troubles),
        )
    _expect_alike(found.groups)
    return found


def _other_edits(group: Group) -> str:
    """Edits of the chosen recipes that stand in another form: taking back would not lead to where it began."""
    made, standing = group.first.said[1].data, group.first.said[2].data
    if not made.get("changes"):
        return ""
    chosen = {one["id"] for one in made["recipes"]}
    if any(edit["recipe"] in chosen for edit in standing.get("edits", [])):
        return _("it holds edits of these recipes already, in another form: `probepatch fleet revert` first")
    return ""


def _expect_alike(groups: Sequence[Group]) -> None:
    """Raises FleetPlanError when trees would get different bytes; those of the smaller parties are named with their files."""
    signs = [_sign(group.first.said[1].data) for group in groups]
    if len({frozenset(sign.items()) for sign in signs}) <= 1:
        return
    usual, _count = Counter(frozenset(sign.items()) for sign in signs).most_common(1)[0]
    details = []
    for group, sign in zip(groups, signs, strict=True):
        others = frozenset(sign.items()) ^ usual
        if others:
            files = sorted({path for path, _hashes in others})
            shown = ", ".join(files[:3]) + (", …" if len(files) > 3 else "")
            details.append(_("{node}: differs in {files}").format(node=group.name, files=shown))
    raise FleetPlanError(
        _("nothing was written: the trees are not the same"),
        why=_("the same patch on different sources gives different programs"),
        todo=_("bring the nodes to one version, or name those that shall take part with --node"),
        details=tuple(details),
    )


def _sign(made: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Per file, from the import root on: the bytes before us, and those after."""
    checkout = made["checkout"]
    prefix = checkout["import_root"][len(checkout["root"]) :].strip("/")
    return {
        one["path"].removeprefix(f"{prefix}/" if prefix else ""): (one["sha256_base"], one["sha256_after"])
        for one in made["files"]
    }


def apply(cluster: Cluster, where: Where, wish: Sequence[str], progress: Progress) -> Applied:
    """Raises FleetPlanError before anything is written."""
    found = plan(cluster, where, wish, progress)
    todo = [group for group in found.groups if group.first.said[1].data["changes"]]
    done = [Done(group, ALREADY) for group in found.groups if group not in todo]
    recipes = tuple(dict.fromkeys(one["id"] for group in found.groups for one in group.first.said[1].data["recipes"]))
    run = new_run(len(found.groups), (node.name for node in cluster.nodes))
    answers = cluster.ask(
        [group.first.node for group in todo], [["apply", *where.words, *wish, "--json"]], {RUN: run.note}, progress
    )
    outcomes = [_outcome(group, answer) for group, answer in zip(todo, answers, strict=True)]
    if any(one.state in (REFUSED, LOST) for one in outcomes):
        outcomes = _take_back(cluster, where, recipes, outcomes, progress)
    return Applied(run, recipes, (*done, *outcomes))


def _outcome(group: Group, answer: Answer) -> Done:
    if answer.lost:
        return Done(group, LOST, answer.lost)
    told = said(answer.calls[0])
    if told.code is None:
        return Done(group, LOST, told.error)
    return Done(group, WRITTEN) if told.code == 0 else Done(group, REFUSED, told.error or _("it did not apply"))


def _take_back(
    cluster: Cluster, where: Where, recipes: Sequence[str], outcomes: list[Done], progress: Progress
) -> list[Done]:
    """Revert what was written, on every tree that can be reached; a tree whose answer was lost is tried, too."""
    back = [one for one in outcomes if one.state in (WRITTEN, LOST)]
    calls = [["revert", *where.words, "--recipe", recipe, "--json"] for recipe in recipes]
    answers = cluster.ask([one.group.first.node for one in back], calls, {}, progress)
    news = {one.group: _reverted(one, answer) for one, answer in zip(back, answers, strict=True)}
    return [news.get(one.group, one) for one in outcomes]


def _reverted(one: Done, answer: Answer) -> Done:
    if answer.lost:
        return Done(one.group, LOST, one.why or answer.lost)
    told = [said(call) for call in answer.calls]
    bad = next((each for each in told if each.code not in (0, 2)), None)
    if bad is not None:
        return Done(one.group, LEFT, bad.error or _("an edit had to stay"))
    return Done(one.group, TAKEN_BACK, one.why)


def stands(told: Said) -> bool:
    """Whether a ``status`` is what an apply leaves."""
    return told.code == 0
