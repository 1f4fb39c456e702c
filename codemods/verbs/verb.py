"""What a verb is: its keys in a recipe, the place it wants, and the change it makes there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from codemods.fields import Field
from codemods.site import Change, Site

STATEMENT, EXPRESSION, NOWHERE = "statement", "expression", ""
FUNCTION, CLASS, MODULE = "function", "class", "module"


@dataclass(frozen=True)
class Verb:
    """``keys``: the first one names the verb. ``anchor``: what the first key's pattern matches, if it is a pattern.
    ``scopes``: the kinds of place ``in`` may name."""

    keys: Mapping[str, Field]
    change: Callable[[Site], Change]
    anchor: str = NOWHERE
    scopes: tuple[str, ...] = (FUNCTION, CLASS, MODULE)

    @property
    def name(self) -> str:
        return next(iter(self.keys))
