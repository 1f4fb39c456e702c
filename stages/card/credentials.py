"""Secrets do not go into a task card, nor into anything made from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SHAPES = (
    re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"),
    re.compile(r"\bhf_[A-Za-z0-9]{30,}|\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"),
    re.compile(r"\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{30,}|\bLTAI\w{12,}"),
    re.compile(r"\bsk-(?=[\w-]{0,60}[A-Z0-9])(?:proj-|ant-|or-)?[A-Za-z0-9_-]{20,}"),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
)
"""What is a key by its own form, whatever it is called."""

_URL = re.compile(r"\w://(?P<user>[^\s/:@'\"]{0,200})(?::(?P<value>[^\s/@'\"]{1,400}))?@")
_HEADER = re.compile(r"(?i)\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token)\s+)?(?P<value>[^\s'\"]{4,})")
_BEARER = re.compile(r"(?i)\bbearer\s+(?P<value>[\w.~+/=-]{8,}|\$\{?\w+\}?)")
_LOGIN = re.compile(
    r"\bsshpass\s+(?:-v\s+)?-p\s*(?P<a>\S+)|\bcurl\b[^|;&\n]{0,200}?\s(?:-u|--user)[ =]?\S+?:(?P<b>\S+)"
    r"|\bmysql(?:dump)?\b[^|;&\n]{0,200}?\s-p(?P<c>[^\s-]\S*)|\b(?:docker|podman|helm|hf|huggingface-cli)\s+login\b"
    r"[^|;&\n]{0,200}?\s(?:-p|--password|--token)[ =]\s*(?P<d>\S+)|\bwandb\s+login\s+(?:--\S+\s+)*(?P<e>\w{20,})"
)
_NAMED = re.compile(
    r"(?<![\w$])(?<!\$\{)(?P<option>-{1,2})?(?P<name>[A-Za-z][\w.-]{0,100})['\"]?\]?(?P<sign>\s{0,3}[=:]\s{0,3}|\s{1,3})"
    r"['\"\[]?(?P<value>[^\s'\",;&|}\])]{1,256})"
)
_ALWAYS = re.compile(
    r"(?:password|passwd|passphrase|pass_?code|secret|secret_?key|secret_?access_?key|api_?key|access_?key(?:_?id)?"
    r"|private_?key|auth_?key|wandb_?key|credentials?|account_?key|amz_signature)$"
)
_TOKEN = re.compile(r"(?:^|_)(?:token|pwd|pat)$")
_OF_TEXT = re.compile(
    r"(?:^|_)(?:pad|bos|eos|eod|unk|sep|cls|mask|stop|image|video|audio|special|start|end|begin|think|tool|per|max|min|num|new|next"
    r"|first|last|single|prompt|response|ignore|each|a|the|any|extra|by|every|of)_token$"
)
"""A ``token`` with one of these before it is a piece of text, and no key."""
_REFERENCE = re.compile(
    r"\\?\$\{?\w+(?::?[-?](?:none|null|dummy|empty)?)?\}?$|\$\([^)]*\)?$|%\w+%$|\*+$|<[^>]*>?$|[x.…]+$"
    r"|(?:true|false|yes|no|none|null|unknown|required|optional|auto|set|unset|hidden|redacted|missing|invalid|expired|is|not|was"
    r"|has|for|in|of|and|or|to|from)$",
    re.IGNORECASE,
)
"""What stands in a secret's place without being one: a variable, a placeholder, a word of a sentence."""
_PATH = re.compile(r"(?:~|\.{0,2})/")
_COUNT = re.compile(r"-?\d{1,9}(?:\.\d+)?[,;.]?|<\S*|\W+")
_HIDDEN = "***"


def looks_secret(text: str) -> bool:
    """Whether the text holds what is most likely a password, a token or a key. A variable's name (``token=$HF_TOKEN``), the path
    of a file that has it, and what counts tokens (``--max-tokens=4096``, ``pad_token=<pad>``) are none."""
    return next(_places(text), None) is not None


def without_secrets(text: str) -> str:
    """The text with every secret's own characters left out."""
    out, at = [], 0
    for start, end in sorted(_places(text)):
        if start >= at:
            out += [text[at:start], _HIDDEN]
        at = max(at, end)
    return "".join(out) + text[at:]


def hiding(value: Any) -> Any:
    """A structure of JSON with every secret in it hidden, those that only a key tells among them."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {
            without_secrets(str(key)): _HIDDEN if isinstance(item, str) and _by_key(key, item) else hiding(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, str) for item in value) and looks_secret(" ".join(value)):
            return without_secrets(" ".join(value)).split(" ")  # a command's words
        return [hiding(item) for item in value]
    return value


def secrets_in(value: Any, where: str = "") -> Iterator[str]:
    """The dotted places in a structure that hold a secret: in a text, in a key, by a key's name, or over a list's words."""
    if isinstance(value, str):
        if looks_secret(value):
            yield where
    elif isinstance(value, Mapping):
        for number, (key, item) in enumerate(value.items()):
            if looks_secret(str(key)):
                yield f"{where}.#{number}".lstrip(".")
                continue
            place = f"{where}.{key}" if where else str(key)
            if isinstance(item, str) and _by_key(key, item):
                yield place
            else:
                yield from secrets_in(item, place)
    elif isinstance(value, (list, tuple)):
        found = [place for number, item in enumerate(value) for place in secrets_in(item, f"{where}[{number}]")]
        words = [item for item in value if isinstance(item, str)]
        yield from found or ([where] if len(words) == len(value) and looks_secret(" ".join(words)) else [])


def _by_key(key: Any, item: str) -> bool:
    return _is_secret(str(key), item, assigned=True)


def _places(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of every secret."""
    for pattern in _SHAPES:
        yield from (found.span() for found in pattern.finditer(text))
    for found in _URL.finditer(text):
        name = "value" if found["value"] is not None else "user"
        if found[name] and not _REFERENCE.match(found[name]) and (name == "value" or len(found[name]) >= 20):
            yield found.span(name)
    for pattern in (_HEADER, _BEARER, _LOGIN):
        for found in pattern.finditer(text):
            name = next(name for name, value in found.groupdict().items() if value is not None)
            if not _REFERENCE.match(found[name]) and found[name].lower() not in ("bearer", "basic", "token"):
                yield found.span(name)
    at = 0
    while (one := _NAMED.search(text, at)) is not None:
        assigned = bool(one["sign"].strip())
        if (assigned or one["option"]) and _is_secret(one["name"], one["value"], assigned):
            yield one.span("value")
            at = one.end()
        else:
            at = one.end("name")


def _is_secret(name: str, value: str, assigned: bool) -> bool:
    """``name = value`` or ``--name value``."""
    key = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition(".")[2]).replace("-", "_").lower().strip("_")
    if len(value) < 4 or _REFERENCE.match(value) or (not assigned and value.startswith("-")):
        return False
    if _ALWAYS.search(key):
        return not _PATH.match(value)
    if not _TOKEN.search(key) or _PATH.match(value) or "://" in value:
        return False
    return not _COUNT.fullmatch(value) and not _OF_TEXT.search(key)
