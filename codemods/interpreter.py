"""Questions to another Python interpreter: from where would it import a package?

The package is not imported, only looked for (``find_spec``), from an empty folder, so that a checkout in the current
folder does not win. What the interpreter prints is not trusted: it may print banners, nothing at all, or without end.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

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


def locate_package(name: str, python: str, limit: float = TIME_LIMIT) -> Path:
    """The real folder from which ``python`` would import the top-level package ``name``.

    Raises InterpreterError and PackageNotFoundError. ``limit`` is in seconds.
    """
    if not name.isidentifier():
        raise UsageError(
            _("{name} is not a package name").format(name=repr(name)), todo=_("name a top-level package, such as verl")
        )
    mark = secrets.token_hex(16)
    output = _ask(python, [name, mark], limit)
    places, origin = _answer(output, mark, python)
    if places is None:
        raise PackageNotFoundError(_("{python} finds no package {name}").format(python=python, name=name))
    folders = [Path(place).resolve() for place in places if os.path.isdir(place)]
    if len(folders) != 1:
        raise PackageNotFoundError(
            _("{python} does not import {name} from one folder").format(python=python, name=name),
            why=_("it would import {origin}").format(origin=", ".join(map(str, folders)) or origin),
        )
    return folders[0]


def same_copy(tree: Tree, package: str, python: str) -> bool:
    """Whether ``python`` would import ``package`` from this checkout; raises as locate_package does."""
    return locate_package(package, python) == (tree.import_root / package).resolve()


def _ask(python: str, arguments: list[str], limit: float) -> bytes:
    """What the interpreter prints, on both streams, up to a limit in size and time."""
    with tempfile.TemporaryDirectory(prefix="probepatch-") as empty:
        try:
            process = subprocess.Popen(
                [python, "-c", _QUESTION, *arguments],
                cwd=empty,
                env={**os.environ, **_absolute_pythonpath()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InterpreterError(_("{python} does not run").format(python=repr(python)), why=reason) from error
        late = threading.Event()

        def stop() -> None:
            late.set()
            _end(process)

        alarm = threading.Timer(limit, stop)
        alarm.start()
        with process:
            assert process.stdout is not None
            try:
                output = process.stdout.read(_OUTPUT_LIMIT)
            finally:
                alarm.cancel()
                _end(process)
    if late.is_set():
        raise InterpreterError(_("{python} gave no answer in {limit:.0f} s").format(python=python, limit=limit))
    return output


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


def _answer(output: bytes, mark: str, python: str) -> tuple[list[str] | None, str | None]:
    """The marked line, checked for its form."""
    for line in reversed(output.split(b"\n")):
        if line.startswith(mark.encode()):
            try:
                answer = json.loads(line[len(mark) :])
                places, origin = answer["places"], answer["origin"]
            except (ValueError, KeyError, TypeError):
                break
            if places is None or (isinstance(places, list) and all(isinstance(place, str) for place in places)):
                return places, origin if isinstance(origin, str) else None
            break
    said = [text for text in output.decode("utf-8", "replace").splitlines() if text.strip()]
    last = "".join(c if c.isprintable() else "?" for c in said[-1][:200]) if said else None
    raise InterpreterError(
        _("{python} does not answer as a Python interpreter does").format(python=repr(python)), why=last
    )
