"""What runs on a node: unpack the bundle, run probepatch in the workers' interpreter, answer, and leave nothing behind.

Sent by value, so a node needs nothing of ours; only the standard library is used here.
"""

from __future__ import annotations

import io
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from contextlib import suppress
from typing import IO, Any

MARK = "BUNDLE"
"""A file in the bundle: the ``abi`` that it was made for."""
_LARGEST = 32 << 20  # bytes of one answer
_PYTHON, _BUNDLE = "{python}", "{bundle}"


class Alone:
    """An actor with a name: while one is there, no other run writes in this cluster. It goes with its driver."""


def abi() -> str:
    """What the libraries in a bundle must have been built for, in order to be loaded here."""
    return f"{sys.implementation.cache_tag} {platform.system()} {platform.machine()}"


def on_node(bundle: bytes, calls: list[list[str]], environment: dict[str, str], limit: float) -> dict[str, Any]:
    """Run ``calls`` (probepatch's arguments) one after the other. ``{python}`` stands for this node's interpreter, ``{bundle}``
    for where the bundle lies. The answer has ``abi``, ``made_for`` (the bundle's abi), ``python`` (the interpreter's version), and
    code, out and err of each call: no call where the two differ. ``limit`` in seconds a call."""
    answers: list[dict[str, Any]] = []
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        made_for = archive.read(MARK).decode()
        if made_for == abi():
            with tempfile.TemporaryDirectory(prefix="probepatch-node-") as folder:
                archive.extractall(folder)
                answers = [_call(folder, call, environment, limit) for call in calls]
    return {"abi": abi(), "made_for": made_for, "python": platform.python_version(), "answers": answers}


def _call(folder: str, call: list[str], environment: dict[str, str], limit: float) -> dict[str, Any]:
    """``code`` is None when the call did not end by itself: killed, too long, too much output."""
    words = [sys.executable if word == _PYTHON else word.replace(_BUNDLE, folder, 1) for word in call]
    process = subprocess.Popen(
        [sys.executable, os.path.join(folder, "probepatch.py"), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    told: dict[str, bytes] = {}
    late = threading.Timer(limit, _end, [process])
    readers = [
        threading.Thread(target=_read, args=(process, stream, told, name))
        for name, stream in (("out", process.stdout), ("err", process.stderr))
    ]
    for thread in (late, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    code = process.wait()
    late.cancel()
    out, err = (told[name].decode("utf-8", "replace") for name in ("out", "err"))
    if code >= 0:
        return {"code": code, "out": out, "err": err[-4000:]}
    why = f"more than {_LARGEST >> 20} MB of output" if max(map(len, told.values())) > _LARGEST else f"signal {-code}"
    return {"code": None, "out": "", "err": f"it did not end by itself ({why})"}


def _read(process: subprocess.Popen[bytes], stream: IO[bytes], told: dict[str, bytes], name: str) -> None:
    """All of the stream; whoever writes without end is ended."""
    with stream:
        told[name] = stream.read(_LARGEST + 1)
        if len(told[name]) > _LARGEST:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
