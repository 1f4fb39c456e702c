"""Run in a child process: a command that dies, or is met by somebody else, at its N-th write boundary.

Arguments: root, git_dir or "-", what (apply, revert), boundary number, and the deed: KILL, INT, TERM, or a path to write to
("append:PATH", "rename:PATH"). Prints the number of boundaries that it saw.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path

from codemods.errors import ProbePatchError
from patch_ledger import swap
from patch_ledger.apply import commit
from patch_ledger.merge import merge, read_base
from patch_ledger.revert import revert
from patch_ledger.store import open_ledger
from tests.ledger.scenario import edits_of
from tests.ledger.trees import PlainTree

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
EVENTS = {
    "os.rename",
    "os.link",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.truncate",
    "os.setxattr",
    "probepatch.exchange",
}


def main() -> int:
    root, git_dir, what, number, deed = sys.argv[1:6]
    tree = PlainTree(Path(root), None if git_dir == "-" else Path(git_dir))
    ledger = open_ledger(tree)
    if what == "apply":
        edits = edits_of(tree)
        plan = merge(ledger, {path: read_base(ledger, path) for path in edits}, edits, {"r": "d"})
    if os.environ.get("LEDGER_TEST_NO_EXCHANGE"):
        swap._renameat2 = unsupported  # as on a network file system
    seen = 0
    busy = False

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal seen, busy
        writes = event == "open" and isinstance(args[2], int) and args[2] & WRITES
        if busy or not (event in EVENTS or writes):
            return
        seen += 1
        if seen == int(number):
            busy = True
            act(deed)
            busy = False

    sys.addaudithook(hook)
    try:
        if what == "apply":
            commit(tree, plan)
        else:
            revert(tree)
    except ProbePatchError as error:
        print(error.what, file=sys.stderr)
        return error.exit_code
    finally:
        print(seen)
    return 0


def unsupported(source: Path, target: Path, flags: int) -> None:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def act(deed: str) -> None:
    verb, _colon, path = deed.partition(":")
    if verb == "append":
        with open(path, "ab") as file:
            file.write(b"USER = 1\n")
    elif verb == "rename":
        Path(path + ".new").write_bytes(Path(path).read_bytes() + b"USER = 1\n")
        os.rename(path + ".new", path)
    elif verb != "none":
        os.kill(os.getpid(), getattr(signal, f"SIG{verb}"))


if __name__ == "__main__":
    sys.exit(main())
