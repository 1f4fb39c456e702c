"""Config files as they are found: a raw HF config.json, a dumped provider, a run's YAML. Read strictly, and told apart."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codemods.errors import InvalidError, UsageError
from locales import _
from stages.card.evidence import digest

EFFECTIVE = "probepatch/effective-config/1"
HF, MEGATRON, DUMPED, UNKNOWN = "hf", "megatron", "effective", "unknown"
_LARGEST = 32 << 20  # bytes
_LARGEST_YAML = 1 << 20
_DEEPEST = 40
_MOST, _MOST_SETTINGS = 2_000_000, 20_000  # values of a file, members of a config
_LARGEST_NUMBER = 1024  # bits
_MEGATRON = {
    *("num_layers", "ffn_hidden_size", "layernorm_epsilon", "norm_epsilon", "num_query_groups", "kv_channels"),
    *("add_bias_linear", "add_qkv_bias", "rotary_base", "rotary_percent", "gated_linear_unit", "qk_layernorm"),
    *("share_embeddings_and_output_weights", "moe_router_topk", "num_moe_experts", "multi_latent_attention"),
    "params_dtype",
}
_HF = {
    *("model_type", "architectures", "transformers_version", "num_hidden_layers", "rms_norm_eps", "torch_dtype"),
    *("num_key_value_heads", "hidden_act", "rope_parameters", "num_local_experts", "_name_or_path"),
}
TEXT_SECTIONS = ("text_config", "llm_config", "language_config", "thinker_config.text_config", "thinker_config")
"""Where a multimodal model's config keeps its language model."""


class ConfigError(InvalidError):
    """A config, mapping or module list is not valid."""


@dataclass(frozen=True)
class Config:
    """``values`` as in the file; ``kind`` what it looks like; ``undeclared`` what was set on a provider whose class has no such
    field, None when that is unknown; ``at_default`` the names that nobody set; ``bridge_file`` the source of the bridge, as the
    training side sees it."""

    path: Path
    values: Mapping[str, Any]
    kind: str
    undeclared: Mapping[str, Any] | None = None
    at_default: frozenset[str] = frozenset()
    provider_class: str | None = None
    bridge_file: str | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def model_type(self) -> str | None:
        """The language model's own, where a multimodal one wraps it."""
        for section in (*TEXT_SECTIONS, ""):
            found = _section(self.values, section)
            if isinstance(found, Mapping) and isinstance(found.get("model_type"), str):
                return str(found["model_type"])
        return None


def read_config(path: Path) -> Config:
    """Raises UsageError, ConfigError."""
    if os.path.isdir(path) and os.path.isfile(path / "config.json"):
        path = path / "config.json"
    data = read_object(path, _("config"))
    if _members(data) > _MOST_SETTINGS:
        raise ConfigError(_("a config has at most {count} settings").format(count=_MOST_SETTINGS), where=str(path))
    if data.get("format") == EFFECTIVE:
        return _dumped(path, data)
    if data.get("error") and "format" not in data:
        raise ConfigError(_("{path} holds an error, no config").format(path=path))
    for root in ("model", "model_config", "transformer"):
        inner = data.get(root)
        if isinstance(inner, Mapping) and _looks(inner) == MEGATRON and _looks(data) != MEGATRON:
            note = _("the part `{root}` of {path} is compared").format(root=root, path=path.name)
            return Config(path, inner, MEGATRON, notes=(note,))
    return Config(path, data, _looks(data))


def _members(data: Any) -> int:
    if isinstance(data, dict):
        return len(data) + sum(_members(value) for value in data.values())
    return sum(_members(value) for value in data) if isinstance(data, list) else 0


def _dumped(path: Path, data: Mapping[str, Any]) -> Config:
    values, undeclared, default = data.get("config"), data.get("undeclared"), data.get("at_default") or []
    wrong = (
        not isinstance(values, dict) or not isinstance(undeclared, (dict, type(None))) or not isinstance(default, list)
    )
    if wrong or not values:
        raise ConfigError(_("{path} is no whole dump of a provider").format(path=path))
    assert isinstance(values, dict)
    notes = []
    if data.get("finalized") is False:
        notes.append(_("the provider was not finalized; derived fields may be unset"))
    if data.get("stubbed"):
        notes.append(_("made with a stand-in for {names}").format(names=", ".join(map(str, data["stubbed"]))))
    name = data.get("provider_class")
    default_names = frozenset(one for one in default if isinstance(one, str))
    bridge = data.get("bridge_file")
    bridge_file = bridge if isinstance(bridge, str) and bridge and "\0" not in bridge else None
    made_of = data.get("bridge_sha256")
    if bridge_file is not None and made_of is not None and digest(Path(bridge_file)) not in ("missing", made_of):
        notes.append(_("{path} has changed since the provider was made of it").format(path=bridge_file))
    provider = name if isinstance(name, str) else None
    return Config(path, values, DUMPED, undeclared, default_names, provider, bridge_file, tuple(notes))


def _looks(data: Mapping[str, Any]) -> str:
    """By its names: two of one world and fewer of the other."""
    if "_target_" in data and "Provider" in str(data["_target_"]):
        return MEGATRON
    inner = next((part for name in TEXT_SECTIONS if isinstance(part := _section(data, name), Mapping)), {})
    names = {*data, *inner}
    megatron, hf = len(names & _MEGATRON), len(names & _HF)
    if megatron >= 2 and megatron > hf:
        return MEGATRON
    return HF if hf >= 2 else UNKNOWN


def _section(data: Mapping[str, Any], dotted: str) -> Any:
    found: Any = data
    for part in dotted.split(".") if dotted else ():
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def read_object(path: Path, what: str) -> dict[str, Any]:
    """A JSON (or, by its suffix, YAML) object with string keys. Raises UsageError, ConfigError."""
    return parse_object(_text(path, what), path, what)


def parse_object(text: str, path: Path, what: str) -> dict[str, Any]:
    """A file's text as :func:`read_object` reads it. Raises ConfigError."""
    try:
        data = _yaml(text) if path.suffix.lower() in (".yaml", ".yml") else _json(text.removeprefix("\ufeff"))
        _check(data, 0)
    except RecursionError as error:
        raise ConfigError(_("the {what} is nested too deeply").format(what=what), where=str(path)) from error
    except ValueError as error:
        why = " ".join(str(error).split())[:200]
        raise ConfigError(_("the {what} cannot be read").format(what=what), where=str(path), why=why) from error
    if not isinstance(data, dict):
        raise ConfigError(_("the {what} holds no object").format(what=what), where=str(path))
    return data


def _text(path: Path, what: str) -> str:
    try:
        if not os.path.isfile(path):
            raise UsageError(_("there is no file {path}").format(path=path))
        if path.stat().st_size > _LARGEST:
            raise ConfigError(
                _("the {what} is larger than {size} bytes").format(what=what, size=_LARGEST), where=str(path)
            )
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(_("the {what} is no UTF-8 text").format(what=what), where=str(path)) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(_("{path} cannot be read").format(path=path), why=why) from error


def _json(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once, parse_float=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is no finite number")
    return number


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _value in pairs)
        raise ValueError(f"a key stands twice: {next(name for name in counts if counts[name] > 1)}")
    return found


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if len(text) > _LARGEST_YAML:
        raise ValueError(f"YAML of more than {_LARGEST_YAML} characters")
    try:
        _check_events(YAML(typ="safe", pure=False).parse(text))
        return YAML(typ="safe", pure=False).load(text)
    except YAMLError as error:
        raise ValueError(str(error)) from error


def _check_events(events: Iterable[Any]) -> None:
    """Before libyaml builds anything: nesting would take it down, and an alias of an alias of … would take all memory."""
    sizes: dict[str, int] = {}
    open_nodes: list[list[Any]] = [[None, 1]]
    for event in events:
        kind = type(event).__name__
        if kind == "AliasEvent":
            open_nodes[-1][1] += sizes.get(event.anchor, 1)
        elif kind == "ScalarEvent":
            open_nodes[-1][1] += 1
            sizes[event.anchor] = 1
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            open_nodes.append([event.anchor, 1])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            anchor, size = open_nodes.pop()
            sizes[anchor] = size
            open_nodes[-1][1] += size
        if len(open_nodes) > _DEEPEST + 1:
            raise RecursionError
        if open_nodes[-1][1] > _MOST:
            raise ValueError("its aliases stand for more values than can be read")


def _check(data: Any, depth: int) -> int:
    """How many values there are. Keys are text, values are JSON (a YAML date becomes none of ours)."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(data, dict):
        if wrong := [key for key in data if not isinstance(key, str)]:
            raise ValueError(f"a key is no text: {wrong[0]!r}")
        return 1 + sum(_check(value, depth + 1) for value in data.values())
    if isinstance(data, list):
        return 1 + sum(_check(value, depth + 1) for value in data)
    if isinstance(data, int) and data.bit_length() > _LARGEST_NUMBER:
        raise ValueError(f"a number has more than {_LARGEST_NUMBER} bits")
    if isinstance(data, float) and (data != data or data in (float("inf"), float("-inf"))):
        raise ValueError("a number is not finite")
    if not isinstance(data, (str, int, float, bool, type(None))):
        raise ValueError(f"a value is no plain one: {type(data).__name__}")
    return 1
