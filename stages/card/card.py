"""A task card in memory: facts by dotted name, permissions, evidence by stage, and a log that only grows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from codemods.errors import InvalidError, UsageError
from locales import _
from stages.card.credentials import looks_secret, secrets_in, without_secrets
from stages.card.fields import FIELDS

FORMAT = "probepatch/task-card/1"
PERMISSIONS = (
    "AUTH_STOP_RUNNING_SERVICES",
    "AUTH_EDIT_TARGET_CODE",
    "AUTH_RUN_DUMP_JOB",
    "AUTH_CLEAN_APPROVED_DIRS",
    "AUTH_RESTORE_CODE",
)
STANDARD = {
    "scope": _("prefill of one fixed sample, deterministic"),
    "stop_condition": _("comparable prefill dumps of both sides"),
}


class CardError(InvalidError):
    """The task card is not valid."""


class SecretError(UsageError):
    """Something that looks like a credential was to go into the card."""


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).replace(microsecond=0).isoformat().replace("+00:00", "Z")


@dataclass
class Card:
    """``data`` is the JSON document; all access goes by the declared names. ``path`` is where it was read from, if it was."""

    data: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None

    @classmethod
    def new(cls) -> Card:
        facts: dict[str, Any] = dict.fromkeys(FIELDS)
        facts |= {name: str(text) for name, text in STANDARD.items()}
        card = cls(
            {
                "format": FORMAT,
                "created": now(),
                "facts": facts,
                "permissions": {},
                "stages": {},
                "log": [],
                "edits": [],
            }
        )
        card.note(_("the card was made"))
        return card

    @classmethod
    def read(cls, data: Any) -> Card:
        """From JSON. Raises CardError."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise CardError(_("this is no task card of the format {format}").format(format=FORMAT))
        shapes = {"facts": dict, "permissions": dict, "stages": dict, "log": list, "edits": list}
        wrong = [key for key, kind in shapes.items() if not isinstance(data.get(key), kind)]
        unknown = [name for name in data.get("facts", {}) if name not in FIELDS] if "facts" not in wrong else []
        if wrong or unknown:
            raise CardError(_("the task card has a wrong part: {parts}").format(parts=", ".join(wrong or unknown)))
        return cls(data)

    # --- facts ---------------------------------------------------------------------------------------------------------

    def fact(self, name: str) -> Any:
        """The fact, None when it is unknown. Raises KeyError for a name that is not declared."""
        assert name in FIELDS, name
        return self.data["facts"].get(name)

    def words(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty when it is unknown."""
        return tuple(self.fact(name) or ())

    def set(self, name: str, text: str) -> None:
        """Set a fact from what a user typed; ``unknown`` takes it back. Raises UsageError, SecretError."""
        known = FIELDS.get(name)
        if known is None:
            near = get_close_matches(name, FIELDS, 1)
            raise UsageError(
                _("a task card has no field `{name}`").format(name=without_secrets(name[:60])),
                todo=_("did you mean `{near}`?").format(near=near[0])
                if near
                else _("`probepatch task show` lists them"),
            )
        if looks_secret(text) or looks_secret(f"{name}={text}"):
            raise SecretError(
                _("what `{name}` was to be set to looks like a credential, and was not stored").format(name=name),
                todo=_("keep it in an environment variable or an ssh agent, and name that"),
            )
        self.put(name, None if text.strip().lower() in ("", "unknown") else _typed(name, text))

    def put(self, name: str, value: Any) -> None:
        """Set a fact to a value of its kind."""
        assert name in FIELDS, name
        if self.data["facts"].get(name) != value:
            self.data["facts"][name] = value
            self.note(_("{name} is set").format(name=name))

    # --- permissions ---------------------------------------------------------------------------------------------------

    def permitted(self, permission: str) -> bool:
        assert permission in PERMISSIONS, permission
        return bool(self.data["permissions"].get(permission, {}).get("granted"))

    def note(self, what: str) -> None:
        """Add a line to the log. Raises SecretError."""
        if looks_secret(what):
            raise SecretError(_("a line with a credential was not written into the log"))
        self.data["log"].append({"at": now(), "what": what})

    def checked(self) -> Mapping[str, Any]:
        """The document, to be written. Raises SecretError when a secret is anywhere in it."""
        found = list(secrets_in(self.data))
        if found:
            raise SecretError(_("the card would hold a credential at {places}").format(places=", ".join(found[:3])))
        return self.data


def _typed(name: str, text: str) -> Any:
    field_ = FIELDS[name]
    if field_.kind == "choice" and text not in field_.choices:
        raise UsageError(
            _("`{text}` is no value for {name}").format(text=text, name=name),
            todo=_("one of: {choices}").format(choices=", ".join(field_.choices)),
        )
    if field_.kind in ("words", "texts"):
        try:
            return shlex.split(text)
        except ValueError as error:
            raise UsageError(_("`{text}` cannot be split into words").format(text=text), why=str(error)) from error
    if field_.kind == "folder" and not text.startswith("/"):
        raise UsageError(
            _("`{text}` is no absolute path").format(text=text),
            todo=_("{name}=/…, as seen where it is used").format(name=name),
        )
    return text
