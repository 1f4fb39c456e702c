"""Before a run: whether the cards are free, compared with what the preflight recorded of them when they were idle."""

from __future__ import annotations

from collections.abc import Collection

from stages.card.card import Card
from stages.card.evidence import evidence
from stages.card.order import PREFLIGHT
from stages.preflight import cards
from stages.preflight.asking import ask
from stages.preflight.baseline import read
from stages.preflight.finding import PROBLEM, Finding
from stages.preflight.places import visit


def memory(card: Card, keep: Collection[int] = ()) -> list[Finding]:
    """One finding for each card; of a place without any, that none is used or that nothing is known."""
    places, reached = visit(card, [])
    tools = {
        place.name: ask(place.side, "paths", {"paths": {}, "commands": list(cards.TOOLS)})["commands"]
        for place in places
    }
    seen, unseen = cards.see(places, tools, card.fact("hardware"))
    command = card.fact("baseline_command")
    baseline = read(command, card.fact("train.workdir"), card.words("train.prefix")) if command else None
    visible = baseline.cards if baseline is not None else None
    found = evidence(card, PREFLIGHT)
    idle = found.result.get("baseline_mb", {}) if found is not None else {}
    problems = [one for one in reached if one.state == PROBLEM]
    return [*problems, *unseen, *cards.check(seen, places, idle, visible, keep)]
