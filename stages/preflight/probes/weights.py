"""A model's folder: its config, its index, and every safetensors file held against both, by headers only."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

_HEADER = 200 << 20  # bytes
_TEXT = 64 << 20
_NAMED = 5
INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
_OLD = ("pytorch_model.bin.index.json", "pytorch_model.bin")


def probe(given: dict[str, Any]) -> dict[str, Any]:
    """``given``: ``path``. ``faults`` and ``notes`` are (kind, file, detail)."""
    path = os.path.expanduser(given["path"])
    if not os.path.isdir(path):
        return {"folder": False, "path": os.path.abspath(path)}
    answer: dict[str, Any] = {
        "folder": True,
        "path": os.path.abspath(path),
        "faults": [],
        "notes": [],
        "bytes": 0,
        "files": 0,
    }
    config, answer["config_sha256"] = read_json(os.path.join(path, "config.json"), "config.json", answer)
    answer["config"] = config and {**plain(config), "text_config": plain(config.get("text_config"))}
    try:
        names = sorted(name for name in os.listdir(path) if name.endswith(".safetensors"))
    except OSError as error:
        answer["layout"] = None
        answer["faults"].append(["unreadable", path, error.strerror or ""])
        return answer
    if os.path.lexists(os.path.join(path, INDEX)):
        answer["layout"] = "sharded"
        sharded(path, names, answer)
    elif names:
        answer["layout"] = "safetensors"
        if names != [SINGLE]:
            answer["faults"].append(["no-index", INDEX, str(len(names))])
        for name in names:
            header(path, name, answer)
    elif any(os.path.isfile(os.path.join(path, name)) for name in _OLD):
        answer["layout"] = "pytorch"
        old(path, answer)
    else:
        answer["layout"] = None
        answer["faults"].append(["no-weights", path, ""])
    return answer


def plain(config: Any) -> dict[str, Any]:
    """What stands at the top of a config, without what holds more: its numbers and words are all that is asked for."""
    items = config.items() if isinstance(config, dict) else ()
    return {key: value for key, value in items if isinstance(value, (int, str, bool))}


def read_json(path: str, name: str, answer: dict[str, Any]) -> tuple[Any, str | None]:
    try:
        if not os.path.isfile(path):  # opening a pipe would wait for ever
            raise FileNotFoundError(0, "no such file")
        with open(path, "rb") as file:
            raw = file.read(_TEXT + 1)
        value = json.loads(raw) if len(raw) <= _TEXT else None
    except OSError as error:
        answer["faults"].append(["unreadable", name, error.strerror or ""])
        return None, None
    except (ValueError, RecursionError) as error:
        answer["faults"].append(["no-json", name, str(error)[:120]])
        return None, None
    if not isinstance(value, dict):
        answer["faults"].append(["no-json", name, ""])
        return None, None
    return value, hashlib.sha256(raw).hexdigest()


def sharded(path: str, there: list[str], answer: dict[str, Any]) -> None:
    index, answer["index_sha256"] = read_json(os.path.join(path, INDEX), INDEX, answer)
    places = index.get("weight_map") if index else None
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        if index is not None:
            answer["faults"].append(["no-map", INDEX, ""])
        return
    total = 0
    for name in sorted(set(places.values())):
        listed = {tensor for tensor, file in places.items() if file == name}
        if os.path.dirname(name) or name in ("", ".", ".."):
            answer["faults"].append(["outside", name, some(listed)])
        elif name not in there:
            answer["faults"].append(["missing", name, some(listed)])
        else:
            held = header(path, name, answer)
            if held is None:
                continue
            total += sum(held.values())
            if listed - set(held):
                answer["faults"].append(["absent", name, some(listed - set(held))])
            if set(held) - set(places):
                answer["notes"].append(["unlisted", name, some(set(held) - set(places))])
    for name in sorted(set(there) - set(places.values())):
        answer["notes"].append(["stray", name, ""])
    metadata = index.get("metadata")
    told = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(told, int) and told != total and not answer["faults"]:
        answer["notes"].append(["total", INDEX, f"{told} / {total}"])


def some(names: set[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:_NAMED]) + (f" … ({len(ordered)})" if len(ordered) > _NAMED else "")


def header(path: str, name: str, answer: dict[str, Any]) -> dict[str, int] | None:
    """The tensors of a file with their sizes in bytes; None when it is damaged."""
    place = os.path.join(path, name)
    try:
        if not os.path.isfile(place):
            raise FileNotFoundError(0, "no such file")
        size = os.path.getsize(place)
        with open(place, "rb") as file:
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if head.startswith(b"version "):
                answer["faults"].append(["pointer", name, ""])
                return None
            if len(head) < 8 or not 2 <= length <= min(_HEADER, size - 8):
                answer["faults"].append(["damaged", name, str(size)])
                return None
            held = json.loads(file.read(length))
        sizes = {}
        end = 0
        for tensor, about in held.items():
            if tensor != "__metadata__":
                first, last = about["data_offsets"]
                if not 0 <= int(first) <= int(last):
                    raise ValueError
                sizes[tensor] = int(last) - int(first)
                end = max(end, int(last))
    except OSError as error:
        answer["faults"].append(["unreadable", name, error.strerror or ""])
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        answer["faults"].append(["damaged", name, str(size)])
        return None
    if 8 + length + end != size:
        answer["faults"].append(["size", name, f"{size} / {8 + length + end}"])
        return None
    answer["bytes"] += end
    answer["files"] += 1
    return sizes


def old(path: str, answer: dict[str, Any]) -> None:
    """Pickled weights are never opened: only that they are there."""
    index = os.path.join(path, _OLD[0])
    names = [_OLD[1]]
    if os.path.isfile(index):
        read, _sha = read_json(index, _OLD[0], answer)
        places = read.get("weight_map") if read else None
        names = sorted({str(name) for name in places.values()}) if isinstance(places, dict) else []
    for name in names:
        place = os.path.join(path, name)
        if os.path.dirname(name):
            answer["faults"].append(["outside", name, ""])
        elif not os.path.isfile(place) or not os.path.getsize(place):
            answer["faults"].append(["missing", name, ""])
        else:
            answer["bytes"] += os.path.getsize(place)
            answer["files"] += 1
