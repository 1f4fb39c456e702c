"""What a script has set so far, and how to follow two ways that it may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from locales import _
from stages.inputs.shell.nodes import Node, Source
from stages.inputs.shell.values import Arg, Value, Var, depth, joined, leaves, unknown, weight

_HEAVIEST, _DEEPEST = 50_000, 16  # of one variable


@dataclass
class Scope:
    """``variables`` by name; a name that is not there was not set by the script, and may be set in the environment.

    ``arguments``: of the script or function, None where it was called without any that are known; ``folder`` the current one,
    empty as long as it is the one that the script was started in.
    """

    variables: dict[str, Var] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    functions: dict[str, tuple[Source, Sequence[Node]]] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)
    arguments: tuple[Arg, ...] | None = None
    folder: Value = ()
    export_all: bool = False
    ended: bool = False

    def copy(self) -> Scope:
        return Scope(
            dict(self.variables),
            set(self.exported),
            dict(self.functions),
            set(self.unset),
            self.arguments,
            self.folder,
            self.export_all,
            self.ended,
        )

    def take(self, other: Scope) -> None:
        """Go on as ``other`` did."""
        self.__dict__.update(other.copy().__dict__)

    def join(self, ways: Sequence[Scope], why: str) -> None:
        """Go on after one of several ways, nobody knows which. A way that ended the script is not among them."""
        alive = [way for way in ways if not way.ended]
        if not alive:
            self.ended = True
            return
        first = alive[0].copy()
        for way in alive[1:]:
            for name in {*first.variables, *way.variables}:
                first.variables[name] = joined(first.variables.get(name), way.variables.get(name), why)
            first.exported |= way.exported
            first.functions |= way.functions
            first.unset &= way.unset
            if first.folder != way.folder:
                first.folder = unknown(why)
            if first.arguments != way.arguments:
                first.arguments = None
        self.take(first)

    def set(self, name: str, var: Var) -> None:
        self.variables[name] = _bounded(name, var)
        self.unset.discard(name)
        if self.export_all:
            self.exported.add(name)


def _bounded(name: str, var: Var) -> Var:
    """A variable that doubles line by line comes to be unknown, before it takes all memory."""
    if var.array is None:
        if weight(var.value, _HEAVIEST) > _HEAVIEST:
            return Var(unknown(_("{name} is too long to be followed").format(name=name)))
        return replace(var, value=tuple(leaves(var.value))) if depth(var.value) > _DEEPEST else var
    total = 0
    for arg in var.array:
        total += 1 + weight(arg.value, _HEAVIEST)
        if total > _HEAVIEST:
            return Var(array=(), open=_("{name} is too long to be followed").format(name=name))
    return var
