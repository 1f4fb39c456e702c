"""What `inputs check` and `inputs fix` share: the scripts, what is known besides them, the environment they are started with."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from codemods.errors import UsageError
from commands.arguments import file_path, text
from commands.names import unknown
from locales import _

if TYPE_CHECKING:
    from stages.card.card import Card
    from stages.inputs.run import Known, Script

Function = TypeVar("Function", bound=Callable[..., Any])
FACTS = (
    "train.framework", "train.version", "train.backend", "infer.version", "infer.framework", "baseline_command",
    *(f"{side}.{name}" for side in ("train", "infer") for name in ("checkout", "python", "prefix", "workdir")),
)  # fmt: skip
"""The card's facts that a verdict may rest on."""


def script_options(function: Function) -> Function:
    """``SCRIPT…``, ``--side``, ``--env``."""
    for decorate in (
        click.option(
            "--env",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            type=text,
            help=_("a variable that the script is started with; may be repeated"),
        ),
        click.option("--side", type=click.Choice(["train", "infer"]), help=_("only the rules of this side")),
        click.argument("scripts", nargs=-1, required=True, type=file_path, metavar="SCRIPT…"),
    ):
        function = decorate(function)
    return function


def known_of(card: Card | None, settings: Sequence[str]) -> Known:
    """Raises UsageError."""
    from stages.inputs.run import Known

    env: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise UsageError(_("`{setting}` is not NAME=VALUE").format(setting=setting))
        env[name] = value
    if card is None:
        return Known(env=env)
    from stages.inputs.copies import copies_of

    framework, version, backend, engine_version = (card.fact(name) for name in FACTS[:4])
    return Known(framework, version, backend, copies_of(card), env, engine_version)


def read_scripts(paths: Sequence[Path], known: Known) -> list[Script]:
    """Each file once. Raises UsageError, RefusedError, FindingError."""
    from stages.inputs.run import read

    for path in paths:
        if not os.path.exists(path):
            raise UsageError(_("{path} does not exist").format(path=path))
        if os.path.isdir(path):
            raise UsageError(_("{path} is a folder, not a script").format(path=path))
    return [read(path, known) for path in dict.fromkeys(paths)]


def to_type(command: str, paths: Sequence[Path], settings: Sequence[str]) -> str:
    """`inputs COMMAND` on the same scripts, started with the same variables."""
    given = [word for setting in settings for word in ("--env", setting)]
    return shlex.join(["probepatch", "inputs", command, *map(str, paths), *given])


def expect_rules(names: Sequence[str]) -> None:
    """Raises UsageError for an id that no rule has."""
    from stages.inputs.report import BASELINE, LAUNCH, LINE_ENDS
    from stages.inputs.rules.all import RULES

    known = [rule.id for rule in (LINE_ENDS, LAUNCH, *RULES, BASELINE)]
    for name in names:
        if name not in known:
            raise unknown(_("there is no rule `{name}`").format(name=name), name, known)
