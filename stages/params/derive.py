"""Named ways to read a value as the other side writes it: ``train_as`` and ``infer_as`` of a mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stages.params.values import on

_PLAIN_ATTENTION = "full_attention"


def _present(value: Any, config: Mapping[str, Any]) -> bool:
    """The module is there when its size is given."""
    return on(value)


def _negated(value: Any, config: Mapping[str, Any]) -> Any:
    return value if value is None else not on(value)


def _leading_zeros(value: Any, config: Mapping[str, Any]) -> Any:
    """A list of layers, 0 for dense and 1 for MoE, as the number of dense layers at its start; any other list as it is."""
    if not isinstance(value, list) or not value or any(type(one) is not int for one in value):
        return 0 if type(value) is int and value == 1 else value
    dense = next((number for number, one in enumerate(value) if one), len(value))
    return dense if all(value[dense:]) else value


def _mixed_layers(value: Any, config: Mapping[str, Any]) -> Any:
    """Layer kinds, when they differ: a list of nothing but full attention says what its absence says."""
    return None if isinstance(value, list) and set(map(str, value)) <= {_PLAIN_ATTENTION} else value


def _window(value: Any, config: Mapping[str, Any]) -> Any:
    """A sliding window that is not switched off beside it."""
    return None if config.get("use_sliding_window") is False else value


def _default_rope(value: Any, config: Mapping[str, Any]) -> Any:
    """``default`` and ``rope`` mean no scaling, as its absence does."""
    return None if value in ("default", "rope", "none") else value


DERIVED: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "present": _present,
    "not": _negated,
    "leading-zeros": _leading_zeros,
    "mixed-layers": _mixed_layers,
    "window": _window,
    "rope-scaling": _default_rope,
}
