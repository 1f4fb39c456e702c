"""What runs on a node: unpack the bundle, run probepatch in the workers' interpreter, answer, and leave nothing behind.

Sent by value, so a node needs nothing of ours; only the standard library is used here.
"""

from __future__ import annotations

import io
import os
import platform
import socket
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph", "beegfs", "glusterfs", "9p", "virtiofs", "afs")
_LARGEST = 16 << 20  # characters of one answer
_PYTHON, _BUNDLE = "{python}", "{bundle}"


def on_node(bundle: bytes, calls: list[list[str]], environment: dict[str, str], limit: float) -> dict[str, Any]:
    """Run ``calls`` one after the other: probepatch's arguments, or ``-c SCRIPT ARGUMENT…`` for its interpreter. ``{python}``
    stands for this node's interpreter, ``{bundle}`` for where the bundle lies. The answer has the host's facts, and code, out and
    err of each call; ``limit`` in seconds a call."""
    with tempfile.TemporaryDirectory(prefix="probepatch-node-") as folder:
        with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
            archive.extractall(folder)
        answers = [_call(folder, call, environment, limit) for call in calls]
    return {
        "host": socket.gethostname(),
        "python": sys.executable,
        "version": platform.python_version(),
        "machine": platform.machine(),
        "answers": answers,
    }


def _call(folder: str, call: list[str], environment: dict[str, str], limit: float) -> dict[str, Any]:
    words = [sys.executable if word == _PYTHON else word.replace(_BUNDLE, folder, 1) for word in call]
    own = {"PYTHONDONTWRITEBYTECODE": "1", "PROBEPATCH_BUNDLE": folder}
    if words[0] == "-c":
        head = f"import sys; sys.path.insert(0, {folder!r})\n"
        command = [sys.executable, "-c", head + words[1], *words[2:]]
    else:
        command = [sys.executable, os.path.join(folder, "probepatch.py"), *words]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
            env={**os.environ, **environment, **own},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"code": None, "out": "", "err": f"no answer in {limit:.0f} s"}
    return {"code": done.returncode, "out": done.stdout[:_LARGEST], "err": done.stderr[-4000:]}


def place_of(root: str) -> str:
    """A name for a folder that is the same wherever the same folder is seen: by the server's name on a network file system, by
    device and inode of this kernel otherwise."""
    found = os.stat(root)
    kind, source = _mount(found.st_dev)
    if kind in NETWORK:
        return f"{kind}:{source}:{found.st_ino}"
    return f"{_read('/proc/sys/kernel/random/boot_id')}:{found.st_dev}:{found.st_ino}"


def _mount(device: int) -> tuple[str, str]:
    """File system type and source of a device."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in _read("/proc/self/mountinfo").splitlines():
        head, _dash, tail = line.partition(" - ")
        if len(head.split()) > 2 and head.split()[2] == wanted and len(tail.split()) > 1:
            return tail.split()[0], tail.split()[1]
    return "", ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return platform.node()
