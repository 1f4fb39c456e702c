"""What tree is this: framework, version as declared and as probed, and which recipes fit, with the reason for each."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from codemods.catalogue import Framework, catalogue, frameworks
from codemods.errors import FindingError, ProbePatchError, UsageError
from codemods.locate import matches_in
from codemods.metadata import stated_versions
from codemods.outline import Definition
from codemods.pattern import compile_statements
from codemods.recipe import Heading, Recipe, Requirement
from codemods.recipe_reader import load_recipe
from codemods.target import Bases
from locales import _

_MAX_VERSION_BYTES = 200_000
_DUNDER = re.compile(
    r"""^(?:__version__\s*=\s*)?(?:__version__|version)\s*(?::\s*str\s*)?=\s*["']([^"'\n]{1,80})["']""", re.MULTILINE
)


class NotFittingError(FindingError):
    """A recipe was asked for that does not fit the tree, or none fits."""


class ExcludedError(FindingError):
    """A recipe is applied that excludes the one asked for."""


@dataclass(frozen=True)
class Fit:
    """Whether a recipe fits, and why (not)."""

    recipe: Heading
    fits: bool
    reason: str


@dataclass(frozen=True)
class Identity:
    """``declared`` is the version that the tree states, None when it states none; ``probed`` the range that its contents allow;
    ``agree`` None when one of the two is unknown."""

    framework: Framework | None
    declared: Version | None
    declared_in: str
    probed: SpecifierSet
    agree: bool | None
    fits: tuple[Fit, ...]

    @property
    def version(self) -> Version | None:
        """The version to plan for: the declared one unless it is a development version or contradicted by the tree."""
        if self.declared is None or self.declared.is_devrelease or self.agree is False:
            return None
        return self.declared

    @property
    def nearest(self) -> Version | None:
        """The version by which single edits are chosen: the tree's own, else the newest tried one that it is like."""
        tried = (Version(version) for fit in self.fits if fit.fits for version in fit.recipe.verified)
        return self.version or max((version for version in tried if version in self.probed), default=None)


def identify(bases: Bases, import_root: Path, packages: Sequence[str]) -> Identity:
    """What the tree is, with every shipped recipe of its framework judged."""
    known = [item for item in frameworks().values() if item.package in packages]
    if not known:
        return Identity(None, None, "", SpecifierSet(), None, ())
    return identify_as(known[0], bases, import_root)


def identify_as(framework: Framework, bases: Bases, import_root: Path) -> Identity:
    declared, declared_in = _declared(framework, bases, import_root)
    probed = SpecifierSet(prereleases=True)
    for probe in framework.probes:
        if holds(bases, probe.file, probe.symbol, probe.has) is not probe.lacks:
            probed &= probe.versions
    agree = None if declared is None or not len(probed) else declared in probed
    evidence = _Evidence(framework, declared, probed, agree, bases)
    fits = tuple(evidence.judge(recipe) for recipe in catalogue(framework.name))
    return Identity(framework, declared, declared_in, probed, agree, fits)


def _text(bases: Bases, file: str) -> str | None:
    data = bases.read(file)
    return data[:_MAX_VERSION_BYTES].decode("utf-8", "replace") if data is not None else None


def holds(bases: Bases, file: str, symbol: str, has: str) -> bool:
    """Is the file there, with the symbol and the statements, where they are named?"""
    data = bases.read(file)
    if data is None or not (symbol or has):
        return data is not None
    if symbol and symbol.rpartition(".")[2].encode("utf-8") not in data:
        return False
    try:
        target = bases.target(file)
        definitions = target.outline.named(symbol) if symbol else ()
        if not has:
            return bool(definitions)
        places: list[tuple[int, int, Definition | None]] = [(d.start, d.end, d) for d in definitions]
        if not symbol:
            places = [(start, end, None) for start, end in target.outline.stretches]
        pattern = compile_statements(has)
        return any(matches_in(pattern, target.scope(start, end, definition)) for start, end, definition in places)
    except ProbePatchError:
        return False


def _declared(framework: Framework, bases: Bases, import_root: Path) -> tuple[Version | None, str]:
    for file in framework.version_files:
        text = _text(bases, file)
        found = _DUNDER.search(text) if text is not None and file.endswith(".py") else None
        value = found.group(1) if found else text if text is not None and not file.endswith(".py") else None
        version = _version(value)
        if version is not None:
            return version, file
    for stated, file in stated_versions(import_root, framework.package):
        version = _version(stated)
        if version is not None:
            return version, file
    return None, ""


def _version(text: str | None) -> Version | None:
    try:
        return Version(text.strip()) if text else None
    except InvalidVersion:
        return None


@dataclass(frozen=True)
class _Evidence:
    framework: Framework
    declared: Version | None
    probed: SpecifierSet
    agree: bool | None
    bases: Bases

    def judge(self, recipe: Heading) -> Fit:
        missing = [need for need in recipe.requires if not holds(self.bases, need.file, need.symbol, need.has)]
        if self.declared is not None and not self.declared.is_devrelease and self.agree is not False:
            if self.declared not in recipe.versions:
                reason = _("version {version} is outside of {range}").format(
                    version=self.declared, range=recipe.versions
                )
                return Fit(recipe, False, reason)
            if missing:
                return Fit(
                    recipe,
                    False,
                    _("version {version} fits, but {need}").format(version=self.declared, need=_lack(missing[0])),
                )
            return Fit(
                recipe, True, _("version {version} is in {range}").format(version=self.declared, range=recipe.versions)
            )
        return self._by_probes(recipe, missing)

    def _by_probes(self, recipe: Heading, missing: list[Requirement]) -> Fit:
        stated = str(self.declared) if self.declared is not None else _("unknown")
        if missing:
            return Fit(
                recipe, False, _("declared version {version}; {need}").format(version=stated, need=_lack(missing[0]))
            )
        tried = [
            version
            for version in recipe.verified
            if Version(version) in self.probed and Version(version) in recipe.versions
        ]
        if not tried or not recipe.requires:
            return Fit(
                recipe,
                False,
                _("declared version {version}; the tree's contents do not show that it fits").format(version=stated),
            )
        return Fit(
            recipe,
            True,
            _("declared version {version}; the tree's contents are those of {like}").format(
                version=stated, like=", ".join(tried)
            ),
        )


def _lack(need: Requirement) -> str:
    return _("{file} lacks {what}").format(file=need.file, what=need.symbol or need.has or _("(the file is missing)"))


@dataclass(frozen=True)
class Chosen:
    """The recipes to plan, and sentences about those left out."""

    recipes: tuple[Recipe, ...]
    notes: tuple[str, ...] = ()


def choose(
    identity: Identity,
    side: str | None = None,
    ids: Sequence[str] = (),
    files: Sequence[Recipe] = (),
    applied: Collection[str] = (),
) -> Chosen:
    """The recipes asked for, or all that fit; of those that exclude each other the applied one, else the framework's default.

    ``files`` are recipes given by path: their versions are checked where the tree's version is known. ``applied`` are the ids of
    recipes that stand in the tree. Raises NotFittingError, ExcludedError, UsageError.
    """
    if ids or files:
        chosen = Chosen((*map(_loaded, _by_id(identity, ids)), *(_checked(identity, recipe) for recipe in files)))
        return _without_rivals(chosen, [fit.recipe for fit in identity.fits if fit.recipe.id in applied])
    fitting = [fit.recipe for fit in identity.fits if fit.fits and side in (None, fit.recipe.side)]
    chosen = _defaults(identity, fitting, applied)
    if not chosen.recipes:
        raise NotFittingError(
            _("no recipe fits this tree"),
            details=tuple(f"{fit.recipe.id}: {fit.reason}" for fit in identity.fits),
            todo=_("`probepatch recipes CHECKOUT` lists them; --recipe-file takes one of your own"),
        )
    return chosen


def _loaded(heading: Heading) -> Recipe:
    return heading if isinstance(heading, Recipe) else load_recipe(heading.path)


def _by_id(identity: Identity, ids: Sequence[str]) -> list[Heading]:
    known = {fit.recipe.id: fit for fit in identity.fits}
    found = []
    for name in dict.fromkeys(ids):
        fit = known.get(name)
        if fit is None:
            other = {recipe.id for recipe in catalogue()} if not known else set()
            what = (
                _("the recipe `{name}` is for another framework") if name in other else _("there is no recipe `{name}`")
            )
            raise UsageError(
                what.format(name=name), todo=_("known here: {names}").format(names=", ".join(known) or "-")
            )
        if not fit.fits:
            raise _not_fitting(identity, fit.recipe, fit.reason, fit.recipe.id)
        found.append(fit.recipe)
    return found


def _checked(identity: Identity, recipe: Recipe) -> Recipe:
    framework = identity.framework
    if framework is not None and framework.name != recipe.framework:
        raise NotFittingError(
            _("the recipe `{name}` is for {theirs}, this tree is {ours}").format(
                name=recipe.id, theirs=recipe.framework, ours=framework.name
            )
        )
    if framework is not None and identity.version is not None and identity.version not in recipe.versions:
        why = _("version {version} is outside of {range}").format(version=identity.version, range=recipe.versions)
        raise _not_fitting(identity, recipe, why, str(recipe.path))
    return recipe


def _not_fitting(identity: Identity, recipe: Heading, why: str, name: str) -> NotFittingError:
    """``name`` is what `recipe port` calls it: its id or its file."""
    outside = identity.version is not None and identity.version not in recipe.versions
    port = _("`probepatch recipe port {name} CHECKOUT` carries it to this version").format(name=name)
    return NotFittingError(
        _("the recipe `{name}` does not fit this tree").format(name=recipe.id), why=why, todo=port if outside else None
    )


def _group(recipe: Heading) -> str:
    return recipe.alternative.group if recipe.alternative else ""


def _without_rivals(chosen: Chosen, applied: Sequence[Heading]) -> Chosen:
    """Refuse two recipes of one name or of one excluding group, asked for together or one after the other."""
    for place, recipe in enumerate(chosen.recipes):
        for other in chosen.recipes[:place]:
            if other.id == recipe.id:
                raise UsageError(
                    _("two recipes are called `{name}`").format(name=recipe.id),
                    where=f"{other.path}, {recipe.path}",
                    todo=_("give each recipe once, under a name of its own"),
                )
            if _group(recipe) and _group(other) == _group(recipe):
                what = _("{first} and {second} exclude each other").format(first=other.id, second=recipe.id)
                raise UsageError(what, todo=_("name one of them"))
        for rival in applied:
            if _group(recipe) and _group(rival) == _group(recipe) and rival.id != recipe.id:
                raise ExcludedError(
                    _("{other} is applied, and excludes {recipe}").format(other=rival.id, recipe=recipe.id),
                    todo=_("take it out first: `probepatch revert CHECKOUT --recipe {other}`").format(other=rival.id),
                )
    return chosen


def _defaults(identity: Identity, fitting: Sequence[Heading], applied: Collection[str]) -> Chosen:
    """One recipe of each excluding group, with a sentence for each of the others."""
    kept: list[Heading] = []
    notes: list[str] = []
    for recipe in fitting:
        rivals = [other for other in fitting if _group(recipe) and _group(other) == _group(recipe)]
        taken = next((other for other in rivals if other.id in applied), None) or _default_of(identity, rivals)
        if taken is None or recipe is taken:
            kept.append(recipe)
        if len(rivals) < 2 or recipe.alternative is None:
            continue
        if recipe.id in applied:
            notes.append(_("{name} is taken: it is applied already").format(name=recipe.id))
        elif recipe is taken:
            notes.append(_("{name} is taken: {because}").format(name=recipe.id, because=recipe.alternative.because))
        else:
            notes.append(_("{name} fits too and is left out; --recipe {name} takes it instead").format(name=recipe.id))
    return Chosen(tuple(_loaded(heading) for heading in kept), tuple(notes))


def _default_of(identity: Identity, rivals: Sequence[Heading]) -> Heading | None:
    """The rival that the framework runs by default in the tree's version; the first where nobody says so."""
    for recipe in rivals:
        assert recipe.alternative is not None
        probed = [Version(text) for text in recipe.verified if Version(text) in identity.probed]
        versions = [identity.version] if identity.version is not None else probed
        if any(version in recipe.alternative.default for version in versions):
            return recipe
    return rivals[0] if rivals else None
