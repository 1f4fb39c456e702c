"""Waivers: a point that a person takes upon themselves, by name, with the reason, for exactly the values that it has now."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import SecretError, now
from stages.card.credentials import looks_secret
from stages.params.points import Point
from stages.params.reading import ConfigError, read_object

NAME = "param_waivers.json"
FORMAT = "probepatch/param-waivers/1"


class NotWaivableError(RefusedError):
    """A switch, a missing module or a size: it has to be aligned."""


def read_waivers(folder: Path) -> dict[str, Any]:
    """By the point's name. Raises ConfigError."""
    path = folder / NAME
    if not os.path.exists(path):
        return {}
    data = read_object(path, _("list of waivers"))
    waivers = data.get("waivers")
    whole = isinstance(waivers, dict) and all(
        isinstance(one, dict) and isinstance(one.get("why"), str) and isinstance(one.get("for"), list)
        for one in waivers.values()
    )
    if data.get("format") != FORMAT or not whole:
        raise ConfigError(_("this is no list of waivers"), where=str(path))
    assert isinstance(waivers, dict)
    return waivers


def holding(point: Point, waivers: Mapping[str, Any]) -> dict[str, Any] | None:
    """The waiver that holds for the point as it is now."""
    found = waivers.get(point.name)
    if found is None or not point.waivable or found["for"] != point.fingerprint:
        return None
    return {"why": found["why"], "at": found.get("at")}


def waive(folder: Path, points: Iterable[Point], name: str, why: str) -> Point:
    """Put a waiver on the record. Raises UsageError, NotWaivableError, SecretError."""
    known = {point.name: point for point in points}
    point = known.get(name)
    if point is None:
        near = get_close_matches(name, known, 1)
        raise UsageError(
            _("there is no mismatch point `{name}`").format(name=name),
            todo=_("did you mean `{near}`?").format(near=near[0])
            if near
            else _("`probepatch params report` lists them: {names}").format(names=", ".join(list(known)[:8]) or "-"),
        )
    if not point.waivable:
        raise NotWaivableError(
            _("`{name}` cannot be waived: it is a {kind}").format(name=name, kind=point.kind),
            why=_("with another structure the two models are not the same model; no capture of them is comparable"),
            todo=_("align it (config, code or weight), build the model again, then run the check again"),
        )
    if looks_secret(why):
        raise SecretError(_("the reason looks like it holds a credential, and was not stored"))
    waivers = read_waivers(folder)
    waivers[name] = {"why": why, "at": now(), "for": point.fingerprint}
    write_json(folder / NAME, {"format": FORMAT, "waivers": waivers})
    return point


def write_json(path: Path, data: Any) -> None:
    """Whole or not at all; strict JSON. Raises RefusedError."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
