"""The pieces of a recording: each changed file solved, each new file as a payload, and the names of the edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from authoring.record.bench import Bench
from authoring.record.changes import Changed, Changes, UnrecordableError
from authoring.record.code import read_code
from authoring.record.hunks import Hunk, between
from authoring.record.literals import header_parameters
from authoring.record.markers import marked_lines, without_markers
from authoring.record.names import edit_name, payload_name
from authoring.record.proof import made_by
from authoring.record.solve import Solved, solve
from codemods.errors import ProbePatchError
from codemods.recipe import Edit, Recipe
from codemods.recipe_reader import inner_path
from codemods.source import read_source
from codemods.yamlfile import MAX_BYTES
from locales import _


@dataclass
class Part:
    """One changed file on its way: drafts with their names, and whether each line is marked in the tree."""

    changed: Changed
    bench: Bench
    solved: Solved
    names: list[str] = field(default_factory=list)
    marked: list[bool] = field(default_factory=list)


# --- one file ---------------------------------------------------------------------------------------------------------


def part_of(changed: Changed, findings: list[ProbePatchError]) -> Iterator[Part]:
    try:
        _check_name(changed.file)
        edited = read_source(changed.path, without_markers(changed.edited, changed.base))
        read_code(edited)
        bench = Bench.of(changed.file, changed.base, changed.path)
        if edited.encoding != bench.target.source.encoding or _has_bom(edited.raw) != _has_bom(changed.base):
            raise UnrecordableError(
                _("the encoding of {path} was changed").format(path=changed.path), where=f"{changed.path}:1"
            )
        solved = solve(bench, edited)
    except RecursionError as error:
        findings.append(UnrecordableError(_("the code nests too deep"), where=changed.path, why=str(error)))
        return
    except ProbePatchError as error:
        findings.append(error)
        return
    findings += [_unsolved(bench, edited.text, hunk) for hunk in solved.unsolved]
    made = bench.made(solved.drafts)
    if made is None:
        solved = Solved((), solved.unsolved)
    if not solved.unsolved and made != edited.text:
        what = _("the edits found for {path} do not give its bytes together").format(path=changed.path)
        findings.append(UnrecordableError(what, where=changed.path))
    yield Part(changed, bench, solved)


def _check_name(file: str) -> None:
    """Raises UnrecordableError for a path that no recipe can hold."""
    try:
        file.encode("utf-8")
        inner_path(file, file)
    except (UnicodeEncodeError, ProbePatchError) as error:
        what = _("a recipe cannot hold the path {path}").format(path=ascii(file))
        raise UnrecordableError(what, where=ascii(file)) from error


def _has_bom(data: bytes) -> bool:
    return data.startswith(b"\xef\xbb\xbf")


def _unsolved(bench: Bench, edited: bytes, hunk: Hunk) -> UnrecordableError:
    shift = 0
    for other in between(bench.text, edited):
        if other.start >= hunk.start:
            break
        shift += len(other.text) - (other.end - other.start)
    line = edited.count(b"\n", 0, hunk.start + shift) + 1
    changed = (bench.text[hunk.start : hunk.end] + hunk.text).splitlines()
    outside = all(not text.strip() or text.strip().startswith(b"#") for text in changed)
    return UnrecordableError(
        _("no verb gives the bytes of this change"),
        where=f"{bench.target.source.path}:{line}",
        why=_("only comments, blank lines or line endings are changed, beside no statement that could be replaced")
        if outside
        else _("it cannot be said as statements of one block"),
        todo=_("take it back, or leave the file out with --only"),
    )


# --- files that were added --------------------------------------------------------------------------------------------


def payloads_of(
    changes: Changes, findings: list[ProbePatchError]
) -> tuple[dict[str, bytes], dict[str, str], dict[str, tuple[str, Any]]]:
    """Payloads by name, their names by file, and the parameters that stand in their headers."""
    payloads: dict[str, bytes] = {}
    names: dict[str, str] = {}
    parameters: dict[str, tuple[str, Any]] = {}
    for file, data in changes.added.items():
        try:
            _check_name(file)
            data.decode("utf-8")
            if len(data) > MAX_BYTES:
                raise ValueError(_("larger than {size} bytes").format(size=MAX_BYTES))
        except (ValueError, ProbePatchError) as error:
            what = _("{path} cannot be a payload").format(path=file)
            findings.append(UnrecordableError(what, where=file, why=str(error)))
            continue
        data, found = header_parameters(data)
        names[file] = payload_name(file, payloads)
        payloads[names[file]] = data
        parameters |= found
    return payloads, names, parameters


# --- names ------------------------------------------------------------------------------------------------------------


def marked_id(changes: Changes) -> str:
    """The id of the one recipe whose markers stand in the tree; empty when there are several, or none."""
    found = {
        name.partition("/")[0]
        for one in changes.changed
        for name in marked_lines(one.edited)
        if "/" in name and name not in marked_lines(one.base)
    }
    return found.pop() if len(found) == 1 else ""


def name_all(parts: Sequence[Part], added: Mapping[str, str], recipe_id: str) -> None:
    """Names for all edits: those of the markers where there are some."""
    taken = {edit_name("add_file", "", {"add_file": name}, file, set()) for file, name in added.items()}
    for part in parts:
        drafts = part.solved.drafts
        places = [f"e{number}" for number in range(len(drafts))]
        marks = _marks(part, places, recipe_id)
        for place, draft in zip(places, drafts, strict=True):
            mark = marks.get(place, "")
            name = mark.partition("/")[2]
            if not name or name in taken:
                name = edit_name(draft.verb, draft.home.symbol, draft.fields, part.changed.file, taken)
            taken.add(name)
            part.names.append(name)
            part.marked.append(bool(mark))


def _marks(part: Part, places: Sequence[str], recipe_id: str) -> dict[str, str]:
    """The marker that stands in the tree on the first line of each draft: both are the same lines, marked differently."""
    if b"# probepatch: " not in part.changed.edited:
        return {}
    edits = tuple(
        draft.edit(part.changed.file, place, marker=True)
        for place, draft in zip(places, part.solved.drafts, strict=True)
    )
    try:
        made = made_by(bare(recipe_id, edits), {part.changed.file: part.changed.base}, None)[part.changed.file]
    except (ProbePatchError, KeyError):
        return {}
    theirs, ours = marked_lines(part.changed.edited), marked_lines(made)
    if len(theirs) != len(ours):
        return {}
    found: dict[str, str] = {}
    for mine, other in zip(ours, theirs, strict=True):
        if "/" in mine and other:
            found.setdefault(mine.partition("/")[2], other)
    imports = [place for place, draft in zip(places, part.solved.drafts, strict=True) if draft.verb == "add_import"]
    if "import" in theirs:
        found |= {place: found.get(place, "import") for place in imports}
    return found


def bare(recipe_id: str, edits: Sequence[Edit]) -> Recipe:
    return Recipe(
        id=recipe_id,
        framework="-",
        side="train",
        versions=SpecifierSet(),
        why="-",
        path=Path(),
        edits=tuple(edits),
        digest="",
    )
