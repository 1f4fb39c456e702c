"""A card as a vendor's tool tells it."""

from __future__ import annotations

from dataclasses import dataclass


class UnreadableError(ValueError):
    """The tool's answer is not what is known of it."""


@dataclass(frozen=True)
class Holder:
    """``pid``: as the tool counts; ``inside``: in its container, when the tool tells; ``memory``: MB, None when it does not say."""

    pid: int
    name: str
    memory: int | None
    inside: int | None = None


@dataclass(frozen=True)
class Card:
    """``id``: stays the same for one card (bus id, UUID); ``index``: as the visible-devices variables count; ``used`` and
    ``total`` in MB; ``holders``: None when the tool does not tell who holds it, which is not the same as nobody."""

    vendor: str
    id: str
    index: int | None
    name: str
    health: str | None
    used: int | None
    total: int | None
    holders: tuple[Holder, ...] | None


def number(text: str) -> int | None:
    """None for ``[N/A]``, ``UNKNOWN`` and the like."""
    try:
        return int(float(text.strip()))
    except (ValueError, OverflowError):
        return None
