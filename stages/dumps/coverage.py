"""Which layers a dump has, and which it should have. Hooks that a graph or a compiled model passes by leave no trace but a hole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from locales import _, ngettext
from stages.dumps.outline import Outline
from stages.dumps.problem import ERROR, WARNING, Problem
from stages.dumps.reading import said

_EAGER = _("run eager: enforce_eager=True, --sglang-disable-cuda-graph, TORCHDYNAMO_DISABLE=1")
_NEAR_EMPTY = 5  # entries


@dataclass(frozen=True)
class Coverage:
    """Of one step, all its ranks together: layers of the language model that have tensors, and those that are missing, None
    where that cannot be told."""

    layers: tuple[int, ...]
    missing: tuple[int, ...] | None
    problems: tuple[Problem, ...]

    @property
    def complete(self) -> bool | None:
        """None: unknown."""
        if any(one.level == ERROR for one in self.problems):
            return False
        return None if self.missing is None else not self.missing


def cover(outlines: Sequence[Outline], expected: int | None = None, pipeline: int = 1) -> Coverage:
    """Of the dumps of one step. ``expected``: layers of the model, all ranks together; without it only holes in the numbers can
    be told. ``pipeline``: ranks that share the layers out; some frameworks number those of each rank from 0."""
    own = [one for one in outlines if not one.empty]
    problems = [problem for one in own for problem in _by_itself(one)]
    present = {number for one in own if one.main for number, count in one.main[1].items() if count}
    if not any(one.modules for one in own):
        return Coverage((), None, tuple(_once(problems)))
    if expected is not None and pipeline > 1 and _numbered_from_zero(own, expected // pipeline):
        expected = expected // pipeline
    wanted = range(expected if expected is not None else max(present, default=-1) + 1)
    missing = tuple(number for number in wanted if number not in present)
    where = str(own[0].path)
    if missing:
        problems.append(_missing(missing, len(wanted), where))
    elif not present and expected != 0:
        problems.append(Problem("graph-mode", ERROR, _("no layer was dumped"), where, _EAGER))
    problems += _thin(own)
    known = expected is not None or bool(missing)
    return Coverage(tuple(sorted(present)), missing if known else None, tuple(_once(problems)))


def _numbered_from_zero(own: Sequence[Outline], share: int) -> bool:
    """Whether every rank has the layers from 0 up to its share."""
    return share > 0 and all(one.main is not None and set(one.main[1]) == set(range(share)) for one in own)


def _by_itself(one: Outline) -> Iterable[Problem]:
    where, name = str(one.path), said(one.path.parent.name)
    if not one.modules:
        what = _("{name} holds no module: level {level} hooks functions only").format(
            name=name, level=said(str(one.level))
        )
        yield Problem("no-modules", ERROR, what, where, _("level L0, or mix"))
    elif one.entries <= _NEAR_EMPTY:
        what = ngettext(
            "{name} holds {count} entry: hooks were passed by",
            "{name} holds {count} entries: hooks were passed by",
            one.entries,
        ).format(name=name, count=one.entries)
        yield Problem("near-empty", ERROR, what, where, _EAGER)
    if one.bare_count and one.task != "structure":
        what = ngettext(
            "{count} entry of {name} has no tensor: {entry}",
            "{count} entries of {name} have no tensor, the first: {entry}",
            one.bare_count,
        ).format(count=one.bare_count, name=name, entry=said(one.bare[0]))
        yield Problem("entries-without-tensors", WARNING, what, where)


def _missing(missing: Sequence[int], wanted: int, where: str) -> Problem:
    shown = ", ".join(map(str, missing[:12])) + (", …" if len(missing) > 12 else "")
    what = ngettext(
        "{count} layer of {wanted} is missing: {layers}",
        "{count} layers of {wanted} are missing: {layers}",
        len(missing),
    ).format(count=len(missing), wanted=wanted, layers=shown)
    return Problem("graph-mode", ERROR, what, where, _EAGER)


def _thin(own: Sequence[Outline]) -> Iterable[Problem]:
    """Layers that have half the entries of the usual layer, or fewer."""
    for one in own:
        if not one.main or len(one.main[1]) < 3:
            continue
        counts = sorted(one.main[1].values())
        usual = counts[len(counts) // 2]
        thin = [str(number) for number, count in sorted(one.main[1].items()) if count and count * 2 <= usual]
        if thin:
            what = _("layer {layers} has half the entries of the others, or fewer").format(layers=", ".join(thin[:12]))
            yield Problem("thin-layers", WARNING, what, str(one.path), _EAGER)


def _once(problems: Iterable[Problem]) -> Iterable[Problem]:
    """The same sentence of many ranks, once."""
    seen: set[tuple[str, str]] = set()
    for one in problems:
        if (one.name, one.what) not in seen:
            seen.add((one.name, one.what))
            yield one
