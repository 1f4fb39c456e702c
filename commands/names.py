"""Names that nobody knows, with the one that was probably meant."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

import click

from codemods.errors import UsageError
from locales import _


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like ``name``; None when none does."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), 1)), None)


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """An error that says ``what``, and the nearest name or all of them."""
    names = sorted(set(known))
    near = nearest(name, names)
    if near is not None:
        return UsageError(what, todo=_("did you mean `{near}`?").format(near=near))
    return UsageError(what, todo=_("known here: {names}").format(names=", ".join(names) or "-"))


def check_command(group: click.Group, context: click.Context, args: list[str]) -> None:
    """Raises UsageError when ``args`` begin with a word that is no command of the group."""
    known = group.list_commands(context)
    if args and not args[0].startswith("-") and args[0] not in known:
        raise unknown(_("there is no command `{name}`").format(name=args[0]), args[0], known)


class Group(click.Group):
    """A group of commands that knows what was probably meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_command(self, ctx, args)
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group whose commands are modules of their own, ``commands/<group>_<command>.py``; ``--help`` imports none of them."""

    def __init__(self, *args: Any, summaries: Mapping[str, str], modules: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.summaries = summaries
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            return None
        command: click.Command = importlib.import_module(f"commands.{self.modules}_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_("Commands")):
            formatter.write_dl(list(self.summaries.items()))
