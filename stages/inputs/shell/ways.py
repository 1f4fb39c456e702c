"""What the commands of a way may set, and whether they leave the script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locales import _
from stages.inputs.shell.nodes import Case, Chain, Group, If, Loop, Node, Param, Pipeline, Simple, Word
from stages.inputs.shell.scope import Scope
from stages.inputs.shell.values import Var, assumptions, text_of, unknown


def has_to_be_set(scope: Scope, names: frozenset[str]) -> None:
    """The script ends where these are not set, so the empty defaults of theirs are not what it goes on with."""
    for name, var in scope.variables.items():
        if var.array is None and names & assumptions(var.value) and not text_of(var.value):
            why = _("${name} has to be set in the environment").format(name=name)
            scope.variables[name] = Var(unknown(why))


def is_arguments(word: Word) -> bool:
    return any(isinstance(part, Param) and part.name in ("@", "*") for part in word.parts)


def expected_to_succeed(node: Node) -> bool:
    return (
        isinstance(node, Simple) and bool(node.words) and node.words[0].plain in ("cd", "source", ".", "pushd", "mkdir")
    )


def sets_only(node: Node) -> bool:
    """Assignments and nothing else, which succeed."""
    return isinstance(node, Simple) and not node.words and bool(node.assigns)


def ends(nodes: Sequence[Node]) -> bool:
    """Whether the last command leaves the script."""
    last = nodes[-1] if nodes else None
    if isinstance(last, Group) and not last.subshell:
        return ends(last.body)
    return isinstance(last, Simple) and bool(last.words) and last.words[0].plain in ("exit", "return", "usage")


def assigned(nodes: Sequence[Node]) -> Iterator[str]:
    """The names that the commands may set."""
    for node in nodes:
        if isinstance(node, Simple):
            yield from (assign.name for assign in node.assigns)
        elif isinstance(node, If):
            for condition, body in node.branches:
                yield from (*assigned(condition), *assigned(body))
            yield from assigned(node.otherwise)
        elif isinstance(node, Loop):
            yield from ((node.name,) if node.name else ())
            yield from assigned(node.body)
        elif isinstance(node, Case):
            for _patterns, body in node.arms:
                yield from assigned(body)
        elif isinstance(node, Group):
            yield from assigned(node.body)
        elif isinstance(node, (Chain, Pipeline)):
            yield from assigned(node.nodes)
