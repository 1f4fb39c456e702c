"""The one question that a user is asked: five permissions, and what is known of where they would be used."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from locales import _
from stages.card.card import PERMISSIONS, Card
from stages.card.permissions import MEANING


@dataclass(frozen=True)
class Asked:
    """A fact that goes with the question; ``value`` None while it is unknown."""

    name: str
    label: str
    value: str | None


def asked(card: Card) -> list[Asked]:
    """How the sides are reached, what runs there, the work folders, the baseline command, the logs, the artefact root."""
    found = []
    for side, title in (("train", _("training side")), ("infer", _("inference side"))):
        for name, label in (
            ("prefix", _("reached by (ssh target, container, environment)")),
            ("python", _("interpreter (activation)")),
            ("workdir", _("work folder")),
            ("log", _("log")),
        ):
            value = _text(card, f"{side}.{name}")
            if name == "prefix" and value is None and card.fact(f"{side}.python") is not None:
                value = _("nothing: it runs on this machine")
            found.append(Asked(f"{side}.{name}", f"{title}: {label}", value))
    found.append(Asked("baseline_command", _("baseline command"), _text(card, "baseline_command")))
    found.append(Asked("artifacts", _("root of everything that the capture writes"), _text(card, "artifacts")))
    return found


def _text(card: Card, name: str) -> str | None:
    value = card.fact(name)
    return shlex.join(value) if isinstance(value, list) else value


def question(card: Card) -> Iterator[str]:
    """Its lines, as one would put it to the user."""
    yield _("May this capture do the following? It is asked once; each may be refused by itself.")
    for name in PERMISSIONS:
        yield f"  {name}: {MEANING[name]}"
    yield _("It would be done here:")
    for fact in asked(card):
        yield f"  {fact.label}: {fact.value if fact.value is not None else _('unknown')}"
