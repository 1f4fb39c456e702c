"""``probepatch recipe doctor ID CHECKOUT``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.arguments import base_option, file_path, text
from commands.output import json_option, print_json, say
from locales import _

if TYPE_CHECKING:
    from authoring.drift.candidates import Candidate
    from authoring.drift.diagnosis import Diagnosis

_STYLE = {"ok": "good", "moved": "note"}


@click.command(
    help=_("Tell for each edit of a recipe whether it matches a checkout; where it does not: why, and what would.")
)
@click.argument("recipe", metavar="ID|FILE", type=text)
@click.argument("checkout", type=file_path)
@base_option
@json_option
def command(recipe: str, checkout: Path, base: str | None, as_json: bool) -> int:
    """Exit code 1 when an edit does not match as it is."""
    from authoring.drift.diagnosis import OK, diagnose_all, summary
    from authoring.drift.port import active
    from commands.authoring import on_checkout

    tried = on_checkout(recipe, checkout, base)
    found = diagnose_all(tried.recipe, active(tried.recipe, tried.version), tried.view, tried.was)
    if as_json:
        print_json(
            {
                "recipe": tried.recipe.id,
                "version": str(tried.version) if tried.version is not None else None,
                "base": tried.was_label or None,
                "edits": [diagnosis_json(one) for one in found],
                "counts": dict(summary(found)),
            }
        )
    else:
        _say_all(found, tried.was_label)
    return int(any(one.state != OK for one in found))


def _say_all(found: list[Diagnosis], base: str) -> None:
    from authoring.drift.port import candidate_text, state_text

    say(
        _("compared with {base}").format(base=base) if base else _("no older tree to compare with: --base names one"),
        "dim",
    )
    for one in found:
        say(f"{one.edit.id}: {state_text(one)}", _STYLE.get(one.state, "bad"))
        if one.finding is not None:
            say(f"    {one.finding.what}: {one.finding.where or ''}")
        for doubt in one.doubts:
            say(f"    {doubt}")
        for number, candidate in enumerate(one.candidates, 1):
            say(f"    {number}. {candidate_text(candidate)}")
            for line in yaml_lines(one, candidate):
                say(f"         {line}", "add")
            for doubt in candidate.doubts if one.doubts != candidate.doubts else ():
                say(f"         {doubt}", "note")
    say_uncompared(found)


def say_uncompared(found: Sequence[Diagnosis]) -> None:
    """Name the edits that the older tree does not hold either: nothing could be compared for them."""
    names = [one.edit.id for one in found if one.compared is False]
    if names:
        text = _("the older tree does not hold the place of {names}: compared by names only")
        say(text.format(names=", ".join(names)), "note")


def yaml_lines(one: Diagnosis, candidate: Candidate) -> list[str]:
    """The keys to paste into the edit."""
    from authoring.yamltext import pasted

    return pasted(place_keys(one, candidate))


def place_keys(one: Diagnosis, candidate: Candidate) -> Mapping[str, Any]:
    """The keys of the candidate's place that differ from the edit's."""
    old, new = one.place, candidate.place
    keys: dict[str, Any] = {}
    if new.file != old.file:
        keys["file"] = new.file
    if new.symbol != old.symbol:
        keys["in"] = new.symbol
    choice: tuple[tuple[str, Any, Any], ...] = (
        ("select", dict(new.select), {}),
        ("expect", new.expect, 1),
        ("nth", new.nth, None),
    )
    keys |= {key: value for key, value, usual in choice if value not in (getattr(old, key), usual)}
    anchor = one.edit.verb.name
    if one.edit.verb.anchor and new.fields[anchor] != old.fields[anchor]:
        keys[anchor] = new.fields[anchor]
    return keys


def diagnosis_json(one: Diagnosis) -> dict[str, Any]:
    """One edit's diagnosis for programs."""
    return {
        "edit": one.edit.id,
        "state": one.state,
        "file": one.place.file,
        "symbol": one.place.symbol,
        "finding": one.finding.as_json() if one.finding is not None else None,
        "doubts": list(one.doubts),
        "compared": one.compared,
        "taken": one.candidates.index(one.taken) if one.taken is not None else None,
        "candidates": [
            {
                "score": round(candidate.score, 3),
                "differs": list(candidate.kinds),
                "file": candidate.place.file,
                "line": candidate.line,
                "symbol": candidate.place.symbol,
                "code": candidate.code,
                "exact": candidate.exact,
                "doubts": list(candidate.doubts),
                "keys": dict(place_keys(one, candidate)),
            }
            for candidate in one.candidates
        ],
    }
