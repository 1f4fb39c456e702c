"""Secrets do not go into a task card, nor into anything made from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(r"\b(?:hf|ghp|gho|ghs|github_pat|glpat|sk|xox[abprs]|AKIA|ASIA)[-_]?[A-Za-z0-9_-]{16,}\b"),
    re.compile(r"(?i)\b(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|credential)s?\s*[=:]\s*\S{4,}"),
    re.compile(r"(?i)(?:--?(?:password|passwd|token|api[_-]?key|secret)[= ]|\bsshpass\s+-p\s*)\S+"),
    re.compile(r"://[^/\s:@]+:[^/\s@]+@"),
    re.compile(r"(?i)\bauthorization:\s*\S+|\bbearer\s+[A-Za-z0-9._-]{12,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\b"),
)
_NAMES = re.compile(r"(?i)\$\{?\w+\}?$|^(?:unknown|none|null|\*+|<[^>]*>)$")


def looks_secret(text: str) -> bool:
    """Whether the text holds what is most likely a password, a token or a key. A variable's name (``token=$HF_TOKEN``) is none."""
    for pattern in _SECRETS:
        for found in pattern.finditer(text):
            value = re.split(r"[=:\s]+", found.group().strip())[-1]
            if not _NAMES.search(value):
                return True
    return False


def secrets_in(value: Any, where: str = "") -> Iterator[str]:
    """The dotted places in a structure that hold a secret."""
    if isinstance(value, str):
        if looks_secret(value):
            yield where
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_in(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from secrets_in(item, f"{where}[{number}]")
