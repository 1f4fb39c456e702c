"""How an engine's request id comes from the caller's: rules read in the frameworks' sources, each with its name.

An id is taken apart from the outside in, each rule at most once. A UUID is never shortened: what vLLM appends has 8 digits, a
UUID's last group 12.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

EXACT = "exact"
SHA256 = "prompt_sha256"
"""Not by id at all, but by the hash of the prompt's token ids."""


@dataclass(frozen=True)
class Rule:
    """``pattern`` leaves the caller's part in its only group. Rules of one ``layer`` exclude each other; 0 is the outermost."""

    name: str
    layer: int
    pattern: re.Pattern[str]
    source: str


RULES = (
    Rule("vllm-sample", 0, re.compile(r"\d{1,4}_(.+)"), "vLLM, v1/engine/parallel_sampling.py: n > 1 gives 0_ID, 1_ID"),
    Rule(
        "vllm-suffix",
        1,
        re.compile(r"(.+)-[0-9a-f]{8}"),
        "vLLM from 0.14 on, v1/engine/input_processor.py: ID-xxxxxxxx",
    ),
    Rule(
        "openai-server",
        2,
        re.compile(r"(?:cmpl|chatcmpl|generate-tokens)-(.+)"),
        "vLLM's servers: the header X-Request-Id behind the name of the entrance",
    ),
    Rule(
        "openai-server-index",
        2,
        re.compile(r"(?:cmpl|chatcmpl|generate-tokens)-(.+)[-_]\d{1,6}"),
        "the same, with the prompt's index in the call: cmpl-ID-0, chatcmpl-ID_0",
    ),
    Rule(
        "verl-prefill", 3, re.compile(r"(.+)_P"), "verl from 0.9 on, prefill and decode apart: ID_P computes the prompt"
    ),
)
"""verl's decode side is ID_D: it gets the prompt's KV cache sent, so its line is no prefill, and there is no rule for it."""


_ID = re.compile(r"[\w.:@/+=~#|-]{1,200}", re.ASCII)
_TEXT = re.compile(
    r"((?:\d{1,4}_)?(?:(?:cmpl|chatcmpl|generate-tokens)-)?)(.+?)((?:[-_]\d{1,6})?(?:_P)?(?:-[0-9a-f]{8})?)", re.DOTALL
)


def request_name(text: str) -> str:
    """An id as it is. What is no id but a text may be a prompt: it goes by its hash, between what the rules take off, so that it is
    tied as it would be by itself."""
    if _ID.fullmatch(text):
        return text
    parts = _TEXT.fullmatch(text)
    before, core, after = parts.groups() if parts is not None else ("", text, "")
    return f"{before}text-{hashlib.sha256(core.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}{after}"


def origins(engine_id: str, rules: tuple[Rule, ...] = RULES) -> dict[str, tuple[str, ...]]:
    """The ids that a caller may have given -> the rules that lead there, fewest first; without the id itself."""
    found: dict[str, tuple[str, ...]] = {engine_id: ()}
    for layer in sorted({rule.layer for rule in rules}):
        for known, names in list(found.items()):
            for rule in rules:
                match = rule.pattern.fullmatch(known) if rule.layer == layer else None
                if match:
                    found.setdefault(match[1], (*names, rule.name))
    del found[engine_id]
    return dict(sorted(found.items(), key=lambda item: len(item[1])))
