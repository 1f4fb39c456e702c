"""Small files of tensors, written by hand: no torch, no numpy."""

from __future__ import annotations

import hashlib
import json
import struct
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Tensor = tuple[str, list[int], bytes]
"""dtype, shape, bytes"""


def f32(*numbers: float, shape: list[int] | None = None) -> Tensor:
    return "F32", shape or [len(numbers)], struct.pack(f"<{len(numbers)}f", *numbers)


def bf16(*numbers: float, shape: list[int] | None = None) -> Tensor:
    """Numbers that BF16 holds exactly."""
    return "BF16", shape or [len(numbers)], b"".join(struct.pack("<f", number)[2:] for number in numbers)


def matrix(rows: int, columns: int, start: float = 0) -> Tensor:
    """F32, counting up."""
    return "F32", [rows, columns], array("f", [start + at for at in range(rows * columns)]).tobytes()


def rows_of(tensor: Tensor, start: int, stop: int) -> Tensor:
    dtype, shape, raw = tensor
    each = len(raw) // shape[0]
    return dtype, [stop - start, *shape[1:]], raw[start * each : stop * each]


def columns_of(tensor: Tensor, start: int, stop: int) -> Tensor:
    """Of an F32 matrix."""
    dtype, (rows, columns), raw = tensor
    parts = [raw[4 * (row * columns + start) : 4 * (row * columns + stop)] for row in range(rows)]
    return dtype, [rows, stop - start], b"".join(parts)


def below(*tensors: Tensor) -> Tensor:
    """One below the other."""
    return tensors[0][0], [sum(one[1][0] for one in tensors), *tensors[0][1][1:]], b"".join(one[2] for one in tensors)


def with_bytes(tensor: Tensor, at: int, new: bytes) -> Tensor:
    dtype, shape, raw = tensor
    return dtype, shape, raw[:at] + new + raw[at + len(new) :]


def save(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    head, blob = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    return save_raw(path, json.dumps(head).encode(), blob)


def save_raw(path: Path, head: bytes, blob: bytes, length: int | None = None) -> Path:
    path.write_bytes(struct.pack("<Q", len(head) if length is None else length) + head + blob)
    return path


def entry(name: str, tensor: Tensor, **more: Any) -> dict[str, Any]:
    dtype, shape, raw = tensor
    known = {"name": name, "kind": "parameter", "persistent": True, "dtype": dtype, "shape": shape, "bytes": len(raw)}
    return {**known, "sha256": hashlib.sha256(raw).hexdigest(), "shard": None, "alias_of": None, **more}


def inventory(
    folder: Path,
    tensors: Iterable[tuple[dict[str, Any], Tensor]],
    ranks: Mapping[str, int] | None = None,
    config: Mapping[str, Any] | None = None,
    data: bool = True,
) -> Path:
    """What the payload writes for one rank."""
    ranks = {"world": 1, "rank": 0, **(ranks or {})}
    folder.mkdir(parents=True, exist_ok=True)
    pairs = list(tensors)
    file = f"rank{ranks['rank']}.safetensors"
    if data:
        save(folder / file, {one["name"]: tensor for one, tensor in pairs if one["alias_of"] is None})
    head = {
        "format": "probepatch/inventory/1",
        "ranks": ranks,
        "config": dict(config or {}),
        "data": file if data else None,
    }
    lines = [head, *(one for one, _tensor in pairs), {"end": len(pairs)}]
    path = folder / f"inventory-rank{ranks['rank']}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
