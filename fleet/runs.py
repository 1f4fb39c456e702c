"""A run of the fleet's apply, as the ledgers record it: every tree's own record says to which run it belongs, and who else was in
it. So no record lies elsewhere that could be lost."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

NODE = "{node}"
_NOTE = re.compile(r"fleet ([0-9a-f]{12}) as (\S+) of (\d+) trees: (\S.*)$")


@dataclass(frozen=True)
class Run:
    """``trees``: how many were to be patched; ``nodes``: for each of them the name of the node that worked on it; ``node``: under
    which of these names this tree took part. A later run's id is greater."""

    id: str
    trees: int
    nodes: tuple[str, ...]
    node: str = NODE

    @property
    def note(self) -> str:
        """What `apply` records beside its own name (PROBEPATCH_FLEET); ``{node}`` is to be filled in."""
        return f"fleet {self.id} as {self.node} of {self.trees} trees: {' '.join(map(quote, self.nodes))}"


def new_run(nodes: Iterable[str]) -> Run:
    names = tuple(nodes)
    return Run(f"{int(time.time()):08x}{os.urandom(2).hex()}", len(names), names)


def noted_as(name: str) -> str:
    """A node's name as a note holds it."""
    return quote(name)


def run_of(transactions: Sequence[dict[str, Any]]) -> Run | None:
    """The run of a ledger's last apply, also when it was taken back since; None when that apply was no fleet's."""
    for one in reversed(transactions):
        if one.get("outcome") == "abort" or one.get("command") != "apply":
            continue
        match = _NOTE.search(str(one.get("tool", "")))
        if match is None:
            return None
        return Run(match[1], int(match[3]), tuple(map(unquote, match[4].split())), unquote(match[2]))
    return None
