"""``probepatch capture run``: the baseline command with the capture switched on; it runs apart from us, its log is kept."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import RefusedError, UsageError
from commands.arguments import text
from commands.output import json_option, print_json, say, warn
from commands.task_card import card_path, naming, task_option
from locales import _

if TYPE_CHECKING:
    from stages.card.card import Card
    from stages.instrument.launching import Started
    from stages.instrument.record import Prepared
    from stages.preflight.finding import Finding
    from stages.sides import Side

_CONFIGS = {"MSPROBE_ACTOR_CONFIG", "MSPROBE_INFER_CONFIG"}


@click.command(
    help=_(
        "Run the baseline command with the capture's switches, apart from this terminal, and follow it: the log is kept, the"
        " devices that the processes really got are noted, known failures are named. Interrupting it ends the whole job."
    )
)
@click.option("--side", type=click.Choice(["train", "infer", "both"]), default="both", show_default=True)
@click.option("--command", "typed", metavar="COMMAND", type=text, help=_("in place of the card's baseline command"))
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="SIDE=PATH",
    type=text,
    help=_("msprobe's config of a side for this run (a stub round's)"),
)
@click.option("--timeout", type=click.FloatRange(1), metavar="S", help=_("end the job after so many seconds"))
@click.option(
    "--keep",
    type=click.IntRange(2),
    multiple=True,
    metavar="PID",
    help=_("a process on a card that is there on purpose"),
)
@task_option
@json_option
def command(
    side: str,
    typed: str | None,
    configs: tuple[str, ...],
    timeout: float | None,
    keep: tuple[int, ...],
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when the job fails, is ended by the timeout, or leaves no dump."""
    from commands.capture_job import run
    from stages.card.order import VERIFY, require
    from stages.card.permissions import demand
    from stages.card.store import read_card
    from stages.instrument.memory import memory
    from stages.instrument.record import prepared

    path = card_path(task)
    card = read_card(path)
    require(card, VERIFY)
    demand(card, "AUTH_RUN_DUMP_JOB")
    given = _configs(configs, side)
    sides = _with_configs(prepared(card), given)
    wanted = {name: sides[name] for name in (("train", "infer") if side == "both" else (side,))}
    environment = _environment(wanted)
    cards = memory(card, keep)
    _expect_free(cards)
    reach, started = _launch(card, side, typed or card.fact("baseline_command"), environment, sides["infer"])
    _expect_empty(card, wanted)
    notes = _not_shown(started, wanted, given)
    if not as_json:
        _say_before(cards, started, side, notes)
    folder = card.fact(f"{reach.name}.workdir")
    result = run(path, reach, started.command, folder, environment, _log(card, side), wanted, timeout, not as_json)
    late = _not_used(result["without_dump"], wanted, given)
    following = naming("probepatch dumps verify", task)
    control = _native_control(card, task) if result["failed"] else []
    if as_json:
        print_json(
            {
                "card": str(path),
                "side": side,
                "command": started.command,
                "environment": environment,
                "flags": list(started.flags),
                "doubts": [vars(one) for one in started.doubts],
                "cards": [one.as_json() for one in cards],
                "notes": [*notes, *late],
                **result,
                "native_control": control,
                "next": following,
            }
        )
    else:
        for note in late:
            warn(note)
        _say_after(result, control, following)
    return 1 if result["failed"] else 0


def _configs(configs: tuple[str, ...], side: str) -> dict[str, Path]:
    """The configs given for this run, by side."""
    out = {}
    for one in configs:
        name, equals, value = one.partition("=")
        if not equals or name not in ("train", "infer"):
            raise UsageError(
                _("`{text}` is not SIDE=PATH").format(text=one), todo=_("say --config train=… or --config infer=…")
            )
        if side not in ("both", name):
            raise UsageError(
                _("--config {name}=… is of no use in a run of the {side} side").format(name=name, side=side),
                todo=_("--side {name}").format(name=name),
            )
        out[name] = Path(value)
    return out


def _with_configs(sides: dict[str, Prepared], given: Mapping[str, Path]) -> dict[str, Prepared]:
    """The sides with the configs of this run: their dump_path, and the variables that name them."""
    out = dict(sides)
    for name, value in given.items():
        try:
            dump = json.loads(value.read_text("utf-8")).get("dump_path")
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            raise UsageError(_("{path} is no msprobe config").format(path=value), why=str(error)[:200]) from error
        if not isinstance(dump, str) or not dump:
            raise UsageError(_("{path} is no msprobe config").format(path=value), why=_("it has no dump_path"))
        held, path = sides[name], str(value.absolute())
        variables = {key: path if key in _CONFIGS else old for key, old in held.environment.items()}
        out[name] = replace(held, config=path, dump_path=dump, environment=variables)
    return out


def _not_shown(started: Started, wanted: Mapping[str, Prepared], given: Mapping[str, Path]) -> list[str]:
    """Configs of this run of which it cannot be shown, from the command alone, that they are those that are read."""
    out = []
    for side in given:
        for name in (one for one in wanted[side].environment if one in _CONFIGS):
            doubt = next((one for one in started.doubts if one.name == name), None)
            if doubt is not None and not doubt.sure:
                said = _("{side}: it is not shown that {name} reaches the workers: {why}")
                out.append(said.format(side=side, name=name, why=doubt.why))
            elif doubt is None and not started.read:
                said = _("{side}: it is not shown that {name} reaches the workers: no launch was found in the command")
                out.append(said.format(side=side, name=name))
    return out


def _not_used(empty: Sequence[str], wanted: Mapping[str, Prepared], given: Mapping[str, Path]) -> list[str]:
    """After the run: configs of this run whose dump_path nobody wrote into."""
    said = _(
        "{side}: nothing was dumped into {path}: another config was read (a script that sets {name} itself wins), or nothing was"
        " captured"
    )
    return [
        said.format(side=side, path=wanted[side].dump_path, name=" / ".join(set(wanted[side].environment) & _CONFIGS))
        for side in given
        if side in empty
    ]


def _environment(wanted: Mapping[str, Prepared]) -> dict[str, str]:
    from stages.instrument.environment import union

    if len(wanted) == 1:
        return dict(next(iter(wanted.values())).environment)
    one_job = union(dict(wanted["train"].environment), dict(wanted["infer"].environment))
    if one_job is None:
        raise UsageError(
            _("the two sides share their processes, and msprobe allows one debugger in each"),
            todo=_("one run for each: `probepatch capture run --side train`, then `--side infer`"),
        )
    return one_job


def _expect_free(cards: list[Finding]) -> None:
    held = [one for one in cards if one.state == "problem"]
    if held:
        raise RefusedError(
            _("a card is not free; nothing was started"),
            why="; ".join(one.what for one in held),
            todo=next((one.todo for one in held if one.todo), None),
        )


def _launch(card: Card, side: str, typed: str, environment: Mapping[str, str], infer: Prepared) -> tuple[Side, Started]:
    """Where it runs, and the whole command."""
    from stages.card.credentials import looks_secret
    from stages.inputs.run import Known
    from stages.instrument.launching import starting, without_prefix
    from stages.instrument.native import Native
    from stages.sides import INFER, TRAIN, Side

    if looks_secret(typed):
        raise UsageError(
            _("the command holds what looks like a credential, and it would be recorded"),
            todo=_("keep it in an environment variable or a file, and name that"),
        )
    reach = Side.of(card, INFER if side == INFER else TRAIN)
    known = Known(*(card.fact(f"train.{name}") for name in ("framework", "version", "backend", "checkout")))
    native = None
    if infer.native and side != TRAIN:
        native = Native(card.fact("infer.framework"), infer.config, card.fact("infer.version"))
    inner = without_prefix(typed, reach.prefix)
    return reach, starting(inner, card.fact(f"{reach.name}.workdir"), known, environment, native)


def _expect_empty(card: Card, wanted: Mapping[str, Prepared]) -> None:
    from stages.instrument.configs import expect_empty, holds
    from stages.sides import Side

    for name, one in wanted.items():
        expect_empty(name, one.dump_path, holds(Side.of(card, name), one.dump_path, card.fact("artifacts")))


def _log(card: Card, side: str) -> str:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return str(Path(card.fact("artifacts")) / "logs" / f"{stamp}-{side}-{os.getpid()}.log")


def _say_before(cards: list[Finding], started: Started, side: str, notes: list[str]) -> None:
    for one in cards:
        (say if one.state == "ok" else warn)(f"{one.place}: {one.what}")
    for doubt in started.doubts:
        if doubt.sure:
            warn(_("{name} does not reach the workers: {why}").format(name=doubt.name, why=doubt.why))
    if started.flags:
        warn(_("the engine's own dump needs, where it is started: {flags}").format(flags=" ".join(started.flags)))
    for note in notes:
        warn(note)
    say(f"{side}: {started.command}", "head")


def _native_control(card: Card, task: Path | None) -> list[str]:
    """The baseline without a byte of ours: whether the engine starts then."""
    from stages.instrument.launching import without_prefix
    from stages.sides import TRAIN, Side

    side = Side.of(card, TRAIN)
    out = [naming(f"probepatch revert {shlex.quote(one['checkout'])}", task) for one in card.data["edits"]]
    folder, baseline = card.fact("train.workdir"), without_prefix(card.fact("baseline_command"), side.prefix)
    line = f"cd {shlex.quote(folder)} && {baseline}" if folder else baseline
    out.append(shlex.join(side.command("bash", "-c", line)) if side.prefix else line)
    return [*out, naming("probepatch capture prepare", task)]


def _say_after(result: dict[str, Any], control: list[str], following: str) -> None:
    code, why = result["exit_code"], result["ended_by"]
    counts = ", ".join(f"{name} {n}" for name, n in result["dumps"].items()) or "-"
    how = (
        _("it was ended ({why})").format(why=why)
        if why
        else _("exit code {code}").format(code="?" if code is None else code)
    )
    said = _("the job: {how}; folders with a dump: {counts}; log: {log}")
    say(said.format(how=how, counts=counts, log=result["log"]), "bad" if result["failed"] else "good")
    if result["log_lost"]:
        warn(_("{n} bytes of its output did not fit on the disk, and are not in the log").format(n=result["log_lost"]))
    for one in result["failures"]:
        say(_("{name} (line {line} of the log): {what}; {todo}").format(**one), "bad")
    if result["failed"]:
        for device in result["devices"]:
            pids = " ".join(map(str, device["pids"]))
            say(_("devices that PID {pids} really got: {visible}").format(pids=pids, visible=device["visible"]))
        if not result["devices"]:
            say(_("no process of it was given visible devices by a variable"))
        if code == 0:
            say(_("it ended well, and left no dump on: {sides}").format(sides=", ".join(result["without_dump"])), "bad")
        say(_("native control, the same without a byte of ours; if it fails, too, it is not the instrumentation:"))
        for line in control:
            say(f"  {line}")
    for one in result["left"]:
        warn(_("still running, of this job: PID {pid} ({command})").format(**one))
    say(_("next: `{command}`").format(command=following))
