"""End processes by exact PID: each is proved to be the process that was recorded, all before the first signal."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

_TURN = 0.05  # seconds between two looks


def probe(given: dict[str, Any]) -> dict[str, Any]:
    """``given``: ``boot`` and ``namespace`` as recorded, ``targets`` [{pid, start}], ``kill``, ``wait`` (seconds).

    Answers ``refused`` (pid: why, nothing was signalled) or ``did`` (pid: ended, killed, running, gone, forbidden)."""
    refused = {str(one["pid"]): why for one in given["targets"] for why in [objection(one, given)] if why}
    if refused:
        return {"refused": refused, "did": {}}
    handles = {one["pid"]: handle(one["pid"]) for one in given["targets"]}
    changed = [one["pid"] for one in given["targets"] if start(one["pid"]) not in (None, one["start"])]
    if changed:  # in the moment between the look and the handle
        return {"refused": {str(pid): "another" for pid in changed}, "did": {}}
    did = {one["pid"]: send(one, handles[one["pid"]], signal.SIGTERM) for one in given["targets"]}
    wait(given["targets"], did, given["wait"])
    if given["kill"]:
        for one in given["targets"]:
            if did[one["pid"]] == "running":
                did[one["pid"]] = (
                    "killing" if send(one, handles[one["pid"]], signal.SIGKILL) != "forbidden" else "forbidden"
                )
        wait(given["targets"], did, given["wait"])
    return {"refused": {}, "did": {str(pid): "running" if word == "killing" else word for pid, word in did.items()}}


def text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 16).decode("utf-8", "replace")
    except OSError:
        return ""


def stat(pid: int) -> list[str]:
    """State, parent, …; empty when there is no such process."""
    return text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def start(pid: int) -> int | None:
    """In clock ticks since boot; None for one that has ended, a zombie among them."""
    words = stat(pid)
    return int(words[19]) if len(words) > 19 and words[0] not in "ZX" else None


def objection(target: dict[str, Any], given: dict[str, Any]) -> str | None:
    pid = target["pid"]
    if text("/proc/sys/kernel/random/boot_id").strip() != given["boot"]:
        return "rebooted"
    if os.readlink("/proc/self/ns/pid") != given["namespace"]:
        return "namespace"
    if pid <= 1:
        return "init"
    if pid in line():
        return "ourselves"
    now = start(pid)
    if now is None:
        return None  # it has ended: nothing is left to do
    if now != target["start"]:
        return "another"
    inside = [row for row in text(f"/proc/{pid}/status").splitlines() if row.startswith("NSpid:")]
    return "nested" if inside and len(inside[0].split()) > 2 else None


def line() -> list[int]:
    """This process and its ancestors."""
    out, pid = [], os.getpid()
    while pid > 0 and pid not in out:
        out.append(pid)
        words = stat(pid)
        pid = int(words[1]) if len(words) > 1 else 0
    return out


def handle(pid: int) -> int | None:
    """A handle that stays with the process even when its number goes to another one; None where the system has none."""
    try:
        return os.pidfd_open(pid)  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError):
        return None


def send(target: dict[str, Any], to: int | None, what: int) -> str:
    if start(target["pid"]) != target["start"]:
        return "gone"
    try:
        if to is not None and hasattr(signal, "pidfd_send_signal"):
            signal.pidfd_send_signal(to, what)
        else:
            os.kill(target["pid"], what)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        return "forbidden"
    return "running"


def wait(targets: list[dict[str, Any]], did: dict[int, str], seconds: float) -> None:
    """Until all have ended or the time is over."""
    ends = {"running": "ended", "killing": "killed"}
    for turn in range(max(1, int(seconds / _TURN))):
        waiting = [one for one in targets if did[one["pid"]] in ends]
        for one in waiting:
            if start(one["pid"]) != one["start"]:
                did[one["pid"]] = ends[did[one["pid"]]]
        if not any(did[one["pid"]] in ends for one in targets):
            return
        time.sleep(_TURN if turn else 0.01)
