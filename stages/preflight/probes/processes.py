"""The processes of this machine as seen from here, by /proc: no tool has to be installed."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

_WORDS, _LETTERS = 48, 400
_LISTEN = "0A"


def probe(given: dict[str, Any]) -> dict[str, Any]:
    """``given``: ``ports``, those whose owner is wanted. PIDs are those of this PID namespace."""
    found = {pid: one for pid in pids() for one in [process(pid)] if one is not None}
    return {
        "where": where(),
        "mine": own_line(found),
        "processes": list(found.values()),
        "listening": listening(set(given["ports"]), list(found)),
    }


def where() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "boot": text("/proc/sys/kernel/random/boot_id").strip() or None,
        "namespace": namespace("self"),
        "python": sys.executable,
        "version": "{}.{}.{}".format(*sys.version_info[:3]),
        "proc": os.path.isdir("/proc/self"),
    }


def pids() -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return []


def text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


def namespace(pid: Any) -> str | None:
    """None where it may not be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def process(pid: int) -> dict[str, Any] | None:
    """None for one that ended, a zombie, or a thread of the kernel."""
    stat = text(f"/proc/{pid}/stat")
    name = stat[stat.find("(") + 1 : stat.rfind(")")]
    rest = stat[stat.rfind(")") + 1 :].split()
    argv = [word for word in text(f"/proc/{pid}/cmdline").split("\0") if word.strip()]
    if len(rest) < 20 or rest[0] in "ZX" or not argv:
        return None
    status = dict(line.split(":", 1) for line in text(f"/proc/{pid}/status").splitlines() if ":" in line)
    inside = [int(word) for word in status.get("NSpid", "").split()] or [pid]
    return {
        "pid": pid,
        "parent": int(rest[1]),
        "start": int(rest[19]),
        "name": name,
        "argv": [word[:_LETTERS] for word in argv[:_WORDS]],
        "uid": int((status.get("Uid") or "-1").split()[0]),
        "namespace": namespace(pid),
        "inside": inside,
    }


def own_line(found: dict[int, dict[str, Any]]) -> list[int]:
    """This process and its ancestors."""
    line, pid = [], os.getpid()
    while pid > 0 and pid not in line:
        line.append(pid)
        pid = found[pid]["parent"] if pid in found else 0
    return line


def listening(ports: set[int], candidates: list[int]) -> dict[str, list[int]]:
    """The ports of ``ports`` that somebody listens on, each with the PIDs that are known to."""
    sockets: dict[str, int] = {}
    for table in ("tcp", "tcp6"):
        for line in text(f"/proc/net/{table}").splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == _LISTEN:
                port = int(words[1].rpartition(":")[2], 16)
                if port in ports:
                    sockets[words[9]] = port
    held: dict[str, list[int]] = {str(port): [] for port in sockets.values()}
    for pid in candidates if sockets else []:
        for inode in inodes(pid):
            if inode in sockets and pid not in held[str(sockets[inode])]:
                held[str(sockets[inode])].append(pid)
    return held


def inodes(pid: int) -> list[str]:
    """The sockets that a process has open, as far as it may be looked at."""
    out = []
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []
    for name in names:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            out.append(target[8:-1])
    return out
