"""Permissions: asked for once, in one question, recorded with time and scope; every acting command checks its own."""

from __future__ import annotations

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import PERMISSIONS, Card, now
from stages.card.typed import to_type

MEANING = {
    "AUTH_STOP_RUNNING_SERVICES": _("stop leftover services that hold cards, by exact process id"),
    "AUTH_EDIT_TARGET_CODE": _("change the frameworks' code and scripts for the time of the capture"),
    "AUTH_RUN_DUMP_JOB": _("start and stop the capture's jobs"),
    "AUTH_CLEAN_APPROVED_DIRS": _("delete the folders that are named as this capture's own"),
    "AUTH_RESTORE_CODE": _("put the code back afterwards"),
}


class NotPermittedError(RefusedError):
    """The command needs a permission that was not given; nothing was done."""


def permit(card: Card, granted: dict[str, bool], scope: str) -> None:
    """Record the answers; every permission is asked for together. Raises UsageError for a name that is none."""
    for name, yes in granted.items():
        if name not in PERMISSIONS:
            raise UsageError(
                _("`{name}` is no permission").format(name=name),
                todo=_("one of: {names}").format(names=", ".join(PERMISSIONS)),
            )
        card.data["permissions"][name] = {"granted": yes, "at": now(), "scope": scope}
    words = ", ".join(f"{name}={'yes' if yes else 'no'}" for name, yes in granted.items())
    card.note(_("permissions: {words}").format(words=words))


def demand(card: Card, *permissions: str) -> None:
    """Raises NotPermittedError naming all that lack."""
    lacking = [name for name in permissions if not card.permitted(name)]
    if lacking:
        wanted = [name for name in PERMISSIONS if name in lacking or card.permitted(name)]
        raise NotPermittedError(
            _("not permitted: {names}").format(names=", ".join(lacking)),
            why="; ".join(f"{name}: {MEANING[name]}" for name in lacking),
            todo=_("ask the user, then `{command}` (those that are not named count as refused)").format(
                command=to_type(card, f"probepatch task permit {' '.join(wanted)}")
            ),
        )
