"""A recipe from a hand-edited tree: every hunk an edit with symbol, anchor and verb, and the proof that it gives the same bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from authoring.record.changes import Changes, left_note
from authoring.record.code import read_code
from authoring.record.examples import small_file
from authoring.record.literals import Literal, parameter_type, path_literals, switches_in
from authoring.record.names import edit_name, recipe_name
from authoring.record.parameters import PAYLOAD, Parametrised, parametrised
from authoring.record.parts import Part, bare, marked_id, name_all, part_of, payloads_of
from authoring.record.proof import DIFFERENT, made_by, prove, read_recipe
from authoring.record.yaml import Line, Page, Shown, written
from codemods.errors import FindingError, ProbePatchError
from codemods.recipe import Recipe
from codemods.source import read_source
from locales import _, ngettext


class NothingChangedError(FindingError):
    """The tree is as it was."""


@dataclass(frozen=True)
class Heading:
    """What the recipe says of itself. ``id`` empty: made up, or that of the markers in the tree; ``version`` None where the tree
    states none; ``tree`` is what people call the tree."""

    framework: str
    side: str
    sure_of_side: bool
    version: Version | None
    id: str = ""
    tree: str = ""


@dataclass(frozen=True)
class Recorded:
    """One edit of the recipe, at a line of the pristine file."""

    id: str
    verb: str
    file: str
    symbol: str
    line: int


@dataclass(frozen=True)
class Recording:
    """``yaml`` with its ``payloads``. ``verdicts`` by file: equal, equal-but-markers or different. ``complete``: every file is
    equal, and nothing was found that no recipe can make."""

    id: str
    yaml: str
    payloads: Mapping[str, bytes]
    edits: tuple[Recorded, ...]
    verdicts: Mapping[str, str]
    findings: tuple[ProbePatchError, ...]
    literals: tuple[Literal, ...]
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return not self.findings and DIFFERENT not in self.verdicts.values()


def record(changes: Changes, heading: Heading, *, with_parameters: bool = False) -> Recording:
    """``with_parameters``: paths in the edits become parameters, with what was written as their default.

    Raises NothingChangedError, NothingRecordedError, and what keeps the recipe from being read back.
    """
    findings = list(changes.findings)
    if not changes.changed and not changes.added and not findings:
        left = (left_note(changes.left),) if changes.left else ()
        raise NothingChangedError(_("nothing was changed by hand: there is nothing to record"), details=left)
    parts = [part for one in changes.changed for part in part_of(one, findings)]
    payloads, added, parameters = payloads_of(changes, findings)
    if not any(part.solved.drafts for part in parts) and not added:
        raise NothingRecordedError(findings)
    recipe_id = heading.id or marked_id(changes) or recipe_name(heading.framework)
    name_all(parts, added, recipe_id)
    recording = _Writing(heading, recipe_id, parts, added, payloads, parameters, changes, findings)
    return recording.finished(with_parameters)


class NothingRecordedError(FindingError):
    """Something was changed, and none of it can be recorded. ``findings`` are the single errors."""

    def __init__(self, findings: Sequence[ProbePatchError]) -> None:
        super().__init__(
            _("nothing of what was changed can be recorded"),
            details=tuple(": ".join(filter(None, (one.where, one.what))) for one in findings),
        )
        self.findings = tuple(findings)

    def as_json(self) -> dict[str, object]:
        return super().as_json() | {"findings": [finding.as_json() for finding in self.findings]}


# --- the page ---------------------------------------------------------------------------------------------------------


@dataclass
class _Writing:
    heading: Heading
    recipe_id: str
    parts: list[Part]
    added: Mapping[str, str]
    payloads: Mapping[str, bytes]
    parameters: Mapping[str, tuple[str, Any]]
    changes: Changes
    findings: list[ProbePatchError]

    def finished(self, with_parameters: bool) -> Recording:
        bases = {part.changed.file: part.changed.base for part in self.parts}
        edited = {one.file: one.edited for one in self.changes.changed}
        edited |= {file: data for file, data in self.changes.added.items() if file in self.added}
        lines = list(self._lines())
        page = parametrised(lines) if with_parameters else Parametrised(lines)
        if page.values:
            self.parameters = {**self.parameters, **page.values}
            self.payloads = {**self.payloads, PAYLOAD: page.payload}
        recipe = read_recipe(self._yaml(page.lines, []), self.payloads)
        proof = prove(recipe, bases, edited, self.heading.version, page)
        yaml = self._yaml(page.lines, self._examples(recipe))
        read_recipe(yaml, self.payloads)  # the examples are read, too
        return Recording(
            self.recipe_id,
            yaml,
            self.payloads,
            tuple(self._recorded(page.lines)),
            proof.verdicts,
            tuple(self.findings),
            tuple(
                literal for literal in self._literals() if literal.text not in {v for _env, v in page.values.values()}
            ),
            tuple(self._notes()),
        )

    def _lines(self) -> Iterator[Line]:
        for file, name in self.added.items():
            fields = {"add_file": name}
            yield Line(edit_name("add_file", "", fields, file, set()), file, "", {}, fields, None, 1, True)
        for part in self.parts:
            for name, marked, draft in zip(part.names, part.marked, part.solved.drafts, strict=True):
                marker = marked or not part.bench.marks(draft)
                home = draft.home
                yield Line(
                    name, part.changed.file, home.symbol, home.select, draft.fields, draft.nth, draft.expect, marker
                )

    def _recorded(self, lines: Sequence[Line]) -> Iterator[Recorded]:
        at = {
            name: part.bench.target.source.line_of(part.bench.offset(draft))
            for part in self.parts
            for name, draft in zip(part.names, part.solved.drafts, strict=True)
        }
        for line in lines:
            verb = next(iter(line.fields))
            yield Recorded(line.id, verb, line.file, line.symbol, at.get(line.id, 1))

    def _yaml(self, lines: Sequence[Line], examples: Sequence[Shown]) -> str:
        heading = self.heading
        code = "\n".join(text for line in lines for text in line.fields.values())
        code += "\n".join(data.decode("utf-8") for data in self.payloads.values())
        envs = {env for env, _value in self.parameters.values()}
        todo = {"why": _("what this recipe is for"), "edit": _("why"), "help": _("what it is for")}
        if not heading.sure_of_side:
            todo["side"] = _("train or infer")
        if heading.version is None:
            todo["versions"] = _("the tree states no version")
        return written(
            Page(
                self.recipe_id,
                heading.framework,
                heading.side,
                f"=={heading.version}" if heading.version is not None else ">=0",
                _plain_version(heading.version),
                tuple(self._opening(lines)),
                lines,
                {name: (parameter_type(value), env, value) for name, (env, value) in self.parameters.items()},
                [name for name in dict.fromkeys(switches_in(code)) if name not in envs],
                examples,
                todo,
            )
        )

    def _opening(self, lines: Sequence[Line]) -> Iterator[str]:
        yield _("Recorded by `probepatch recipe record` from {tree}.").format(tree=self.heading.tree)
        yield _("Fill in what says TODO: what each edit is for only you know.")
        if not all(line.marker for line in lines):
            yield _(
                "`marker: false` keeps the bytes as they were edited; without it each edit marks its lines with its name."
            )
        if self.findings:
            yield ""
            yield _("NOT COMPLETE. These changes are not in it:")
        for finding in self.findings:
            text = " ".join(": ".join(filter(None, (finding.where, finding.what))).split())
            yield "  " + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)

    def _examples(self, recipe: Recipe) -> list[Shown]:
        found = []
        more = {
            place.file: edit for edit in recipe.edits for place in edit.places if edit.id.startswith("import-values")
        }
        for part in self.parts:
            first = [more[part.changed.file].id] if part.changed.file in more else []
            wanted = {*first, *part.names}
            before = small_file(part.bench, part.solved.drafts)
            if before is None or not part.names:
                continue
            edits = tuple(edit for edit in recipe.edits if edit.id in wanted)
            data = before.encode("utf-8")
            try:
                after = made_by(bare(recipe.id, edits), {part.changed.file: data}, None)[part.changed.file]
                read_code(read_source(part.changed.file, data))
                read_code(read_source(part.changed.file, after))
            except (ProbePatchError, KeyError):
                continue
            found.append(Shown((*first, *part.names), before, after.decode("utf-8")))
        return found

    def _literals(self) -> Iterator[Literal]:
        for one in self.changes.changed:
            yield from path_literals(one.file, one.base, one.edited)
        for file, name in self.added.items():
            yield from path_literals(file, b"", self.payloads[name])

    def _notes(self) -> Iterator[str]:
        yield from self.changes.notes
        if self.changes.left:
            yield left_note(self.changes.left)
        coarse = [
            d for part in self.parts for d in part.solved.drafts if d.verb == "replace" and "\n" in d.fields["with"]
        ]
        if coarse:
            text = ngettext("{n} edit replaces several lines", "{n} edits replace several lines", len(coarse))
            yield text.format(n=len(coarse)) + "; " + _("no other verb gives the same bytes")


def _plain_version(version: Version | None) -> str:
    text = str(version) if version is not None else ""
    return text if re.fullmatch(r"\d+(\.\d+)*([abc]|rc|\.?dev|\.?post)?\d*", text) else ""
