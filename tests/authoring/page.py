"""docs/authoring.md is run, not written: its files are made, its commands typed, and what they print is what the page shows.

    python -m tests.authoring.page          fill the page with what the commands print now

The last section is about a framework whose wheel is built for one Python alone; its commands stand in blocks of kind text.

A block that begins with ``# file: NAME`` is a file to make. In a console block a line behind ``$ `` is a command, the rest its
output; a line of one ``…`` stands for any lines left out. ``<!-- take: FILE EDIT -->`` takes the ``#`` from that edit's candidate.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.verl.wheels import unpack, wheel

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "authoring.md"
TREES = {"verl-0.8.0": "0.8.0", "verl-0.9.1": "0.9.1"}
UNKNOWN = "\n## A framework that nobody knows\n"
UNKNOWN_PYTHON = (3, 11)
_BLOCK = re.compile(r"```(console|yaml|python)\n(.*?)```\n|<!-- take: (\S+) (\S+) -->\n", re.DOTALL)
_ANY = "…"


@dataclass(frozen=True)
class Ran:
    """A command of the page, with what the page says that it prints and what it does print."""

    command: str
    said: list[str]
    printed: list[str]


def prepare(folder: Path) -> None:
    for name, version in TREES.items():
        unpack("verl", version, folder / name)


def prepare_unknown(folder: Path) -> None:
    unpack("openrlhf", "0.11.2", folder / "wheel")
    (folder / "wheel/openrlhf-0.11.2.data/purelib").rename(folder / "OpenRLHF")


def parts(page: str) -> tuple[str, str]:
    """The page up to its last section, and that section with its commands to be run, too."""
    known, head, unknown = page.partition(UNKNOWN)
    return known, head + unknown.replace("```text\n", "```console\n")


def run(page: str, folder: Path) -> Iterator[Ran]:
    """Do what the page says, in order."""
    for found in _BLOCK.finditer(page):
        kind, text, path, edit = found.groups()
        if path:
            _take(folder / path, edit)
        elif kind == "console":
            yield from _console(text, folder)
        elif text.startswith("# file: "):
            head, _newline, rest = text.partition("\n")
            target = folder / head.removeprefix("# file: ")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(rest, "utf-8")


def _console(text: str, folder: Path) -> Iterator[Ran]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *said = part.rstrip("\n").split("\n")
        yield Ran(command, said, _typed(command, folder))


def _typed(command: str, folder: Path) -> list[str]:
    words = shlex.split(command)
    if words[0] == "probepatch":
        words = [sys.executable, str(ROOT / "probepatch.py"), *words[1:]]
    cache = wheel("verl", "0.9.1").parent
    env = {**os.environ, "NO_COLOR": "1", "LANG": "C.UTF-8", "COLUMNS": "130", "PROBEPATCH_WHEELS": str(cache)}
    done = subprocess.run(words, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    printed = done.stdout.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
    return printed.rstrip("\n").split("\n") if printed.strip() else []


def _take(path: Path, edit: str) -> None:
    """What the author does by hand: the candidate's lines without their ``# ``."""
    out, taking = [], False
    for line in path.read_text("utf-8").split("\n"):
        if line == f"  # - id: {edit}":
            taking = True
        elif not line.startswith("  #"):
            taking = False
        out.append(line.replace("  # ", "  ", 1) if taking else line)
    path.write_text("\n".join(out), "utf-8")


_STEADY = {re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"): "TIME", re.compile(r"\b[0-9a-f]{12}\b"): "ID"}


def steady(line: str) -> str:
    """The line without what is another in every run."""
    for pattern, word in _STEADY.items():
        line = pattern.sub(word, line)
    return line


def same(said: list[str], printed: list[str]) -> bool:
    """Whether the output is the page's, where ``…`` stands for any lines."""
    if not said:
        return not printed
    if said[0].strip() == _ANY:
        return any(same(said[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and steady(said[0]) == steady(printed[0]) and same(said[1:], printed[1:])


def filled(page: str, folder: Path) -> str:
    """The page with the outputs of today; what is elided with ``…`` stays elided where it still fits."""
    for ran in run(page, folder):
        if not same(ran.said, ran.printed):
            old = "\n".join([f"$ {ran.command}", *ran.said])
            page = page.replace(old, "\n".join([f"$ {ran.command}", *ran.printed]), 1)
    return page


def _write() -> None:
    known, unknown = parts(PAGE.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place))
        known = filled(known, Path(place))
    if sys.version_info[:2] == UNKNOWN_PYTHON:
        with tempfile.TemporaryDirectory() as place:
            prepare_unknown(Path(place))
            unknown = filled(unknown, Path(place))
    PAGE.write_text(known + unknown.replace("```console\n", "```text\n"), "utf-8")


if __name__ == "__main__":
    _write()
