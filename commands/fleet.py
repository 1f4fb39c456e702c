"""``probepatch fleet …``: the patch set on every node of a Ray cluster. One machine needs none of this."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from codemods.errors import UsageError
from commands.arguments import recipe_file_option, text
from commands.fleet_tree import command as tree_command
from commands.names import Group, unknown
from commands.output import json_option
from locales import _

if TYPE_CHECKING:
    from fleet.cluster import Cluster, Progress
    from fleet.survey import Where

Function = TypeVar("Function", bound=Callable[..., Any])
Show = Callable[[], int]
Work = Callable[["Cluster", "Where", "Progress"], Show]


@dataclass(frozen=True)
class Given:
    """What was typed. ``wish`` are the words for `diff` and `apply`; ``words`` those that a job inside the cluster gets."""

    address: str
    nodes: tuple[str, ...]
    path: str | None
    package: str | None
    files: tuple[Path, ...]
    wish: tuple[str, ...]
    words: tuple[str, ...]
    as_json: bool


@click.group(cls=Group, help=_("Patch every node of a Ray cluster, all of them or none (docs/fleet.md)."))
def command() -> None:
    """The group."""


command.add_command(tree_command, "tree")


def _cluster_options(function: Function) -> Function:
    for decorate in (
        click.option(
            "--node", "nodes", metavar="NAME", type=text, multiple=True, help=_("only this node; may be repeated")
        ),
        click.option("--package", metavar="NAME", type=text, help=_("the copy that each node's workers would import")),
        click.option("--path", metavar="DIR", type=text, help=_("the checkout, at the same path on every node")),
        click.option(
            "--address",
            metavar="ADDR",
            type=text,
            default="auto",
            show_default=True,
            help=_("the cluster: auto, HOST:PORT, or http://HOST:8265 (as a Ray job)"),
        ),
    ):
        function = decorate(function)
    return json_option(function)


def _recipe_options(function: Function) -> Function:
    for decorate in (
        click.option(
            "--set", "settings", multiple=True, metavar="NAME=VALUE", type=text, help=_("a parameter's value")
        ),
        click.option("--side", type=click.Choice(["train", "infer"]), help=_("only recipes of this side")),
        recipe_file_option,
        click.option(
            "--recipe", "ids", multiple=True, metavar="ID", type=text, help=_("a shipped recipe; may be repeated")
        ),
    ):
        function = decorate(function)
    return function


_force_option = click.option(
    "--force", is_flag=True, help=_("where others changed our lines: keep a copy, put the original back")
)


@command.command(help=_("Tell framework, version and interpreter of every node's tree."))
@_cluster_options
@recipe_file_option
def identify(**options: Any) -> int:
    """Exit code 1 when a node has no such tree."""
    given = _given("identify", **options)

    def work(cluster: Cluster, where: Where, progress: Progress) -> Show:
        from commands.fleet_text import show_identity
        from fleet.survey import look

        calls = [["identify", *where.words, *given.wish, "--json"]]
        return partial(show_identity, look(cluster, where, calls, progress), given.as_json)

    return _run(given, work)


@command.command(help=_("Plan on every node and compare; writes nothing."))
@_cluster_options
@_recipe_options
def diff(**options: Any) -> int:
    """Exit code 1 when a node cannot take part, or the trees differ."""
    given = _given("diff", **options)

    def work(cluster: Cluster, where: Where, progress: Progress) -> Show:
        from commands.fleet_text import show_plan
        from fleet.apply import plan

        return partial(show_plan, plan(cluster, where, given.wish, progress), given.as_json)

    return _run(given, work)


@command.command(help=_("Patch every tree, or none: what one node refuses is taken back on all."))
@_cluster_options
@_recipe_options
def apply(**options: Any) -> int:
    """Exit code 1 when it was not done everywhere."""
    given = _given("apply", **options)

    def work(cluster: Cluster, where: Where, progress: Progress) -> Show:
        from commands.fleet_text import show_applied
        from fleet.apply import apply as write

        return partial(show_applied, write(cluster, where, given.wish, progress), given.as_json)

    return _run(given, work)


@command.command(help=_("Tell what stands on every tree, and whether all are alike."))
@_cluster_options
def status(**options: Any) -> int:
    """Exit code 1 when the trees are not alike, or one is not as it was left."""
    given = _given("status", **options)

    def work(cluster: Cluster, where: Where, progress: Progress) -> Show:
        from commands.fleet_text import show_standing
        from fleet.standing import standing

        return partial(show_standing, standing(cluster, where, progress), given.as_json)

    return _run(given, work)


@command.command(help=_("Take every edit out of every tree, and prove it."))
@_force_option
@_cluster_options
def revert(force: bool, **options: Any) -> int:
    """Exit code 1 when a tree could not be reached, or something of ours is left."""
    return _take_out("revert", force, options)


@command.command(help=_("As revert, then search every tree for anything of ours: the end of a capture."))
@_force_option
@_cluster_options
def restore(force: bool, **options: Any) -> int:
    """Exit code 1 when it cannot be called finished."""
    return _take_out("restore", force, options)


def _take_out(name: str, force: bool, options: dict[str, Any]) -> int:
    given = _given(name, more=("--force",) if force else (), **options)

    def work(cluster: Cluster, where: Where, progress: Progress) -> Show:
        from commands.fleet_text import show_reverted
        from fleet.revert import revert as take_out

        return partial(show_reverted, take_out(cluster, where, given.wish, name == "restore", progress), given.as_json)

    return _run(given, work)


def _given(
    name: str,
    *,
    address: str,
    as_json: bool,
    nodes: tuple[str, ...],
    path: str | None,
    package: str | None,
    files: tuple[Path, ...] = (),
    ids: tuple[str, ...] = (),
    side: str | None = None,
    settings: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
) -> Given:
    """Raises UsageError."""
    if (path is None) == (package is None):
        raise UsageError(_("name the framework on the nodes: --path DIR, or --package NAME"))
    if path is not None and not path.startswith("/"):
        raise UsageError(
            _("--path {path} is relative; a node has another current folder").format(path=path),
            todo=_("an absolute path, as the nodes see it"),
        )
    from fleet.bundle import own_path

    recipes = [word for one in ids for word in ("--recipe", one)]
    own = [word for n, one in enumerate(files) for word in ("--recipe-file", "{bundle}/" + own_path(n, one))]
    inside = [word for n, one in enumerate(files) for word in ("--recipe-file", own_path(n, one))]
    rest = [*(("--side", side) if side else ()), *(word for one in settings for word in ("--set", one)), *more]
    place = ("--path", path) if path is not None else ("--package", str(package))
    words = ["fleet", name, *place, *(word for one in nodes for word in ("--node", one)), *recipes, *inside, *rest]
    wish = (*recipes, *own, *rest)
    return Given(address, nodes, path, package, files, wish, (*words, *(("--json",) if as_json else ())), as_json)


def _run(given: Given, work: Work) -> int:
    """Here as the driver, or as a job inside the cluster."""
    from fleet.cluster import connected
    from fleet.job import over_http, run_as_job
    from fleet.survey import Where

    if over_http(given.address):
        code, answer, errors = run_as_job(given.address, given.words, given.files)
        click.echo(errors, nl=False, err=True)
        click.echo(answer, nl=False)
        return code
    with connected(given.address, given.files) as cluster, _progress(given.as_json) as progress:
        show = work(_chosen(cluster, given.nodes), Where(given.path, given.package), progress)
    return show()


def _chosen(cluster: Cluster, names: tuple[str, ...]) -> Cluster:
    """The cluster, cut to the nodes that were named. Raises UsageError."""
    known = [node.name for node in cluster.nodes]
    for name in names:
        if name not in known:
            raise unknown(_("there is no node `{name}` in the cluster").format(name=name), name, known)
    return replace(cluster, nodes=tuple(n for n in cluster.nodes if n.name in names)) if names else cluster


@contextmanager
def _progress(as_json: bool) -> Iterator[Progress]:
    """How many nodes have answered, on a terminal only."""
    if as_json or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console

    with Console(stderr=True).status(_("nodes")) as shown:
        yield lambda done, total: shown.update(_("{n} of {m} nodes have answered").format(n=done, m=total))
