"""Which of a script's commands starts a training or an engine, through what, and where its own arguments begin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stages.inputs.shell.reading import Command
from stages.inputs.shell.values import Arg, Value, shown

VERL, SLIME, VIME, VLLM, SGLANG = "verl", "slime", "vime", "vllm", "sglang"
TRAINERS, ENGINES = (VERL, SLIME, VIME), (VLLM, SGLANG)
_PYTHON = re.compile(r"(?:.*/)?(?:python(?:\d(?:\.\d+)?)?|torchrun)$")
_VERL = re.compile(
    r"(?:^|[./])(?:main_ppo\w*|\w*main_dapo|dapo_ray_trainer|fully_async_main|one_step_off\w*main|main_\w*(?:ppo|dapo|grpo|spin|sppo|prime|gspo)\w*)(?:\.py)?$"
)
_SLIME = re.compile(r"(?:^|/)train(?:_async)?\.py$")
_NOT_RL = re.compile(r"sft|preprocess|merger|main_eval|main_generation|convert|download", re.I)


@dataclass(frozen=True)
class Job:
    """``ray job submit``: its own arguments, and where the entry point begins that a second shell parses again."""

    options: tuple[Arg, ...]
    begin: int

    @property
    def runtime_env(self) -> tuple[Arg, Value] | None:
        """The argument that holds ``--runtime-env-json``, and its value."""
        for number, arg in enumerate(self.options):
            text = shown(arg.value)
            if text.startswith("--runtime-env-json="):
                return arg, after(arg.value, len("--runtime-env-json="))
            if text == "--runtime-env-json" and number + 1 < len(self.options):
                return self.options[number + 1], self.options[number + 1].value
        return None

    def has(self, option: str) -> bool:
        return any(shown(arg.value).split("=")[0] == option for arg in self.options)


@dataclass(frozen=True)
class Launch:
    """``begin``: where the arguments of the program begin in the command's."""

    framework: str
    command: Command
    begin: int
    program: str
    job: Job | None = None

    @property
    def args(self) -> tuple[Arg, ...]:
        return self.command.args[self.begin :]

    @property
    def where(self) -> str:
        return self.command.source.where(self.command.node.start)

    @property
    def trains(self) -> bool:
        return self.framework in TRAINERS


def after(value: Value, count: int) -> Value:
    """A value without its first ``count`` characters, which are known."""
    pieces = list(value)
    while count and pieces:
        first = pieces.pop(0)
        if first.inner is not None:
            pieces[:0] = first.inner
            continue
        length = len(first.text or "")
        if length > count:
            pieces.insert(0, first.cut(count, length))
        count = max(0, count - length)
    return tuple(pieces)


def launches(commands: Sequence[Command], framework: str | None = None) -> Iterator[Launch]:
    """Those that start something known. ``framework`` decides between two that are started alike (slime and its fork vime)."""
    for command in commands:
        found = _launch(command, framework)
        if found is not None:
            yield found


def _launch(command: Command, framework: str | None) -> Launch | None:
    texts = [shown(arg.value) for arg in command.args]
    job = _job(command, texts)
    for at in range(job.begin if job else 0, len(texts)):
        text = texts[at]
        if text == "-m" and at + 1 < len(texts) and at and _runs_python(texts[:at]):
            found = _module(texts[at + 1])
            return Launch(found, command, at + 2, texts[at + 1], job) if found else None
        if text == "serve" and at and texts[at - 1].rpartition("/")[2] == "vllm":
            return Launch(VLLM, command, at + 1, "vllm serve", job)
        if text.endswith(".py") and (_runs_python(texts[:at]) or job):
            flags = any(one.startswith("--") for one in texts[at + 1 :])
            if _SLIME.search(text) and not _NOT_RL.search(text) and (flags or job):
                return Launch(_fork(texts, framework, command), command, at + 1, text, job)
            if _VERL.search(text):
                return Launch(VERL, command, at + 1, text, job)
            return None
    return None


def _runs_python(texts: Sequence[str]) -> bool:
    return any(_PYTHON.match(text) or text in ("…", "coverage") for text in texts)


def _module(name: str) -> str | None:
    if name.startswith("vllm.entrypoints"):
        return VLLM
    if name == "sglang.launch_server":
        return SGLANG
    return VERL if _VERL.search(name) and not _NOT_RL.search(name) else None


def _fork(texts: Sequence[str], framework: str | None, command: Command) -> str:
    """slime or vime: by their flags, then by what the task card says, then by the names in the command and its path."""
    if any(text.startswith(("--vllm-", "--no-vllm-")) for text in texts):
        return VIME
    if any(text.startswith("--sglang-") for text in texts):
        return SLIME
    if framework in (SLIME, VIME):
        return framework
    named = " ".join([*texts, str(command.source.path or "")]).lower()
    return VIME if "vime" in named and "slime" not in named else SLIME


def _job(command: Command, texts: Sequence[str]) -> Job | None:
    for at in range(len(texts) - 2):
        if texts[at].rpartition("/")[2] == "ray" and texts[at + 1 : at + 3] == ["job", "submit"]:
            begin = texts.index("--", at) + 1 if "--" in texts[at:] else _entry(texts, at + 3)
            return Job(command.args[at + 3 : begin], begin)
    return None


def _entry(texts: Sequence[str], at: int) -> int:
    """Where the entry point begins when no ``--`` parts it from ray's options."""
    flags = ("--no-wait", "--verbose", "-v")
    while at < len(texts) and texts[at].startswith("-"):
        at += 1 if "=" in texts[at] or texts[at] in flags else 2
    return min(at, len(texts))
