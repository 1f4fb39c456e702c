"""The compile check, in memory and differential: an edit is blamed only when the base compiles and the patched file does not."""

from __future__ import annotations

import base64
import json
import platform
import secrets
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from codemods.errors import FindingError, RefusedError
from codemods.interpreter import InterpreterError as InterpreterError
from codemods.interpreter import ask, no_python
from locales import _

_CHILD = """
import base64, json, platform, sys, warnings
warnings.simplefilter("ignore")
answers = []
for path, text in json.load(sys.stdin):
    try:
        compile(base64.b64decode(text), path, "exec", dont_inherit=True)
        answers.append(None)
    except Exception as error:
        message = str(getattr(error, "msg", None) or error)[:300]
        answers.append([getattr(error, "lineno", None), type(error).__name__ + ": " + message])
python = platform.python_implementation() + " " + platform.python_version()
print("\\n" + sys.argv[1] + json.dumps({"python": python, "answers": answers}), flush=True)
"""

Verdict = "tuple[int | None, str] | None"  # None: compiles; else line and message


class UncheckableError(RefusedError):
    """This Python cannot compile even the file as it was."""


class BrokenByEditError(FindingError):
    """The file compiled before the edits and does not with them."""


def _compile_here(files: Sequence[tuple[str, bytes]]) -> tuple[str, list[tuple[int | None, str] | None]]:
    answers: list[tuple[int | None, str] | None] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path, data in files:
            try:
                compile(data, path, "exec", dont_inherit=True)
                answers.append(None)
            except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
                message = str(getattr(error, "msg", None) or error)
                answers.append((getattr(error, "lineno", None), f"{type(error).__name__}: {message}"))
    return f"{platform.python_implementation()} {platform.python_version()}", answers


def _compile_there(files: Sequence[tuple[str, bytes]], python: str) -> tuple[str, list[tuple[int | None, str] | None]]:
    work = json.dumps([(path, base64.b64encode(data).decode()) for path, data in files])
    mark = secrets.token_hex(16)
    result = ask(python, ["-I", "-B", "-c", _CHILD, mark], mark, given=work.encode())
    try:
        answers = [None if answer is None else _verdict(*answer) for answer in result["answers"]]
        if len(answers) != len(files):
            raise ValueError(_("it answered for {count} files").format(count=len(answers)))
        return str(result["python"]), answers
    except (ValueError, KeyError, TypeError) as error:
        raise no_python(python, " ".join(str(error).split())[:200]) from error


def _verdict(line: object, message: object) -> tuple[int | None, str]:
    return line if isinstance(line, int) else None, str(message)


def check(files: Sequence[tuple[str, bytes | None, bytes]], python: str | None = None) -> Mapping[str, str]:
    """Compile each (path, base or None, patched bytes). Returns the verdict per path, for the ledger.

    Raises UncheckableError, BrokenByEditError or InterpreterError; files that are no Python are not compiled.
    """
    sources = [(path, base, after) for path, base, after in files if path.endswith((".py", ".pyi"))]
    run = (
        (lambda work: _compile_there(work, python))
        if python and Path(python) != Path(sys.executable)
        else _compile_here
    )
    version, answers = run([(path, after) for path, _base, after in sources])
    failed = [
        (path, base, answer)
        for (path, base, _after), answer in zip(sources, answers, strict=True)
        if answer is not None
    ]
    if failed:
        _blame(failed, version, run([(path, base or b"") for path, base, _answer in failed])[1])
    verdicts = {path: _("not Python") for path, _base, _after in files}
    return verdicts | {path: _("compiles under {version}").format(version=version) for path, _base, _after in sources}


def _blame(
    failed: Sequence[tuple[str, bytes | None, tuple[int | None, str]]],
    version: str,
    before: Sequence[tuple[int | None, str] | None],
) -> None:
    for (path, _base, answer), was in zip(failed, before, strict=True):
        if was is not None:
            raise UncheckableError(
                _("{path} cannot be checked by {version}: it does not compile even without our edits").format(
                    path=path, version=version
                ),
                where=f"{path}:{was[0]}" if was[0] else path,
                why=was[1],
                todo=_("name the framework's own interpreter with --python; nothing was written"),
            )
        raise BrokenByEditError(
            _("the edits would break {path}").format(path=path),
            where=f"{path}:{answer[0]}" if answer[0] else path,
            why=f"{version}: {answer[1]}",
            todo=_("the recipe is wrong for this file; nothing was written"),
        )
