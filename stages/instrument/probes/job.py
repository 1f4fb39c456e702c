"""A job that outlives whoever started it: its own session, its log in a file, its exit code beside it; looked at and ended by PID.

Every process that the job starts carries a mark in its environment, or is at least in its session, so that all of them can be
found again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from typing import Any

MARK = "PROBEPATCH_RUN"
_DEVICES = (
    "ASCEND_RT_VISIBLE_DEVICES",
    "ASCEND_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)
_BLOCK = 1 << 16
_TURN = 0.05  # seconds between two looks


def probe(given: dict[str, Any]) -> Any:
    """``given["do"]``: start, look or end."""
    return {"start": start, "look": look, "end": end}[given["do"]](given)


def start(given: dict[str, Any]) -> dict[str, Any]:
    """``command`` (shell text), ``folder`` or null, ``environment``, ``log``, ``mark``. Answers the PID of the session's leader
    and its start; or ``error``."""
    environment = {**os.environ, **given["environment"], MARK: given["mark"]}
    folder = given["folder"]
    if folder and not os.path.isdir(folder):
        return {"error": f"no such folder: {folder}"}
    try:
        os.makedirs(os.path.dirname(given["log"]), exist_ok=True)
        with open(given["log"], "xb"):
            pass
    except OSError as error:
        return {"error": f"{error.strerror}: {error.filename}"}
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        if os.fork() == 0:
            _lead(given, environment, writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = json.loads(pipe.read() or b"{}")
    os.wait()
    return told or {"error": "the job's own process did not start"}


def _lead(given: dict[str, Any], environment: dict[str, str], writing: int) -> None:
    """The session's leader: it hands the output on to the log, leaves the exit code when the command has ended, and stays
    as long as anybody writes to the log."""
    try:
        os.setsid()
        for number in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        shell = next((one for one in ("/bin/bash", "/usr/bin/bash") if os.path.exists(one)), "/bin/sh")
        child = subprocess.Popen(
            [shell, "-c", given["command"]],
            cwd=given["folder"] or None,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, signal.SIG_IGN)  # it is the command's to end; the leader stays for its exit code
        told = {
            "pid": os.getpid(),
            "start": started(os.getpid()),
            "boot": text("/proc/sys/kernel/random/boot_id").strip() or None,
            "namespace": os.readlink("/proc/self/ns/pid") if os.path.exists("/proc/self/ns/pid") else None,
            "devices": devices(environment),
        }
        os.write(writing, json.dumps(told).encode())
        os.close(writing)
        _copy(child, given["log"])
    except BaseException as error:  # noqa: BLE001 - there is nobody else to say it to
        with contextlib.suppress(OSError):
            os.write(writing, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
    finally:
        os._exit(0)


def _copy(child: subprocess.Popen[bytes], path: str) -> None:
    """The exit code is left when the command has ended and its output is written; what it left running may still write. What does
    not fit on the disk is counted and dropped: the job goes on."""
    assert child.stdout is not None
    source, last, told, lost = child.stdout.fileno(), b"", False, 0
    os.set_blocking(source, False)
    with open(path, "ab", buffering=0) as log:
        while True:
            ended = child.poll() is not None
            block: bytes | None = None
            with contextlib.suppress(BlockingIOError):
                block = os.read(source, _BLOCK)
            if block:
                lost += _written(log, plain(block, last))
                last = block[-1:]
                continue
            if ended and not told:
                told = True
                _leave(path, child.returncode, lost)
            if block == b"" and ended:
                return
            if told:
                os.set_blocking(source, True)
            else:
                time.sleep(_TURN)


def _written(log: Any, block: bytes) -> int:
    """The bytes of the block that could not be written."""
    left = block
    while left:
        try:
            left = left[log.write(left) :]
        except OSError:
            break
    return len(left)


def _leave(path: str, code: int, lost: int) -> None:
    with open(path + ".rc.part", "w", encoding="ascii") as file:
        file.write(f"{code if code >= 0 else 128 - code}\n" + (f"{lost} bytes of the log are lost\n" if lost else ""))
    os.rename(path + ".rc.part", path + ".rc")


def plain(block: bytes, last: bytes) -> bytes:
    """Without carriage returns: a bar that redraws itself becomes lines. ``last``: the byte before the block."""
    if last == b"\r" and block.startswith(b"\n"):
        block = block[1:]
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def look(given: dict[str, Any]) -> dict[str, Any]:
    """``log``, ``offset`` (bytes that were fetched), ``pid``, ``start``, ``mark``, ``dumps`` (side: dump_path)."""
    code: int | None = None
    words = text(given["log"] + ".rc").split()
    if words:
        code = int(words[0])
    fetched, size = b"", 0
    with contextlib.suppress(OSError), open(given["log"], "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(given["offset"])
        fetched = file.read(_BLOCK << 4)
        if code is None or given["offset"] + len(fetched) < size:  # a character is not cut in two
            fetched = fetched[: fetched.rfind(b"\n") + 1] or fetched
    return {
        "code": code,
        "alive": started(given["pid"]) == given["start"],
        "text": fetched.decode("utf-8", "replace"),
        "offset": given["offset"] + len(fetched),
        "size": size,
        "lost": int(words[1]) if len(words) > 1 else 0,
        "processes": marked(given),
        "dumps": {side: folders(path) for side, path in given["dumps"].items()},
    }


def folders(path: str) -> int:
    """Folders with a ``dump.json`` in a dump_path: ``step0/rank0``, ``step0/proc123``, also below one for a PID or phase."""
    found, top = 0, path.rstrip(os.sep)
    for here, names, files in os.walk(top):
        deep = here[len(top) :].count(os.sep) >= 4
        names[:] = [name for name in names if not deep and name != "dump_tensor_data"]
        found += "dump.json" in files
    return found


def marked(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The processes of the job, with the devices that each was started with: those with its ``mark``, and those in the session of
    ``pid`` (its leader, which is not among them). A session's number is taken as long as one of it is there."""
    wanted, out = f"{MARK}={given['mark']}".encode(), []
    session = given["pid"] if started(given["pid"]) in (given["start"], None) else -1
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit() or int(name) == given["pid"]:
            continue
        held: list[bytes] = []
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            held = file.read(1 << 20).split(b"\0")
        words = _status(int(name)) if wanted not in held else []
        ours = wanted in held or (len(words) > 3 and int(words[3]) == session)
        begun = started(int(name)) if ours else None
        if begun is not None:
            pairs = dict(one.decode("utf-8", "replace").split("=", 1) for one in held if b"=" in one)
            line = text(f"/proc/{name}/cmdline").replace("\0", " ").strip()
            out.append({"pid": int(name), "start": begun, "command": line[:200], "devices": devices(pairs)})
    return out


def devices(environment: Any) -> dict[str, str]:
    return {name: environment[name] for name in _DEVICES if name in environment}


def end(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Ask every process of the job to end, wait, then make them. Answers those that are still there. ``boot``,
    ``namespace``, ``pid``, ``start``, ``mark``, ``wait`` (seconds for each)."""
    here = text("/proc/sys/kernel/random/boot_id").strip() or None
    if here != given["boot"] or (given["namespace"] and os.readlink("/proc/self/ns/pid") != given["namespace"]):
        return []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        left = marked(given)
        for one in left:
            with contextlib.suppress(OSError):
                os.kill(one["pid"], number)
        until = time.monotonic() + given["wait"]
        while left and time.monotonic() < until:
            time.sleep(_TURN)
            left = marked(given)
        if not left:
            return []
    return marked(given)


def started(pid: int) -> int | None:
    """In clock ticks since boot; None for one that has ended, a zombie among them."""
    words = _status(pid)
    return int(words[19]) if len(words) > 19 and words[0] not in "ZX" else None


def _status(pid: int) -> list[str]:
    """The words of ``stat`` behind the command's name: state, parent, group, session, …"""
    return text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_BLOCK).decode("utf-8", "replace")
    except OSError:
        return ""
