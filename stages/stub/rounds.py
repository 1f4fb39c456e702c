"""The rounds of a task: which number is next, where each round's dumps and sources are, and what the card remembers of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import Card
from stages.card.evidence import evidence, record
from stages.card.order import INSTRUMENT, STUB
from stages.stub.manifest import Manifest, read_manifest
from stages.stub.target import places


class StubRoundError(RefusedError):
    """The instruction is of another round than the next one; nothing was written."""


@dataclass(frozen=True)
class Folders:
    """Of one task. All is below ``root``, the card's artefact root, but what stage 6 put elsewhere."""

    root: Path
    first_dumps: dict[str, Path]
    first_configs: dict[str, Path]

    @classmethod
    def of(cls, card: Card) -> Folders:
        """Raises UsageError."""
        text = card.fact("artifacts")
        if text is None:
            raise UsageError(_("the artefact root is unknown"), todo=_("`probepatch task set artifacts=…`"))
        root = Path(text)
        dumps, configs = {}, {}
        for side in ("train", "infer"):
            told = instrumented(card, side)
            dumps[side] = Path(told.get("dump_path") or root / "dump" / side)
            configs[side] = Path(told.get("config") or root / "msprobe" / f"{side}.json")
        return cls(root, dumps, configs)

    def dump(self, round_: int, side: str) -> Path:
        return self.root / "dump" / f"round{round_}" / side if round_ else self.first_dumps[side]

    def sources(self, round_: int) -> Path:
        return self.root / f"stub_source_round{round_}"

    def config(self, round_: int, side: str) -> Path:
        return self.root / "msprobe" / f"{side}.round{round_}.json"

    def last_dump(self, before: int, side: str) -> Path:
        """The newest dump of a side; a round that only overrides, or was not run, has none."""
        for round_ in range(before - 1, 0, -1):
            if next(places(self.dump(round_, side)), None) is not None:
                return self.dump(round_, side)
        return self.first_dumps[side]


def instrumented(card: Card, side: str) -> dict[str, Any]:
    """What stage 6 left about a side; empty where it left nothing."""
    found = evidence(card, INSTRUMENT)
    told = found.result.get("sides", {}) if found is not None else {}
    return dict(told.get(side) or {}) if isinstance(told, dict) else {}


def pointing(card: Card, side: str, config: Path) -> dict[str, str]:
    """The variables that held the first config's path, with this one's; empty where an engine takes it as an option of its own."""
    told = instrumented(card, side)
    first, environment = told.get("config"), told.get("environment") or {}
    return {name: str(config) for name, value in environment.items() if first is not None and value == first}


def latest(card: Card) -> dict[str, Any] | None:
    """The last round that was prepared; None before the first."""
    found = evidence(card, STUB)
    return dict(found.result) if found is not None and type(found.result.get("round")) is int else None


def expect_next(card: Card, round_: int) -> None:
    """Raises StubRoundError."""
    last = latest(card)
    wanted = 1 if last is None else last["round"] + 1
    if round_ != wanted:
        raise StubRoundError(
            _("the instruction is of round {round}, and the next round is {wanted}").format(
                round=round_, wanted=wanted
            ),
            why=_("a number stands for one override only, also when its run failed"),
            todo=_('"round": {wanted} in the instruction, if it is meant for now').format(wanted=wanted),
        )


def in_hand(card: Card) -> Manifest:
    """The last round that was prepared. Raises UsageError, StubSourceError."""
    last = latest(card)
    if last is None:
        raise UsageError(
            _("no stub round was prepared"), todo=_("`probepatch stub prepare INSTRUCTION` prepares the next one")
        )
    return read_manifest(Path(last["source"]))


def remember(
    card: Card, manifest: Manifest, config: Path, dump_path: Path, verified: bool | None, files: Iterable[Path]
) -> None:
    """Leave the round in the card as stage 8's result; the rounds before it stay in ``earlier``."""
    last = latest(card) or {}
    earlier = list(last.pop("earlier", []))
    if last and last["round"] < manifest.round:
        earlier.append(last)
    result = {
        "round": manifest.round,
        "target_side": manifest.target_side,
        "entries": manifest.entries,
        "config": str(config),
        "dump_path": str(dump_path),
        "source": str(manifest.folder),
        "verified": verified,
        "earlier": earlier,
    }
    sentences = {
        None: _("stub round {round} is prepared; its run is not verified yet"),
        True: _("stub round {round}: every override took effect"),
        False: _("stub round {round}: an override did not take effect"),
    }
    summary = sentences[verified].format(round=manifest.round)
    record(card, STUB, verified is True, summary, files=files, facts=("artifacts",), result=result)
