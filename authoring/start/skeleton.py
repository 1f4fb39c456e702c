"""The start of a recipe: its head for this tree, and the scene's candidates as comments. Nothing in it is presumed right."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.version import Version

from authoring.start.scene import Candidate, Role, Scene, search
from authoring.trees import SourceTree
from codemods.catalogue import Framework
from codemods.recipe import Edit
from locales import _, ngettext

_PLAIN = re.compile(r"[A-Za-z_$][^:#\"'{}\[\]&*!|>%@`\n]*(?<! )")
_WORDS_OF_YAML = {"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"}
_WIDTH = 116


@dataclass(frozen=True)
class Subject:
    """What the recipe is for. ``framework`` is a described one or a newcomer's; ``version`` None where the tree states none."""

    framework: Framework
    version: Version | None
    side: str
    checkout: str


@dataclass(frozen=True)
class Skeleton:
    """``recipe`` is the text of the file; ``scene`` what was found."""

    recipe: str
    scene: Scene


def skeleton(tree: SourceTree, subject: Subject) -> Skeleton:
    """Search the tree and write the skeleton."""
    scene = search(tree, subject.framework.package, subject.side)
    lines = [*_head(subject), "edits:", *_candidates(scene), *_tail(scene)]
    return Skeleton("\n".join(lines) + "\n", scene)


def framework_file(framework: Framework) -> str:
    """The text of a ``framework.yaml`` for a framework that nobody described yet."""
    lines = [f"framework: {scalar(framework.name)}", f"package: {scalar(framework.package)}"]
    if framework.version_files:
        lines += ["version_files:", *(f"  - {{file: {scalar(file)}}}" for file in framework.version_files)]
    else:
        lines += [
            "# " + _("no file that states the version was found: name one here, or describe the versions by `probes`"),
            "version_files: []",
        ]
    return "\n".join(lines) + "\n"


def scalar(text: str) -> str:
    """One line of text as YAML: plain where that is read back as the same text, else in double quotes."""
    plain = _PLAIN.fullmatch(text) and text.isprintable() and text.lower() not in _WORDS_OF_YAML
    return text if plain else json.dumps(text, ensure_ascii=False)


def _head(subject: Subject) -> Iterator[str]:
    framework, side = subject.framework.name, subject.side
    yield "# yaml-language-server: $schema=recipe.schema.json"
    yield from _comment(
        _(
            "A start for {framework} {version}. Below `edits:` stand places found by their shape, ranked by score; none is "
            "presumed to be the right one. Look at them, take the `# ` off one, write your code in place of `pass` (or of "
            "`str(…)`, where an id is made within a call); then "
            "`probepatch recipe check FILE` and `probepatch diff {checkout} --recipe-file FILE`."
        ).format(
            framework=framework,
            version=subject.version or _("(no version found)"),
            checkout=visible_line(subject.checkout),
        )
    )
    yield f"recipe: my-{framework}-{side}"
    yield f"framework: {framework}"
    yield f"side: {side}"
    if subject.version is None:
        yield from _comment(_("the tree states no version: say which versions you have tried"))
        yield 'versions: ">=0"'
    else:
        yield f'versions: "=={subject.version}"'
    yield f"why: {scalar(_('say what it captures, and why here'))}"
    yield from _comment(_("values of a run, and environment variables that your code reads:"))
    yield "# parameters:"
    yield "#   config: {type: path, env: MSPROBE_CONFIG, help: the dumper's config}"
    yield "# switches: [DUMP_ON]"


def _candidates(scene: Scene) -> Iterator[str]:
    for role in scene.roles:
        yield f"  ## {role.shape.title}"
        if not role.candidates:
            yield "  ##    " + _("none found")
        for number, one in enumerate(role.candidates, 1):
            yield from _candidate(role, one, number)
        if role.more:
            text = ngettext(
                "({n} more of lower score or in the same file)", "({n} more, lower or in the same files)", role.more
            )
            yield "  ##    " + text.format(n=role.more)


def _candidate(role: Role, one: Candidate, number: int) -> Iterator[str]:
    yield f"  ## {one.score:4}  {one.file}:{one.line}  {one.symbol}"
    code = one.code if len(one.code) <= _WIDTH - 12 else one.code[: _WIDTH - 13] + "…"
    yield f"  ##       {visible_line(code)}"
    yield from (f"  ##       {line}" for line in textwrap.wrap("; ".join(one.says), _WIDTH - 12))
    if one.edit is not None:
        name = role.shape.role if number == 1 else f"{role.shape.role}-{number}"
        yield from (f"  # {line}" for line in _edit(one.edit, name))


def _edit(edit: Edit, name: str) -> Iterator[str]:
    """The edit as YAML, its code still `pass`."""
    place, verb = edit.places[0], edit.verb.name
    yield f"- id: {name}"
    yield f"  why: {scalar(_('say why'))}"
    yield f"  file: {scalar(place.file)}"
    yield f"  in: {place.symbol}"
    if place.select:
        yield "  select: {" + ", ".join(f"{key}: {value}" for key, value in place.select.items()) + "}"
    if place.expect != 1:
        yield f"  expect: {place.expect}"
        yield f"  nth: {place.nth}"
    yield f"  {verb}: {scalar(place.fields[verb])}"
    yield from (f"  {key}: {value}" for key, value in _codes(place.fields, verb))


def _codes(fields: Mapping[str, str], verb: str) -> Iterator[tuple[str, str]]:
    return ((key, text) for key, text in fields.items() if key != verb)


def _tail(scene: Scene) -> Iterator[str]:
    yield "  ## " + _("any other place: `probepatch recipe schema` and docs/recipes.md have all verbs")
    text = _("searched: {files} Python files of the package, of which {read} speak of log-probs or requests")
    yield "  ## " + text.format(files=scene.files, read=scene.read)
    if scene.unread:
        yield "  ## " + _("could not be read: {files}").format(files=", ".join(map(visible_line, scene.unread[:5])))
    yield "# " + _("examples, which `probepatch recipe test` runs:")
    yield "# examples:"
    yield "#   - edits: [capture]"
    yield "#     before: |"
    yield "#       " + _("(the function as it is, or as much of it as the edit needs)")
    yield "#     after: |"
    yield "#       " + _("(what the edit makes of it)")


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False))


def visible_line(text: str) -> str:
    """``text`` on one line without control characters: a file name or a string may hold a line break."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
