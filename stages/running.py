"""Run a command that may hang, talk without end, or leave somebody behind who keeps its output open."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile

_BLOCK = 1 << 16
_TURN, _GRACE = 0.2, 1.0  # seconds: between two looks; for output that is still on its way when the command has ended


class TooMuchError(Exception):
    """The command wrote more than it may; it was killed."""


def run(command: Sequence[str], given: bytes, limit: float, largest: int) -> subprocess.CompletedProcess[bytes]:
    """Standard input is ``given``; ``limit`` in seconds; ``largest`` in bytes, of both outputs together. The command has no
    terminal: what asks for a password there fails at once. Raises subprocess.TimeoutExpired, TooMuchError, OSError, ValueError."""
    with TemporaryFile() as input_:
        input_.write(given)
        input_.seek(0)
        with subprocess.Popen(
            command, stdin=input_, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, bufsize=0
        ) as process:
            try:
                out, err = _read(process, limit, largest)
                return subprocess.CompletedProcess(list(command), process.wait(), out, err)
            finally:
                if process.poll() is None:  # it still runs, so the group's number is its own
                    with suppress(OSError):
                        os.killpg(process.pid, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], limit: float, largest: int) -> tuple[bytes, bytes]:
    """Both outputs, until they end, or until the command has ended and nothing more comes: a master connection of ssh, say, keeps
    them open."""
    until, ended = time.monotonic() + limit, False
    read = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in read:
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() or not ended:
            if time.monotonic() > until:
                if ended:
                    break
                raise subprocess.TimeoutExpired(process.args, limit)
            for key, _events in selector.select(_TURN) if selector.get_map() else ():
                block = os.read(key.fd, _BLOCK)
                read[key.fileobj].extend(block)  # type: ignore[index]
                if not block:
                    selector.unregister(key.fileobj)
            if sum(map(len, read.values())) > largest:
                raise TooMuchError
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_TURN)
            if not ended and process.poll() is not None:
                ended, until = True, time.monotonic() + _GRACE
    return bytes(read[process.stdout]), bytes(read[process.stderr])
