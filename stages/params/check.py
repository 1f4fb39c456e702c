"""``params check`` as a whole: read both sides, refuse a raw config as the training's, compare, and make the result document."""

from __future__ import annotations

import os
from collections.abc import Mapping as Map
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codemods.errors import FindingError, UsageError
from locales import _
from stages.card.evidence import digest
from stages.params.compare import EXACT, RESULTS, Compared, Item, compare
from stages.params.layers import ALIGNED, CONFIG_FORMAT, MISMATCH
from stages.params.mapping import SAME_NAME, find_mapping, fitting, read_mapping
from stages.params.modules import check_modules, read_modules
from stages.params.points import NOT_COMPUTED, Point, item_json, of_items, ordered
from stages.params.reading import DUMPED, HF, MEGATRON, UNKNOWN, Config, read_config

AUTO = "auto"


class RawConfigError(FindingError):
    """A raw config.json was given as what the training really runs with."""


@dataclass(frozen=True)
class Wish:
    """``mapping``: a shipped name, a file, ``auto``, or None for the same names; ``backend`` as the task card knows it."""

    train: Path
    infer: Path
    mapping: str | None = None
    modules: tuple[Path, ...] = ()
    train_is_hf: bool = False
    backend: str | None = None


@dataclass(frozen=True)
class Checked:
    train: Config
    infer: Config
    compared: Compared
    items: tuple[Item, ...]
    modules: bool
    notes: tuple[str, ...]
    inputs: Map[str, str]

    @property
    def points(self) -> list[Point]:
        return ordered(of_items([item_json(item) for item in self.items]))

    @property
    def aligned(self) -> bool:
        return all(item.result == EXACT for item in self.items)

    def as_json(self) -> dict[str, Any]:
        modules = [item for item in self.items if item.layer == "modules"]
        state = ALIGNED if all(item.result == EXACT for item in modules) else MISMATCH
        return {
            "format": CONFIG_FORMAT,
            "verdict": ALIGNED if self.aligned else MISMATCH,
            "mapping": self.compared.mapping.name,
            "train": _side_json(self.train),
            "infer": _side_json(self.infer),
            "compared": len(self.items),
            "counts": {result: sum(item.result == result for item in self.items) for result in RESULTS},
            "mismatch_points": [point.as_json(number) for number, point in enumerate(self.points, 1)],
            "items": [item_json(item) for item in self.items],
            "modules": state if modules else NOT_COMPUTED,
            "train_only_keys": list(self.compared.train_only),
            "infer_only_keys": list(self.compared.infer_only),
            "notes": list(self.notes),
            "inputs": dict(self.inputs),
        }


def _side_json(config: Config) -> dict[str, Any]:
    return {
        "path": str(config.path),
        "kind": config.kind,
        "model_type": config.model_type,
        "provider_class": config.provider_class,
        "bridge_file": config.bridge_file,
    }


def check(wish: Wish) -> Checked:
    """Raises RawConfigError, NothingComparedError, UsageError, ConfigError."""
    train, infer = read_config(wish.train), read_config(wish.infer)
    if infer.kind in (MEGATRON, DUMPED) and train.kind in (HF, UNKNOWN):
        raise UsageError(
            _("the inference side's config looks like a trainer's, and the other like the engine's"),
            todo=_("--train-cfg and --infer-cfg the other way round?"),
        )
    notes = [*train.notes, *infer.notes, *_effective(train, wish)]
    paths = [train.path, infer.path]
    mapping = SAME_NAME
    suited = fitting(train, infer)
    word = suited if wish.mapping == AUTO else wish.mapping
    if word is not None:
        path = find_mapping(word)
        mapping = read_mapping(path)
        paths.append(path)
    elif suited is not None:
        notes.append(
            _("compared by the same name; `--mapping {name}` knows what the two sides call it").format(name=suited)
        )
    compared = compare(train, infer, mapping)
    items = list(compared.items)
    if wish.modules:
        items += check_modules(compared, read_modules(wish.modules))
        paths += wish.modules
    if train.bridge_file is not None and os.path.isfile(train.bridge_file):
        paths.append(Path(train.bridge_file))
    inputs = {str(path.absolute()): digest(path) for path in paths}
    compared = replace(compared, items=tuple(_in_order(list(compared.items))))
    return Checked(train, infer, compared, tuple(_in_order(items)), bool(wish.modules), tuple(notes), inputs)


def _in_order(items: list[Item]) -> list[Item]:
    """What weighs most first: structure switches before everything."""
    rank = {point.name: number for number, point in enumerate(ordered(of_items([item_json(item) for item in items])))}
    kinds = {"switch": 0, "structure": 1, "value": 2, "dtype": 3, "padding": 4}
    return sorted(items, key=lambda item: (item.name not in rank, rank.get(item.name, 0), kinds[item.kind]))


def _effective(train: Config, wish: Wish) -> list[str]:
    """Notes on what the training's config is. Raises RawConfigError."""
    if train.kind in (DUMPED, MEGATRON):
        return []
    builds_hf = wish.train_is_hf or wish.backend == "fsdp"
    if train.kind == HF and (not builds_hf or wish.backend == "megatron"):
        raise RawConfigError(
            _("this is a raw Hugging Face config, not what the training runs with"),
            where=str(train.path),
            why=_("the task card says that Megatron trains; a bridge may not have taken every field over")
            if wish.backend == "megatron"
            else _(
                "a bridge may not have taken every field over, and then the raw config shows an agreement that is none"
            ),
            todo=_(
                "`probepatch params provider HF_DIR OUT.json --bridge CLASS` makes the effective one; --train-is-hf where the"
                " training builds the HF model itself (FSDP)"
            ),
        )
    if train.kind == HF:
        return [_("the training builds the HF model from this config; what the job overrides on the way is not in it")]
    return [_("{path} does not show whose config it is; it is taken as the effective one").format(path=train.path.name)]
