"""The root command. A command's own module, and with it the heavy libraries, is imported only when it is called."""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
from collections.abc import Sequence

import click

from codemods.errors import ProbePatchError, UsageError
from commands import __version__
from locales import _

COMMANDS = {
    "recipes": _("list the recipes; with a checkout: those that fit it, and why the others do not"),
    "identify": _("tell framework, version, commit and fitting recipes of a checkout"),
    "diff": _("show what apply would write; writes nothing"),
    "apply": _("patch a checkout and record every edit in its ledger"),
    "status": _("tell for each edit whether it still stands as it was made"),
    "revert": _("take edits out again, byte for byte"),
    "ledger": _("show, verify, recover or forget the record of the edits"),
    "recipe": _("check a recipe file; print the schema of the language"),
    "demo": _("see the whole round on a small bundled checkout"),
}

EXIT_CODES = _(
    """\b
Exit codes:
  0    done, or nothing to do (a diff with changes is 0)
  1    the plan or the tree has a finding: no match, drift, mismatch
  2    the command was called wrongly
  3    refused by the environment (lock, mode, changed file); nothing written
  4    a recipe or a ledger is not valid
  70   a fault in probepatch itself
  130  interrupted
  141  nobody reads the output"""
)
INTERNAL, INTERRUPTED, NO_READER = 70, 130, 141


class Commands(click.Group):
    """The commands by name; ``--help`` lists them without importing one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"commands.{cmd_name}")
        command: click.Command = module.command
        command.help = COMMANDS[cmd_name]  # the docstring is for those who read the code
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_("Commands")):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    help=_(
        "Patch the source of RL and serving frameworks for precision capture, and take every edit out again exactly."
    ),
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="probepatch")
def root() -> None:
    """The root command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code, and prints every error as one for people or, after ``--json``, for
    programs."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file name need not fit the terminal's encoding
    try:
        code = _run(args)
        print(end="", flush=True)  # a reader that went away is met here, not at exit
        return code
    except ProbePatchError as error:
        return _report(error, args)
    except click.ClickException as error:
        return _report(_usage_error(error), args)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's last flush complains
        return NO_READER
    except Exception as error:  # noqa: BLE001 - the last line of defence: a clear sentence instead of a traceback
        return _report_fault(error, args)


def _run(args: list[str]) -> int:
    try:
        with root.make_context("probepatch", args) as context:
            result = root.invoke(context)
    except click.exceptions.Exit as done:  # --help, --version
        return done.exit_code
    return result if isinstance(result, int) else 0


def _usage_error(error: click.ClickException) -> UsageError:
    context = getattr(error, "ctx", None)
    todo = _("see `{command} --help`").format(command=context.command_path) if context else None
    return UsageError(error.format_message(), todo=todo)


def _report(error: ProbePatchError, args: Sequence[str]) -> int:
    from commands.output import print_error

    if "--json" in args:
        print(json.dumps({"error": error.as_json()}, indent=2))
    else:
        print_error(error)
    return error.exit_code


def _report_fault(error: Exception, args: Sequence[str]) -> int:
    if os.environ.get("PROBEPATCH_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    summary = ProbePatchError(
        _("probepatch itself failed: {kind}: {error}").format(kind=type(error).__name__, error=error),
        why=_("this is a fault in probepatch, not in your checkout"),
        todo=_(
            "report it with what PROBEPATCH_TRACEBACK=1 prints; `probepatch status` tells the state of the checkout"
        ),
    )
    _report(summary, args)
    return INTERNAL
