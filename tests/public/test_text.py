"""What a patched file looks like, to the byte, and that a revert gives back the file."""

from __future__ import annotations

import ast
import py_compile
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import Git
from tests.public.driver import case, inputs, printed_patch, probepatch, recipes, refusal

InGit = Callable[[Path], Path]

ONE_LINE_SUITE = b"""\
class Gate:
    def admit(self, req):
        if req is None:
            probe.mark(req)
            return False
        if req.size > 8: self.count += 1; return False
        else: self.last = req
        return True

    def peek(self):
        probe.mark(self)
        return self.last
"""

FUTURE_IMPORT = b'''\
#!/usr/bin/env python3
# -*- coding: utf-8 -*-
# Licence text line
"""Worker entry."""
from __future__ import annotations
# keep next line for old readers
from __future__ import division
from probekit import tap

boot = print("boot")
import json
tap('ready')
'''

MIXED_ENDINGS = (
    b"def pull(q):\r\n    a = 1\r\n    b = 2\r\n    item = q.get()\r\n"
    b"    # this one line ends with LF only\n    return item\r\n"
)

ROUNDTRIP = b"""\
def alpha(x):
    tap(x)
    return x


def beta(path):
    try:
        return open(path)
    except OSError :
        return None
"""

TABS_AND_BLANKS = b'''\
class T:
\tdef tabbed(self, x):
\t\tif ON:
\t\t\tnote = """a
  b"""
\t\t\ttap(x, note)
\t\tif x:
\t\t\treturn x
\t\treturn 0

def two(x):
  if ON:
    note = """a
  b"""
    tap(x, note)
  if x:
    return x
  return 0
'''

REMOVED = b"""\
# stdlib
import os

# engine side, keep order
from eng_probe import tokens

print(os, tokens, driver)
"""

WANTED = {
    1: {"input.py": ONE_LINE_SUITE},
    2: {"input.py": FUTURE_IMPORT},
    3: {"input.py": MIXED_ENDINGS},
    5: {"input.stmt.py": b"def f():\n    return 1\ndone = True", "input.comment.py": b"x = 1\n# tail\ndone = True"},
    8: {"input.py": ROUNDTRIP},
    12: {"input.py": TABS_AND_BLANKS},
    13: {"input.py": REMOVED},
}


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


@pytest.mark.parametrize("number", WANTED)
def test_the_whole_round(number: int, in_git: InGit, git: Git, tmp_path: Path) -> None:
    folder = case(number)
    root, recipe = in_git(folder), recipes(folder / "recipe.yaml")
    original = {path.name: path.read_bytes() for path in inputs(folder)}

    patch = printed_patch(root, *recipe)
    assert contents(root) == original
    subprocess.run(["git", "apply", "-"], cwd=root, input=patch, check=True)
    assert contents(root) == WANTED[number]
    git(root, "checkout", "-q", ".")

    probepatch("apply", root, *recipe)
    assert contents(root) == WANTED[number]
    assert probepatch("apply", root, *recipe)["receipt"]["txn"] == ""
    assert contents(root) == WANTED[number]

    for name in WANTED[number]:
        py_compile.compile(str(root / name), cfile=str(tmp_path / "compiled"), doraise=True)

    assert probepatch("revert", root)["proof"]["exact"]
    assert contents(root) == original
    assert git(root, "status", "--porcelain") == ""


def patched(number: int, in_git: InGit) -> Path:
    root = in_git(case(number))
    probepatch("apply", root, *recipes(case(number) / "recipe.yaml"))
    return root


def test_01_the_call_is_inside_the_branch(in_git: InGit) -> None:
    calls: list[object] = []
    names: dict[str, object] = {"probe": SimpleNamespace(mark=calls.append)}
    exec((patched(1, in_git) / "input.py").read_text(), names)
    gate = names["Gate"]()  # type: ignore[operator]
    assert (gate.admit(None), calls) == (False, [None])
    assert (gate.admit(SimpleNamespace(size=1)), calls) == (True, [None])
    gate.count = 0
    assert (gate.admit(SimpleNamespace(size=9)), gate.count, calls) == (False, 1, [None])
    assert gate.peek().size == 1
    assert calls == [None, gate]


def test_02_docstring_and_first_lines_keep_their_place(in_git: InGit) -> None:
    text = (patched(2, in_git) / "input.py").read_bytes()
    lines = text.split(b"\n")
    assert ast.get_docstring(ast.parse(text)) == "Worker entry."
    assert lines[0] == b"#!/usr/bin/env python3"
    assert lines[1] == b"# -*- coding: utf-8 -*-"
    assert lines[7] == b"from probekit import tap"
    assert text.count(b"probekit") == 1


def test_03_endings_are_counted(in_git: InGit) -> None:
    root = patched(3, in_git)

    def endings() -> tuple[int, int]:
        data = (root / "input.py").read_bytes()
        crlf = data.count(b"\r\n")
        return crlf, data.count(b"\n") - crlf

    assert endings() == (5, 1)
    probepatch("revert", root)
    assert endings() == (3, 1)


def test_03_a_file_without_a_safe_choice_is_refused(in_git: InGit) -> None:
    root = in_git(case(3))
    lone = (root / "input.py").read_bytes().replace(b"\r\n", b"\r")
    (root / "input.py").write_bytes(lone)
    said = refusal("apply", root, *recipes(case(3) / "recipe.yaml"), code=1, kind="unreadable-source")
    assert "input.py:1" in said
    assert "bare CR" in said
    assert (root / "input.py").read_bytes() == lone


@pytest.mark.parametrize("number", [8, 12])
def test_the_diff_holds_added_lines_only(number: int, in_git: InGit, git: Git) -> None:
    root = patched(number, in_git)
    added, removed, _name = git(root, "diff", "--numstat").split()
    assert (int(added), int(removed)) == ({8: 1, 12: 8}[number], 0)


@pytest.mark.parametrize("tail", [b"    ", b"\n\n  \t\n", b"\x0c\n", b"# no newline"])
def test_08_the_end_of_the_file_keeps_its_bytes(in_git: InGit, tail: bytes) -> None:
    root = in_git(case(8))
    path = root / "input.py"
    path.write_bytes(path.read_bytes() + tail)
    probepatch("apply", root, *recipes(case(8) / "recipe.yaml"))
    assert path.read_bytes() == ROUNDTRIP + tail
    probepatch("revert", root)
    assert path.read_bytes() == (case(8) / "input.py").read_bytes() + tail


def test_05_the_last_byte_is_the_old_one(in_git: InGit) -> None:
    root = patched(5, in_git)
    probepatch("revert", root)
    assert (root / "input.stmt.py").read_bytes()[-1:] == b"1"
    assert (root / "input.comment.py").read_bytes()[-1:] == b"l"
