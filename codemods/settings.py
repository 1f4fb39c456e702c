"""Parameters: a value is data. It enters code only as a literal in a payload's header, and the environment wins at run time."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from codemods.errors import UsageError
from codemods.recipe import Parameter, Recipe
from locales import _

_HEADER = re.compile(r"^(PARAMETERS\b[^\n]*= )\{\}(  # probepatch: parameters)$", re.MULTILINE)


class SettingError(UsageError):
    """A ``--set`` names no parameter, or its value is not of the parameter's type."""


def parse_settings(pairs: Sequence[str], recipes: Sequence[Recipe]) -> dict[str, Any]:
    """``NAME=VALUE`` pairs as typed values. Raises SettingError."""
    known = {parameter.name: parameter for recipe in recipes for parameter in recipe.parameters}
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise SettingError(
                _("no chosen recipe has the parameter `{name}`").format(name=name)
                if equals
                else _("`{pair}` is not NAME=VALUE").format(pair=pair),
                todo=_("did you mean `{near}`?").format(near=near[0])
                if near
                else _("parameters: {names}").format(names=", ".join(known)),
            )
        values[name] = _typed(known[name], text)
    return values


def _typed(parameter: Parameter, text: str) -> Any:
    if parameter.type == "int" and re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if parameter.type == "bool" and text.lower() in ("1", "true", "0", "false"):
        return text.lower() in ("1", "true")
    if parameter.type == "choice" and text in parameter.choices:
        return text
    if parameter.type == "path" and text and "\0" not in text:
        return os.path.abspath(os.path.expanduser(text))
    if parameter.type == "text":
        return text
    wanted = ", ".join(parameter.choices) or parameter.type
    raise SettingError(
        _("`{text}` is no value for `{name}`").format(text=text, name=parameter.name),
        todo=_("wanted: {wanted}").format(wanted=wanted),
    )


def filled_payload(text: str, recipe: Recipe, values: Mapping[str, Any]) -> str:
    """The payload with its ``PARAMETERS`` literal: name -> (environment variable, value or None)."""
    literal = {p.name: (p.env, values.get(p.name, p.default)) for p in recipe.parameters}
    return _HEADER.sub(lambda found: f"{found.group(1)}{literal!r}{found.group(2)}", text, count=1)


def digest_with(recipe: Recipe, values: Mapping[str, Any]) -> str:
    """The recipe's digest with the values that it was applied with."""
    own = sorted((p.name, repr(values[p.name])) for p in recipe.parameters if p.name in values)
    return hashlib.sha256(f"{recipe.digest}{own!r}".encode()).hexdigest() if own else recipe.digest
