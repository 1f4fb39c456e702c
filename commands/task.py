"""``probepatch task``: the task card. Facts that were told or found out, permissions, what each stage left, and what comes next."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import UsageError
from commands.arguments import file_path, text
from commands.names import Group
from commands.output import json_option, print_json, say, table
from commands.task_card import card_path, following_steps, naming, one_line, say_next, task_option
from locales import _, ngettext
from stages.card.card import PERMISSIONS, Card
from stages.card.credentials import without_secrets
from stages.card.fields import FIELDS
from stages.card.store import ChangedCardError, changing, make_card, read_card

if TYPE_CHECKING:
    from stages.card.order import Step
    from stages.interpreter import Interpreter


@click.group(cls=Group, help=_("Keep the task card: facts, permissions, evidence of each stage, and what comes next."))
def command() -> None:
    """The group."""


@command.command(help=_("Make a task card in a folder. What nobody has told is unknown, never guessed."))
@click.argument("folder", type=file_path)
@json_option
def init(folder: Path, as_json: bool) -> None:
    """A new card; exit code 3 when there is one already."""
    path = make_card(folder).absolute()
    following = following_steps(read_card(path), folder)
    if as_json:
        print_json({"card": str(path), "next": following})
        return
    say(_("the task card is {path}").format(path=path), "good")
    say_next(following)


@command.command(help=_("Show the card: every fact with its value, permissions, and where edits stand."))
@task_option
@json_option
def show(task: Path | None, as_json: bool) -> None:
    """The card as it is; its JSON form is the file's own."""
    card = read_card(card_path(task))
    if as_json:
        print_json(card.checked())
        return
    card.checked()
    rows = [(name, one_line(_shown(card, name)), FIELDS[name].help) for name in FIELDS]
    table((_("field"), _("value"), _("what it is")), rows)
    say("")
    table((_("permission"), _("given"), _("scope")), [_permission_row(card, name) for name in PERMISSIONS])
    for one in card.data["edits"]:
        say(
            _("edits stand in {checkout}: {recipes}").format(
                checkout=one_line(one["checkout"]), recipes=", ".join(map(one_line, one["recipes"]))
            )
        )


def _shown(card: Card, name: str) -> str:
    value = card.fact(name)
    if value is None:
        return _("unknown")
    return shlex.join(value) if isinstance(value, list) else str(value)


def _permission_row(card: Card, name: str) -> tuple[str, str, str]:
    answer = card.data["permissions"].get(name)
    if answer is None:
        return name, _("not asked yet"), ""
    return name, _("yes") if answer["granted"] else _("no"), one_line(answer["scope"])


@command.command(
    "set",
    help=_(
        "Set facts: FIELD=VALUE… An interpreter or a prefix is tried at once, and the interpreter that answered is stored."
        " `unknown` takes a fact back. `probepatch task show` lists every field with what it is."
    ),
)
@click.argument("facts", metavar="FIELD=VALUE...", nargs=-1, required=True, type=text)
@click.option("--untested", is_flag=True, help=_("store prefix and interpreter as they are typed, without trying them"))
@task_option
@json_option
def set_(facts: tuple[str, ...], untested: bool, task: Path | None, as_json: bool) -> None:
    """All facts are stored, or none; exit code 3 when a side does not answer."""
    path = card_path(task)
    pairs = _pairs(facts)
    trial = read_card(path)
    for name, value in pairs:
        trial.set(name, value)
    answers = {} if untested else _ask_sides(trial, [name for name, _value in pairs])
    with changing(path) as card:
        held = _held(card)
        for name, value in pairs:
            card.set(name, value)
        _expect_same(card, trial, answers)
        for side, who in answers.items():
            card.put(f"{side}.python", who.executable or card.fact(f"{side}.python"))
            card.note(_("the {side} side answered: {who}").format(side=side, who=who))
        shaken = [stage for stage in held if stage not in _held(card)]
    following = following_steps(card, task)
    if as_json:
        values = {name: card.fact(name) for name, _value in pairs}
        told = {side: asdict(who) for side, who in answers.items()}
        print_json({"card": str(path), "set": values, "answered": told, "to_repeat": shaken, "next": following})
        return
    for side, who in answers.items():
        say(_("the {side} side answered: {who}").format(side=side, who=who), "good")
    for side in _unasked(card, [name for name, _value in pairs], answers):
        say(_("the {side} side was not tried; `probepatch preflight` tries it").format(side=side), "note")
    if shaken:
        again = ngettext("stage {n} has to be done again", "stages {n} have to be done again", len(shaken))
        say(again.format(n=", ".join(map(str, shaken))), "note")
    say_next(following)


def _pairs(facts: tuple[str, ...]) -> list[tuple[str, str]]:
    """Raises UsageError for what is no FIELD=VALUE, and for a field that stands twice."""
    out: dict[str, str] = {}
    for fact in facts:
        name, equals, value = fact.partition("=")
        name = name.strip()
        if not equals:
            raise UsageError(
                _("`{fact}` is not FIELD=VALUE").format(fact=without_secrets(fact[:60])),
                todo=_("`probepatch task show` lists the fields"),
            )
        if out.get(name, value) != value:
            raise UsageError(_("`{name}` is set twice, to different values").format(name=without_secrets(name[:60])))
        out[name] = value
    return list(out.items())


def _expect_same(card: Card, trial: Card, answers: dict[str, Interpreter]) -> None:
    """Raises ChangedCardError when a side is not reached any more as it was when it answered."""
    for side in answers:
        if any(card.fact(f"{side}.{name}") != trial.fact(f"{side}.{name}") for name in ("prefix", "python")):
            raise ChangedCardError(
                _("how the {side} side is reached was changed meanwhile; nothing was stored").format(side=side),
                todo=_("run this again"),
            )


def _unasked(card: Card, names: list[str], answers: dict[str, Interpreter]) -> list[str]:
    """The sides whose reach was set without being tried."""
    touched = [name.partition(".")[0] for name in names if name.endswith((".prefix", ".python"))]
    return [
        side
        for side in dict.fromkeys(touched)
        if side not in answers and (card.fact(f"{side}.prefix") or card.fact(f"{side}.python"))
    ]


def _ask_sides(card: Card, names: list[str]) -> dict[str, Interpreter]:
    """The interpreters of the sides whose reach was just set; a side whose interpreter is unknown cannot be asked."""
    from stages.interpreter import who_answers
    from stages.sides import INFER, TRAIN, Side

    touched = [side for side in (TRAIN, INFER) if {f"{side}.prefix", f"{side}.python"} & {*names}]
    return {side: who_answers(Side.of(card, side)) for side in touched if card.fact(f"{side}.python") is not None}


def _held(card: Card) -> list[int]:
    """The stages whose evidence holds."""
    from stages.card.order import STUB, path_of, state_of

    return [stage for stage in path_of(card) if stage != STUB and state_of(card, stage)[0] == "done"]


@command.command(
    help=_("Tell of each stage whether it is done, next or blocked, and by what; earlier evidence is looked at again.")
)
@task_option
@json_option
def status(task: Path | None, as_json: bool) -> int:
    """Exit code 1 when a stage failed, or its evidence does not hold any more."""
    from stages.card.order import command_of, steps

    path = card_path(task)
    card = read_card(path)
    found = steps(card)
    following = following_steps(card, task)
    if as_json:
        rows = [asdict(step) | {"command": command_of(card, step.stage)} for step in found]
        print_json({"card": str(path), "usage": card.fact("usage"), "stages": rows, "next": following})
    else:
        table(
            ("", _("stage"), _("state"), _("why")), [(str(s.stage), s.name, _state(s), one_line(s.why)) for s in found]
        )
        say_next(following)
    return 1 if any(step.state in ("failed", "stale") for step in found) else 0


def _state(step: Step) -> str:
    return {
        "done": _("done"),
        "next": _("next"),
        "blocked": _("blocked"),
        "failed": _("failed"),
        "stale": _("not true any more"),
        "not needed": _("not needed"),
    }[step.state]


@command.command(help=_("Show what happened to the card, oldest first."))
@task_option
@json_option
def log(task: Path | None, as_json: bool) -> None:
    """The log."""
    lines = read_card(card_path(task)).checked()["log"]
    if as_json:
        print_json({"log": lines})
        return
    table((_("time"), _("what")), [(line["at"], one_line(line["what"])) for line in lines])


@command.command(
    help=_(
        "Record the user's answer on all five permissions at once: those named yes, the others no. Without a name: print the"
        " one question to ask."
    )
)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=text)
@click.option("--all", "every", is_flag=True, help=_("all five, except those named by --deny"))
@click.option("--deny", multiple=True, metavar="NAME", type=text, help=_("said no to; may be repeated"))
@click.option("--scope", default="", metavar="TEXT", help=_("what the answer is limited to, in the user's words"))
@task_option
@json_option
def permit(
    names: tuple[str, ...], every: bool, deny: tuple[str, ...], scope: str, task: Path | None, as_json: bool
) -> None:
    """Needs stage 0 only: the cards are freed in stage 1, which takes a permission already."""
    from stages.card.order import PREFLIGHT, require
    from stages.card.permissions import permit as record

    path = card_path(task)
    card = read_card(path)
    answered = bool(names or every or deny)
    if answered:
        granted = _granted(names, every, deny)
        with changing(path) as card:
            require(card, PREFLIGHT)
            record(card, granted, scope)
    following = following_steps(card, task)
    if as_json:
        print_json(_permissions_json(path, card, answered, following))
    elif answered:
        table((_("permission"), _("given"), _("scope")), [_permission_row(card, name) for name in PERMISSIONS])
        say_next(following)
    else:
        _ask(card, task)


def _granted(names: tuple[str, ...], every: bool, deny: tuple[str, ...]) -> dict[str, bool]:
    """The answer to each permission. Raises UsageError when it is not clear."""
    from commands.names import unknown

    for name in (*names, *deny):
        if name not in PERMISSIONS:
            raise unknown(_("`{name}` is no permission").format(name=name), name, PERMISSIONS)
    both = {*names} & {*deny}
    if both:
        raise UsageError(_("both given and denied: {names}").format(names=", ".join(sorted(both))))
    if not names and not every and {*deny} != {*PERMISSIONS}:
        raise UsageError(
            _("--deny alone leaves the other permissions open"), todo=_("name those that are given, or say --all")
        )
    return {name: (every or name in names) and name not in deny for name in PERMISSIONS}


def _permissions_json(path: Path, card: Card, recorded: bool, following: list[dict[str, Any]]) -> dict[str, Any]:
    from stages.card.permissions import MEANING
    from stages.card.question import asked, question

    answers = card.data["permissions"]
    rows = []
    for name in PERMISSIONS:
        one = answers.get(name, {})
        rows.append(
            {
                "name": name,
                "meaning": MEANING[name],
                "granted": one.get("granted"),
                "at": one.get("at"),
                "scope": one.get("scope"),
            }
        )
    return {
        "card": str(path),
        "recorded": recorded,
        "permissions": rows,
        "facts": [asdict(fact) for fact in asked(card)],
        "question": None if recorded else list(question(card)),
        "next": following,
    }


def _ask(card: Card, task: Path | None) -> None:
    from stages.card.question import question

    for number, line in enumerate(question(card)):
        say(one_line(line) if number else line, "" if number else "head")
    say(
        _("the answer is recorded with: `{command}`").format(
            command=naming("probepatch task permit NAME… [--deny NAME] [--scope TEXT]", task)
        ),
        "dim",
    )


@command.command(help=_("Print the JSON Schema of the task card's file."))
@click.option("--json", "as_json", is_flag=True, help=_("accepted for symmetry: the schema is JSON anyway"))
def schema(as_json: bool) -> None:
    """The schema on standard output; the same as docs/schemas/task-card.json."""
    from stages.card.schema import card_schema

    print_json(card_schema())
