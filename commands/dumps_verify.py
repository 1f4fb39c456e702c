"""``probepatch dumps verify``: the result of stage 7."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import RefusedError, UsageError
from commands.arguments import file_path, text
from commands.output import json_option, print_json, say
from commands.task_card import card_path_if_any, naming, task_option
from locales import _

if TYPE_CHECKING:
    from stages.card.card import Card
    from stages.dumps.given import Given
    from stages.dumps.verify import Progress


@click.command(
    help=_(
        "Read the dumps and logs of both sides: which step is what, which request is which, and whether they are comparable: the"
        " same tokens, both inputs as long as the real prompt, every rank, every layer. The prefill log-prob difference and the"
        " response metrics are told, and not judged. Writes dump_verification.json and a page beside it."
    )
)
@click.option(
    "--round", "round_", type=click.IntRange(0), default=0, metavar="N", help=_("of a stubbed re-capture (else 0)")
)
@click.option("--train", type=file_path, metavar="DIR", help=_("dump_path of the training side, instead of the card's"))
@click.option("--infer", type=file_path, metavar="DIR", help=_("dump_path of the inference side, likewise"))
@click.option("--train-log", type=file_path, metavar="FILE", help=_("what the training side printed"))
@click.option("--infer-log", type=file_path, metavar="FILE", help=_("what the inference side printed"))
@click.option("--train-python", type=text, metavar="PYTHON", help=_("interpreter of the training side, without a card"))
@click.option(
    "--infer-python", type=text, metavar="PYTHON", help=_("interpreter of the inference side, without a card")
)
@click.option("--request", type=text, metavar="ID", help=_("the request to lay side by side (else one is chosen)"))
@click.option("--out", type=file_path, metavar="DIR", help=_("where the report goes, without a card (else here)"))
@task_option
@json_option
def command(
    round_: int,
    train: Path | None,
    infer: Path | None,
    train_log: Path | None,
    infer_log: Path | None,
    train_python: str | None,
    infer_python: str | None,
    request: str | None,
    out: Path | None,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when they are not comparable, or that is not known, or nothing could be compared."""
    from stages.dumps.checks import judge
    from stages.dumps.report import document
    from stages.dumps.verify import verify

    if (train is None) != (infer is None):
        raise UsageError(_("--train and --infer go together"), todo=_("name the dump_path of both sides"))
    dumps, logs = {"train": train, "infer": infer}, {"train": train_log, "infer": infer_log}
    card_file = card_path_if_any(task)
    card, given = _given(card_file, round_, dumps, logs, {"train": train_python, "infer": infer_python}, out)
    _expect_places(card, given)
    with _progress(as_json) as progress:
        found = verify(given.sources, request=request, layers=given.layers, progress=progress)
    result = document(found, judge(found), root=given.root, round_=given.round)
    logged = sorted({line.path for side in found.records.values() for line in side.lines})
    written, following = _keep(card_file, card, given, result, logged)
    following = naming(following, task) if following is not None else None
    if as_json:
        recorded = str(card_file) if card_file is not None else None
        print_json({**result, "written": [str(path) for path in written], "recorded": recorded, "next": following})
        return 0 if result["comparable"] else 1
    from commands.dumps_text import print_report

    print_report(result, written[1])
    if card_file is None:
        say(_("no task card: nothing was recorded"), "dim")
    else:
        if result["comparable"] and card is not None and card.fact("usage") == "dump":
            say(_("the package for an analysis, where one follows: `{command}`").format(command=_handoff(round_, task)))
        say(_("next: `{command}`").format(command=following))
    return 0 if result["comparable"] else 1


def _handoff(round_: int, task: Path | None) -> str:
    return naming("probepatch handoff" + (f" --round {round_}" if round_ else ""), task)


def _given(
    card_file: Path | None,
    round_: int,
    dumps: dict[str, Path | None],
    logs: dict[str, Path | None],
    pythons: dict[str, str | None],
    out: Path | None,
) -> tuple[Card | None, Given]:
    from stages.card.order import VERIFY, require
    from stages.card.store import read_card
    from stages.dumps.given import from_card, from_folders

    if card_file is None:
        named = {side: path for side, path in dumps.items() if path is not None}
        if not named:
            raise UsageError(
                _("there is no task card here, and no dump was named"),
                todo=_("--train DIR and --infer DIR, or --task the card"),
            )
        return None, from_folders(named, logs, pythons, out or Path(), round_)
    if out is not None or any(pythons.values()):
        raise UsageError(
            _("--out, --train-python and --infer-python are for use without a task card"),
            todo=_("`probepatch task set artifacts=… train.python=… infer.python=…`"),
        )
    card = read_card(card_file)
    require(card, VERIFY)
    given = from_card(card, round_, dumps, logs)
    _expect_run(card, given)
    return card, given


def _expect_run(card: Card, given: Given) -> None:
    """Without a run on record, a log and a dump there is nothing to look for causes in. Raises RefusedError."""
    from stages.instrument.record import runs_of

    if runs_of(card) or any(one.known.log is not None or _holds_any(one.dump_path) for one in given.sources.values()):
        return
    raise RefusedError(
        _("there is nothing to verify yet: no run is on record, and neither side has a dump"),
        where=", ".join(str(one.dump_path) for one in given.sources.values()),
        todo=_("`probepatch capture run`; of a job that was started by hand name the logs: --train-log, --infer-log"),
    )


def _holds_any(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True  # the verification tells what is wrong with it


def _expect_places(card: Card | None, given: Given) -> None:
    """Before anything is read: where the report goes, and what lies there. Raises UsageError, RefusedError."""
    from stages.dumps.page import MARK
    from stages.dumps.report import FORMAT, report_paths
    from stages.dumps.writing import expect_free, expect_own_place

    if card is None:
        expect_own_place(given.root)
    for path, mark in zip(report_paths(given.root, given.round), (FORMAT, MARK), strict=True):
        expect_free(path, mark)


def _write(given: Given, result: dict[str, Any]) -> tuple[Path, Path]:
    """The report and its page. Raises RefusedError."""
    from stages.dumps.page import make_page
    from stages.dumps.report import report_paths
    from stages.dumps.writing import make_folder, write_json, write_text

    paths, page = report_paths(given.root, given.round), make_page(result)
    make_folder(given.root)
    write_json(paths[0], result)
    write_text(paths[1], page)
    return paths


def _keep(
    card_file: Path | None, since: Card | None, given: Given, result: dict[str, Any], logged: list[Path]
) -> tuple[tuple[Path, Path], str | None]:
    """Write the report and leave the evidence of stage 7, which rests on the logs that name the steps: under one lock, so that two
    verifications at once never mix. What was written, and the command that comes next."""
    from stages.card.evidence import record
    from stages.card.order import VERIFY
    from stages.card.store import changing

    if card_file is None:
        return _write(given, result), None
    comparable = result["comparable"]
    with changing(card_file, since) as card:
        written = _write(given, result)
        record(
            card,
            VERIFY,
            bool(comparable),
            result["statement"] if comparable else result["cause"],
            files=[written[0], *logged],
            facts=["artifacts", "model.path"],
            result={
                "round": given.round,
                "report": str(written[0]),
                "page": str(written[1]),
                "comparable": comparable,
                "step": result["chosen"],
            },
        )
        number = f" --round {given.round}" if given.round else ""
        if not comparable:
            return written, f"probepatch dumps verify{number}"
        return written, "probepatch restore" if card.fact("usage") == "dump" else f"probepatch handoff{number}"


@contextmanager
def _progress(as_json: bool) -> Iterator[Progress]:
    """A bar for each thing that is read, on a terminal only."""
    if as_json or sys.stderr is None or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    names: dict[str, Callable[[], str]] = {
        "train": lambda: _("dumps of the training side"),
        "infer": lambda: _("dumps of the inference side"),
        "shapes": lambda: _("shapes"),
    }
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(names[what](), total=total)
            bar.update(tasks[what], completed=done)

        yield step
