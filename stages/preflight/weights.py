"""The weights: there on each side, whole by their index and headers, and the same on both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from locales import _
from stages.preflight.disk import human
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding


def _faults() -> dict[str, Callable[[str, str], str]]:
    return {
        "unreadable": lambda file, more: _("{file} cannot be read: {more}").format(file=file, more=more),
        "no-json": lambda file, more: _("{file} is no JSON object {more}").format(file=file, more=more),
        "no-map": lambda file, more: _("{file} has no weight_map").format(file=file),
        "no-weights": lambda file, more: _("no weights in {file}").format(file=file),
        "no-index": lambda file, more: _("{more} safetensors files without {file}").format(file=file, more=more),
        "outside": lambda file, more: _("the index leads out of the folder, to {file} ({more})").format(
            file=file, more=more
        ),
        "missing": lambda file, more: _("{file} is missing ({more})").format(file=file, more=more or "?"),
        "absent": lambda file, more: _("{file} does not hold what the index says: {more}").format(file=file, more=more),
        "damaged": lambda file, more: _("{file} is damaged").format(file=file),
        "size": lambda file, more: _("{file} has not the size that its header says: {more} bytes").format(
            file=file, more=more
        ),
        "pointer": lambda file, more: _("{file} is a Git LFS pointer, not the file").format(file=file),
        "unlisted": lambda file, more: _("{file} holds more than the index says: {more}").format(file=file, more=more),
        "stray": lambda file, more: _("{file} is not in the index, and ignored").format(file=file),
        "total": lambda file, more: _("total_size is not the sum of the tensors: {more}").format(more=more),
    }


def check(models: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """``models``: what each side answered. No side: unknown."""
    out = [_side(name, told) for name, told in models.items()]
    digests = {told["config_sha256"] for told in models.values() if told.get("config_sha256")}
    if len(digests) > 1:
        what = _("config.json is not the same file on both sides")
        out.append(Finding("weights", ", ".join(models), PROBLEM, what, _("give both sides one checkpoint"), {}))
    sizes = {told["bytes"] for told in models.values() if told["folder"] and not told["faults"]}
    if len(sizes) > 1:
        what = _("the weights of the two sides differ in size: {sizes}").format(
            sizes=" / ".join(map(human, sorted(sizes)))
        )
        out.append(Finding("weights", ", ".join(models), PROBLEM, what, _("give both sides one checkpoint"), {}))
    return out


def _side(name: str, told: Mapping[str, Any]) -> Finding:
    if not told["folder"]:
        what = _("{path} is no folder there").format(path=told["path"])
        return Finding(
            "weights", name, PROBLEM, what, _("mount or copy the model, or set model.path"), {"path": told["path"]}
        )
    words = _faults()
    facts = {
        "path": told["path"],
        "layout": told["layout"],
        "files": told["files"],
        "bytes": told["bytes"],
        "faults": [{"kind": kind, "file": file, "detail": more} for kind, file, more in told["faults"]],
        "notes": [{"kind": kind, "file": file, "detail": more} for kind, file, more in told["notes"]],
    }
    notes = "; ".join(words[kind](file, more) for kind, file, more in told["notes"])
    if told["faults"]:
        what = "; ".join(words[kind](file, more) for kind, file, more in told["faults"])
        return Finding(
            "weights", name, PROBLEM, what + (f"; {notes}" if notes else ""), _("get the checkpoint again"), facts
        )
    what = _("{path}: {files} file(s), {size}").format(
        path=told["path"], files=told["files"], size=human(told["bytes"])
    )
    if told["layout"] == "pytorch":
        what += _("; pickled weights, not opened")
        return Finding("weights", name, UNKNOWN, what, _("a safetensors checkpoint can be looked into"), facts)
    return Finding("weights", name, OK, what + (f"; {notes}" if notes else ""), "", facts)
