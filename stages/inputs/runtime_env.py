"""Ray's runtime environment, written as JSON in a script: what it holds, where, and how a variable is added to it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from locales import _
from stages.inputs.shell.values import HOLE, Piece, Value, leaves

KNOWN = (
    "env_vars", "working_dir", "py_modules", "py_modules_files", "py_executable", "excludes", "pip", "conda", "uv",
    "container", "image_uri", "java_jars", "nsight", "_nsight", "rocprof_sys", "_rocprof_sys", "config",
    "worker_process_setup_hook", "mpi", "_ray_release", "_ray_commit", "_inject_current_ray",
)  # fmt: skip
"""The top-level keys that Ray reads; it passes over every other without a word."""
_TOKEN = re.compile(r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\]:,])|(?P<word>[^\s{}\[\]:,"]+))', re.S)
_DEEPEST = 40


@dataclass(frozen=True)
class Member:
    """``"name": value`` with the characters of name and value in the text; ``value`` None when a hole is in it."""

    name: str
    start: int
    value_start: int
    value_end: int
    kind: str  # object, array, string, other
    text: str
    members: tuple[Member, ...] = ()

    @property
    def known(self) -> bool:
        return HOLE not in self.text


@dataclass(frozen=True)
class RuntimeEnv:
    """``problem``: why the text is no JSON object; ``text`` with holes for what is unknown."""

    value: Value
    text: str
    members: tuple[Member, ...] = ()
    problem: str = ""

    @property
    def env_vars(self) -> Member | None:
        return next((one for one in reversed(self.members) if one.name == "env_vars"), None)

    def variable(self, name: str) -> Member | None:
        held = self.env_vars
        return next((one for one in reversed(held.members) if one.name == name), None) if held is not None else None

    @property
    def unknown_keys(self) -> list[Member]:
        return [one for one in self.members if one.name not in KNOWN]

    @property
    def not_texts(self) -> list[Member]:
        """Variables whose value is no string."""
        held = self.env_vars
        return [one for one in held.members if one.kind != "string"] if held is not None else []


def read_runtime_env(value: Value) -> RuntimeEnv:
    text = "".join(HOLE if leaf.text is None else leaf.text for leaf in leaves(value))
    try:
        scanner = _Scanner(text)
        kind, members, end = scanner.value(0, 0)
        if kind != "object":
            raise ValueError(_("it is no JSON object"))
        if text[end:].strip():
            raise ValueError(_("there is more behind the JSON object"))
        if HOLE not in text:
            json.loads(text)
    except (ValueError, RecursionError) as error:
        return RuntimeEnv(value, text, problem=str(error))
    return RuntimeEnv(value, text, members)


@dataclass
class _Scanner:
    text: str
    seen: list[str] = field(default_factory=list)

    def token(self, at: int) -> tuple[str, str, int, int]:
        found = _TOKEN.match(self.text, at)
        if found is None:
            raise ValueError(_("the JSON ends too early"))
        kind = str(found.lastgroup)
        return kind, found.group(kind), found.start(kind), found.end()

    def value(self, at: int, depth: int) -> tuple[str, tuple[Member, ...], int]:
        """Kind, members and the end of the value that begins at ``at``."""
        if depth > _DEEPEST:
            raise ValueError(_("it is nested too deep"))
        kind, text, _start, end = self.token(at)
        if kind == "string":
            return "string", (), end
        if kind == "word":
            if text != HOLE and not re.fullmatch(
                r"-?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|null", text.replace(HOLE, "0")
            ):
                raise ValueError(_("`{text}` is no JSON").format(text=text[:40]))
            return "other", (), end
        if text == "{":
            return self._object(end, depth)
        if text == "[":
            return self._array(end, depth)
        raise ValueError(_("`{text}` is no JSON").format(text=text))

    def _object(self, at: int, depth: int) -> tuple[str, tuple[Member, ...], int]:
        members: list[Member] = []
        kind, text, start, end = self.token(at)
        if text == "}" and kind == "mark":
            return "object", (), end
        while True:
            if kind != "string":
                raise ValueError(_("a name in double quotes is missing before `{text}`").format(text=text[:40]))
            colon = self.token(end)
            if colon[1] != ":":
                raise ValueError(_("a colon is missing behind {name}").format(name=text[:40]))
            begin = self.token(colon[3])[2]
            inner, below, stop = self.value(colon[3], depth + 1)
            name = json.loads(text) if HOLE not in text else text[1:-1]
            members.append(Member(str(name), start, begin, stop, inner, self.text[begin:stop], below))
            kind, text, start, end = self.token(stop)
            if (kind, text) == ("mark", "}"):
                return "object", tuple(members), end
            if (kind, text) != ("mark", ","):
                raise ValueError(_("a comma is missing before `{text}`").format(text=text[:40]))
            kind, text, start, end = self.token(end)

    def _array(self, at: int, depth: int) -> tuple[str, tuple[Member, ...], int]:
        kind, text, _start, end = self.token(at)
        if (kind, text) == ("mark", "]"):
            return "array", (), end
        while True:
            _inner, _below, at = self.value(at, depth + 1)
            kind, text, _start, end = self.token(at)
            if (kind, text) == ("mark", "]"):
                return "array", (), end
            if (kind, text) != ("mark", ","):
                raise ValueError(_("a comma is missing before `{text}`").format(text=text[:40]))
            at = end


@dataclass(frozen=True)
class Place:
    """A character of a value: where it was written, and in which quotes."""

    piece: Piece
    at: int

    @property
    def quote(self) -> str:
        return self.piece.quote


def place(value: Value, at: int) -> Place | None:
    """Where the character before offset ``at`` of the text was written, as the offset behind it; None when that cannot be told."""
    before = 0
    for leaf in leaves(value):
        length = 1 if leaf.text is None else len(leaf.text)
        if before < at <= before + length:
            if leaf.source is None or leaf.text is None:
                return None
            if leaf.exact:
                return Place(leaf, leaf.start + at - before)
            return Place(leaf, leaf.end) if at == before + length else None
        before += length
    return None


def span(value: Value, start: int, end: int) -> tuple[Place, Place] | None:
    """The characters of a part of the text, as written."""
    first, last = place(value, start + 1), place(value, end)
    if first is None or last is None or first.piece.source is not last.piece.source:
        return None
    length = 1 if first.piece.exact else first.piece.end - first.piece.start
    return Place(first.piece, first.at - length), last


def added(env: RuntimeEnv, variables: Sequence[tuple[str, str]]) -> tuple[int, str]:
    """Where variables are to be added to ``env_vars``, and the text, written as its neighbours are. Raises ValueError."""
    held = env.env_vars
    pairs = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in variables]
    if held is None:
        if not env.members:
            raise ValueError(_("it is empty"))
        inside = "{" + ", ".join(pairs) + "}"
        first = env.members[0]
        gap = env.text[env.text.index("{") + 1 : first.start]
        return env.text.index("{") + 1, f'{gap}"env_vars": {inside},'
    if held.kind != "object":
        raise ValueError(_("env_vars is no JSON object"))
    if not held.members:
        return held.value_start + 1, ", ".join(pairs)
    last = held.members[-1]
    before = held.members[-2].value_end if len(held.members) > 1 else held.value_start
    gap = re.sub(r"^[^\s]*?[,{]", "", env.text[before : last.start], count=1)
    if HOLE in gap or gap.strip():
        gap = " "
    compact = ": " not in env.text[last.start : last.value_start]
    if compact:
        pairs = [pair.replace(": ", ":", 1) for pair in pairs]
    return last.value_end, "".join(f",{gap}{pair}" for pair in pairs)
