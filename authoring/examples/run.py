"""Runs the examples that a recipe carries, and proves of each what holds for every edit: it is made once, compiles, and comes out.

Marker comments play no part in the comparison: an example may show them or leave them out.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from packaging.version import Version

from authoring.examples.round import run_round
from authoring.examples.variants import NotApplicable, Variant, variants
from codemods.compiling import BrokenByEditError, UncheckableError, check
from codemods.errors import FindingError, ProbePatchError
from codemods.misses import PlanError
from codemods.planner import plan_edits
from codemods.recipe import Example, Recipe
from codemods.splice import check_order, render
from codemods.target import Bases
from locales import _

OK, FAILED, NOT_APPLICABLE = "ok", "failed", "not-applicable"
_MARKER = re.compile(r"^[ \t]*# probepatch: [^\r\n]*\r?\n|  # probepatch: [^\r\n]*", re.MULTILINE)
_DIFF_LINES = 40


@dataclass(frozen=True)
class Check:
    """One thing that was tried. ``result`` is ok, failed or not-applicable, ``why`` a sentence when it is not ok, ``diff`` lines
    from what was expected to what came out."""

    name: str
    result: str = OK
    why: str = ""
    diff: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExampleRun:
    """``kind`` is before, unchanged or no-match."""

    example: Example
    kind: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.result != FAILED for check in self.checks)


@dataclass(frozen=True)
class RecipeRun:
    """``without``: the edits that no example is about; payload files need none."""

    recipe: Recipe
    runs: tuple[ExampleRun, ...]
    without: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Every example holds, and there is one."""
        return bool(self.runs) and all(run.ok for run in self.runs)


def run_examples(recipe: Recipe) -> RecipeRun:
    """Run every example of a recipe; nothing but temporary folders is written."""
    shown = {name for example in recipe.examples for name in example.edits}
    without = (edit.id for edit in recipe.edits if edit.id not in shown and edit.verb.name != "add_file")
    return RecipeRun(recipe, tuple(_run(recipe, example) for example in recipe.examples), tuple(without))


def without_markers(text: str) -> str:
    """``text`` without the comments that mark inserted lines."""
    return _MARKER.sub("", text)


def _run(recipe: Recipe, example: Example) -> ExampleRun:
    part = replace(recipe, edits=tuple(edit for edit in recipe.edits if edit.id in example.edits))
    version = Version(example.version) if example.version else None
    if example.after is None:
        return ExampleRun(example, "no-match", (_no_match(part, example, version),))
    kind = "unchanged" if example.after == example.before else "before"
    return ExampleRun(example, kind, tuple(_checks(part, example, version, kind)))


def _made(recipe: Recipe, text: str, version: Version | None) -> tuple[str, str]:
    """The file that the edits find their places in, and what they make of it. Raises the planner's findings."""
    data = _encoded(text)
    files = dict.fromkeys(place.file for edit in recipe.edits for place in edit.places)
    missed: list[ProbePatchError] = []
    for file in files:
        try:
            edits = plan_edits([recipe], Bases({file: data}.get), version=version).get(file, ())
            check_order(file, edits)
            return file, render(data, edits).decode("utf-8", "surrogateescape")
        except ProbePatchError as error:
            missed.append(error)
    raise missed[0]


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise FindingError(_("the example holds characters that no file can hold"), why=str(error)) from error


def _no_match(recipe: Recipe, example: Example, version: Version | None) -> Check:
    try:
        _file, made = _made(recipe, example.before, version)
    except PlanError as error:
        found = "\n".join(_words(finding) for finding in error.findings)
        if any(not isinstance(finding, FindingError) for finding in error.findings):
            return Check("no-match", FAILED, found)
        if example.message in found:
            return Check("no-match")
        return Check("no-match", FAILED, _("the message is another one"), _diff(example.message, found))
    except ProbePatchError as error:
        return Check("no-match", FAILED, _words(error))
    return Check("no-match", FAILED, _("the edits do find their place"), _diff(example.before, made))


def _words(error: ProbePatchError) -> str:
    findings = error.findings if isinstance(error, PlanError) else (error,)
    parts = [(one.what, one.where, one.why, one.todo, *one.details) for one in findings]
    return "\n".join(text for one in parts for text in one if text)


def _checks(recipe: Recipe, example: Example, version: Version | None, kind: str) -> Iterator[Check]:
    assert example.after is not None
    try:
        file, made = _made(recipe, example.before, version)
    except ProbePatchError as error:
        yield Check("after" if kind == "before" else kind, FAILED, _words(error))
        return
    wanted, got = without_markers(example.after), without_markers(made)
    name = "after" if kind == "before" else kind
    yield (
        Check(name)
        if wanted == got
        else Check(name, FAILED, _("the edits make something else of it"), _diff(wanted, got))
    )
    if kind == "unchanged":
        return
    yield from _round_checks(recipe, file, example.before, made, version)
    yield _compile_check(file, example.before, made)
    for variant in variants(example.before):
        yield _variant_check(recipe, variant, example.before, made, version)


def _round_checks(recipe: Recipe, file: str, before: str, made: str, version: Version | None) -> Iterator[Check]:
    try:
        done = run_round(recipe, file, _encoded(before), version)
    except ProbePatchError as error:
        yield Check("apply", FAILED, _words(error))
        return
    for name, expected, found, why in (
        ("apply", made, done.applied, _("apply writes something else than planned")),
        ("idempotent", made, done.again, _("a second apply changes the file again")),
        ("revert", before, done.reverted, _("revert does not give the file back as it was")),
    ):
        text = (found or b"").decode("utf-8", "surrogateescape")
        yield Check(name) if text == expected else Check(name, FAILED, why, _diff(expected, text))


def _compile_check(file: str, before: str, made: str) -> Check:
    try:
        check([(file, _encoded(before), _encoded(made))])
    except UncheckableError as error:
        return Check("compile", NOT_APPLICABLE, _("`before` does not compile either: {why}").format(why=error.why))
    except BrokenByEditError as error:
        return Check("compile", FAILED, error.why or error.what)
    return Check("compile")


def _variant_check(recipe: Recipe, variant: Variant, before: str, made: str, version: Version | None) -> Check:
    try:
        text, wanted = variant.dress(before), variant.dress(made)
        if _parses(before) and not _parses(text):
            raise NotApplicable(_("Python does not read the file that way"))
        got = _made(recipe, text, version)[1]
    except NotApplicable as error:
        return Check(variant.name, NOT_APPLICABLE, str(error))
    except ProbePatchError as error:
        return Check(variant.name, FAILED, _words(error))
    if got == wanted:
        return Check(variant.name)
    if variant.name == "tabs" and _same_but_for_blanks(wanted, got):
        why = _("the edit copies code of several lines, whose further lines keep their own blanks")
        return Check(variant.name, NOT_APPLICABLE, why)
    return Check(variant.name, FAILED, _("the edits make something else of this variant"), _diff(wanted, got))


def _parses(text: str) -> bool:
    return _dump(text) is not None


def _same_but_for_blanks(one: str, other: str) -> bool:
    lines = [[line.strip() for line in text.split("\n")] for text in (one, other)]
    return lines[0] == lines[1] and _dump(one) is not None and _dump(one) == _dump(other)


def _dump(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text.removeprefix("\ufeff")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _diff(wanted: str, got: str) -> tuple[str, ...]:
    lines = [*difflib.unified_diff(wanted.split("\n"), got.split("\n"), _("expected"), _("got"), n=2, lineterm="")]
    return (*lines[:_DIFF_LINES], *(["…"] if len(lines) > _DIFF_LINES else []))
