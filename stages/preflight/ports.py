"""Ports: those that the frameworks open by default, and those in the baseline command."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from locales import _
from stages.card.card import Card
from stages.preflight.baseline import Baseline
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.preflight.places import Place

RAY, VLLM, SGLANG = {6379: "Ray", 8265: "Ray dashboard"}, {8000: "vLLM"}, {30000: "SGLang"}


def wanted(card: Card, baseline: Baseline | None) -> dict[int, str]:
    """Port: who opens it. Defaults of a framework that the card excludes are left out."""
    infer, train = card.fact("infer.framework"), card.fact("train.framework")
    out: dict[int, str] = {}
    if train != "own":
        out |= RAY
    if infer in (None, "own", "vllm", "vllm_ascend"):
        out |= VLLM
    if infer in (None, "own", "sglang") or train == "slime":
        out |= SGLANG
    if baseline is not None:
        out |= dict.fromkeys(baseline.opens, _("the baseline command"))
        out |= dict.fromkeys(baseline.calls, _("what the baseline command calls"))
    return out


def holders(places: Sequence[Place]) -> list[tuple[Place, int]]:
    """(place, PID) of everybody who is known to listen on one of them."""
    return [(place, pid) for place in places for pids in place.listening.values() for pid in pids]


def check(card: Card, baseline: Baseline | None, places: Sequence[Place], keep: Collection[int]) -> list[Finding]:
    """Findings of the sides; what listens elsewhere does not matter."""
    ports = wanted(card, baseline)
    named = set(baseline.opens) if baseline is not None else set()
    called = set(baseline.calls) if baseline is not None else set()
    out = []
    for place in (one for one in places if one.is_side and one.where["proc"]):
        busy = sorted(port for port in place.listening if port in ports)
        out += [_busy(place, port, ports[port], port in named, port in called, keep) for port in busy]
        out += [
            Finding(
                "ports",
                place.name,
                UNKNOWN,
                _("{port}: the baseline command calls it, and nothing listens").format(port=port),
                _("right if the command starts the service itself; else start it first"),
                {"port": port},
            )
            for port in sorted(called - set(busy))
            if place.name == "train"
        ]
        free = [str(port) for port in sorted(ports) if port not in busy and port not in called]
        if free:
            out.append(Finding("ports", place.name, OK, _("free: {ports}").format(ports=", ".join(free))))
    return out


def _busy(place: Place, port: int, whose: str, named: bool, called: bool, keep: Collection[int]) -> Finding:
    pids = place.listening[port]
    words = {one.pid: one.name for one in place.processes}
    who = ", ".join(f"{pid} ({words.get(pid, '?')})" for pid in pids)
    what = _("{port} ({whose}) is in use").format(port=port, whose=whose)
    what += _(" by PID {who}").format(who=who) if who else _("; by whom is not visible from here")
    facts = {"port": port, "pids": list(pids)}
    if called or (pids and all(pid in keep for pid in pids)):
        return Finding(
            "ports", place.name, OK, what + (_(", as it must be") if called else _("; it stays")), facts=facts
        )
    todo = _("stop it, or give the job another port; if it is there on purpose: --keep PID")
    return Finding("ports", place.name, PROBLEM if named or pids else UNKNOWN, what, todo, facts)
