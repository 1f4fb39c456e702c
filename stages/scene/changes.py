"""The list of changes: where our facts, the recipes or the card say one thing and the tree another. The tree is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from authoring.trees import FolderTree
from codemods.identify import Identity
from codemods.recipe import Recipe
from locales import _
from stages.scene.defaults import Default, missing
from stages.scene.facts import AS_OF
from stages.scene.places import Missed
from stages.scene.reading import Reading


@dataclass(frozen=True)
class Change:
    """Something in which the facts of ours, or the card, and the tree differ: the tree is taken, and this is to be mended."""

    what: str
    where: str
    todo: str
    blocks: bool = False
    """Whether the recipes cannot be applied as they are."""


@dataclass(frozen=True)
class Subject:
    """What is looked at. ``tree`` is what a search by shape goes through; ``files`` are recipes of one's own;
    ``backend`` and ``version`` are what the card says."""

    side: str
    checkout: str
    package: str
    identity: Identity
    reading: Reading
    tree: FolderTree
    files: tuple[Recipe, ...] = ()
    backend: str | None = None
    version: str | None = None


def differences(
    subject: Subject, ways: Sequence[Default], missed: Sequence[Missed], choices: Sequence[str]
) -> list[Change]:
    identity = subject.identity
    name = identity.framework.name if identity.framework else ""
    out = []
    if identity.agree is False:
        text = _("the tree declares version {declared}, its contents are those of {probed}")
        out.append(
            Change(
                text.format(declared=identity.declared, probed=identity.probed),
                identity.declared_in,
                _("the contents are taken; say which version it really is"),
            )
        )
    for one in missed:
        todo = _("`probepatch recipe doctor {recipe} {checkout}`, then mend the recipe or mark it outdated")
        what = f"{one.recipe}/{one.edit}: {one.what.removeprefix(f'{one.recipe}/{one.edit}: ')}"
        out.append(
            Change(what, one.where, todo.format(recipe=one.recipe, checkout=subject.checkout), blocks=one.blocks)
        )
    if subject.backend and choices and subject.backend not in choices:
        text = _("the card says {backend}; the recipes for this tree are for {choices}")
        what = text.format(backend=subject.backend, choices=", ".join(choices))
        out.append(Change(what, "", _("`probepatch task set train.backend=…`"), blocks=True))
    if subject.version and identity.declared is not None and subject.version != str(identity.declared):
        text = _("the card says version {card}, the tree declares {tree}")
        what = text.format(card=subject.version, tree=identity.declared)
        out.append(
            Change(what, identity.declared_in, _("`probepatch task set {side}.version=…`").format(side=subject.side))
        )
    for default in ways:
        if default.unlike:
            switch = default.fact.switch or default.fact.about
            out.append(
                Change(f"{switch}: {default.unlike}", str(default.decided_at), _("the tree is taken; mend the facts"))
            )
    for fact in missing(name, identity.version, tuple(ways)):
        text = _("{about}: the statement that the facts of {date} know of {versions} is not in the tree")
        what = text.format(about=fact.switch or fact.about, date=AS_OF, versions=fact.versions)
        out.append(Change(what, ", ".join(fact.decides), _("find what decides it now; mend the facts")))
    if ways or missed:
        out += _unfit(subject)
    return out


def _unfit(subject: Subject) -> list[Change]:
    """Recipes that are for this version by their own word, and lack something in the tree."""
    identity, out = subject.identity, []
    for fit in identity.fits:
        own_word = identity.version is not None and identity.version in fit.recipe.versions
        if own_word and fit.recipe.side == subject.side and not fit.fits:
            todo = _("mend the recipe's `requires`")
            out.append(Change(f"{fit.recipe.id}: {fit.reason}", fit.recipe.path.name, todo))
    return out
