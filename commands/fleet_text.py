"""What the fleet's commands tell people and programs, and their exit codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from commands.output import print_json, say, table
from fleet.trees import short
from fleet.trees import told as lines_of
from locales import _, ngettext

if TYPE_CHECKING:
    from fleet.apply import Applied
    from fleet.revert import Out, Reverted
    from fleet.runs import Run
    from fleet.standing import Fleet
    from fleet.survey import Survey
    from fleet.trees import Group, Trouble


def show_identity(found: Survey, as_json: bool) -> int:
    """1 when a node has no answer."""
    identities = [(group, _identity(group)) for group in found.groups]
    if as_json:
        trees = [_tree(group) | identity for group, identity in identities]
        print_json({"trees": trees, "troubles": _troubles(found.troubles)})
        return 1 if found.troubles else 0
    _rows(
        (_("framework"), _("version"), _("Python"), _("tree")),
        [
            (group, (_word(told["framework"]), _word(told["version"]), told["interpreter"], group.first.root))
            for group, told in identities
        ],
    )
    _say_troubles(found.troubles)
    return 1 if found.troubles else 0


def _identity(group: Group) -> dict[str, Any]:
    told = group.first.said[0].data
    version = told.get("version") or {}
    return {
        "framework": told.get("framework"),
        "version": version.get("declared") or version.get("probed"),
        "interpreter": group.first.python,
    }


def _word(value: str | None) -> str:
    return value if value is not None else _("unknown")


def show_plan(found: Survey, as_json: bool) -> int:
    """Always 0: a fleet that cannot be planned is an error."""
    if as_json:
        print_json({"trees": [_tree(one) | {"plan": one.first.said[0].data} for one in found.groups]})
        return 0
    rows = []
    for group in found.groups:
        plan = group.first.said[0].data
        changed = [one for one in plan["files"] if one["changes"]]
        added, removed = (sum(one[key] for one in changed) for key in ("lines_added", "lines_removed"))
        told = f"+{added} -{removed}" if plan["changes"] else _("already applied")
        rows.append((group, (", ".join(one["id"] for one in plan["recipes"]), str(len(changed)), told)))
    _rows((_("recipes"), _("files"), _("lines")), rows)
    trees = ngettext("{n} tree, and nothing was written", "{n} trees, all alike; nothing was written", len(rows))
    say(trees.format(n=len(rows)), "good")
    say(_("`probepatch diff` on one node shows the lines"), "dim")
    return 0


def show_applied(done: Applied, as_json: bool) -> int:
    """1 when it is not done everywhere."""
    if as_json:
        print_json(
            {
                "complete": done.complete,
                "run": done.run.id,
                "recipes": list(done.recipes),
                "trees": [_tree(one.group) | {"state": one.state, "why": one.why or None} for one in done.done],
            }
        )
        return 0 if done.complete else 1
    words: dict[str, Callable[[], str]] = {
        "written": lambda: _("patched"),
        "already": lambda: _("was patched before"),
        "refused": lambda: _("REFUSED, as it was"),
        "lost": lambda: _("NO ANSWER"),
        "taken-back": lambda: _("taken back, as it was"),
        "left": lambda: _("COULD NOT BE TAKEN BACK"),
    }
    _rows((_("now"), ""), [(one.group, (words[one.state](), one.why)) for one in done.done])
    if done.complete:
        count = len(done.done)
        say(ngettext("{n} tree is patched", "all {n} trees are patched", count).format(n=count), "good")
        return 0
    if any(one.state in ("lost", "left") for one in done.done):
        say(_("not done: what had been written was taken back, where that could be done"), "bad")
        say(
            _("what a node without an answer did is in its own ledger: `probepatch fleet status`, when it is back"),
            "note",
        )
    else:
        say(_("not done: what had been written was taken back"), "bad")
    return 1


def show_standing(found: Fleet, as_json: bool) -> int:
    """1 when the trees are not alike."""
    if as_json:
        print_json(
            {
                "even": found.even,
                "last": _run(found.last),
                "trees": [
                    _tree(one.group)
                    | {"state": one.state, "edits": list(one.edits), "run": _run(one.run), "why": one.why or None}
                    for one in found.trees
                ],
                "absent": list(found.absent),
                "troubles": _troubles(found.troubles),
            }
        )
        return 0 if found.even else 1
    words: dict[str, Callable[[], str]] = {
        "clean": lambda: _("no edit of ours"),
        "patched": lambda: _("patched"),
        "changed": lambda: _("CHANGED"),
        "interrupted": lambda: _("INTERRUPTED"),
    }
    _rows(
        (_("now"), _("edits"), _("run"), ""),
        [
            (
                one.group,
                (words[one.state](), str(len(one.edits)), one.run.id if one.run and one.holds else "-", one.why),
            )
            for one in found.trees
        ],
    )
    _say_troubles(found.troubles)
    _say_absent(found)
    if found.even:
        say(_("every tree is alike"), "good")
    elif found.holds:
        say(_("not every tree is known to be alike: `fleet apply` goes on, `fleet revert` takes all out"), "bad")
    return 0 if found.even else 1


def _run(run: Run | None) -> dict[str, Any] | None:
    return {"id": run.id, "trees": run.trees, "nodes": list(run.nodes), "node": run.node} if run is not None else None


def show_reverted(out: Out, as_json: bool) -> int:
    """1 when a tree could not be reached, or something is left."""
    before = out.before
    if as_json:
        trees = [
            _tree(one.group)
            | {"exact": one.exact, "why": one.why or None, "receipt": one.receipt, "marks": list(one.marks)}
            for one in out.trees
        ]
        absent, troubles = list(before.absent), _troubles(before.troubles)
        print_json({"finished": out.finished, "trees": trees, "absent": absent, "troubles": troubles})
        return 0 if out.finished else 1
    _rows((_("files"), _("now"), ""), [(one.group, (*_reverted(one), one.why)) for one in out.trees])
    for one in out.trees:
        for mark in one.marks:
            say(f"{one.group.first.node.name}: {mark}", "bad")
    _say_troubles(before.troubles)
    _say_absent(before)
    if out.finished:
        say(_("every tree is as it was before"), "good")
    elif before.absent or before.troubles:
        say(_("revert again when every node answers; what could be reached is done"), "note")
    return 0 if out.finished else 1


def _reverted(one: Reverted) -> tuple[str, str]:
    if one.receipt is None:
        return "-", _("NO ANSWER")
    files = str(len(one.receipt["files"]))
    if not one.exact:
        return files, _("SOMETHING IS LEFT")
    proof = one.receipt["proof"]
    if proof is None:
        return files, _("nothing of ours stood in it")
    if all(each["original"] == each["now"] for each in proof["files"]):
        return files, _("byte for byte as before")
    return files, _("as before, but for what others changed")


def _rows(headings: Sequence[str], rows: Iterable[tuple[Group, tuple[str, ...]]]) -> None:
    """One line for each thing that is told, with the nodes of which it is: a hundred equal nodes are one line."""
    names: dict[tuple[str, ...], list[str]] = {}
    trees: dict[tuple[str, ...], int] = {}
    for group, cells in rows:
        names.setdefault(cells, []).extend(group.names)
        trees[cells] = trees.get(cells, 0) + 1
    if names:
        lines = [(short(these), str(trees[cells]), *cells) for cells, these in names.items()]
        table((_("node"), _("trees"), *headings), lines)


def _tree(group: Group) -> dict[str, Any]:
    return {"nodes": list(group.names), "root": group.first.root}


def _troubles(troubles: Iterable[Trouble]) -> list[dict[str, str]]:
    return [{"node": one.node.name, "why": one.why} for one in troubles]


def _say_troubles(troubles: Iterable[Trouble]) -> None:
    for line in lines_of(troubles):
        say(line, "bad")


def _say_absent(found: Fleet) -> None:
    if found.absent and found.last is not None:
        text = _("took part in run {run} and is not in the cluster now; what it holds is not known")
        say(f"{short(found.absent)}: {text.format(run=found.last.id)}", "bad")
