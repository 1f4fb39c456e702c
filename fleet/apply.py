"""All trees or none: plan on every node, compare, commit on every tree, and take it all back if one of them would not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codemods.errors import FindingError
from fleet.cluster import Answer, Cluster, Progress
from fleet.runs import Run, new_run
from fleet.survey import Survey, Where, ask_trees, look
from fleet.trees import Group, Said, Trouble, said, told
from locales import _

WRITTEN, ALREADY, REFUSED, LOST, TAKEN_BACK, LEFT = "written", "already", "refused", "lost", "taken-back", "left"
_REFUSALS = (1, 2, 3, 4)  # exit codes


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
    """Every node's plan, in ``said[0]``. Raises FleetPlanError."""
    return _planned(cluster, look(cluster, where, [["diff", *where.words, *wish, "--json"]], progress))


def _planned(cluster: Cluster, found: Survey) -> Survey:
    refused = [(group, why) for group in found.groups if (why := _why_not(group))]
    troubles = [*found.troubles, *(Trouble(one.node, why) for group, why in refused for one in group.seen)]
    if troubles:
        raise FleetPlanError(
            _("nothing was written: {n} of {m} nodes cannot take part").format(n=len(troubles), m=len(cluster.nodes)),
            todo=_("mend these, or name the nodes that shall take part with --node"),
            details=tuple(told(troubles)),
        )
    _expect_alike(found.groups)
    return found


def _why_not(group: Group) -> str:
    """Why this tree cannot take part. Edits of the chosen recipes in another form are a reason: taking back would not lead to
    where it began."""
    tree, made = group.first.tree, group.first.said[0]
    if tree["interrupted"]:
        return _("an apply or a revert was cut off; `probepatch fleet apply` and `fleet revert` repair it")
    if made.code != 0:
        return made.error or _("it made no plan")
    chosen = {one["id"] for one in made.data["recipes"]}
    if made.data["changes"] and any(edit["recipe"] in chosen for edit in tree["edits"]):
        return _("it holds edits of these recipes already, in another form: `probepatch fleet revert` first")
    return ""


def _expect_alike(groups: Sequence[Group]) -> None:
    """Raises FleetPlanError when trees would get different bytes; those of the smaller parties are named with their files."""
    signs = [_sign(group.first.said[0].data) for group in groups]
    if len({frozenset(sign.items()) for sign in signs}) <= 1:
        return
    usual, _count = Counter(frozenset(sign.items()) for sign in signs).most_common(1)[0]
    differing = []
    for group, sign in zip(groups, signs, strict=True):
        files = sorted({path for path, _hashes in frozenset(sign.items()) ^ usual})
        if files:
            text = _("differs from most in {files}")
            why = text.format(files=", ".join(files[:3]) + (", …" if len(files) > 3 else ""))
            differing += [Trouble(one.node, why) for one in group.seen]
    raise FleetPlanError(
        _("nothing was written: the trees are not the same"),
        why=_("the same patch on different sources gives different programs"),
        todo=_("bring the nodes to one version, or name those that shall take part with --node"),
        details=tuple(told(differing)),
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
    """Raises BusyError and FleetPlanError before anything is written."""
    with cluster.alone():
        found = _repaired(cluster, where, wish, progress)
        todo = [group for group in found.groups if group.first.said[0].data["changes"]]
        done = {group: Done(group, ALREADY) for group in found.groups}
        recipes = tuple(
            dict.fromkeys(one["id"] for group in found.groups for one in group.first.said[0].data["recipes"])
        )
        run = new_run(group.first.node.name for group in found.groups)
        calls = [["apply", *where.words, *wish, "--json"]]
        answers = cluster.ask([group.first.node for group in todo], calls, progress, run.note)
        done |= {group: _outcome(group, answer) for group, answer in zip(todo, answers, strict=True)}
        if any(one.state in (REFUSED, LOST) for one in done.values()):
            done |= _take_back(cluster, where, recipes, list(done.values()), progress)
    return Applied(run, recipes, tuple(done.values()))


def _repaired(cluster: Cluster, where: Where, wish: Sequence[str], progress: Progress) -> Survey:
    """Every node's plan, after what was cut off in a tree has been brought to its end."""
    found = look(cluster, where, [["diff", *where.words, *wish, "--json"]], progress)
    cut = [group for group in found.groups if group.first.tree["interrupted"]]
    if not cut:
        return _planned(cluster, found)
    ask_trees(cluster, cut, [["ledger", "recover", *where.words, "--json"]], progress)
    return plan(cluster, where, wish, progress)


def _outcome(group: Group, answer: Answer) -> Done:
    """Only the exit codes of a refusal say that nothing was written; what somebody else wrote is not ours to take back."""
    if answer.lost:
        return Done(group, LOST, answer.lost)
    made = said(answer.calls[0])
    if made.code == 0 and "receipt" in made.data:
        return Done(group, WRITTEN if made.data["receipt"]["txn"] else ALREADY)
    return Done(group, REFUSED if made.code in _REFUSALS else LOST, made.error or _("it did not say what it did"))


def _take_back(
    cluster: Cluster, where: Where, recipes: Sequence[str], done: list[Done], progress: Progress
) -> dict[Group, Done]:
    """Revert what was written, on every tree that can be reached; a tree whose answer was lost is tried, too, and by another of
    its nodes. What a tree tells of itself in the end counts."""
    back = [one for one in done if one.state in (WRITTEN, LOST)]
    calls = [["revert", *where.words, "--recipe", recipe, "--json"] for recipe in recipes]
    answers = ask_trees(cluster, [one.group for one in back], [*calls, where.tree()], progress)
    return {one.group: _reverted(one, recipes, answer) for one, answer in zip(back, answers, strict=True)}


def _reverted(one: Done, recipes: Sequence[str], answer: Answer) -> Done:
    *reverts, tree = map(said, answer.calls) if not answer.lost else [Said(None, {})]
    if "place" not in tree.data:
        return Done(one.group, LOST, one.why or answer.lost or tree.error)
    if tree.data["interrupted"] or any(edit["recipe"] in recipes for edit in tree.data["edits"]):
        errors = [each.error for each in reverts if each.error]
        return Done(one.group, LEFT, errors[0] if errors else _("an edit had to stay"))
    return Done(one.group, TAKEN_BACK, one.why)
