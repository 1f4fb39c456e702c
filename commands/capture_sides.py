"""Both sides of a capture, planned completely: recipes, checkouts, configs, environment. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codemods.checkout import PACKAGES
from codemods.errors import RefusedError, UsageError
from codemods.identify import Fit
from codemods.recipe import Heading
from codemods.recipe_reader import PAYLOADS, load_heading
from commands.planning import Prepared as Planned
from commands.planning import Wish, look, prepare
from commands.target import other_copy
from locales import _
from stages.card.card import Card
from stages.card.evidence import evidence
from stages.card.order import SCENE
from stages.instrument import environment
from stages.instrument.choosing import choose
from stages.instrument.configs import as_text, expect_usable, show, world_size
from stages.instrument.native import Native, is_native
from stages.instrument.record import Prepared
from stages.instrument.together import Part
from stages.msprobe_config import check_config, make_config
from stages.scene.where import tree_of
from stages.sides import INFER, TRAIN, Side

TRANSFORMERS = "probepatch_transformers.py"


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    recipes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    task: str = "tensor"
    level: str = "L0"
    ranks: tuple[int, ...] = ()
    steps: tuple[int, ...] = (0,)
    worlds: Mapping[str, int | None] = field(default_factory=dict)
    phase: str = "log_prob"
    logprobs: bool = True


@dataclass(frozen=True)
class Work:
    """Everything that will be written. ``plans`` one for each package of a checkout, ``parts`` one for each ledger; ``files`` by
    path; ``holds`` what is at each side's dump_path now; ``advice`` the recipes' own notes, by recipe."""

    sides: Mapping[str, Prepared]
    versions: Mapping[str, str | None]
    native: Mapping[str, Native]
    switches: Mapping[str, str]
    plans: tuple[Planned, ...]
    parts: tuple[Part, ...]
    files: Mapping[Path, bytes]
    payload: Path | None
    holds: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    advice: Mapping[str, tuple[str, ...]]


def plan(card: Card, options: Options) -> Work:
    """Raises what keeps the capture from being prepared; nothing is written."""
    root = Path(card.fact("artifacts"))
    if not root.is_absolute():
        raise UsageError(
            _("artifacts is not absolute: {path}").format(path=root), todo=_("`probepatch task set artifacts=/…`")
        )
    found = evidence(card, SCENE)
    assert found is not None
    scenes = {one["side"]: one for one in found.result["sides"]}
    _expect_known(card, options, scenes)
    switches = environment.switches(options.phase, options.logprobs)
    sides, versions, native = dict[str, Prepared](), dict[str, str | None](), dict[str, Native]()
    wishes, owners, files = dict[Path, Wish](), dict[Path, list[str]](), dict[Path, bytes]()
    holds, notes = dict[str, tuple[str, ...]](), list[str]()
    for name in (TRAIN, INFER):
        side, config_path = Side.of(card, name), root / "msprobe" / f"{name}.json"
        chosen = _chosen(card, side, scenes[name], options)
        notes += chosen.notes
        for place, wish in chosen.wishes.items():
            wishes[place] = _joined(wishes[place], wish) if place in wishes else wish
            owners.setdefault(place, []).append(name)
        world = world_size(card, name, options.worlds.get(name))
        config = make_config(
            str(root / "dump" / name),
            world_size=world,
            task=options.task,
            level=options.level,
            ranks=options.ranks,
            steps=options.steps,
        )
        notes += [f"{name}: {one.key}: {one.what}; {one.todo}" for one in check_config(config, world).findings]
        shown = show(side, config, str(root), card.fact(f"{name}.workdir"))
        expect_usable(name, shown, str(root))
        versions[name], holds[name] = shown.version, shown.holds
        files[config_path] = as_text(config).encode()
        if is_native(scenes[name]):
            native[name] = Native(scenes[name]["framework"], str(config_path), scenes[name]["version"])
        sides[name] = Prepared(
            str(next(iter(chosen.wishes))) if chosen.wishes else None,
            tuple(one.id for one in chosen.headings),
            name in native,
            str(config_path),
            config["dump_path"],
            world,
            environment.of_side(name, chosen.headings, switches, str(config_path)),
        )
    payload = root / "launch" / TRANSFORMERS if card.fact(f"{INFER}.framework") == "transformers" else None
    if payload is not None:
        files[payload] = (PAYLOADS / TRANSFORMERS).read_bytes()
    plans = {place: prepare(_with_configs(wish, sides)) for place, wish in wishes.items()}
    advice = {recipe.id: recipe.notes for one in plans.values() for recipe in one.chosen.recipes if recipe.notes}
    said = {note for told in advice.values() for note in told}
    for place, one in plans.items():  # the scene's notes tell already which copy the interpreter would import
        said |= set(other_copy(one.scene.tree, wishes[place].python))
    notes += [note for one in plans.values() for note in one.plan.notes if note not in said]
    parts = tuple(_parts(plans, owners))
    told = tuple(dict.fromkeys(notes))
    return Work(sides, versions, native, switches, tuple(plans.values()), parts, files, payload, holds, told, advice)


def _expect_known(card: Card, options: Options, scenes: Mapping[str, Any]) -> None:
    """Every recipe that was named is one of the two sides' frameworks."""
    from codemods.catalogue import catalogue
    from commands.names import unknown

    frameworks = {one["framework"] for one in scenes.values()} | {card.fact(f"{side}.framework") for side in scenes}
    known = [one.id for one in catalogue() if one.framework in frameworks]
    for name in options.recipes:
        if name not in known:
            raise unknown(_("there is no recipe `{name}` for these two sides").format(name=name), name, known)


@dataclass(frozen=True)
class _Chosen:
    headings: tuple[Heading, ...]
    wishes: dict[Path, Wish]
    notes: tuple[str, ...]


def _chosen(card: Card, side: Side, scene: Mapping[str, Any], options: Options) -> _Chosen:
    if scene["framework"] == "transformers":
        return _Chosen((), {}, ())
    inside = scene["framework"] not in (None, card.fact(f"{side.name}.framework"))
    reach = (
        Side.of(card, TRAIN) if inside and side.name == INFER else side
    )  # the engine runs in the trainer's own process
    files = tuple(path for path in options.files if load_heading(path).side == side.name)
    place, notes = _place(reach, card.fact(f"{reach.name}.checkout"), scene["package"])
    own = {one.id: one for one in map(load_heading, files)}
    judged = look(Wish(place, None, None, files=files)).identity.fits
    others = (one for name, one in own.items() if name not in {fit.recipe.id for fit in judged})
    fits = (*judged, *(Fit(one, True, _("given by its file")) for one in others))
    ids, more = choose(side.name, scene, fits, {*options.recipes, *own}, logprobs=options.logprobs)
    headings = _headings(fits, ids)
    python = None if reach.prefix else reach.python
    wishes = {place: Wish(place, None, python, ids=tuple(one for one in ids if one not in own), files=files)}
    if scene["framework"] == "vllm_ascend" and options.logprobs:
        below = _below(side)
        wishes |= below.wishes
        headings, more = (*headings, *below.headings), (*more, *below.notes)
    return _Chosen(headings, wishes, (*notes, *more))


def _headings(fits: Sequence[Fit], ids: Sequence[str]) -> tuple[Heading, ...]:
    return tuple(fit.recipe for fit in fits if fit.recipe.id in ids)


def _below(side: Side) -> _Chosen:
    """vLLM under vllm-ascend, a package of its own, which is asked there for the prompts' log-probs."""
    place, notes = _place(side, None, "vllm")
    fits = look(Wish(place, None, None)).identity.fits
    headings = tuple(fit.recipe for fit in fits if fit.fits and fit.recipe.id == "vllm-prompt-logprobs")
    if not headings:
        return _Chosen((), {}, (*notes, _("no recipe asks this vLLM for the prompts' log-probs")))
    python = None if side.prefix else side.python
    return _Chosen(headings, {place: Wish(place, None, python, ids=tuple(one.id for one in headings))}, notes)


def _place(side: Side, checkout: str | None, package: str) -> tuple[Path, tuple[str, ...]]:
    """Where the package is on this file system, where alone it can be patched: its own folder, or its import root when it is of no
    framework that is known by name. Raises RefusedError, NoTreeError, SideError."""
    with tree_of(side, checkout, (package,)) as tree:
        if tree.copied:
            raise RefusedError(
                _("the {side} side's checkout {path} is not on this file system").format(
                    side=side.name, path=tree.seen
                ),
                why=_("edits are written where they are recorded, with the originals beside them"),
                todo=_(
                    "run probepatch where that folder is (in the container, on the host), or mount it under this path"
                ),
            )
        return tree.path / tree.package if package in PACKAGES else tree.path, tree.notes


def _joined(one: Wish, other: Wish) -> Wish:
    """Two sides in one checkout: one plan."""
    ids, files = dict.fromkeys((*one.ids, *other.ids)), dict.fromkeys((*one.files, *other.files))
    return replace(one, ids=tuple(ids), files=tuple(files))


def _with_configs(wish: Wish, sides: Mapping[str, Prepared]) -> Wish:
    """With msprobe's configs as the recipes' parameters: they hold where a variable does not arrive."""
    from codemods.catalogue import catalogue

    headings: list[Heading] = [one for one in catalogue() if one.id in wish.ids]
    headings += [load_heading(path) for path in wish.files]
    variables = {environment.ACTOR: sides[TRAIN].config, environment.ENGINE: sides[INFER].config}
    found = {one.name: variables[one.env] for heading in headings for one in heading.parameters if one.env in variables}
    return replace(wish, settings=tuple(f"{name}={value}" for name, value in found.items()))


def _parts(plans: Mapping[Path, Planned], owners: Mapping[Path, Sequence[str]]) -> list[Part]:
    """Packages that share a ledger (two in one site-packages) are written in one transaction."""
    parts: dict[Path, Part] = {}
    for place, one in plans.items():
        tree, new = one.scene.tree, tuple(owners[place])
        held = parts.get(tree.root)
        if held is None:
            parts[tree.root] = Part(new, tree, one.plan, one.scene.views)
            continue
        files = (*held.plan.files, *one.plan.files)
        merged = replace(held.plan, files=files, recipes={**held.plan.recipes, **one.plan.recipes})
        both = tuple(dict.fromkeys((*held.sides, *new)))
        parts[tree.root] = Part(both, held.tree, merged, {**held.views, **one.scene.views})
    return list(parts.values())
