"""The root command. A command's own module, and with it the heavy libraries, is imported only when it is called."""

from __future__ import annotations

import importlib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from types import FrameType
from typing import Any

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
    "recipe": _("write recipes: start, port, diagnose, record, test, explain, check"),
    "task": _("keep the task card: facts, permissions, evidence of each stage, what comes next"),
    "preflight": _("look whether both sides are fit: cards, leftovers, ports, disk, weights, packages; stop by PID"),
    "scene": _("tell what runs on each side, by which path, and where the capture goes"),
    "inputs": _("align the two sides' inputs: judge a launch script rule by rule, and edit it so that it passes"),
    "params": _("align the two models before the capture: config, modules, structure, weights"),
    "capture": _("put the capture into both sides, with msprobe's configs and launch commands, and run it"),
    "dumps": _("verify a capture: are the two sides' dumps comparable, and if not, why"),
    "handoff": _("pack what the analysis side needs: paths, steps, association, configs; no tensor, no prompt"),
    "stub": _("capture again with inputs overridden: make the sources, the load config, and prove the override"),
    "restore": _("take every edit of the task out again, prove it, and close the task"),
    "fleet": _("the same on every node of a Ray cluster: all of them or none"),
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
_LONGEST = 300  # characters of a foreign error's text


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from commands.names import check_command

        check_command(self, ctx, args)
        return super().resolve_command(ctx, args)

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
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        return INTERRUPTED


def _main(args: list[str]) -> int:
    if sys.stdout is None:  # closed by the caller; the next file that is opened would take its number
        _to_stderr(_("error: standard output is closed; nothing was done"))
        return NO_READER
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")  # a file name need not fit the terminal's encoding
    output = _Output.standard()
    with redirect_stdout(_text_on(output) if output is not None else sys.stdout), _stderr_may_fail():
        try:
            with interrupts() as interrupted:
                code = _answer(args, interrupted, output)
            sys.stdout.flush()  # a reader that went away is met here, not at exit
            return code
        except OSError as error:
            return _nobody_reads(error)


class _Output(io.FileIO):
    """Standard output that knows whether an OSError was its own."""

    failed = False

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            self.failed = True
            raise

    @classmethod
    def standard(cls) -> _Output | None:
        """None where standard output is no file (in a test, say)."""
        try:
            return cls(sys.stdout.fileno(), "w", closefd=False)
        except (OSError, ValueError):
            return None


def _text_on(output: _Output) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=sys.stdout.encoding,
        errors="backslashreplace",
        line_buffering=output.isatty(),
    )


def _answer(args: list[str], interrupted: Callable[[], bool], output: _Output | None) -> int:
    """The exit code of a command whose errors were reported. Raises OSError when the output cannot be written."""
    try:
        return _run(args)
    except ProbePatchError as error:
        code = _report(error, args)
        return INTERRUPTED if interrupted() else code
    except click.ClickException as error:
        return _report(_usage_error(error), args)
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # the last line of defence: a clear sentence instead of a traceback
        if output is not None and output.failed:
            raise
        return INTERRUPTED if interrupted() else _report_fault(error, args)


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Tells whether the user interrupted: a library may turn the KeyboardInterrupt into an error of its own."""
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.default_int_handler(number, frame)

    before = signal.getsignal(signal.SIGINT)
    watching = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if watching:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        if watching:
            signal.signal(signal.SIGINT, before)


def _nobody_reads(error: OSError) -> int:
    """A reader that went away is no error; a full disk is one of the output, and what was done stays done."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's last flush complains
    if not isinstance(error, BrokenPipeError):
        text = _("error: the output cannot be written: {reason}; `probepatch status` tells the state of the checkout")
        _to_stderr(text.format(reason=error.strerror))
    return NO_READER


def _to_stderr(text: str) -> None:
    with suppress(OSError):
        click.echo(text, err=True)


@contextmanager
def _stderr_may_fail() -> Iterator[None]:
    """What cannot be said on standard error is told by the exit code, which the interpreter's last flush would change."""
    yield
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _run(args: list[str]) -> int:
    try:
        with root.make_context("probepatch", args) as context:
            result = root.invoke(context)
    except click.exceptions.Exit as done:  # --help, --version
        return done.exit_code
    except click.UsageError as error:
        if error.ctx is None or error.format_message() != error.ctx.get_help():
            raise
        click.echo(error.format_message(), err=True)  # a group without a command shows its help
        return error.exit_code
    return result if isinstance(result, int) else 0


def _usage_error(error: click.ClickException) -> UsageError:
    context = getattr(error, "ctx", None)
    todo = _("see `{command} --help`").format(command=context.command_path) if context else None
    return UsageError(error.format_message(), todo=todo)


def _report(error: ProbePatchError, args: Sequence[str]) -> int:
    from commands.output import print_error

    if "--json" in args:
        print(json.dumps({"error": error.as_json()}, indent=2), flush=True)
    else:
        print_error(error)
    return error.exit_code


def _report_fault(error: Exception, args: Sequence[str]) -> int:
    if os.environ.get("PROBEPATCH_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    said = " ".join(str(error).split())[:_LONGEST]
    summary = ProbePatchError(
        _("probepatch itself failed: {kind}: {error}").format(kind=type(error).__name__, error=said),
        why=_("this is a fault in probepatch, not in your checkout"),
        todo=_(
            "report it with what PROBEPATCH_TRACEBACK=1 prints; `probepatch status` tells the state of the checkout"
        ),
    )
    _report(summary, args)
    return INTERNAL
