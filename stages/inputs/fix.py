"""A plan that makes a script pass: one edit per flag, proved by reading the script again before anything is written."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from codemods.errors import FindingError, RefusedError
from codemods.splice import PlannedEdit, Splice, render
from locales import _
from stages.inputs.baseline import differences
from stages.inputs.edits import Change, Editor, NotEditableError
from stages.inputs.exporting import export_line
from stages.inputs.facts import no
from stages.inputs.quoting import QuotingError
from stages.inputs.report import Item, Judged, judge
from stages.inputs.rules.rule import FAIL, PASS, UNKNOWN, OnPath, Set, SetEnv, Wish
from stages.inputs.run import Known, Run, Script, parse, runs
from stages.inputs.settings import Scalar
from stages.inputs.shell.nodes import Source

RECIPE = "inputs-fix"
_ROUNDS = 4


@dataclass(frozen=True)
class Left:
    """What was not edited, and why."""

    rule: str
    why: str


@dataclass(frozen=True)
class Fixed:
    """The edits of one script, what its rules say afterwards, and what is left to the user."""

    script: Script
    edits: tuple[PlannedEdit, ...]
    after: bytes
    before_items: tuple[Item, ...]
    after_items: tuple[Item, ...]
    left: tuple[Left, ...]

    @property
    def failing(self) -> bool:
        return any(item.verdict.state == FAIL for item in self.after_items)

    @staticmethod
    def counts(items: Sequence[Item]) -> dict[str, int]:
        states = [item.verdict.state for item in items]
        return {state: states.count(state) for state in (PASS, FAIL, UNKNOWN)}


class CrLfError(RefusedError):
    """The script has CR LF line ends."""


class ProofError(FindingError):
    """What would be written does not say what it should; nothing is written."""


def fix(script: Script, known: Known, side: str | None = None, only: Sequence[str] = ()) -> Fixed:
    """Edits for every rule that fails and can be met here. ``only``: ids of rules. Raises CrLfError, ProofError, FindingError."""
    _refuse_crlf(script)
    base = script.text.encode("utf-8", "surrogateescape")
    first = runs([script], known)
    report = judge([script], first, side=side)
    if not report.judged:
        raise _nothing_known(script)
    wishes: list[dict[str, tuple[Wish, Item]]] = [{} for _run in first]
    judged, edits, data = report.judged, tuple[PlannedEdit, ...](), base
    left, changes = list[Left](), list[Change]()
    for _round in range(_ROUNDS):  # one flag that is right can become wrong by another that is set right
        new = _wishes(judged, wishes, only)
        if not new:
            break
        left = []
        changes = _changes(first, wishes, left)
        edits = tuple(_planned(script, changes))
        data = render(base, edits)
        again = parse(script.path, data.decode("utf-8", "surrogateescape"), known)
        judged = judge([again], runs([again], known), side=side).judged
        _same_runs(report.judged, judged)
    left += [
        Left(item.rule.id, item.verdict.reason)
        for one in judged
        for item in one.items
        if item.verdict.state == FAIL and not item.verdict.wishes and (not only or item.rule.id in only)
    ]
    _prove(report.judged, judged, data, _touched(changes, wishes))
    before, after = (tuple(item for one in each for item in one.items) for each in (report.judged, judged))
    return Fixed(script, edits, data, before, after, tuple(dict.fromkeys(left)))


def _refuse_crlf(script: Script) -> None:
    if script.crlf:
        raise CrLfError(
            _("{path} has CR line ends in {n} lines; it was not edited").format(path=script.path.name, n=script.crlf),
            where=str(script.path),
            why=_("bash takes the CR as part of the last argument, and nothing continues after `\\` CR"),
            todo=_("turn them into LF (`sed -i 's/\\r$//'`, or git's autocrlf off), then run this again"),
        )


def _nothing_known(script: Script) -> FindingError:
    return FindingError(_("no command in {path} starts a framework that is known here").format(path=script.path.name))


def put(script: Script, known: Known, name: str, value: Scalar, recipe: str) -> tuple[PlannedEdit, ...]:
    """The edits that give a flag or an override (by its own name) a value in everything that the script starts; none where it has
    it. Raises CrLfError, ProofError, FindingError."""
    _refuse_crlf(script)
    first = judge([script], runs([script], known)).judged
    if not first:
        raise _nothing_known(script)
    changes = list(dict.fromkeys(change for one in first for change in Editor(one.run).put(name, value)))
    edits = tuple(_planned(script, changes, recipe, order=1))
    data = render(script.text.encode("utf-8", "surrogateescape"), edits)
    again = parse(script.path, data.decode("utf-8", "surrogateescape"), known)
    after = judge([again], runs([again], known)).judged
    _same_runs(first, after)
    _prove(first, after, data, {name, no(name)}, rules=False)
    if any(Editor(one.run).put(name, value) for one in after):
        raise ProofError(_("{name} would not have that value afterwards; nothing was written").format(name=name))
    return edits


def _wishes(judged: Sequence[Judged], wishes: list[dict[str, tuple[Wish, Item]]], only: Sequence[str]) -> bool:
    """Add what the failing rules wish for; tells whether anything is new."""
    new = False
    for one, known in zip(judged, wishes, strict=True):
        for item in one.items:
            if item.verdict.state == PASS or (only and item.rule.id not in only):
                continue
            for wish in item.verdict.wishes:
                name = wish.setting if isinstance(wish, Set) else wish.name
                if name not in known or known[name][0] != wish:
                    known[name] = (wish, item)
                    new = True
    return new


def _changes(first: Sequence[Run], wishes: Sequence[Mapping[str, tuple[Wish, Item]]], left: list[Left]) -> list[Change]:
    """The changes of all wishes, in the script as it is; those that cannot be written are added to ``left``."""
    found: dict[tuple[int, int, str], Change] = {}
    for run, wished in zip(first, wishes, strict=True):
        editor, variables = Editor(run), []
        for wish, item in wished.values():
            if isinstance(wish, OnPath) and run.launch is not None and run.launch.job is not None:
                wish = SetEnv(wish.name, f"{wish.folder}:${{{wish.name}}}")  # Ray puts in what the workers have
            if isinstance(wish, SetEnv):
                variables.append((wish, item))
                continue
            try:
                changes = [export_line(run, wish)] if isinstance(wish, OnPath) else editor.set(wish)
            except (NotEditableError, QuotingError) as error:
                left.append(Left(item.rule.id, error.what))
                continue
            for change in changes:
                found.setdefault((change.start, change.end, change.text), replace(change, why=item.rule.what))
        try:
            for change in editor.env([wish for wish, _item in variables]) if variables else ():
                found.setdefault((change.start, change.end, change.text), change)
        except (NotEditableError, QuotingError) as error:
            left += [Left(item.rule.id, error.what) for _wish, item in variables]
    return list(found.values())


def _planned(script: Script, changes: Sequence[Change], recipe: str = RECIPE, order: int = 0) -> list[PlannedEdit]:
    """One edit for each change, in base offsets; ids are the flags'."""
    source, taken = Source(script.path, script.text), set[str]()
    edits = []
    for number, change in enumerate(sorted(changes, key=lambda one: (one.start, one.end))):
        base = f"{_slug(script.path.name)}-{_slug(change.flag)}"
        name = next(one for n in range(1, 10_000) for one in [base if n == 1 else f"{base}-{n}"] if one not in taken)
        taken.add(name)
        removed = script.text[change.start : change.end].encode("utf-8", "surrogateescape")
        inserted = change.text.encode("utf-8", "surrogateescape")
        splice = Splice(source.byte(change.start), removed, inserted, rank=(1, 0, number))
        digest = hashlib.sha256(b"\0".join([recipe.encode(), name.encode(), removed, inserted])).hexdigest()
        why = change.why or _("{flag} has to reach the workers").format(flag=change.flag)
        edits.append(
            PlannedEdit(
                recipe, name, digest, (order, number), line=source.line(change.start), why=why, splices=(splice,)
            )
        )
    return edits


def _slug(text: str) -> str:
    words = "".join(c.lower() if c.isascii() and c.isalnum() else "-" for c in text)
    return "-".join(part for part in words.split("-") if part) or "x"


def _same_runs(before: Sequence[Judged], after: Sequence[Judged]) -> None:
    """Raises ProofError when the edited script would start something else."""
    if [one.run.framework for one in before] != [one.run.framework for one in after]:
        raise ProofError(_("the edited script would start something else; nothing was written"))


def _touched(changes: Sequence[Change], wishes: Sequence[Mapping[str, tuple[Wish, Item]]]) -> set[str]:
    """The names of what the edits are about; nothing else may differ afterwards."""
    names = {change.flag for change in changes}
    for wish in (wish for wished in wishes for wish, _item in wished.values()):
        if not isinstance(wish, Set):
            names |= {f"env_vars.{wish.name}", f"ray_kwargs.ray_init.runtime_env.env_vars.{wish.name}"}
    return names | {no(name) for name in names} | {"--" + name.removeprefix("--no-") for name in names}


def _prove(
    before: Sequence[Judged], after: Sequence[Judged], data: bytes, touched: Container[str], rules: bool = True
) -> None:
    """Nothing else has changed, no rule is worse (with ``rules``), and bash can parse it. Raises ProofError."""
    for old, new in zip(before, after, strict=True):
        then = {item.rule.id: item.verdict.state for item in new.items}
        worse = [
            item.rule.id
            for item in (old.items if rules else ())
            if item.verdict.state == PASS and then.get(item.rule.id, PASS) != PASS
        ]
        strange = [one.name for one in differences(old.run, new.run) if one.name not in touched]
        if worse or strange:
            raise ProofError(
                _("the edited script would not say what it should; nothing was written"),
                why=", ".join([*worse, *strange]),
            )
    problem = _bash_problem(data)
    if problem:
        raise ProofError(_("bash could not parse the edited script; nothing was written"), why=problem)


def _bash_problem(data: bytes) -> str:
    """What `bash -n` says, which parses and runs nothing; empty where there is no bash or nothing to say."""
    bash = shutil.which("bash")
    if bash is None or not data.startswith(b"#!") or b"sh" not in data.split(b"\n", 1)[0]:
        return ""
    done = subprocess.run([bash, "-n"], input=data, capture_output=True, timeout=60, check=False)
    return done.stderr.decode("utf-8", "replace").strip()[:300] if done.returncode else ""
