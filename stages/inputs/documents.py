"""YAML and JSON in place of a command line: a config of verl's, an engine's ``--config``, a job with its entry point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import FindingError
from locales import _
from stages.inputs.entries import Entry
from stages.inputs.launch import SGLANG, VERL, VLLM
from stages.inputs.shell.nodes import Source
from stages.inputs.shell.values import Arg, Piece, unknown

SUFFIXES = (".yaml", ".yml", ".json")
_MOST, _DEEPEST = 20_000, 60


class DocumentError(FindingError):
    """It is no YAML or JSON, or nothing that is known here."""


@dataclass(frozen=True)
class Document:
    """``entries`` by dotted key; ``script``: the shell text of a job's entry point, with what its environment is set to."""

    source: Source
    framework: str | None
    entries: tuple[Entry, ...]
    script: str | None = None
    env: dict[str, str] | None = None


def read_document(path: Path, text: str) -> Document:
    """Raises DocumentError."""
    source = Source(path.absolute(), text)
    root = _compose(source)
    if root is None or type(root).__name__ != "MappingNode":
        raise DocumentError(_("{path} is no mapping of settings").format(path=path.name), where=path.name)
    found = tuple(_entries(source, root, "", 0, [0]))
    return Document(source, _framework(found), found, *_job(found))


def _compose(source: Source) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).compose(source.text)
    except (YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        name = source.path.name if source.path else "-"
        raise DocumentError(
            _("{path} is no YAML or JSON").format(path=name),
            where=f"{name}:{mark.line + 1}" if mark is not None else name,
            why=str(getattr(error, "problem", "") or error)[:200],
        ) from error


def _entries(source: Source, node: Any, prefix: str, depth: int, count: list[int]) -> Iterator[Entry]:
    count[0] += 1
    if count[0] > _MOST or depth > _DEEPEST:
        raise DocumentError(_("it has too many settings, or they are nested too deep"), where=source.where(0))
    kind = type(node).__name__
    if kind == "MappingNode" and node.value:
        for key, value in node.value:
            name = str(getattr(key, "value", "?"))
            yield from _entries(source, value, f"{prefix}.{name}" if prefix else name, depth + 1, count)
        return
    start, end = node.start_mark.index, node.end_mark.index
    if kind == "ScalarNode":
        text = str(node.value)
        style = node.style or ""
        if style in ("'", '"') and text.strip().lower() in ("null", "none", "~", ""):
            text = f"{style}{text}{style}"
        value = (Piece(text, source, start, end, style),)
    else:
        value = (Piece(source.text[start:end], source, start, end),)
    if "${" in source.text[start:end]:
        value = unknown(_("it refers to another setting: {text}").format(text=" ".join(source.text[start:end].split())))
    arg = Arg(value, source, start, end)
    yield Entry(prefix, value, arg, where=source.where(start))


def _framework(entries: tuple[Entry, ...]) -> str | None:
    names = {one.name for one in entries}
    heads = {name.partition(".")[0] for name in names}
    if "actor_rollout_ref" in heads or {"trainer", "data"} <= heads:
        return VERL
    flat = {name.replace("_", "-") for name in names}
    if flat & {"enforce-eager", "tensor-parallel-size", "gpu-memory-utilization", "max-num-batched-tokens"}:
        return VLLM
    return SGLANG if flat & {"mem-fraction-static", "disable-cuda-graph", "disable-radix-cache", "tp-size"} else None


def _job(entries: tuple[Entry, ...]) -> tuple[str | None, dict[str, str] | None]:
    """A RayJob's ``spec.entrypoint``, a task's ``run``: shell text, and the environment beside it."""
    texts = {one.name: one.text for one in entries}
    script = texts.get("spec.entrypoint") or texts.get("entrypoint") or texts.get("run")
    env = {
        name.partition(".")[2]: text
        for name, text in texts.items()
        if text is not None and name.partition(".")[0] in ("envs", "env")
    }
    return (script, env) if isinstance(script, str) and script.strip() else (None, None)


def as_flags(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """An engine's config file: its keys are flags without their dashes; ``true`` is a flag that is there."""
    found = []
    for one in entries:
        name = "--" + one.name.replace("_", "-")
        text = (one.text or "").lower()
        if text == "false":
            found.append(Entry("--no-" + name[2:], None, one.arg, where=one.where))
        else:
            found.append(Entry(name, None if text == "true" else one.value, one.arg, where=one.where))
    return tuple(found)
