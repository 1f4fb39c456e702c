"""What the commands of ``stub`` share: whether they work with a task card or with named folders."""

from __future__ import annotations

from typing import Any

from codemods.errors import UsageError
from locales import _


def without_card(named: dict[str, Any]) -> dict[str, Any] | None:
    """The folders, when all are named; None when none is. Raises UsageError for a part of them."""
    lacking = [name for name, value in named.items() if value is None]
    if not lacking:
        return named
    if len(lacking) == len(named):
        return None
    raise UsageError(
        _("without a task card all of these are needed; missing: {names}").format(names=", ".join(lacking)),
        todo=_("or none of them, with a task card"),
    )
