"""The interpreters: msprobe imported in earnest on each side, torch, and the framework with the folder it comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from locales import _
from stages.card.card import Card
from stages.preflight.asking import ask
from stages.preflight.baseline import Baseline
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.sides import TRAIN, Side, SideError

_PACKAGES = {"vllm_ascend": ("vllm_ascend", "vllm"), "own": ()}
_LIMIT = 300.0  # seconds: a first import of torch_npu from a cold disk is slow


def check(card: Card, side: Side, baseline: Baseline | None) -> tuple[list[Finding], dict[str, Any]]:
    """(findings, what was found). Raises SideError when the side does not answer at all."""
    framework = card.fact(f"{side.name}.framework")
    packages = _PACKAGES.get(framework, (framework,)) if framework else ()
    given = {"workdir": card.fact(f"{side.name}.workdir"), "pythonpath": _pythonpath(side, baseline)}
    installed = ask(side, "installed", {**given, "packages": [*packages, "torch", "torch_npu", "transformers"]})
    try:
        probe = ask(side, "msprobe", given, _LIMIT)
    except SideError as error:
        probe = {
            "version": None,
            "imported": False,
            "error": " ".join(filter(None, (error.what, error.why))),
            "missing": None,
        }
    out = [_framework(card, side.name, name, installed[name]) for name in packages]
    out += _msprobe(card, side.name, probe)
    out.append(_torch(side.name, installed, probe))
    return out, {"installed": installed, "msprobe": probe}


def _pythonpath(side: Side, baseline: Baseline | None) -> list[str]:
    """What the command itself sets, as far as it is plain; it is the training side's."""
    text = baseline.variables.get("PYTHONPATH", "") if baseline is not None and side.name == TRAIN else ""
    return [place for place in text.split(os.pathsep) if place.startswith("/") and "$" not in place]


def _framework(card: Card, side: str, name: str, found: Mapping[str, Any] | None) -> Finding:
    if found is None:
        what = _("{name} is not in this interpreter").format(name=name)
        if card.fact(f"{side}.checkout") is not None:
            todo = _("right only if the job's PYTHONPATH leads to {path}: stage 4 looks").format(
                path=card.fact(f"{side}.checkout")
            )
            return Finding("framework", side, UNKNOWN, what, todo, {"package": name})
        return Finding(
            "framework",
            side,
            PROBLEM,
            what,
            _("set {side}.python to the workers' interpreter").format(side=side),
            {"package": name},
        )
    facts = {"package": name, **found}
    what = _("{name} {version} from {folder}").format(
        name=name, version=found["version"] or "?", folder=found["folder"]
    )
    told, checkout = card.fact(f"{side}.version"), card.fact(f"{side}.checkout")
    main = name == card.fact(f"{side}.framework")
    if main and told and found["version"] and _public(found["version"]) != _public(told):
        what += _("; the card says {version}").format(version=told)
        return Finding(
            "framework",
            side,
            PROBLEM,
            what,
            _("correct the card, or set {side}.python to the right one").format(side=side),
            facts,
        )
    if main and checkout and not (found["folder"] or "").startswith(checkout.rstrip("/") + "/"):
        what += _("; not from the checkout {path}").format(path=checkout)
        todo = _("patches there reach the job only by its PYTHONPATH or work folder: stage 4 looks")
        return Finding("framework", side, UNKNOWN, what, todo, facts)
    return Finding("framework", side, OK, what, facts=facts)


def _public(version: str) -> str:
    """Without a local part (``+cpu``) and a leading v."""
    return version.lstrip("vV").partition("+")[0]


def _msprobe(card: Card, side: str, probe: Mapping[str, Any]) -> list[Finding]:
    tool = card.fact("evidence_tool")
    if tool and "msprobe" not in tool.lower() and "precisiondebugger" not in tool.lower():
        return [
            Finding("msprobe", side, UNKNOWN, _("the evidence tool is {tool}; it is not looked for").format(tool=tool))
        ]
    version = probe["version"] or "?"
    facts = dict(probe)
    if not probe["imported"]:
        missing = _(" (missing: {module})").format(module=probe["missing"]) if probe["missing"] else ""
        what = _("msprobe {version} cannot be imported: {error}{missing}").format(
            version=version, error=probe["error"] or "?", missing=missing
        )
        todo = _("install into this interpreter: {names}; engines swallow this error and then dump nothing").format(
            names=_needed(probe["missing"])
        )
        return [Finding("msprobe", side, PROBLEM, what, todo, facts)]
    what = _("msprobe {version}: PrecisionDebugger can be imported, from {folder}").format(
        version=version, folder=probe["folder"]
    )
    out = [Finding("msprobe", side, OK, what, facts=facts)]
    if probe["load"]:
        out.append(Finding("msprobe", side, OK, _("`load` is there (stage 8)"), facts={"load": True}))
    elif card.fact("usage") == "dump":
        out.append(
            Finding("msprobe", side, OK, _("`load` is not there; a dump alone does not need it"), facts={"load": False})
        )
    else:
        what = _(
            "`load` is not there (msprobe.pytorch.dump.module_load.tensor_loader): stage 8 cannot work with this msprobe"
        )
        todo = _("install a newer msprobe now: versions must not change between the rounds; or set usage=dump")
        out.append(Finding("msprobe", side, PROBLEM, what, todo, {"load": False}))
    return out


def _needed(missing: str | None) -> str:
    return (
        "mindstudio-probe" if missing is None or missing.partition(".")[0] == "msprobe" else missing.partition(".")[0]
    )


def _torch(side: str, installed: Mapping[str, Any], probe: Mapping[str, Any]) -> Finding:
    found = installed["torch"]
    if found is None:
        return Finding(
            "torch",
            side,
            PROBLEM,
            _("torch is not in this interpreter"),
            _("set {side}.python to the workers' interpreter").format(side=side),
        )
    version = probe.get("torch") or found["version"]
    more = [f"{name} {installed[name]['version'] or '?'}" for name in ("torch_npu", "transformers") if installed[name]]
    what = ", ".join([f"torch {version or '?'}", *more])
    facts = {name: installed[name]["version"] if installed[name] else None for name in ("torch_npu", "transformers")}
    return Finding("torch", side, OK if version else UNKNOWN, what, facts={"torch": version, **facts})
