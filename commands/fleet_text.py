"""What the fleet's commands tell people and programs, and their exit codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from commands.output import print_json, say, table
from locales import _, ngettext

if TYPE_CHECKING:
    from fleet.apply import Applied
    from fleet.standing import Fleet, Reverted
    from fleet.survey import Survey
    from fleet.trees import Group, Trouble


def show_identity(found: Survey, as_json: bool) -> int:
    """1 when a node has no answer."""
    if as_json:
        print_json({"trees": [_tree(one) | _identity(one) for one in found.groups], **_bad(found.troubles)})
        return 1 if found.troubles else 0
    rows = [
        (one.name, _word(_identity(one)["framework"]), _word(_identity(one)["version"]), one.first.root)
        for one in found.groups
    ]
    table((_("node"), _("framework"), _("version"), _("tree")), rows)
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
        print_json({"trees": [_tree(one) | {"plan": one.first.said[1].data} for one in found.groups]})
        return 0
    rows = []
    for group in found.groups:
        plan = group.first.said[1].data
        changed = [one for one in plan["files"] if one["changes"]]
        added, removed = (sum(one[key] for one in changed) for key in ("lines_added", "lines_removed"))
        told = f"+{added} -{removed}" if plan["changes"] else _("already applied")
        rows.append((group.name, ", ".join(one["id"] for one in plan["recipes"]), str(len(changed)), told))
    table((_("node"), _("recipes"), _("files"), _("lines")), rows)
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
    table(
        (_("node"), _("tree"), _("now")),
        [(one.group.name, one.group.first.root, words[one.state]()) for one in done.done],
    )
    for one in done.done:
        if one.why:
            say(f"{one.group.name}: {one.why}", "bad")
    if done.complete:
        count = len(done.done)
        say(ngettext("{n} tree is patched", "all {n} trees are patched", count).format(n=count), "good")
        return 0
    say(_("not done: what had been written was taken back"), "bad")
    if any(one.state in ("lost", "left") for one in done.done):
        say(
            _("what a node without an answer did is in its own ledger: `probepatch fleet status`, when it is back"),
            "note",
        )
    return 1


def show_standing(found: Fleet, as_json: bool) -> int:
    """1 when the trees are not alike."""
    if as_json:
        print_json(
            {
                "even": found.even,
                "trees": [
                    _tree(one.group)
                    | {
                        "state": one.state,
                        "edits": list(one.edits),
                        "run": None if one.run is None else {"id": one.run.id, "trees": one.run.trees},
                        "why": one.why or None,
                    }
                    for one in found.trees
                ],
                "absent": list(found.absent),
                **_bad(found.troubles),
            }
        )
        return 0 if found.even else 1
    words: dict[str, Callable[[], str]] = {
        "clean": lambda: _("no edit of ours"),
        "patched": lambda: _("patched"),
        "changed": lambda: _("CHANGED"),
        "interrupted": lambda: _("INTERRUPTED"),
        "unknown": lambda: _("UNKNOWN"),
    }
    table(
        (_("node"), _("now"), _("edits"), _("run"), ""),
        [
            (one.group.name, words[one.state](), str(len(one.edits)), one.run.id if one.run else "-", one.why)
            for one in found.trees
        ],
    )
    _say_troubles(found.troubles)
    for run, wanted, have in _halves(found):
        say(_("run {run} patched {n} of {m} trees").format(run=run, n=have, m=wanted), "bad")
    for name in found.absent:
        say(_("{node} took part and is not in the cluster now; what it holds is not known").format(node=name), "bad")
    if found.even:
        say(_("every tree is alike"), "good")
    else:
        say(_("the trees are not alike: `probepatch fleet revert` takes all out, `fleet apply` goes on"), "bad")
    return 0 if found.even else 1


def _halves(found: Fleet) -> Iterable[tuple[str, int, int]]:
    runs = {one.run.id: one.run for one in found.trees if one.run is not None}
    for run in runs.values():
        have = sum(one.run is not None and one.run.id == run.id for one in found.trees)
        if have < run.trees and any(one.state == "clean" for one in found.trees):
            yield run.id, run.trees, have


def show_reverted(result: tuple[list[Reverted], Survey, tuple[str, ...]], as_json: bool) -> int:
    """1 when a tree could not be reached, or something is left."""
    done, found, absent = result
    finished = all(one.exact for one in done) and not found.troubles and not absent
    if as_json:
        trees = [
            _tree(one.group)
            | {"exact": one.exact, "why": one.why or None, "receipt": one.receipt, "marks": list(one.marks)}
            for one in done
        ]
        print_json({"finished": finished, "trees": trees, "absent": list(absent), **_bad(found.troubles)})
        return 0 if finished else 1
    table((_("node"), _("files"), _("now")), [(one.group.name, *_reverted(one)) for one in done])
    for one in done:
        for line in (one.why, *one.marks):
            if line:
                say(f"{one.group.name}: {line}", "bad")
    _say_troubles(found.troubles)
    for name in absent:
        say(_("{node} took part and is not in the cluster now: revert again when it is back").format(node=name), "bad")
    if finished:
        say(_("every tree is as it was before"), "good")
    return 0 if finished else 1


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


def _tree(group: Group) -> dict[str, Any]:
    return {"nodes": [one.node.name for one in group.seen], "root": group.first.root}


def _bad(troubles: Iterable[Trouble]) -> dict[str, Any]:
    return {"troubles": [{"node": one.node.name, "why": one.why} for one in troubles]}


def _say_troubles(troubles: Iterable[Trouble]) -> None:
    for one in troubles:
        say(f"{one.node.name}: {one.why}", "bad")
