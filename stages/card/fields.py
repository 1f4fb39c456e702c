"""The facts that a task card may hold, declared once: for `task set`, for the check on reading, and for the schema.

A fact that nobody has told or found out is null, and shown as unknown. Nothing is filled in by guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from locales import _


@dataclass(frozen=True)
class Field:
    """``kind``: text, folder (an absolute path), choice (one of ``choices``), words (a command prefix: a list of texts), texts
    (a list of texts)."""

    kind: str
    help: str
    choices: tuple[str, ...] = ()


def _side(train: bool) -> dict[str, Field]:
    frameworks = ("verl", "slime", "vime", "own") if train else ("vllm", "vllm_ascend", "sglang", "transformers", "own")
    fields = {
        "framework": Field("choice", _("what runs this side"), frameworks),
        "version": Field("text", _("its version")),
        "prefix": Field(
            "words", _("what goes before a command to reach this side: ssh HOST, docker exec C, conda run -n E")
        ),
        "python": Field("text", _("the interpreter of this side's workers, as seen behind the prefix")),
        "checkout": Field("text", _("where the framework's source is, as seen behind the prefix")),
        "workdir": Field("folder", _("the folder that jobs start in (absolute)")),
        "log": Field("text", _("where its log goes")),
    }
    if train:
        fields["backend"] = Field("choice", _("what trains"), ("fsdp", "megatron", "deepspeed", "own"))
    return fields


FIELDS: Mapping[str, Field] = {
    "model.path": Field("text", _("folder of the weights, with config.json")),
    "model.name": Field("text", _("what people call the model")),
    "sample.id": Field("text", _("the fixed sample")),
    "sample.prompt_source": Field("text", _("where the prompt comes from: a file and a row, never the text")),
    **{f"train.{name}": field for name, field in _side(train=True).items()},
    **{f"infer.{name}": field for name, field in _side(train=False).items()},
    "hardware": Field("choice", _("what it runs on"), ("ascend", "cuda", "rocm", "cpu")),
    "baseline_command": Field("text", _("the command that works without any edit")),
    "artifacts": Field("folder", _("root folder of everything that the capture makes (absolute)")),
    "constraints": Field("texts", _("known limits: services that hold cards, PID namespaces, no root, ports")),
    "evidence_tool": Field("text", _("msprobe PrecisionDebugger, or its equal")),
    "scope": Field("text", _("what is captured")),
    "stop_condition": Field("text", _("when the capture is done")),
    "e2e_target": Field("text", _("a metric that shall hold in the end, if any")),
    "usage": Field("choice", _("dump: stages 0 to 7, then 9; analysis: 0 to 9"), ("dump", "analysis")),
}
