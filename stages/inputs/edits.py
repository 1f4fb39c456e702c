"""From a wish to the bytes of a script: the flag's value in its place, a flag taken out, a flag or a variable added."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass

from codemods.errors import FindingError
from locales import _
from stages.inputs.entries import Entry
from stages.inputs.facts import no, within
from stages.inputs.quoting import QuotingError, for_hydra, for_shell, in_quotes, survives
from stages.inputs.rules.rule import Set, SetEnv
from stages.inputs.run import Run
from stages.inputs.runtime_env import RuntimeEnv, added, place, span
from stages.inputs.settings import Key, Scalar
from stages.inputs.shell.nodes import Param, Source, Word
from stages.inputs.shell.values import Arg

_SAFE = re.compile(r"[\w./:=,@%+-]+")


class NotEditableError(FindingError):
    """The wish cannot be written into this script; the user has to."""


@dataclass(frozen=True)
class Change:
    """The characters ``start`` to ``end`` of the script give way to ``text``. ``flag``: what it is about, for its id."""

    flag: str
    start: int
    end: int
    text: str
    why: str = ""


class Editor:
    """Edits of one run in its own script. Every method gives changes, or raises NotEditableError with the reason."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.path = run.script.path.absolute()

    def set(self, wish: Set) -> list[Change]:
        key = self.run.facts.key(wish.setting)
        if key is None:
            raise NotEditableError(_("{framework} has no such setting").format(framework=self.run.framework))
        now = self.run.facts.get(wish.setting)
        if now is not None and now.known and now.value == wish.value:
            return []
        if key.form in ("on", "off"):
            there = wish.value is (key.form == "on")
            return self._append(key.name, key.name) if there else self._remove(key)
        value = not wish.value if key.form == "inverse" else wish.value
        hits = [one for one in self.run.facts.entries if one.name in (key.name, *key.also, no(key.name))]
        if key.form == "pair":
            return self._pair(key, bool(value), hits)
        if hits and self._mine(hits[-1]):
            return [self._replace(hits[-1], value)]
        if not hits and key.since and not self._has(key.since):
            raise self._too_old(key.name, key.since)
        return self._append(key.name, self._flag(key, value))

    def put(self, name: str, value: Scalar) -> list[Change]:
        """A flag or an override by its own name, whatever it means."""
        hits = [one for one in self.run.facts.entries if one.name == name]
        last = hits[-1] if hits else None
        if last is not None and not last.maybe and last.text == _plain(value):
            return []
        if last is not None and self._mine(last) and (last.value is not None or self.run.launch is None):
            return [self._replace(last, value)]
        if self.run.framework == "verl":
            return self._append(name, for_shell(f"{last.prefix if last is not None else '++'}{name}={_hydra(value)}"))
        if value is False:
            return self._remove(Key(name))
        if value is True:
            return [] if hits else self._append(name, name)
        return self._append(name, f"{name} {for_shell(_plain(value))}")

    def _has(self, since: str) -> bool:
        version = self.run.facts.version
        return version is not None and within(version, f">={since}")

    def _too_old(self, name: str, since: str) -> NotEditableError:
        version = self.run.facts.version or _("not known")
        text = _("{name} is there from version {since} on, and the version is {version}")
        return NotEditableError(text.format(name=name, since=since, version=version))

    # --- flags and overrides -------------------------------------------------------------------------------------------

    def _flag(self, key: Key, value: Scalar) -> str:
        if self.run.framework == "verl":
            entry = self.run.facts.entry(key.name)
            prefix = (entry.prefix if entry is not None else "") or key.prefix
            return for_shell(f"{prefix}{key.name}={_hydra(value)}")
        return f"{key.name} {for_shell(_plain(value))}"

    def _pair(self, key: Key, value: bool, hits: list[Entry]) -> list[Change]:
        wanted = key.name if value else no(key.name)
        if hits and self._mine(hits[-1]) and hits[-1].value is None and hits[-1].arg is not None:
            arg = hits[-1].arg
            return [Change(wanted, arg.start, arg.end, wanted)]
        return self._append(wanted, wanted)

    def _replace(self, entry: Entry, value: Scalar) -> Change:
        """The value in its place; the name and its prefix stay."""
        assert entry.arg is not None
        if self.run.launch is None:
            return self._in_document(entry, value)
        text = _hydra(value) if self.run.framework == "verl" else _plain(value)
        if entry.values:
            arg, whole = entry.values[0], text
        else:
            arg = entry.arg
            name = f"{entry.prefix}{entry.name}"
            whole = f"{name}={text}"
        if arg.whole:
            return Change(entry.name, arg.start, arg.end, for_shell(whole))
        if not _SAFE.fullmatch(whole):
            raise NotEditableError(
                _("{text} cannot be written into a text that is split at its blanks").format(text=whole)
            )
        return Change(entry.name, arg.start, arg.end, whole)

    def _in_document(self, entry: Entry, value: Scalar) -> Change:
        assert entry.arg is not None
        return Change(entry.name, entry.arg.start, entry.arg.end, json.dumps(value))

    def _mine(self, entry: Entry) -> bool:
        """Whether the flag is written in this very script, once, in a place of its own."""
        arg = (entry.values or (entry.arg,))[0]
        return arg is not None and self._here(arg) and not entry.maybe

    def _here(self, arg: Arg) -> bool:
        return arg.source is not None and arg.source.path == self.path and not arg.loose

    def _remove(self, key: Key) -> list[Change]:
        changes = []
        for entry in self.run.facts.entries:
            if entry.name != key.name:
                continue
            assert entry.arg is not None
            args = [entry.arg, *entry.values]
            if not all(self._here(arg) for arg in args):
                where = entry.where or _("another file")
                raise NotEditableError(
                    _("{flag} stands in {where}, and can only be taken out there").format(flag=key.name, where=where)
                )
            start, end = _with_blanks(self.run.script.text, args[0].start, args[-1].end)
            changes.append(Change(key.name, start, end, ""))
        return changes

    def _append(self, flag: str, text: str) -> list[Change]:
        """Behind the last argument of the launch, before what the script itself is given."""
        launch = self.run.launch
        if launch is None:
            raise NotEditableError(
                _("{flag} is not in the config, and adding a key to YAML is left to you").format(flag=flag)
            )
        command = launch.command
        if command.source.path != self.path:
            raise NotEditableError(_("the launch stands in another file, {where}").format(where=launch.where))
        words = command.node.words
        last = words[-1]
        if command.open and _only_arguments(last) and len(words) > 1:
            last = words[-2]
        if launch.job is not None and not all(survives(part) for part in _unquoted(text)):
            raise NotEditableError(_("{text} does not survive the second shell of `ray job submit`").format(text=text))
        source = command.source
        return [Change(flag, last.end, last.end, self._gap(source, words) + text)]

    def _gap(self, source: Source, words: tuple[Word, ...]) -> str:
        """The blanks between the last two words: a blank, or a continued line with its indentation."""
        text = self.run.script.text
        for before, after in zip(reversed(words[:-1]), reversed(words), strict=False):
            between = text[before.end : after.start]
            found = re.fullmatch(r"[ \t]*\\\n([ \t]*)", between)
            if found:
                return f" \\\n{found.group(1)}"
        return " "

    # --- variables of the workers --------------------------------------------------------------------------------------

    def env(self, wishes: list[SetEnv]) -> list[Change]:
        launch = self.run.launch
        if launch is None:
            raise NotEditableError(_("a config does not say what environment it is run in"))
        if launch.job is not None:
            return self._job_env(wishes)
        if self.run.framework == "verl":
            return [change for wish in wishes for change in self._verl_env(wish)]
        names = ", ".join(wish.name for wish in wishes)
        if not self.run.trains:
            known = " ".join(f"--env {wish.name}={wish.value}" for wish in wishes)
            said = _("{framework} takes {names} from its shell, and `capture run` exports them: say so with {known}")
            raise NotEditableError(said.format(framework=self.run.framework, names=names, known=known))
        raise NotEditableError(
            _("{framework} is started without `ray job submit`: export {names} before Ray starts").format(
                framework=self.run.framework, names=names
            )
        )

    def _verl_env(self, wish: SetEnv) -> list[Change]:
        name = f"ray_kwargs.ray_init.runtime_env.env_vars.{wish.name}"
        text = f'{name}="{wish.value}"'  # the inner quotes keep it a text for hydra
        entry = self.run.facts.entry(name)
        if entry is not None and self._mine(entry) and entry.arg is not None and entry.arg.whole:
            return [Change(wish.name, entry.arg.start, entry.arg.end, for_shell(entry.prefix + text))]
        if not self._has("0.6") and not any(one.name.startswith("ray_kwargs.") for one in self.run.facts.entries):
            raise self._too_old("ray_kwargs", "0.6")
        return self._append(wish.name, for_shell("++" + text))

    def _job_env(self, wishes: list[SetEnv]) -> list[Change]:
        launch = self.run.launch
        assert launch is not None and launch.job is not None
        env = self.run.runtime_env()
        if env is None:
            return self._new_env(wishes)
        if env.problem:
            raise NotEditableError(_("the runtime environment cannot be read: {why}").format(why=env.problem))
        changes, missing = [], []
        for wish in wishes:
            member = env.variable(wish.name)
            if member is None:
                missing.append((wish.name, wish.value))
                continue
            found = span(env.value, member.value_start, member.value_end)
            if found is None or found[0].piece.source is None or found[0].piece.source.path != self.path:
                raise NotEditableError(_("the value of {name} stands in another place").format(name=wish.name))
            text = in_quotes(json.dumps(wish.value), found[0].quote)
            changes.append(Change(wish.name, found[0].at, found[1].at, text))
        if missing:
            changes += self._added(env, missing)
        return changes

    def _added(self, env: RuntimeEnv, missing: list[tuple[str, str]]) -> list[Change]:
        """One change for each variable; one for all where ``env_vars`` itself is missing or empty."""
        try:
            at, _text = added(env, missing)
            first = place(env.value, at)
            if first is None or first.piece.source is None or first.piece.source.path != self.path:
                raise NotEditableError(_("the place for env_vars is not in this script, or not plain text"))
            each = env.env_vars is not None and env.env_vars.members
            return [
                Change(
                    one[0][0] if each else "env_vars", first.at, first.at, in_quotes(added(env, one)[1], first.quote)
                )
                for one in ([[pair] for pair in missing] if each else [missing])
            ]
        except (ValueError, QuotingError) as error:
            raise NotEditableError(_("env_vars cannot be added there: {why}").format(why=error)) from error

    def _new_env(self, wishes: list[SetEnv]) -> list[Change]:
        """No runtime environment: one is made, with these variables only."""
        launch = self.run.launch
        assert launch is not None and launch.job is not None
        if launch.job.has("--runtime-env"):
            raise NotEditableError(_("the runtime environment is in a file (--runtime-env): add the variables there"))
        words = [word for word in launch.command.node.words if word.plain == "--"]
        if launch.command.source.path != self.path or not words:
            raise NotEditableError(_("there is no `--` before which a --runtime-env-json could be added"))
        variables = {wish.name: wish.value for wish in wishes}
        value = json.dumps({"env_vars": variables}, separators=(",", ":"))
        at = words[0].start
        return [Change("runtime-env-json", at, at, f"--runtime-env-json={for_shell(value)} ")]


def _hydra(value: Scalar) -> str:
    """As verl's own scripts write it: ``True``."""
    return str(value) if isinstance(value, bool) else for_hydra(value)


def _plain(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _unquoted(text: str) -> list[str]:
    return shlex.split(text)


def _only_arguments(word: Word) -> bool:
    return len(word.parts) == 1 and isinstance(word.parts[0], Param) and word.parts[0].name in ("@", "*")


def _with_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """A flag with what parted it from its neighbours: its whole line where it has one, else the blanks before it."""
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    before, after = text[line:start], text[end:stop]
    if not before.strip() and re.fullmatch(r"[ \t]*\\?", after):
        continued = text[:line].endswith("\\\n")
        if after.endswith("\\") or not continued:
            return line, min(stop + 1, len(text))
        previous = re.search(r"[ \t]*\\\n$", text[:line])
        assert previous is not None
        return previous.start(), end
    blanks = len(before) - len(before.rstrip(" \t"))
    return start - blanks, end
