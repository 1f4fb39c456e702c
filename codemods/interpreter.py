"""Questions to another Python interpreter, such as: from where would it import a package?

The package is not imported, only looked for (``find_spec``), from an empty folder, so that a checkout in the current
folder does not win. What the interpreter prints is not trusted: it may print banners, nothing at all, or without end.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codemods.checkout import Tree
from codemods.errors import FindingError, UsageError
from locales import _

TIME_LIMIT = 30.0  # seconds
_OUTPUT_LIMIT = 1 << 20  # bytes

_QUESTION = """
import importlib.util, json, sys
spec = importlib.util.find_spec(sys.argv[1])
places = list(spec.submodule_search_locations or []) if spec else None
print("\\n" + sys.argv[2] + json.dumps({"places": places, "origin": spec and spec.origin}), flush=True)
"""


class InterpreterError(UsageError):
    """The named interpreter does not run, or does not answer as a Python does."""


class PackageNotFoundError(FindingError):
    """The interpreter would not import the package from a folder."""


def locate_package(name: str, python: str, limit: float | None = None) -> Path:
    """The real folder from which ``python`` would import the top-level package ``name``.

    Raises InterpreterError and PackageNotFoundError. ``limit`` is in seconds.
    """
    if not name.isidentifier():
        raise UsageError(
            _("{name} is not a package name").format(name=repr(name)), todo=_("name a top-level package, such as verl")
        )
    mark = secrets.token_hex(16)
    answer = ask(python, ["-c", _QUESTION, name, mark], mark, limit)
    if not isinstance(answer, dict):
        raise no_python(python)
    places, origin = answer.get("places"), answer.get("origin")
    if places is not None and not (isinstance(places, list) and all(isinstance(place, str) for place in places)):
        raise no_python(python)
    if places is None:
        raise PackageNotFoundError(_("{python} finds no package {name}").format(python=python, name=name))
    folders = [Path(place).resolve() for place in places if os.path.isdir(place)]
    if len(folders) != 1:
        raise PackageNotFoundError(
            _("{python} does not import {name} from one folder").format(python=python, name=name),
            why=_("it would import {origin}").format(origin=", ".join(map(str, folders)) or str(origin)),
        )
    return folders[0]


def same_copy(tree: Tree, package: str, python: str) -> bool:
    """Whether ``python`` would import ``package`` from this checkout; raises as locate_package does."""
    return locate_package(package, python) == (tree.import_root / package).resolve()


def ask(python: str, arguments: Sequence[str], mark: str, limit: float | None = None, given: bytes = b"") -> Any:
    """The JSON that the interpreter prints in a line after ``mark``, a word that nobody else can know.

    ``arguments`` follow the interpreter's name, ``given`` is its standard input, ``limit`` in seconds is TIME_LIMIT unless
    it is named. It runs in an empty folder and in a session of its own, which ends with the answer. Raises
    InterpreterError.
    """
    limit = TIME_LIMIT if limit is None else limit
    with tempfile.TemporaryDirectory(prefix="probepatch-") as empty, tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                [os.path.abspath(python) if os.sep in python else python, *arguments],
                cwd=empty,
                env={**os.environ, **_absolute_pythonpath()},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InterpreterError(_("{python} does not run").format(python=repr(python)), why=reason) from error
        with process:
            try:
                output = _read(process, limit)
            finally:
                _end(process)
    if output is None:
        raise InterpreterError(_("{python} gave no answer in {limit:.0f} s").format(python=repr(python), limit=limit))
    return _answer(output, mark, python)


def _read(process: subprocess.Popen[bytes], limit: float) -> bytes | None:
    """What the interpreter prints on both streams, up to a limit in size; None when the time is over first.

    A process that left the session may hold the pipe for ever, so the clock is asked before every read.
    """
    assert process.stdout is not None
    fd, end = process.stdout.fileno(), time.monotonic() + limit
    parts, size = [], 0
    while size < _OUTPUT_LIMIT:
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            return None
        part = os.read(fd, 1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _absolute_pythonpath() -> dict[str, str]:
    """PYTHONPATH as the user means it: relative to where the user stands."""
    value = os.environ.get("PYTHONPATH")
    if not value:
        return {}
    return {"PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in value.split(os.pathsep))}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the interpreter and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()


def _answer(output: bytes, mark: str, python: str) -> Any:
    """The JSON of the marked line."""
    for line in reversed(output.split(b"\n")):
        if line.startswith(mark.encode()):
            try:
                return json.loads(line[len(mark) :])
            except (ValueError, RecursionError):
                break
    said = [text for text in output.decode("utf-8", "replace").splitlines() if text.strip()]
    raise no_python(python, "".join(c if c.isprintable() else "?" for c in said[-1][:200]) if said else None)


def no_python(python: str, said: str | None = None) -> InterpreterError:
    """``said`` is what it printed in place of an answer."""
    return InterpreterError(
        _("{python} does not answer as a Python interpreter does").format(python=repr(python)), why=said
    )
