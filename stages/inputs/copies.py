"""Which copy of a framework a side imports: asked of its interpreter, with the places that a launch puts before its own.

Where the side does not answer, the preflight's evidence does, for the search that the preflight made.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from codemods.checkout import LAYOUTS
from codemods.errors import UsageError
from locales import _
from stages.card.card import Card
from stages.card.evidence import evidence
from stages.card.order import PREFLIGHT
from stages.preflight.baseline import read
from stages.sides import INFER, TRAIN, Side, SideError

_PYTHON_PATH = re.compile(r"\$(?:PYTHONPATH|\{PYTHONPATH(?::?[-+][^}]*)?\})")
_FIND = """
import importlib.machinery, importlib.util, os, shutil, sys
def places_of(text):
    return [os.path.abspath(place) for place in text.split(os.pathsep) if place]
there = places_of(os.environ.get("PYTHONPATH", ""))
own = [place for place in sys.path if place and place not in there]
path = [one for place in GIVEN["places"] for one in (there if place is None else [place])]
try:
    if GIVEN["cut"]:
        spec = importlib.machinery.PathFinder.find_spec(GIVEN["package"], path)
    else:
        sys.path[:] = path + own
        spec = importlib.util.find_spec(GIVEN["package"])
except (ImportError, ValueError, AttributeError):
    spec = None
real = spec is not None and spec.origin and os.path.exists(spec.origin)
answer({
    "root": os.path.dirname(os.path.dirname(os.path.realpath(spec.origin))) if real else None,
    "ours": [os.path.realpath(os.path.join(GIVEN["checkout"], one)) for one in GIVEN["layouts"]],
    "program": shutil.which(GIVEN["program"], path=os.pathsep.join(GIVEN["bins"])) if GIVEN["bins"] else None,
})
"""


@dataclass(frozen=True)
class Search:
    """``places`` come before the interpreter's own; None among them is the PYTHONPATH that the side has already, which otherwise
    does not count. ``rest``: why it is not known what comes behind them. ``python``: another interpreter than the card's;
    ``program`` is looked for in ``bins``, which the script put before PATH."""

    places: tuple[str | None, ...]
    rest: str = ""
    python: str | None = None
    program: str = ""
    bins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imported:
    """``root``: the folder that the package is imported from, None: there is none; ``ours``: it is the patched copy. ``by``: who
    says so. ``why``: why it is not known."""

    root: str | None = None
    ours: bool = False
    by: str = ""
    why: str = ""


@dataclass(frozen=True)
class Copy:
    """A side's patched copy. ``folder``: where its launch is started. ``outside``: what is on PYTHONPATH before the script begins,
    with None among it as in :class:`Search`; None itself: not known. ``find`` asks the side, once for each search."""

    package: str
    checkout: str
    python: str | None
    folder: str | None
    outside: tuple[str | None, ...] | None
    find: Callable[[Search], Imported]


def copies_of(card: Card) -> dict[str, Copy]:
    """By side, as far as the card names its checkout."""
    return {side: found for side in (TRAIN, INFER) if (found := _copy(card, side)) is not None}


def _copy(card: Card, side: str) -> Copy | None:
    package, checkout = card.fact(f"{side}.framework"), card.fact(f"{side}.checkout")
    if package is None or checkout is None:
        return None
    folder = card.fact(f"{side}.workdir")
    outside: tuple[str | None, ...] | None = (None,)
    command = card.fact("baseline_command")
    if command is not None and side == TRAIN:
        baseline = read(command, folder, card.words("train.prefix"))
        folder, outside = baseline.folder, _parts(baseline.variables.get("PYTHONPATH"))
    folder = folder if folder is not None and folder.startswith("/") and "$" not in folder else None

    @cache
    def find(search: Search) -> Imported:
        return _find(card, side, package, checkout, search)

    return Copy(package, checkout, card.fact(f"{side}.python"), folder, outside, find)


def _parts(text: str | None) -> tuple[str | None, ...] | None:
    """Of a PYTHONPATH that is set outside of the script; None where a part of it is not plain."""
    if text is None:
        return (None,)
    found: list[str | None] = []
    for part in text.split(":"):
        if _PYTHON_PATH.fullmatch(part):
            found.append(None)
        elif part and (not part.startswith("/") or "$" in part or "`" in part):
            return None
        elif part:
            found.append(part)
    return tuple(found)


def _find(card: Card, side: str, package: str, checkout: str, search: Search) -> Imported:
    given = {
        "package": package,
        "checkout": checkout,
        "layouts": LAYOUTS,
        "places": search.places,
        "cut": bool(search.rest),
        "program": search.program,
        "bins": search.bins,
    }
    try:
        asked = Side.of(card, side)
        asked = replace(asked, python=search.python or asked.python)
        told = asked.ask(_FIND, given)
        if told["program"] is not None and not _beside(told["program"], asked.python):
            asked = replace(asked, python=told["program"])
            told = asked.ask(_FIND, {**given, "bins": ()})
    except (SideError, UsageError) as error:
        recorded = _recorded(card, side, package, checkout, search)
        return recorded or Imported(why=": ".join(filter(None, (error.what, error.why, error.todo))))
    if told["root"] is None and search.rest:
        return Imported(why=search.rest)
    return Imported(told["root"], told["root"] in told["ours"], asked.python)


def _beside(program: str, python: str) -> bool:
    return posixpath.dirname(program) == posixpath.dirname(python)


def _recorded(card: Card, side: str, package: str, checkout: str, search: Search) -> Imported | None:
    """What the preflight found, where it searched the same places: the work folder, then what is there already."""
    found = evidence(card, PREFLIGHT)
    asked = search.places == (card.fact(f"{side}.workdir"), None)
    if found is None or not asked or search.rest or search.python or search.bins:
        return None
    told: Any = found.result
    for key in ("packages", side, "installed"):
        told = told.get(key) if isinstance(told, Mapping) else None
    if not isinstance(told, Mapping) or package not in told:
        return None
    at = told[package]
    folder = at.get("folder") if isinstance(at, Mapping) and not at.get("namespace") else None
    root = posixpath.dirname(folder) if isinstance(folder, str) else None
    ours = root is not None and root in [posixpath.normpath(posixpath.join(checkout, one)) for one in LAYOUTS]
    return Imported(root, ours, _("the preflight"))
