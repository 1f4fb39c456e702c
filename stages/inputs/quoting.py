"""Quoting for all who parse a value again: the shell, hydra's override grammar, the second shell of ``ray job submit``."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from subprocess import list2cmdline
from typing import Any

from codemods.errors import FindingError
from locales import _
from stages.inputs.shell.expand import Expander
from stages.inputs.shell.nodes import Simple, Source
from stages.inputs.shell.parse import parse
from stages.inputs.shell.reading import Reading
from stages.inputs.shell.scope import Scope
from stages.inputs.shell.words import ShellSyntaxError

_HYDRA_PLAIN = re.compile(r"[A-Za-z0-9_./\-+%*@?|$^:]+")
_HYDRA_WORDS = re.compile(r"(?i)(?:true|false|null|nan|inf|[-+]?\d[\d_]*(?:\.\d*)?(?:e[-+]?\d+)?)")


class QuotingError(FindingError):
    """A value that would not arrive as it is."""


def for_shell(text: str) -> str:
    """One word of bash."""
    return shlex.quote(text)


def for_hydra(value: Any) -> str:
    """A value in hydra's override grammar: ``{a:1,b:[x,y]}``, texts quoted where the grammar needs it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_hydra_key(str(key))}:{for_hydra(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(for_hydra, value)) + "]"
    text = str(value)
    if _HYDRA_PLAIN.fullmatch(text) and not _HYDRA_WORDS.fullmatch(text) and text.isascii():
        return text
    return '"' + re.sub(r'(\\*)"', lambda found: found.group(1) * 2 + '\\"', _trailing(text)) + '"'


def _trailing(text: str) -> str:
    """Backslashes at the end would escape the closing quote."""
    bare = text.rstrip("\\")
    return bare + "\\" * (2 * (len(text) - len(bare)))


def _hydra_key(key: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w./\-]*", key):
        raise QuotingError(_("`{key}` cannot be a key in hydra's override grammar").format(key=key))
    return key


def override(name: str, value: Any, prefix: str = "") -> str:
    """``name=value`` for hydra, before the shell's quoting."""
    return f"{prefix}{name}={for_hydra(value)}"


def second_parse(texts: Sequence[str]) -> list[str | None] | None:
    """What arrives behind ``ray job submit --``: Ray joins the arguments as ``list2cmdline`` does and gives the line to a shell.

    None for an argument that a shell would make something else of; None at all when the line becomes more than one command. Shells
    that expand braces (bash as ``sh``) and shells that do not (dash) are both in use, so neither is relied on.
    """
    source = Source(None, list2cmdline(texts))
    try:
        nodes = parse(source).nodes
    except ShellSyntaxError:
        return None
    if len(nodes) != 1 or not isinstance(nodes[0], Simple) or nodes[0].redirects:
        return None
    node = nodes[0]
    if node.assigns:
        return None
    expander = Expander(source, Scope(), lambda _source, _scope, _body: None, Reading().spend)
    return [arg.text for arg in expander.args(node.words)]


def survives(text: str) -> bool:
    """Whether one argument arrives unchanged."""
    return second_parse(["x", text]) == ["x", text]


def for_ray(value: Any) -> str:
    """JSON as an argument behind ``ray job submit --``: compact, without a blank, and the same JSON after the second shell.

    Raises QuotingError when there is no such form: then a file's path is to be given.
    """
    compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for text in (compact, compact.replace(",", "\\,"), re.sub(r"([,$;'&|<>()*?#`])", r"\\\1", compact)):
        if " " in text or "\t" in text:
            continue
        arrived = second_parse(["x", text])
        if arrived is None or len(arrived) != 2 or arrived[1] is None:
            continue
        try:
            if json.loads(arrived[1]) == value:
                return text
        except ValueError:
            continue
    raise QuotingError(
        _("this JSON does not survive the second shell of `ray job submit`"),
        todo=_("write it into a file, and give the file's path"),
    )


def in_quotes(text: str, quote: str) -> str:
    """``text`` as it has to be written within quotes that are already there. Raises QuotingError."""
    if quote == '"':
        return re.sub(r'([\\"$`])', r"\\\1", text)
    if quote == "<<":
        return re.sub(r"([\\$`])", r"\\\1", text)
    if quote == "'":
        return text.replace("'", "'\\''")
    if quote == "<<'":
        return text
    if quote == "" and re.fullmatch(r"[\w./:=,@%+-]*", text):
        return text
    raise QuotingError(_("`{text}` cannot be written there without quotes").format(text=text[:60]))
