"""A Ray cluster as a list of nodes that can be asked: one task per node, bound to it, that takes no CPU from anybody."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from fleet.bundle import make_bundle
from fleet.runs import NODE, noted_as
from locales import _

LIMIT = 600.0
"""Seconds for one call on a node."""
_NOTE = "PROBEPATCH_FLEET"
_NAMESPACE = "probepatch"
Progress = Callable[[int, int], None]


class NoRayError(UsageError):
    """Ray is not installed here."""


class NoClusterError(RefusedError):
    """The cluster cannot be reached, or does not take us."""


class BusyError(RefusedError):
    """Another run writes in the cluster; nothing was written by this one."""


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
    python: str = ""
    calls: tuple[Call, ...] = ()
    lost: str = ""


@dataclass
class Cluster:
    """``ray`` is the module, connected; ``nodes`` those that are asked, of ``all_nodes``."""

    ray: Any
    nodes: tuple[Node, ...]
    all_nodes: tuple[Node, ...]
    recipes: tuple[Path, ...] = ()
    _bundle: Any = field(default=None, repr=False)

    def ask(
        self,
        nodes: Iterable[Node],
        calls: Sequence[Sequence[str]],
        progress: Progress = lambda done, total: None,
        note: str = "",
    ) -> list[Answer]:
        """The same calls on each of the nodes, at the same time; the answers are in the order of the nodes. ``note``: what `apply`
        records, with the node's name in place of ``{node}``."""
        chosen = list(nodes)
        waiting = {self._start(node, calls, note): node for node in chosen}
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

    def _start(self, node: Node, calls: Sequence[Sequence[str]], note: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        import fleet.node as there

        if self._bundle is None:
            self.ray.cloudpickle.register_pickle_by_value(there)
            self._bundle = self.ray.put(make_bundle(self.recipes))
        environment = {_NOTE: note.replace(NODE, noted_as(node.name))} if note else {}
        bound = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
        task = self.ray.remote(num_cpus=0, max_retries=0)(there.on_node).options(scheduling_strategy=bound)
        return task.remote(self._bundle, [list(call) for call in calls], environment, LIMIT)

    def _answer(self, node: Node, ref: Any) -> Answer:
        try:
            told = self.ray.get(ref)
        except Exception as error:  # noqa: BLE001 - whatever it is, this node gave no answer
            return Answer(node, lost=_lost(error))
        calls = tuple(Call(one["code"], one["out"], one["err"]) for one in told["answers"])
        if not calls:
            text = _("its Python ({theirs}) cannot load what was sent, made for {ours}")
            return Answer(node, lost=text.format(theirs=told["abi"], ours=told["made_for"]))
        return Answer(node, told["python"], calls)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only run that writes in this cluster. It ends with this process, whatever becomes of that. Raises BusyError."""
        import fleet.node as there

        self.ray.cloudpickle.register_pickle_by_value(there)
        try:
            held = self.ray.remote(num_cpus=0)(there.Alone).options(name="fleet", namespace=_NAMESPACE).remote()
        except ValueError as error:
            raise BusyError(
                _("another fleet run is at work in this cluster"), todo=_("wait for it to end, then run this again")
            ) from error
        try:
            yield
        finally:
            self.ray.kill(held)


def _lost(error: BaseException) -> str:
    if type(error).__name__ == "TaskUnschedulableError":  # of a task that is bound to its node
        return _("it is not in the cluster any more")
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


@contextmanager
def connected(address: str, recipes: Sequence[Path] = ()) -> Iterator[Cluster]:
    """The cluster at ``address`` (``auto``, or host:port), left again at the end; ``recipes``: files that go along. Nothing can be
    printed meanwhile: Ray tells of dead nodes there. Raises NoRayError, UsageError, NoClusterError."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")  # each is half a minute
    try:
        import ray
    except ImportError as error:
        raise no_ray() from error
    _expect_open(address)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, namespace=_NAMESPACE)
        except Exception as error:
            raise _unreachable(address, _first_line(error)) from error
        try:
            nodes = _nodes(ray)
            yield Cluster(ray, nodes, nodes, tuple(recipes))
        finally:
            ray.shutdown()


def no_ray() -> NoRayError:
    return NoRayError(
        _("Ray is not installed in this environment, and a fleet is reached through it"),
        todo=_(
            "`pip install 'probepatch[ray]' 'ray[default]==VERSION'`, the cluster's own; one machine needs no `fleet`"
        ),
    )


def _unreachable(address: str, why: str) -> NoClusterError:
    todo = _("the driver needs the cluster's Ray and Python versions; `ray status` on its head shows whether it runs")
    return NoClusterError(
        _("the Ray cluster at {address} cannot be reached").format(address=address), why=why, todo=todo
    )


def _expect_open(address: str) -> None:
    """Ray itself waits for minutes. Raises UsageError, NoClusterError."""
    if address == "auto":
        return
    host, _colon, port = address.rpartition(":")
    if not re.fullmatch(r"[\w.-]+|\[[0-9a-fA-F:.]+\]", host) or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            _("{address} is no address of a cluster").format(address=address),
            todo=_("auto, HOST:PORT (as `ray status` takes it), or http://HOST:8265 of the dashboard"),
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise _unreachable(address, _first_line(error)) from error


def _nodes(ray: Any) -> tuple[Node, ...]:
    alive = [one for one in ray.nodes() if one["Alive"]]
    names = [str(one.get("NodeName") or one["NodeManagerHostname"]) for one in alive]
    out = []
    for one, name in zip(alive, names, strict=True):
        unique = name if names.count(name) == 1 else f"{name}#{one['NodeID'][:8]}"
        out.append(Node(one["NodeID"], unique))
    return tuple(sorted(out, key=lambda node: _in_order(node.name)))


def _in_order(name: str) -> list[tuple[int, str]]:
    """node9 comes before node10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
