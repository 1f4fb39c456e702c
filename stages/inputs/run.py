"""One run to be judged: a training with its engine, or an engine alone, as the scripts would start it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.errors import FindingError, RefusedError
from locales import _
from stages.inputs.documents import SUFFIXES, Document, DocumentError, as_flags, read_document
from stages.inputs.entries import Entry, entries
from stages.inputs.facts import Facts, Found
from stages.inputs.launch import SGLANG, SLIME, TRAINERS, VERL, VIME, VLLM, Launch, launches
from stages.inputs.runtime_env import RuntimeEnv, read_runtime_env
from stages.inputs.shell.nodes import Source
from stages.inputs.shell.reading import Command, read_text
from stages.inputs.shell.run import read_script

if TYPE_CHECKING:
    from stages.inputs.copies import Copy

_MOST_LAUNCHES = 100
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?\S*")


@dataclass(frozen=True)
class Known:
    """What is known besides the scripts: from the task card, or from the command line. None is unknown.

    ``version`` is the training framework's, ``engine_version`` that of an engine which a script starts; ``copies`` by side."""

    framework: str | None = None
    version: str | None = None
    backend: str | None = None
    copies: Mapping[str, Copy] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    engine_version: str | None = None


@dataclass(frozen=True)
class Script:
    """A file that was read. ``text`` as it is on disk; ``crlf`` counts its lines that end in CR LF."""

    path: Path
    text: str
    crlf: int
    launches: tuple[Launch, ...]
    commands: tuple[Command, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    document: Document | None = None
    sources: tuple[Path, ...] = ()  # every file that was read, itself among them
    missing: tuple[str, ...] = ()  # files that it goes on in, and that are not here


@dataclass(frozen=True)
class Run:
    """``launch`` is None for a config without a command. ``served``: engines that the scripts start beside the training."""

    script: Script
    framework: str
    launch: Launch | None
    facts: Facts
    engine: str | None
    backend: str | None
    known: Known
    served: tuple[Facts, ...] = ()

    @property
    def where(self) -> str:
        return self.launch.where if self.launch is not None else self.script.path.name

    @property
    def trains(self) -> bool:
        return self.framework in (VERL, SLIME, VIME)

    def get(self, name: str) -> Found | None:
        """A setting of the training's launch, or of the engine that is started beside it."""
        found = self.facts.get(name)
        if found is None and len(self.served) == 1:
            return self.served[0].get(name)
        return found

    def runtime_env(self) -> RuntimeEnv | None:
        """Of ``ray job submit``; None where there is none."""
        job = self.launch.job if self.launch is not None else None
        given = job.runtime_env if job is not None else None
        return read_runtime_env(given[1]) if given is not None else None


def read(path: Path, known: Known) -> Script:
    """Raises RefusedError, FindingError."""
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RefusedError(_("{path} cannot be read").format(path=path), why=reason) from error
    return parse(path, text, known)


def parse(path: Path, text: str, known: Known) -> Script:
    """A script's text as it would be read from ``path``. Raises FindingError."""
    crlf = text.count("\r\n")
    plain = text.replace("\r\n", " \n")  # read as it was meant, at the same offsets
    if path.suffix.lower() in SUFFIXES:
        return _document(path, text, plain, crlf, known)
    if path.suffix == ".py":
        raise DocumentError(
            _("{path} is a Python program: what it starts is known when it runs").format(path=path.name),
            todo=_("name the shell script or the config that it writes"),
        )
    reading = read_script(Source(path.absolute(), plain), known.env)
    found = _few(path, tuple(launches(reading.commands, known.framework)))
    sources = tuple(dict.fromkeys(source.path for source in reading.sources if source.path is not None))
    return Script(
        path,
        text,
        crlf,
        found,
        tuple(reading.commands),
        tuple(dict.fromkeys(reading.notes)),
        sources=sources,
        missing=tuple(reading.missing),
    )


def _few(path: Path, found: tuple[Launch, ...]) -> tuple[Launch, ...]:
    if len(found) > _MOST_LAUNCHES:
        text = _("{path} starts more than {count} trainings and engines")
        raise FindingError(text.format(path=path.name, count=_MOST_LAUNCHES), where=found[_MOST_LAUNCHES].where)
    return found


def _document(path: Path, text: str, plain: str, crlf: int, known: Known) -> Script:
    document = read_document(path, plain)
    if document.script is None:
        if document.framework is None:
            raise DocumentError(
                _("{path} holds no setting of a framework that is known here").format(path=path.name),
                why=_("known: verl's config, an engine's --config file, a job with its entry point"),
            )
        return Script(path, text, crlf, (), document=document, sources=(path.absolute(),))
    env = {**(document.env or {}), **known.env}
    reading = read_script(Source(None, document.script, path.name), env)
    found = _few(path, tuple(launches(reading.commands, known.framework)))
    notes, files = tuple(dict.fromkeys(reading.notes)), (path.absolute(),)
    return Script(path, text, crlf, found, tuple(reading.commands), notes, document, files, tuple(reading.missing))


def runs(scripts: Sequence[Script], known: Known) -> list[Run]:
    """Trainings, each with the engines that are started beside it; then those engines, which have settings of their own."""
    found: list[Run] = []
    served: list[Run] = []
    for script in scripts:
        for run in _runs(script, known):
            (found if run.trains else served).append(run)
    beside = tuple(run.facts for run in served)
    return [*(replace(run, served=beside) for run in found), *served]


def _runs(script: Script, known: Known) -> Iterator[Run]:
    for launch in script.launches:
        yield _run(script, launch.framework, launch, entries(launch), known)
    document = script.document
    if document is not None and document.script is None and document.framework is not None:
        given = document.entries if document.framework == VERL else as_flags(document.entries)
        yield _run(script, document.framework, None, given, known)


def _run(script: Script, framework: str, launch: Launch | None, given: Sequence[Entry], known: Known) -> Run:
    base, missing = _base(given, launch) if framework == VERL else _config_file(given, framework)
    backend = (
        _backend(given, base, missing, known)
        if framework == VERL
        else "megatron"
        if framework in (SLIME, VIME)
        else None
    )
    dialect = f"verl/{backend}" if framework == VERL and backend else framework
    told = known.version if framework in TRAINERS else known.engine_version
    version = told or _version_nearby(script.path, framework)
    opened = launch is not None and launch.command.open
    facts = Facts(dialect, tuple(given), base, missing, version, opened)
    engine = _engine(framework, facts)
    return Run(script, framework, launch, replace(facts, engine=engine, cache={}), engine, backend, known)


def _engine(framework: str, facts: Facts) -> str | None:
    if framework == VERL:
        found = facts.get("engine")
        return str(found.value) if found is not None and found.known and found.value else None
    return {SLIME: SGLANG, VIME: VLLM}.get(framework, framework)


def _backend(given: Sequence[Entry], base: Sequence[Entry], missing: str, known: Known) -> str | None:
    """fsdp, megatron, or another engine's name; None when it is not said."""
    for name in ("actor_rollout_ref.actor.strategy", "model_engine"):
        named = [entry for entry in (*base, *given) if entry.name == name]
        certain = next((number for number in reversed(range(len(named))) if not named[number].maybe), None)
        if not named:
            continue
        possible = {_plain(entry.text) if entry.text is not None else None for entry in named[certain or 0 :]}
        possible |= {"fsdp"} if certain is None and not missing else set()  # where no condition sets it
        return possible.pop() if len(possible) == 1 else None
    config = next((one.text for one in reversed(given) if one.name in ("--config-name", "-cn")), None)
    if config is not None and "megatron" in config:
        return "megatron"
    if any(entry.name.startswith("actor_rollout_ref.actor.megatron.") for entry in (*base, *given)):
        return "megatron"
    return known.backend or (None if missing else "fsdp")


def _plain(text: str) -> str:
    name = text.strip("'\"").lower()
    return "fsdp" if name in ("fsdp", "fsdp2", "dp") else name


def _base(given: Sequence[Entry], launch: Launch | None) -> tuple[tuple[Entry, ...], str]:
    """The config that hydra's own options name, where it is not one of verl's; and why it could not be read."""
    named = {
        one.name: one for one in given if one.name in ("--config-path", "--config-name", "-cp", "-cn", "--config-dir")
    }
    name, folder = named.get("--config-name") or named.get("-cn"), named.get("--config-path") or named.get("-cp")
    config = (name.text or "").strip("'\"").removesuffix(".yaml") if name is not None else "ppo_trainer"
    if config in ("ppo_trainer", "ppo_megatron_trainer") and (folder is None or _standard(folder.text)):
        return (), ""
    assert name is not None or folder is not None
    shown = config or "?"
    if folder is not None and folder.text and config:
        path = Path(folder.text) / f"{config}.yaml"
        try:
            if path.is_absolute() and os.path.isfile(path):
                return read_document(path, read_text(path)).entries, ""
        except (OSError, ValueError, FindingError):
            pass
    text = _("its base config {name} is not here to be read, so what the script does not give is not known")
    return (), text.format(name=shown)


def _standard(folder: str | None) -> bool:
    return folder is not None and folder.strip("./") in ("config", "verl/trainer/config")


def _config_file(given: Sequence[Entry], framework: str) -> tuple[tuple[Entry, ...], str]:
    """``--config FILE`` of an engine; slime's and vime's own YAML holds no setting that is judged here."""
    config = next(
        (one for one in reversed(given) if one.name in ("--config", "--sglang-config", "--vllm-config")), None
    )
    if config is None:
        return (), ""
    path = Path(config.text) if config.text else None
    try:
        if path is not None and path.is_absolute() and os.path.isfile(path) and framework in (VLLM, SGLANG):
            return as_flags(read_document(path, read_text(path)).entries), ""
    except (OSError, ValueError, FindingError):
        pass
    return (), _("the config file {name} is not here to be read").format(name=config.text or "?")


def _version_nearby(script: Path, framework: str) -> str | None:
    """The version of the checkout that a script stands in; verl has a file for it."""
    if framework != VERL:
        return None
    for folder in script.absolute().parents:
        file = folder / "verl" / "version" / "version"
        try:
            if os.path.isfile(file):
                text = file.read_text("utf-8")[:40].strip()
                return text if _VERSION.fullmatch(text) else None
        except (OSError, ValueError):
            return None
    return None
