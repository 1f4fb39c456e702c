"""``probepatch scene [CHECKOUT]``: stage 3. What runs on each side, by which path, and where the three things of a capture are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import UsageError
from commands.arguments import file_path, recipe_file_option
from commands.output import json_option, print_json, say
from commands.task_card import card_path, following_steps, say_next, task_option
from locales import _

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codemods.identify import Identity
    from commands.planning import Scene
    from stages.card.card import Card
    from stages.scene.side import SideScene

SERVING = ("vllm", "vllm_ascend", "sglang")  # packages of the inference side


@click.command
@click.argument("checkout", required=False, type=file_path)
@click.option("--side", type=click.Choice(["train", "infer"]), help=_("which side CHECKOUT is"))
@recipe_file_option
@task_option
@json_option
def command(checkout: Path | None, side: str | None, files: tuple[Path, ...], task: Path | None, as_json: bool) -> int:
    """Exit code 1 when a place is not settled, or a recipe misses the tree."""
    if checkout is not None:
        scenes = [_of_checkout(checkout, side, files)]
        card, following = None, []
    else:
        card, scenes = _of_card(task, side, files)
        following = following_steps(card, task) if card is not None else []
    if as_json:
        print_json({"sides": [one.as_json() for one in scenes], "recorded": card is not None, "next": following})
    else:
        from commands.scene_text import print_side

        for one in scenes:
            print_side(one)
        if card is None:
            say(_("nothing was recorded: without CHECKOUT both sides of the task card are looked at"), "dim")
        else:
            say_next(following)
    return 0 if all(one.settled for one in scenes) else 1


def _of_checkout(checkout: Path, side: str | None, files: tuple[Path, ...]) -> SideScene:
    from codemods.checkout import PACKAGES, NoFrameworkError, open_tree

    try:
        package = open_tree(checkout, PACKAGES).packages[0]
    except NoFrameworkError:
        package = None
    if side is None and package is None and not files:
        raise UsageError(
            _("{path} holds no framework that is known here").format(path=checkout),
            todo=_("say --side train or --side infer, and it is searched by shape"),
        )
    return _look(checkout, side or ("infer" if package in SERVING else "train"), str(checkout), files, {})


def _of_card(task: Path | None, side: str | None, files: tuple[Path, ...]) -> tuple[Card | None, list[SideScene]]:
    """Both sides as the card names them, recorded; with --side one of them, and then nothing is recorded."""
    from stages.card.order import SCENE, require
    from stages.card.store import changing, read_card
    from stages.sides import INFER, TRAIN

    path = card_path(task)
    card = read_card(path)
    require(card, SCENE)
    found = [_of_side(card, TRAIN, files)] if side != INFER else []
    if side != TRAIN:
        inside = any(
            one.fact.about == "rollout" and one.way.word == "spmd" for scene, _f in found for one in scene.defaults
        )
        found.append(_of_trainer(card, files) if inside else _of_side(card, INFER, files))
    scenes = [scene for scene, _rests_on in found]
    if side is not None:
        return None, scenes
    with changing(path, card) as card:
        require(card, SCENE)
        _record(card, scenes, [file for _scene, rests_on in found for file in rests_on])
    return card, scenes


def _of_side(card: Card, name: str, files: tuple[Path, ...]) -> tuple[SideScene, list[Path]]:
    """The scene, and the files of this machine that it was read from."""
    from stages.scene.side import without_tree
    from stages.scene.where import tree_of
    from stages.sides import Side

    framework, checkout = card.fact(f"{name}.framework"), card.fact(f"{name}.checkout")
    if framework == "transformers":
        return without_tree(name, framework), []
    if framework == "own" and checkout is None:
        raise UsageError(
            _("where the source of the {side} side is, is unknown").format(side=name),
            todo=_("`probepatch task set {side}.checkout=…`").format(side=name),
        )
    known = {key: card.fact(f"{name}.{key}") for key in ("version", *(("backend",) if name == "train" else ()))}
    with tree_of(Side.of(card, name), checkout, () if framework == "own" else (framework,)) as tree:
        package = tree.path / tree.package
        scene = _look(package, name, tree.seen, files, known, tree.notes)
        rests_on = [] if tree.copied else _files(scene, tree.path)
    return scene, rests_on


def _files(scene: SideScene, root: Path) -> list[Path]:
    """The files of this machine that a scene was read from."""
    lines = [loop.line for loop in scene.loops] + [told.line for told in (*scene.skips, *scene.links)]
    lines += [line for one in scene.defaults for line in (one.decided_at, one.value_at) if line is not None]
    lines += [*scene.native_starts, *((scene.native.line,) if scene.native else ())]
    names = {place.file for thing in scene.things for place in thing.places if place.line is not None}
    names |= {line.file for line in lines} | ({scene.declared_in} if scene.declared_in else set())
    return [path for name in sorted(names) if (path := root / name).is_file()]


def _of_trainer(card: Card, files: tuple[Path, ...]) -> tuple[SideScene, list[Path]]:
    """The inference side where the engine runs in the trainer's own process: its place is in the trainer's tree."""
    from stages.scene.where import tree_of
    from stages.sides import INFER, TRAIN, Side

    with tree_of(Side.of(card, TRAIN), card.fact("train.checkout"), (card.fact("train.framework"),)) as tree:
        note = _(
            "by default the engine runs in the trainer's process; with servers (rollout.mode=async) see --side infer"
        )
        scene = _look(tree.path / tree.package, INFER, tree.seen, files, {}, (*tree.notes, note))
        return scene, [] if tree.copied else _files(scene, tree.path)


def _look(
    place: Path, side: str, seen: str, files: tuple[Path, ...], known: dict[str, Any], notes: tuple[str, ...] = ()
) -> SideScene:
    from authoring.start.newcomer import find_package
    from authoring.trees import FolderTree
    from codemods.checkout import PACKAGES, NoFrameworkError, open_tree
    from commands.planning import Wish, look
    from stages.scene.changes import Subject
    from stages.scene.reading import Reading
    from stages.scene.side import look as look_at

    package, ours = "", files
    try:
        package = open_tree(place, PACKAGES).packages[0]
        ours = _of_framework(files, package)
    except NoFrameworkError:
        package = find_package(place)
        place = place if not ours else _root_of(place, package)
    wish = Wish(place, None, None, files=ours)
    scene = look(wish) if package in PACKAGES or ours else None
    if scene is None:
        tree = open_tree(place, (package,))
        import_root, bases, identity = tree.import_root, *_newcomer(package, tree.import_root)
    else:
        import_root, bases, identity = scene.tree.import_root, scene.bases, scene.identity
        notes = (*notes, *_notes(scene))
    subject = Subject(
        side,
        seen,
        package,
        identity,
        Reading(bases),
        FolderTree(import_root, seen),
        scene.files if scene is not None else (),
        known.get("backend"),
        known.get("version"),
    )
    return look_at(subject, notes)


def _root_of(place: Path, package: str) -> Path:
    from codemods.checkout import open_tree

    return open_tree(place, (package,)).import_root


def _of_framework(files: tuple[Path, ...], package: str) -> tuple[Path, ...]:
    """The recipe files that are for this framework; with two sides each gets its own."""
    from codemods.catalogue import frameworks
    from codemods.recipe_reader import load_heading

    names = {one.name for one in frameworks().values() if one.package == package}
    return tuple(path for path in files if load_heading(path).framework in names)


def _newcomer(package: str, import_root: Path) -> tuple[Any, Identity]:
    from dataclasses import replace

    from authoring.start.newcomer import meet
    from authoring.trees import FolderTree
    from codemods.target import Bases

    bases = Bases(FolderTree(import_root, package).read)
    return bases, replace(meet(package, bases, import_root).identity, framework=None)


def _notes(scene: Scene) -> Iterator[str]:
    yield from scene.tree.notes
    if scene.ledger.active():
        yield _("edits of ours stand in this checkout; the lines are those of the files without them")


def _record(card: Card, scenes: list[SideScene], files: list[Path]) -> None:
    """Facts that were unknown and that the trees tell, then the evidence."""
    from stages.card.evidence import learn, record
    from stages.card.order import SCENE

    facts = []
    for one in scenes:
        if card.fact(f"{one.side}.framework") not in (one.framework, "own"):
            continue  # in the other side's tree
        told = {"version": one.declared, "checkout": one.checkout or None}
        told |= {"backend": one.backend} if one.side == "train" else {}
        for key, value in told.items():
            learn(card, f"{one.side}.{key}", value)
        facts += [f"{one.side}.{key}" for key in ("framework", "prefix", "python", *told)]
    settled = all(one.settled for one in scenes)
    names = ", ".join(f"{one.framework or one.package} {one.declared or _('(version unknown)')}" for one in scenes)
    text = (
        _("{names}: the places are known")
        if settled
        else _("{names}: a place is not settled, or a recipe misses the tree")
    )
    record(
        card,
        SCENE,
        settled,
        text.format(names=names),
        files=files,
        facts=facts,
        result={"sides": [one.for_card() for one in scenes]},
    )
