"""A Ray cluster as a list of nodes that can be asked: one task per node, bound to it, that takes no CPU from anybody."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from fleet.bundle import make_bundle
from locales import _

LIMIT = 600.0
"""Seconds for one call on a node."""
Progress = Callable[[int, int], None]


class NoRayError(UsageError):
    """Ray is not installed here."""


class NoClusterError(RefusedError):
    """The cluster cannot be reached, or does not take us."""


@dataclass(frozen=True)
class Node:
    """``name``: what people call it; unique in the cluster."""

    id: str
    name: str


@dataclass(frozen=True)
class Call:
    """What one command line ended with: ``code`` is None when there was no answer in time."""

    code: int | None
    out: str
    err: str


@dataclass(frozen=True)
class Answer:
    """A node's answer; ``lost`` says why there is none."""

    node: Node
    host: str = ""
    python: str = ""
    version: str = ""
    machine: str = ""
    calls: tuple[Call, ...] = ()
    lost: str = ""


@dataclass
class Cluster:
    """``ray`` is the module, connected."""

    ray: Any
    nodes: tuple[Node, ...]
    recipes: tuple[Path, ...] = ()
    _bundle: Any = field(default=None, repr=False)

    def ask(
        self,
        nodes: Iterable[Node],
        calls: Sequence[Sequence[str]],
        environment: dict[str, str] | None = None,
        progress: Progress = lambda done, total: None,
    ) -> list[Answer]:
        """The same calls on each of the nodes, at the same time; the answers are in the order of the nodes."""
        chosen = list(nodes)
        waiting = {self._start(node, calls, environment or {}): node for node in chosen}
        found: dict[str, Answer] = {}
        until = time.monotonic() + LIMIT * len(calls) + 60
        while waiting and time.monotonic() < until:
            ready, _rest = self.ray.wait(list(waiting), timeout=1.0)
            for ref in ready:
                node = waiting.pop(ref)
                found[node.id] = self._answer(node, ref)
            progress(len(found), len(chosen))
        for ref, node in waiting.items():
            with contextlib.suppress(Exception):
                self.ray.cancel(ref, force=True)
            found[node.id] = Answer(node, lost=_("no answer in time"))
        return [found[node.id] for node in chosen]

    def _start(self, node: Node, calls: Sequence[Sequence[str]], environment: dict[str, str]) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        import fleet.node as there

        if self._bundle is None:
            self.ray.cloudpickle.register_pickle_by_value(there)
            self._bundle = self.ray.put(make_bundle(self.recipes))
        bound = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
        task = self.ray.remote(num_cpus=0, max_retries=0)(there.on_node).options(scheduling_strategy=bound)
        return task.remote(self._bundle, [list(call) for call in calls], environment, LIMIT)

    def _answer(self, node: Node, ref: Any) -> Answer:
        try:
            told = self.ray.get(ref)
        except Exception as error:  # noqa: BLE001 - whatever it is, this node gave no answer
            return Answer(node, lost=_first_line(error))
        calls = tuple(Call(one["code"], one["out"], one["err"]) for one in told["answers"])
        return Answer(node, told["host"], told["python"], told["version"], told["machine"], calls)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


@contextmanager
def connected(address: str, recipes: Sequence[Path] = ()) -> Iterator[Cluster]:
    """The cluster at ``address`` (``auto``, or host:port), left again at the end; ``recipes``: files that go along. Raises
    NoRayError, NoClusterError."""
    try:
        import ray
    except ImportError as error:
        raise NoRayError(
            _("Ray is not installed in this environment, and a fleet is reached through it"),
            todo=_("`pip install 'probepatch[ray]'`, of the cluster's own Ray version; one machine needs no `fleet`"),
        ) from error
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, namespace="probepatch")
    except Exception as error:
        raise NoClusterError(
            _("the Ray cluster at {address} cannot be reached").format(address=address),
            why=_first_line(error),
            todo=_(
                "the driver needs the cluster's Ray and Python versions; `ray status` on its head shows whether it runs"
            ),
        ) from error
    try:
        yield Cluster(ray, _nodes(ray), tuple(recipes))
    finally:
        ray.shutdown()


def _nodes(ray: Any) -> tuple[Node, ...]:
    alive = [one for one in ray.nodes() if one["Alive"]]
    names = [str(one.get("NodeName") or one["NodeManagerHostname"]) for one in alive]
    out = []
    for one, name in zip(alive, names, strict=True):
        unique = name if names.count(name) == 1 else f"{name}#{one['NodeID'][:8]}"
        out.append(Node(one["NodeID"], unique))
    return tuple(sorted(out, key=lambda node: node.name))
