"""Run in a process of its own: forks a child for each command line that it reads, as :class:`tests.public.driver.Forks` asks.

The child is the real command line. At the audit event of its n-th write it does what it was told to.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import IO, Any

import cli
from tests.ledger.crasher import EVENTS, WRITES, act

MODULE = "def f():\n    return 1\n"
RECIPE = """
recipe: warm-up
framework: example
side: train
versions: ">=0"
why: everything that is imported late is imported before the first fork
edits: [{id: e, file: m.py, in: f, body_start: pass}]
"""


def warm_up() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "r.yaml").write_text(RECIPE)
        (root / "m.py").write_text(MODULE)
        for command in (["apply", "--recipe-file", str(root / "r.yaml")], ["status"], ["revert"], ["status"]):
            with redirect_stdout(io.StringIO()):
                assert cli.main([*command, folder, "--json"]) == 0
        assert (root / "m.py").read_text() == MODULE


def watch(number: int, deed: str, below: str | None, note: IO[bytes]) -> None:
    """Do the deed at the audit event of the n-th write, and leave a note right before; with ``below`` a file of that folder that
    is opened for reading counts, too."""
    seen = 0
    busy = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen, busy
        opens = event == "open" and isinstance(arguments[2], int)
        writes = opens and arguments[2] & WRITES
        reads = opens and below is not None and str(arguments[0]).startswith(below)
        if busy or not (event in EVENTS or writes or reads):
            return
        seen += 1
        if seen == number:
            busy = True
            os.write(note.fileno(), b"hit")
            act(deed)
            busy = False

    sys.addaudithook(hook)


class Child:
    """A forked command line and what it prints."""

    def __init__(self, question: dict[str, Any]) -> None:
        self.out, self.err, self.note = (tempfile.TemporaryFile() for _ in range(3))  # noqa: SIM115 - closed in wait
        self.pid = os.fork()
        if self.pid == 0:
            self.run(question)

    def run(self, question: dict[str, Any]) -> None:
        code = 70
        try:
            os.dup2(self.out.fileno(), 1)
            os.dup2(self.err.fileno(), 2)
            if question["user"] is not None:
                os.setgroups([])
                os.setgid(question["user"])
                os.setuid(question["user"])
            watch(question["at"], question["deed"], question["below"], self.note)
            code = cli.main(question["arguments"])
            sys.stdout.flush()
        finally:
            os._exit(code)

    def wait(self) -> dict[str, Any]:
        """Until it ends or stops."""
        _pid, status = os.waitpid(self.pid, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
        files = (self.out, self.err, self.note)
        out, err, note = (os.pread(file.fileno(), 1 << 24, 0) for file in files)
        for file in () if stopped else files:
            file.close()
        return {
            "pid": self.pid,
            "code": None if stopped else os.waitstatus_to_exitcode(status),
            "hit": bool(note),
            "out": out.decode(),
            "err": err.decode(),
        }


def main() -> None:
    warm_up()
    children: dict[int, Child] = {}
    for line in sys.stdin:
        question = json.loads(line)
        if "wake" in question:
            child = children[question["wake"]]
            os.kill(child.pid, getattr(signal, f"SIG{question['signal']}"))
        else:
            child = Child(question)
            children[child.pid] = child
        reply = child.wait()
        if reply["code"] is not None:
            del children[child.pid]
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
