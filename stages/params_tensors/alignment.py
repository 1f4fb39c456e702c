"""Both sides opened, named alike and paired; then their structure, or their weights, as one report."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from locales import _
from stages.card.evidence import digest
from stages.params_tensors.naming import Numbers, named
from stages.params_tensors.opening import open_side
from stages.params_tensors.pairing import INFER, TRAIN, Wish, pair
from stages.params_tensors.rules import Rules, load_rules
from stages.params_tensors.sample import SMALL, fingerprint
from stages.params_tensors.tensors import Problem, Side
from stages.params_tensors.verdicts import EXACT, MISSING_SIDE, UNSUPPORTED, WORDS, Finding, Pairing, overall

TIED, VOCABULARY = "tie_word_embeddings", "vocab_size"


@dataclass(frozen=True)
class Options:
    """``names`` are the rules by side; ``numbers`` of the model override its config; ``ignore`` are further patterns."""

    names: Mapping[str, str]
    numbers: Mapping[str, int]
    ignore: tuple[str, ...] = ()
    torch_python: str | None = None


@dataclass(frozen=True)
class Opened:
    sides: Mapping[str, Side]
    pairing: Pairing
    problems: tuple[tuple[str, Problem], ...]

    @property
    def bytes_to_compare(self) -> int:
        return sum(one.train.length for one in self.pairing.pairs)


@dataclass(frozen=True)
class Report:
    """What `structure` or `weights` found."""

    kind: str
    opened: Opened
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        return overall(self.findings, not any(problem.fatal for _side, problem in self.opened.problems))

    @property
    def compared(self) -> int:
        return sum(finding.verdict not in (MISSING_SIDE, UNSUPPORTED) for finding in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(finding.verdict for finding in self.findings)
        return {word: found[word] for word in WORDS if found[word]}

    def missing(self, side: str) -> list[str]:
        """The names that only ``side`` has."""
        return [one.name for one in self.findings if one.verdict == MISSING_SIDE and getattr(one, side) is not None]

    @property
    def points(self) -> list[Finding]:
        """All but what is exact, heaviest first."""
        return sorted(
            (one for one in self.findings if one.verdict != EXACT), key=lambda one: (WORDS.index(one.verdict), one.name)
        )

    def as_json(self) -> dict[str, Any]:
        pairing = self.opened.pairing
        return {
            "format": f"probepatch/param-{self.kind}/1",
            "verdict": self.verdict,
            "compared": self.compared,
            "counts": self.counts,
            "sides": {name: _side_json(side) for name, side in self.opened.sides.items()},
            "train_only_keys": self.missing(TRAIN),
            "infer_only_keys": self.missing(INFER),
            "findings": [one.as_json() for one in self.points],
            "exact": [one.name for one in self.findings if one.verdict == EXACT],
            "ignored": {side: dict(names) for side, names in pairing.ignored.items()},
            "problems": [{"side": side, **problem.as_json()} for side, problem in self.opened.problems],
            "notes": list(pairing.notes),
            "inputs": _digests(self.opened.sides),
        }


def _side_json(side: Side) -> dict[str, Any]:
    files = [{"path": str(path.absolute()), **fingerprint(path)} for path in side.files]
    ranks = len(side.parallel) or None
    return {"path": str(side.path), "form": side.form, "tensors": len(side.leaves), "ranks": ranks, "files": files}


def _digests(sides: Mapping[str, Side]) -> dict[str, str]:
    """SHA-256 of the small files that the result rests on; weights are told by size and time, above."""
    paths = {path for side in sides.values() for path in (*side.files, side.path / "config.json")}
    return {
        str(path.absolute()): digest(path)
        for path in sorted(paths)
        if os.path.isfile(path) and path.stat().st_size <= SMALL
    }


def open_both(train: Path, infer: Path, options: Options, scratch: Path) -> Opened:
    """Raises UsageError, TensorFileError, RecipeError."""
    rules = {side: load_rules(options.names[side]) for side in (TRAIN, INFER)}
    sides = {
        TRAIN: open_side(train, scratch / TRAIN, options.torch_python),
        INFER: open_side(infer, scratch / INFER, options.torch_python),
    }
    problems = [(name, problem) for name, side in sides.items() for problem in side.problems]
    names = {}
    for side, other in ((TRAIN, INFER), (INFER, TRAIN)):
        own: Rules = replace(rules[side], ignore=rules[side].ignore + options.ignore)
        names[side] = named(sides[side], own, Numbers(options.numbers, sides[side], sides[other]))
        problems += [(side, problem) for problem in names[side].problems]
    size, notes = _vocabulary(options, sides)
    tied = {}
    for side, other in ((TRAIN, INFER), (INFER, TRAIN)):
        tied[side], problem = _tied(options, sides[side], sides[other])
        problems += [(side, problem)] if problem is not None else []
    wish = Wish(tuple(dict.fromkeys(rules[TRAIN].vocab + rules[INFER].vocab)), size, tied)
    pairing = pair(names[TRAIN], names[INFER], wish)
    return Opened(sides, replace(pairing, notes=pairing.notes + notes), tuple(problems))


def _vocabulary(options: Options, sides: Mapping[str, Side]) -> tuple[int | None, tuple[str, ...]]:
    """How many rows are used: what was said, else what the configs agree on."""
    if VOCABULARY in options.numbers:
        return options.numbers[VOCABULARY], ()
    found = {name: size for name, side in sides.items() if (size := side.number(VOCABULARY)) is not None}
    if len(set(found.values())) > 1:
        note = _("the configs disagree on vocab_size ({sizes}): it is taken as unknown; --vocab-size says it")
        return None, (note.format(sizes=", ".join(f"{name} {size}" for name, size in found.items())),)
    return next(iter(found.values()), None), ()


def _tied(options: Options, side: Side, other: Side) -> tuple[bool | None, Problem | None]:
    """Whether the head is the embedding, by what was said, the side's config, or the other's; levels of one config may disagree."""
    if TIED in options.numbers:
        return bool(options.numbers[TIED]), None
    own = side.flags(TIED)
    if len(own) > 1:
        return None, Problem(
            "tie-conflict", _("the levels of config.json disagree on tie_word_embeddings"), "config.json"
        )
    flags = own or other.flags(TIED)
    return (flags[0] if len(flags) == 1 else None), None


def structure(opened: Opened) -> Report:
    """By names, shapes and dtypes; no tensor is read."""
    findings = [Finding(one.name, one.verdict, one.train, one.infer, one.note) for one in opened.pairing.pairs]
    return Report("structure", opened, (*findings, *opened.pairing.missing))


def weights(opened: Opened, threads: int | None, step: Callable[[int], object]) -> Report:
    """To the bit. Raises TensorFileError."""
    from stages.params_tensors.weights import compare

    findings: Sequence[Finding] = compare(opened.pairing.pairs, threads, step)
    return Report("weights", opened, (*findings, *opened.pairing.missing))
