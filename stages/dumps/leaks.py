"""What must not leave the machine with the package: credentials, prompts, tokens, values of tensors. Whatever looks like one keeps
the package from being written; the places are told, never what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from codemods.errors import RefusedError
from locales import _
from stages.card.credentials import secrets_in

_TEXTS = re.compile(
    r"(?:(?:raw|full|chat|user|system|input|output|sample)_)?(?:prompts?|responses?|completions?|messages?|texts?|questions?|answers?"
    r"|quer(?:y|ies)|conversations?)(?:_(?:text|texts|str|string|content|raw|ids|tokens|token_ids|sha256))?"
    r"|(?:prompt_|input_|output_|response_|completion_)?(?:token_?ids?|ids)|(?:prompt_|input_|token_)*log_?probs?"
    r"|input_ids|tokens_ids|differences|hidden_states|logits|embeddings?|tensors?_data|values_of_tensors"
)
"""Keys under which prompts, tokens and values of theirs would lie; ``prompt_tokens`` counts them."""
_COUNTED = ("prompt_tokens", "response_tokens", "completion_tokens")
_COUNTS = ("rank", "ranks", "step", "steps", "shape", "missing_layers", "devices")
"""Keys whose lists of numbers are no values of tensors: they count up, or are the sizes of a few axes."""
_LONGEST = 4096  # characters of a text: a command, a sentence
_MOST_NUMBERS, _MOST_AXES = 4, 8
_MOST_NAMED = 32  # numbers of one object, each under its own name
_SERIES = re.compile(r"(?<![\w.])-?\d[\d.eE+-]*(?:[\[\]\s]*[,;\s][\[\]\s]*-?\d[\d.eE+-]*){5,}")
_ASSIGNED = re.compile(
    r"(?i)(?<![\w.])(?:-{0,2})(?:raw_)?(?:prompt|prompts|question|messages|input_text)['\"]?\s*(?:[=:]\s*|\s+(?=['\"]))"
    r"(?:(['\"])(?P<quoted>[^'\"]*)|(?P<bare>\S+))"
)


class LeakError(RefusedError):
    """The package would hold something that must not leave the machine; nothing was written."""


def check_leaks(document: Mapping[str, Any]) -> None:
    """Raises LeakError with the places, never with what is there."""
    found = [
        *(_("{place}: a credential").format(place=place) for place in secrets_in(document)),
        *_leaks(document, ""),
    ]
    if found:
        raise LeakError(
            _("the package would hold what must not leave this machine"),
            why="; ".join(dict.fromkeys(found[:4])),
            todo=_("correct the card or the configs that it comes from; nothing was written"),
        )


def _leaks(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, str):
        yield from _in_text(value, where)
    elif isinstance(value, Mapping):
        yield from _in_object(value, where)
    elif isinstance(value, (list, tuple)):
        numbers = list(_numbers(value))
        if len(numbers) > _MOST_NUMBERS and not _counts(numbers, where):
            yield _("{place}: a list of {count} numbers").format(place=where, count=len(numbers))
            return
        for number, item in enumerate(value):
            yield from _leaks(item, f"{where}[{number}]")


def _in_object(value: Mapping[str, Any], where: str) -> Iterator[str]:
    for number, (key, item) in enumerate(value.items()):
        name = str(key)
        odd = len(name) > 200 or not name.isprintable() or next(_in_text(name, ""), None) is not None
        inner = f"{where}.#{number}" if odd else f"{where}.{name}".lstrip(".")
        if odd:
            yield _("{place}: a key that is a text").format(place=inner)
        elif _is_text(name, item) and not isinstance(item, bool):
            yield _("{place}: a prompt, tokens, or values of theirs").format(place=inner)
        else:
            yield from _leaks(item, inner)
    if sum(_is_number(one) for one in value.values()) > _MOST_NAMED:
        yield _("{place}: an object of numbers").format(place=where)


def _is_text(key: str, item: Any) -> bool:
    """By a key's last part, however it is written: ``data.promptText`` is ``prompt_text``."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key.rpartition(".")[2])
    name = re.sub(r"\W+", "_", name).strip("_").lower()
    return not (name in _COUNTED and isinstance(item, int)) and _TEXTS.fullmatch(name) is not None


def _in_text(value: str, where: str) -> Iterator[str]:
    if len(value) > _LONGEST or value.count("\n") > 20:
        yield _("{place}: a long text").format(place=where)
        return
    if any(not _in_order(_parts(found.group())) for found in _SERIES.finditer(value)):
        yield _("{place}: a series of numbers").format(place=where)
    for found in _ASSIGNED.finditer(value):
        told = found["quoted"] if found["quoted"] is not None else found["bare"]
        if " " in told.strip() or len(told) > 40:
            yield _("{place}: a prompt").format(place=where)
            return


def _parts(text: str) -> list[float]:
    """Of a series; one that is no number (a date, a version) is left out."""
    out = []
    for part in re.split(r"[\[\],;\s]+", text):
        try:
            out.append(float(part))
        except ValueError:
            continue
    return out if len(out) > 5 else []


def _in_order(numbers: list[float]) -> bool:
    """Up or down, as ranks, steps, layers and devices are listed."""
    signs = {(after > before) - (after < before) for before, after in pairwise(numbers)}
    return signs <= {1} or signs == {-1}


def _numbers(value: Any) -> Iterator[float]:
    """Of nested lists."""
    for one in value:
        if isinstance(one, (list, tuple)):
            yield from _numbers(one)
        elif _is_number(one):
            yield one


def _counts(numbers: list[float], where: str) -> bool:
    """Whether the numbers of a list are what its key says, and not values under a harmless name."""
    whole = all(isinstance(one, int) and one >= 0 for one in numbers)
    known = re.sub(r"\[\d+\]$", "", where).rpartition(".")[2] in _COUNTS
    return known and whole and (_in_order(numbers) or len(numbers) <= _MOST_AXES)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
