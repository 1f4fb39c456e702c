"""``probepatch recipe new CHECKOUT``: the skeleton of a recipe for this tree, or a port of another recipe to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.checkout import PACKAGES, NoFrameworkError, Tree, open_tree
from codemods.errors import RefusedError, UsageError
from commands.arguments import file_path, text
from commands.output import json_option, print_json, say, warn
from commands.recorded import where_recorded
from locales import _
from patch_ledger.store import open_ledger

if TYPE_CHECKING:
    from authoring.start.scene import Candidate, Scene
    from authoring.start.skeleton import Subject
    from codemods.recipe import Recipe
    from commands.authoring import Pristine

SERVING = ("vllm", "vllm_ascend", "sglang")  # packages whose recipes are of the side `infer`

_EQUALS = 3  # candidates of equal score that the terminal shows


@dataclass(frozen=True)
class Written:
    """A text and the file it belongs in; ``path`` None for standard output, ``there`` when the file exists and is left alone."""

    text: str
    path: Path | None
    there: bool = False


@click.command(
    help=_(
        "Start a recipe for a checkout: a skeleton with ranked places, none presumed right; or, with --from, a port of a recipe."
    )
)
@click.argument("checkout", type=file_path)
@click.option(
    "--from", "source", metavar="ID", type=text, help=_("a shipped recipe, or a recipe file, to port to this tree")
)
@click.option("--side", type=click.Choice(["train", "infer"]), help=_("train (the default) or infer (that of engines)"))
@click.option("--out", metavar="FILE", type=file_path, help=_("write the recipe there; it must not exist yet"))
@json_option
def command(checkout: Path, source: str | None, side: str | None, out: Path | None, as_json: bool) -> int:
    """Exit code 1 when a port is not complete, 3 when the file is there already."""
    if out is not None and os.path.lexists(out):
        raise RefusedError(_("{path} is there already").format(path=out), todo=_("name another file with --out"))
    if source is not None:
        if side is not None:
            raise UsageError(_("--side goes with a skeleton; a port has the side of its recipe"))
        return _port(source, checkout, out, as_json)
    _start(checkout, side, out, as_json)
    return 0


def _start(checkout: Path, side: str | None, out: Path | None, as_json: bool) -> None:
    from authoring.start.skeleton import framework_file, skeleton
    from commands.authoring import pristine

    tree, package = _find(checkout)
    files = pristine(tree)
    subject, known = _subject(tree, files, package, side)
    made = skeleton(files, subject)
    beside = None
    if not known:
        path = out.parent / "framework.yaml" if out is not None else None
        beside = Written(framework_file(subject.framework), path, path is not None and os.path.lexists(path))
    _finish(Written(made.recipe, out), beside, subject, made.scene, _notes(tree), as_json)


def _find(checkout: Path) -> tuple[Tree, str]:
    """The checkout and the package in it that the recipe will be for. Raises NoCheckoutError, NoFrameworkError."""
    from authoring.start.newcomer import find_package

    try:
        tree = open_tree(checkout, PACKAGES)
        package = tree.packages[0]
    except NoFrameworkError:
        package = find_package(checkout)
        tree = open_tree(checkout, (package,))
    return where_recorded(tree, to_plan=True), package


def _subject(tree: Tree, files: Pristine, package: str, side: str | None) -> tuple[Subject, bool]:
    """What the recipe is about, and whether its framework is one that the project describes."""
    from authoring.start.newcomer import meet
    from authoring.start.skeleton import Subject
    from codemods.catalogue import frameworks
    from codemods.identify import identify_as
    from codemods.target import Bases

    bases = Bases(files.read)
    side = side or ("infer" if package in SERVING else "train")
    known = next((one for one in frameworks().values() if one.package == package), None)
    if known is not None:
        return Subject(known, identify_as(known, bases, tree.import_root).declared, side, tree.given), True
    newcomer = meet(package, bases, tree.import_root)
    return Subject(newcomer.framework, newcomer.identity.declared, side, tree.given), False


def _port(source: str, checkout: Path, out: Path | None, as_json: bool) -> int:
    """The recipe carried over to this tree, as ``recipe port`` does it."""
    from authoring.drift.port import port
    from commands.authoring import named_recipe, on_checkout

    _expect_framework(named_recipe(source), checkout)
    tried = on_checkout(source, checkout, None)
    ported = port(tried.recipe, tried.view, tried.version, tried.was)
    notes = list(tried.scene.tree.notes)
    if not ported.complete:
        notes.append(_("not complete: `probepatch recipe port` tells of each edit what is left to do"))
    if tried.version is None:
        text = _("the tree states no version, so `versions: {range}` stands as it was: write there what you try")
        notes.append(text.format(range=tried.recipe.versions))
    _finish(Written(ported.text, out), None, None, None, notes, as_json)
    return 0 if ported.complete else 1


def _expect_framework(recipe: Recipe, checkout: Path) -> None:
    """Raises NotFittingError when the checkout holds another framework than the recipe's."""
    from authoring.matrix.releases import framework_of
    from codemods.identify import NotFittingError

    package = framework_of([recipe]).package
    files = {place.file for edit in recipe.edits for place in edit.places}
    if "." in package or any((checkout / file).is_file() for file in files):
        return
    try:
        open_tree(checkout, (package,))
    except NoFrameworkError:
        tree, found = _find(checkout)
        raise NotFittingError(
            _("the recipe `{name}` is for {theirs}, and {path} holds {ours}").format(
                name=recipe.id, theirs=recipe.framework, path=tree.given, ours=found
            ),
            todo=_("without --from a recipe for {ours} is begun").format(ours=found),
        ) from None


def _notes(tree: Tree) -> list[str]:
    notes = list(tree.notes)
    if len(tree.packages) > 1:
        others = ", ".join(tree.packages[1:])
        notes.append(_("also here: {others}; name the package's own folder for one of those").format(others=others))
    if open_ledger(tree).active():
        notes.append(
            _("edits of ours stand in this checkout; it was searched without them, so lines are those of the originals")
        )
    return notes


def _finish(
    recipe: Written,
    beside: Written | None,
    subject: Subject | None,
    scene: Scene | None,
    notes: list[str],
    as_json: bool,
) -> None:
    for one in (recipe, beside):
        if one is not None and one.path is not None and not one.there:
            _write(one.path, one.text)
    if as_json:
        print_json(_as_json(recipe, beside, subject, scene, notes))
        return
    if recipe.path is None:
        _print_text(recipe, beside)
    else:
        _print_written(recipe, beside, scene)
    for note in notes:
        warn(note)


def _write(path: Path, text: str) -> None:
    """A new file; one that is there is never written over. Raises RefusedError, UsageError."""
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError as error:
        raise RefusedError(_("{path} is there already").format(path=path)) from error
    except (OSError, ValueError) as error:
        raise UsageError(_("{path} cannot be written").format(path=path), why=str(error)) from error


def _print_text(recipe: Written, beside: Written | None) -> None:
    click.echo(recipe.text, nl=False)
    if beside is not None:
        click.echo("# " + _("nobody described this framework yet: put this into `framework.yaml` beside the recipe"))
        for line in beside.text.splitlines():
            click.echo(f"#     {line}")
        click.echo(f"# {_why_beside()}")


def _why_beside() -> str:
    return _("keep it beside the recipe: from it the package is known, and the version that `versions` is about")


def _print_written(recipe: Written, beside: Written | None, scene: Scene | None) -> None:
    say(_("written: {path}").format(path=recipe.path), "good")
    if beside is not None:
        text = _("there already, and left alone: {path}") if beside.there else _("written: {path}")
        say(text.format(path=beside.path), "note" if beside.there else "good")
        say(f"  {_why_beside()}")
    for role in scene.roles if scene is not None else ():
        say(role.shape.title, "head")
        equal = [one for one in role.candidates if one.score == role.candidates[0].score]
        for one in equal[:_EQUALS]:
            say(f"      {one.file}:{one.line}  {one.code}")
        if not equal:
            say("      " + _("none found"))
    if scene is not None:
        todo = _("these are the best of each kind, found by shape: look at them, then take the `# ` off one in {path}")
        say(todo.format(path=recipe.path), "note")


def _as_json(
    recipe: Written, beside: Written | None, subject: Subject | None, scene: Scene | None, notes: list[str]
) -> dict[str, Any]:
    roles = [
        {
            "role": role.shape.role,
            "more": role.more,
            "candidates": [_candidate_as_json(one) for one in role.candidates],
        }
        for role in (scene.roles if scene is not None else ())
    ]
    return {
        "recipe": _written_as_json(recipe),
        "framework_file": _written_as_json(beside) if beside is not None else None,
        "framework": subject.framework.name if subject else None,
        "version": str(subject.version) if subject and subject.version else None,
        "side": subject.side if subject else None,
        "scene": roles,
        "searched": {"files": scene.files, "read": scene.read, "unread": list(scene.unread)} if scene else None,
        "notes": notes,
    }


def _written_as_json(one: Written) -> dict[str, Any]:
    written = one.path is not None and not one.there
    return {"path": str(one.path) if one.path else None, "written": written, "text": one.text}


def _candidate_as_json(one: Candidate) -> dict[str, Any]:
    return {
        "score": one.score,
        "file": one.file,
        "line": one.line,
        "in": one.symbol,
        "code": one.code,
        "because": list(one.says),
        "verb": one.edit.verb.name if one.edit else None,
        "pattern": one.edit.places[0].fields[one.edit.verb.name] if one.edit else None,
    }
