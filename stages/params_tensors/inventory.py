"""Inventories that the payload script wrote inside of a side: one file of JSON lines for each rank, and its saved tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from locales import _
from stages.params_tensors.checkpoint import lines_of
from stages.params_tensors.header import LONGEST_NAME, is_shape, read_header
from stages.params_tensors.payload_inventory import FORMAT
from stages.params_tensors.tensors import BUFFER, PARAMETER, Leaf, Problem, Shard, Side, TensorFileError

PATTERN = "inventory-rank*.jsonl"
_LARGEST = 64 << 20  # bytes of one rank's file


def read_inventories(paths: list[Path]) -> Side:
    """All ranks together. Raises TensorFileError."""
    leaves: dict[str, list[Leaf]] = {}
    parallel: dict[int, Mapping[str, int]] = {}
    config: dict[str, Any] = {}
    files = list(paths)
    for path in sorted(paths):
        head, found, data = _read(path)
        ranks = head["ranks"]
        if ranks["rank"] in parallel:
            raise TensorFileError(
                _("rank {rank} stands in two inventories").format(rank=ranks["rank"]), where=str(path)
            )
        parallel[ranks["rank"]] = ranks
        config = config or head["config"]
        files += [data] if data else []
        for leaf in found:
            leaves.setdefault(leaf.name, []).append(leaf)
    world = max(ranks.get("world", 1) for ranks in parallel.values())
    missing = sorted(set(range(min(world, 1 << 16))) - set(parallel))
    problems = []
    if missing:
        what = _("{count} of {world} ranks have no inventory: {ranks}").format(
            count=len(missing), world=world, ranks=", ".join(map(str, missing[:8]))
        )
        problems.append(Problem("rank-missing", what))
    by_name = {name: tuple(sorted(found, key=lambda leaf: leaf.rank or 0)) for name, found in leaves.items()}
    return Side(paths[0].parent, "inventory", by_name, tuple(problems), config, parallel, tuple(files))


def _read(path: Path) -> tuple[dict[str, Any], list[Leaf], Path | None]:
    lines = list(lines_of(path, _LARGEST))
    if not lines or not _is_head(lines[0][1]):
        raise TensorFileError(_("this is no inventory of the format {format}").format(format=FORMAT), where=str(path))
    head = lines[0][1]
    if lines[-1][1] != {"end": len(lines) - 2}:
        raise TensorFileError(_("the inventory is cut off: its last line does not close it"), where=str(path))
    data = path.parent / head["data"] if head["data"] else None
    stored = read_header(data) if data else {}
    return head, [_leaf(path, number, entry, head["ranks"], stored) for number, entry in lines[1:-1]], data


def _is_head(line: Any) -> bool:
    if not isinstance(line, dict) or line.get("format") != FORMAT:
        return False
    ranks, data = line.get("ranks"), line.get("data")
    whole = isinstance(ranks, dict) and all(type(one) is int and one >= 0 for one in ranks.values()) and "rank" in ranks
    plain = data is None or (isinstance(data, str) and Path(data).name == data and data.endswith(".safetensors"))
    return whole and plain and isinstance(line.get("config"), dict)


def _leaf(path: Path, number: int, entry: Any, ranks: Mapping[str, int], stored: Mapping[str, Leaf]) -> Leaf:
    if not _is_entry(entry):
        raise TensorFileError(_("this line describes no tensor"), where=f"{path}:{number}")
    shard, name = entry.get("shard"), entry["name"]
    cut = Shard(shard["dim"], shard["index"], shard["count"]) if shard and "dim" in shard else None
    why = shard["unsupported"] if shard and "unsupported" in shard else ""
    source = stored.get(entry.get("alias_of") or name)
    shape = tuple(entry["shape"])
    if source is not None and (source.shape, source.dtype) != (shape, entry["dtype"]):
        raise TensorFileError(
            _("`{name}` is described other than it was saved").format(name=name), where=f"{path}:{number}"
        )
    if not why and shape == (0,):
        why = _("it is empty: the framework freed it, or never filled it")
    return Leaf(
        name,
        entry["dtype"],
        shape,
        source.file if source else None,
        source.offset if source else 0,
        source.length if source else entry["bytes"],
        entry.get("sha256"),
        entry["kind"],
        entry["persistent"],
        ranks["rank"],
        cut,
        entry.get("alias_of"),
        why,
    )


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    shard, alias, sha = entry.get("shard"), entry.get("alias_of"), entry.get("sha256")
    return (
        isinstance(entry.get("name"), str)
        and len(entry["name"]) <= LONGEST_NAME
        and isinstance(entry.get("dtype"), str)
        and is_shape(entry.get("shape"))
        and type(entry.get("bytes")) is int
        and entry["bytes"] >= 0
        and entry.get("kind") in (PARAMETER, BUFFER, "")
        and isinstance(entry.get("persistent"), bool)
        and (alias is None or isinstance(alias, str))
        and (sha is None or (isinstance(sha, str) and len(sha) == 64))
        and (shard is None or _is_shard(shard))
    )


def _is_shard(shard: Any) -> bool:
    if not isinstance(shard, dict):
        return False
    if set(shard) == {"unsupported"}:
        return isinstance(shard["unsupported"], str)
    numbers = [shard.get(key) for key in ("dim", "index", "count")]
    return (
        all(type(one) is int for one in numbers)
        and 0 <= shard["index"] < shard["count"] <= 1 << 16
        and 0 <= shard["dim"] < 16
    )
