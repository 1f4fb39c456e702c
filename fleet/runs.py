"""A run of the fleet's apply, as the ledgers record it: every tree's own record says to which run it belongs, and who else was in
it. So no record lies elsewhere that could be lost."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_NOTE = re.compile(r"fleet ([0-9a-f]{12}) of (\d+) trees: (.*)$")


@dataclass(frozen=True)
class Run:
    """``trees``: how many were to be patched; ``nodes``: the names of all nodes that took part."""

    id: str
    trees: int
    nodes: tuple[str, ...]

    @property
    def note(self) -> str:
        """What `apply` records beside its own name (PROBEPATCH_RUN)."""
        return f"fleet {self.id} of {self.trees} trees: {' '.join(self.nodes)}"


def new_run(trees: int, nodes: Iterable[str]) -> Run:
    return Run(os.urandom(6).hex(), trees, tuple(nodes))


def run_of(transactions: Sequence[dict[str, Any]]) -> Run | None:
    """The run of a ledger's last apply, when edits of it are active."""
    for one in reversed(transactions):
        if one.get("outcome") != "commit" or one.get("command") != "apply":
            continue
        match = _NOTE.search(str(one.get("tool", "")))
        return Run(match[1], int(match[2]), tuple(match[3].split())) if match else None
    return None
