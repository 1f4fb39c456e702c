"""Where the logs and the artefacts go: writable, and the artefacts in nobody's checkout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from locales import _
from stages.card.card import Card
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.sides import INFER, TRAIN


def check(card: Card, told: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """``told``: side to what it answered to paths.py."""
    out = []
    for side in (name for name in (TRAIN, INFER) if name in told):
        paths = told[side]["paths"]
        out.append(_log(side, paths.get("log")))
        out.append(_artifacts(card, side, paths.get("artifacts"), paths))
        if (work := paths.get("workdir")) is not None and work["kind"] != "folder":
            what = _("the work folder {path} is not there").format(path=work["path"])
            out.append(Finding("command", side, PROBLEM, what, _("make it, or set {side}.workdir").format(side=side)))
    return out


def _log(side: str, file: Mapping[str, Any] | None) -> Finding:
    if file is None:
        what = _("where the log goes is not on the card")
        return Finding("log", side, UNKNOWN, what, _("`probepatch task set {side}.log=/…`").format(side=side))
    facts = {"path": file["path"]}
    if file["kind"] == "other" or not file["near_writable"] or (file["kind"] is None and not file["near_folder"]):
        what = _("{path} cannot be written").format(path=file["near"])
        return Finding("log", side, PROBLEM, what, _("choose another place for the log"), facts)
    return Finding("log", side, OK, _("{path} can be written").format(path=file["path"]), facts=facts)


def _artifacts(card: Card, side: str, root: Mapping[str, Any] | None, paths: Mapping[str, Any]) -> Finding:
    if root is None:
        return Finding(
            "artifacts", side, UNKNOWN, _("no artefact root is on the card"), _("`probepatch task set artifacts=/…`")
        )
    facts = {"path": root["path"], "exists": root["kind"] == "folder", "free_bytes": root["free"]}
    path = root["path"]
    todo = _("`probepatch task set artifacts=/…` with a folder of its own")
    if not str(card.fact("artifacts")).startswith("/"):
        return Finding(
            "artifacts",
            side,
            PROBLEM,
            _("the artefact root is not absolute: {path}").format(path=card.fact("artifacts")),
            todo,
            facts,
        )
    checkouts = [paths[name]["real"] for name in ("checkout", "model") if paths.get(name)]
    inside = next((one for one in checkouts if _within(root["real"], one)), root["repository"])
    if inside:
        what = _("{path} is inside of {other}: dumps do not go into a checkout").format(path=path, other=inside)
        return Finding("artifacts", side, PROBLEM, what, todo, facts)
    if root["kind"] in ("file", "other") or not root["near_folder"] or not root["near_writable"]:
        return Finding("artifacts", side, PROBLEM, _("{path} cannot be written").format(path=root["near"]), todo, facts)
    what = _("{path} is there") if root["kind"] == "folder" else _("{path} can be made")
    return Finding("artifacts", side, OK, what.format(path=path), facts=facts)


def _within(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(PurePosixPath(folder))
