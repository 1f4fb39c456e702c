"""Which recipes capture a side: those that stand at its capture place in the scene of stage 3, and those asked for by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from codemods.errors import FindingError
from codemods.identify import Fit
from codemods.recipe import Heading
from locales import _
from stages.scene.places import CAPTURE

LOGPROBS = "PREFILL_LOGPROB_DIFF"


class NoRecipeError(FindingError):
    """No recipe captures this side."""


class AmbiguousError(FindingError):
    """More than one recipe of an excluding group would capture this side, and nobody said which."""


def choose(
    side: str, scene: Mapping[str, Any], fits: Sequence[Fit], asked: Collection[str], *, logprobs: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(ids in the catalogue's order, sentences about those left out). ``scene``: the side as stage 3 left it on the card;
    ``asked``: ids of this side's recipes that the user named: each takes the place of its rivals. Raises NoRecipeError,
    AmbiguousError."""
    fitting = [fit.recipe for fit in fits if fit.fits and fit.recipe.side == side]
    places = scene["things"].get(CAPTURE, {}).get("places", [])
    capturing = {place["recipe"] for place in places if place["runs"] is not False}
    named = [one for one in fitting if one.id in asked]
    groups = {_group(one) for one in named} - {""}
    taken = [one for one in fitting if one in named or (one.id in capturing and _group(one) not in groups)]
    _expect_one_of_each_group(side, taken)
    if not any(one.id in capturing or one in named for one in taken):
        raise NoRecipeError(
            _("no recipe captures the {side} side").format(side=side),
            details=tuple(f"{fit.recipe.id}: {fit.reason}" for fit in fits if fit.recipe.side == side),
            todo=_(
                "`probepatch scene` shows the place; --recipe names one that is there, --recipe-file one of your own"
            ),
        )
    if logprobs:
        taken += [one for one in fitting if set(one.switches) == {LOGPROBS} and one not in taken]
    return tuple(one.id for one in fitting if one in taken), tuple(_left_out(fitting, taken, logprobs))


def _group(recipe: Heading) -> str:
    return recipe.alternative.group if recipe.alternative is not None else ""


def _expect_one_of_each_group(side: str, taken: Sequence[Heading]) -> None:
    for one in taken:
        rivals = [other for other in taken if _group(one) and _group(other) == _group(one)]
        if len(rivals) > 1:
            names = ", ".join(other.id for other in rivals)
            raise AmbiguousError(
                _("{n} recipes could capture the {side} side, one at a time: {names}").format(
                    n=len(rivals), side=side, names=names
                ),
                details=tuple(f"{other.id}: {other.why}" for other in rivals),
                todo=_("say which: --recipe ID; or `probepatch task set train.backend=…` and `probepatch scene` again"),
            )


def _left_out(fitting: Sequence[Heading], taken: Sequence[Heading], logprobs: bool) -> Iterator[str]:
    for one in fitting:
        if one in taken:
            continue
        if not logprobs and set(one.switches) == {LOGPROBS}:
            yield _("{name} is left out: --no-logprobs").format(name=one.id)
        else:
            yield _("{name} fits too and is left out; --recipe {name} takes it").format(name=one.id)
