"""The baseline command, read without running it: its folder, variables, program, script, ports and cards."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath

_ASSIGN = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ENDS = ("&&", "||", ";", "|", "&", "\n")
_SKIPPED = ("source", ".", "export", "set", "ulimit", "unset", "mkdir", "conda", "module", "true", "echo")
_WRAPPERS = ("nohup", "env", "exec", "time", "setsid", "sudo", "stdbuf", "numactl", "nice", "timeout")
_SHELLS = ("bash", "sh", "zsh", "dash")
_SCRIPT = re.compile(r"\.(?:sh|bash|py)$")
_PORT = re.compile(
    r"(?:^|[\s'\"{,])(?:--?(?:[\w.-]+[-_.])?port[= ]|\+*(?:[\w.]+[._])?port=|(?:[A-Z0-9]+_)*PORT=|\"?\w+_port\"?: ?)\"?(\d{2,5})\b"
)
_ADDRESS = re.compile(
    r"(?:https?|ray)://(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):(\d{2,5})\b|\bRAY_ADDRESS=['\"]?(?:127\.0\.0\.1|localhost):(\d{2,5})\b"
)
_CARDS = re.compile(r"\b(?:ASCEND_RT|ASCEND|CUDA|HIP|ROCR)_VISIBLE_DEVICES=['\"]?([\d,]+)['\"]?(?=\s|$|;)")


@dataclass(frozen=True)
class Baseline:
    """``program``: the first word that runs; ``script``: the file it is given, if any; ``opens`` and ``calls``: ports that it
    binds, and that it expects to be served; ``cards``: None when it does not name them; ``whole``: all of it could be read."""

    folder: str | None
    variables: dict[str, str]
    program: str | None
    script: str | None
    opens: tuple[int, ...]
    calls: tuple[int, ...]
    cards: frozenset[int] | None
    whole: bool


def read(command: str, workdir: str | None, prefix: tuple[str, ...]) -> Baseline:
    """``prefix``: of the side; a command that repeats it is meant to run behind it."""
    variables: dict[str, str] = {}
    folder, program, script, whole = workdir, None, None, True
    try:
        simple = _simple(command)
    except ValueError:
        simple, whole = [], False
    for words in simple:
        if prefix and tuple(words[: len(prefix)]) == prefix:
            words = words[len(prefix) :]
        while words and (found := _ASSIGN.fullmatch(words[0])):
            variables[found[1]] = found[2]
            words = words[1:]
        if words and words[0] in ("cd", "pushd") and len(words) == 2:
            folder = _join(folder, words[1])
            continue
        if words and words[0] == "export":
            variables |= {found[1]: found[2] for word in words[1:] if (found := _ASSIGN.fullmatch(word))}
        if not words or words[0] in _SKIPPED:
            continue
        program, script = _program(_unwrapped(words, variables))
        break
    if program is not None and any(sign in program for sign in "$`"):
        program, whole = None, False
    if script is not None and any(sign in script for sign in "$`*"):
        script, whole = None, False
    cards = _CARDS.search(command)
    opens = {int(found) for found in _PORT.findall(command)}
    calls = {int(found[1] or found[2]) for found in _ADDRESS.findall(command)}
    return Baseline(
        folder,
        variables,
        program,
        script,
        tuple(sorted(_real(opens - calls))),
        tuple(sorted(_real(calls))),
        frozenset(int(word) for word in cards[1].split(",") if word) if cards else None,
        whole,
    )


def _real(ports: set[int]) -> set[int]:
    return {port for port in ports if 0 < port < 65536}


def _simple(command: str) -> list[list[str]]:
    """The simple commands, in order. Raises ValueError for quotes that are not closed."""
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    out: list[list[str]] = [[]]
    for word in lexer:
        if word in _ENDS or set(word) <= set(";&|"):
            out.append([])
        else:
            out[-1].append(word)
    return [words for words in out if words]


def _unwrapped(words: list[str], variables: dict[str, str]) -> list[str]:
    """Without nohup, env and the like; what env sets is kept."""
    while words and words[0].rpartition("/")[2] in _WRAPPERS:
        name = words[0].rpartition("/")[2]
        words = words[1:]
        while words and (words[0].startswith("-") or (name == "env" and _ASSIGN.fullmatch(words[0]))):
            if found := _ASSIGN.fullmatch(words[0]):
                variables[found[1]] = found[2]
            words = words[1:]
        if name == "timeout":
            words = words[1:]
    return words


def _program(words: list[str]) -> tuple[str | None, str | None]:
    if not words:
        return None, None
    base = words[0].rpartition("/")[2]
    if base in ("ray", "docker") and "--" in words:
        _inner, script = _program(words[words.index("--") + 1 :])
        return words[0], script
    if "/" in words[0] and _SCRIPT.search(words[0]):
        return words[0], words[0]
    if base in _SHELLS or base.startswith("python"):
        rest = words[1:]
        while rest and rest[0].startswith("-"):
            if rest[0] in ("-c", "-m") or (base in _SHELLS and "c" in rest[0]):
                return words[0], None
            rest = rest[1:]
        return words[0], rest[0] if rest else None
    return words[0], next((word for word in words[1:] if _SCRIPT.search(word) and not word.startswith("-")), None)


def _join(folder: str | None, name: str) -> str | None:
    if name.startswith(("/", "~")):
        return name
    return str(PurePosixPath(folder) / name) if folder else None


def joined(folder: str | None, name: str) -> str | None:
    """A file's path as seen from ``folder``; None when that is unknown."""
    return _join(folder, name)
