"""The list of everything that the capture changed: file, place, what, why, and how it is undone; for people and for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codemods.splice import PlannedEdit
from locales import _
from stages.instrument.together import Part, ledger_heads

_SHOWN = 12  # lines of an insertion
NAMES = ("change_list.md", "change_list.json")


@dataclass(frozen=True)
class Change:
    """``file`` is absolute; ``line`` 1-based in the file without our edits, None for a whole file; ``added`` the new text."""

    sides: tuple[str, ...]
    file: str
    line: int | None
    symbol: str
    what: str
    added: str
    why: str
    undo: str
    recipe: str | None = None
    edit: str | None = None


@dataclass(frozen=True)
class Conflict:
    """Where the facts of a recipe, or the card, and the tree differ (stage 3); the tree is taken."""

    side: str
    what: str
    where: str
    todo: str


def of_part(part: Part) -> Iterator[Change]:
    """Every edit of the plan, those that stood before among them."""
    checkout = str(Path(part.tree.given).resolve())
    for file in part.plan.files:
        for edit in file.edits:
            if edit.recipe not in part.plan.recipes:
                continue
            whole = file.base is None
            yield Change(
                part.sides,
                str(part.tree.root / file.path),
                None if whole else edit.line,
                edit.symbol,
                _("the file is added") if whole else _counts(edit),
                "" if whole else _inserted(edit),
                edit.why,
                f"probepatch revert {shlex.quote(checkout)} --edit {shlex.quote(edit.name)}",
                edit.recipe,
                edit.id,
            )


def of_file(side: str, path: Path, why: str) -> Change:
    """A file of the capture's own folder."""
    return Change((side,), str(path), None, "", _("the file is added"), "", why, f"rm {shlex.quote(str(path))}")


def conflicts(scene: Mapping[str, Any]) -> list[Conflict]:
    return [
        Conflict(side["side"], one["what"], one["where"], one["todo"])
        for side in scene.get("sides", [])
        for one in side.get("changes", [])
    ]


def _counts(edit: PlannedEdit) -> str:
    lines_in = sum(splice.inserted.count(b"\n") for splice in edit.splices)
    lines_out = sum(splice.removed.count(b"\n") for splice in edit.splices)
    within = sum(b"\n" not in splice.inserted + splice.removed for splice in edit.splices)
    indented = sum(len(indent.lines) for indent in edit.indents)
    words = [
        (lines_in, _("{n} lines in")),
        (lines_out, _("{n} lines out")),
        (within, _("{n} places within a line")),
        (indented, _("{n} lines indented")),
    ]
    return ", ".join(text.format(n=n) for n, text in words if n) or _("nothing: it is there already")


def _inserted(edit: PlannedEdit) -> str:
    text = b"\n".join(splice.inserted.strip(b"\n") for splice in edit.splices if splice.inserted.strip())
    lines = text.decode("utf-8", "backslashreplace").split("\n")
    return "\n".join(lines[:_SHOWN] + (["…"] if len(lines) > _SHOWN else []))


def texts(
    changes: Sequence[Change],
    found: Sequence[Conflict],
    parts: Sequence[Part],
    switches: Mapping[str, str],
    advice: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """The two files by name; the same changes give the same bytes. ``advice``: the recipes' own notes, by recipe."""
    ledgers = ledger_heads([part.tree for part in parts])
    document = {
        "format": "probepatch/change-list/1",
        "changes": [asdict(one) for one in changes],
        "conflicts": [asdict(one) for one in found],
        "switches": dict(switches),
        "notes": {recipe: list(notes) for recipe, notes in advice.items()},
        "ledgers": ledgers,
    }
    return {
        "change_list.md": "\n".join(_page(changes, found, parts, ledgers, switches, advice)) + "\n",
        "change_list.json": json.dumps(document, indent=2, ensure_ascii=False) + "\n",
    }


def _page(
    changes: Sequence[Change],
    found: Sequence[Conflict],
    parts: Sequence[Part],
    ledgers: Iterable[Mapping[str, str]],
    switches: Mapping[str, str],
    advice: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    yield "# " + _("What this capture changed")
    yield ""
    yield _("All of it is taken out by `probepatch restore`; one checkout by:")
    yield ""
    for part in parts:
        yield f"- `probepatch revert {shlex.quote(str(Path(part.tree.given).resolve()))}` ({', '.join(part.sides)})"
    yield ""
    yield _("Without these variables the code does what it did before: {names}").format(names=", ".join(switches))
    for file in dict.fromkeys(one.file for one in changes):
        yield ""
        yield f"## {file}"
        for one in (one for one in changes if one.file == file):
            yield from _change(one)
    yield ""
    yield "## " + _("Where a recipe, or the task card, and the tree differ")
    yield ""
    if not found:
        yield _("Nothing was found in stage 3.")
    for two in found:
        yield f"- {two.side}: {two.what} ({two.where or '-'}); {two.todo}"
    if advice:
        yield ""
        yield "## " + _("What the recipes ask to keep in mind")
    for recipe, notes in advice.items():
        yield ""
        yield f"`{recipe}`"
        yield ""
        yield from (f"- {note}" for note in notes)
    yield ""
    yield "## " + _("Ledgers")
    yield ""
    yield _("Each holds the original bytes; the hash is that of its last line.")
    yield ""
    for ledger in ledgers:
        yield f"- {ledger['checkout']}: {ledger['place']}, {ledger['head']}"


def _change(one: Change) -> Iterator[str]:
    yield ""
    place = ", ".join(filter(None, (_("line {n}").format(n=one.line) if one.line else "", one.symbol)))
    name = f"`{one.recipe}/{one.edit}`" if one.recipe else _("our own file")
    yield f"- **{name}** ({', '.join(one.sides)}{'; ' + place if place else ''}): {one.what}"
    yield "  - " + _("why: {why}").format(why=one.why or "-")
    yield "  - " + _("undone by: `{undo}`").format(undo=one.undo)
    if one.added:
        yield ""
        yield "  ```python"
        yield from (f"  {line}".rstrip() for line in one.added.split("\n"))
        yield "  ```"
