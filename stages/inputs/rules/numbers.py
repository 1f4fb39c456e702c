"""Whole numbers that are calculated from settings, with the calculation in words: world size, DP, micro-batches."""

from __future__ import annotations

from dataclasses import dataclass

from locales import _
from stages.inputs.facts import Found
from stages.inputs.run import Run


@dataclass(frozen=True)
class Number:
    """``value`` is None when it is not known, with ``why``. ``how`` is the calculation; ``found`` the settings it rests on.
    ``wrong``: all is known, and there is no such number."""

    value: int | None
    how: str = ""
    why: str = ""
    found: tuple[Found, ...] = ()
    wrong: bool = False

    @classmethod
    def of(cls, found: Found | None, label: str) -> Number:
        if found is None:
            return cls(None, label, _("{label} is not known").format(label=label))
        if not found.known or not isinstance(found.value, int):
            return cls(None, label, found.why or _("{label} is not given").format(label=label), (found,), found.known)
        return cls(int(found.value), f"{label} {found.value}", "", (found,))

    def times(self, other: Number) -> Number:
        found = self.found + other.found
        if self.value is None or other.value is None:
            return self._without(other)
        return Number(self.value * other.value, f"{self.how} x {other.how}", "", found)

    def over(self, other: Number) -> Number:
        """Unknown, with the reason, where the division leaves a rest."""
        found = self.found + other.found
        if self.value is None or other.value is None:
            return self._without(other)
        if other.value < 1 or self.value % other.value:
            why = _("{a} = {x} cannot be divided by {b} = {y}")
            return Number(None, "", why.format(a=self.how, x=self.value, b=other.how, y=other.value), found, True)
        return Number(self.value // other.value, f"{self.how} / ({other.how})", "", found)

    def _without(self, other: Number) -> Number:
        """Of two numbers of which one is missing; what is unknown counts more than what is wrong."""
        missing = [one for one in (self, other) if one.value is None]
        first = next((one for one in missing if not one.wrong), missing[0])
        return Number(None, "", first.why, self.found + other.found, first.wrong)

    def __str__(self) -> str:
        return f"{self.how} = {self.value}"


ONE = Number(1, "1")


def world(run: Run) -> Number:
    """The training's processes."""
    return Number.of(run.get("train.nodes"), _("nodes")).times(
        Number.of(run.get("train.devices"), _("devices per node"))
    )


def model_parallel(run: Run) -> Number:
    """TP x PP x CP; for FSDP the size of the sequence-parallel group."""
    if run.framework == "verl" and run.backend == "fsdp":
        return Number.of(run.get("train.cp"), "SP")
    if run.framework == "verl" and run.backend != "megatron":
        why = _("how {backend} divides the devices is not known here").format(
            backend=run.backend or _("the training engine")
        )
        return Number(None, "", why)
    sizes = [Number.of(run.get(f"train.{name}"), name.upper()) for name in ("tp", "pp", "cp")]
    return sizes[0].times(sizes[1]).times(sizes[2])


def data_parallel(run: Run) -> Number:
    """DP = world / (TP x PP x CP)."""
    return world(run).over(model_parallel(run))


def sequences(run: Run) -> Number:
    """Sequences of one step: prompts x samples."""
    return Number.of(run.get("batch.prompts"), _("prompts")).times(Number.of(run.get("batch.samples"), _("samples")))


def global_batch(run: Run) -> Number:
    """slime, vime: sequences of one update: given, or from the number of updates."""
    given = run.get("batch.global")
    if given is not None and given.known and given.value is None:
        steps = run.get("batch.steps")
        if steps is not None and steps.known and isinstance(steps.value, int):
            return sequences(run).over(Number.of(steps, _("updates")))
    return Number.of(given, _("global batch"))
