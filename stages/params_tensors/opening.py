"""Whatever is at a path as a side: a checkpoint's folder or file, inventories, or a pickled state dict (with torch)."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from locales import _
from stages.params_tensors import payload_inventory
from stages.params_tensors.checkpoint import config_beside, read_file, read_folder
from stages.params_tensors.inventory import PATTERN, read_inventories
from stages.params_tensors.tensors import NoTensorsError, Side, TensorFileError

_LIMIT = 3600  # seconds
PICKLED = (".bin", ".pt", ".pth", ".ckpt")


def open_side(path: Path, scratch: Path, python: str | None = None) -> Side:
    """``scratch`` is where a pickled file's tensors are written for reading; ``python`` an interpreter that has torch.
    Raises NoTensorsError, TensorFileError."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise NoTensorsError(
            _("there is nothing at {path}").format(path=path), why=getattr(error, "strerror", None) or str(error)
        ) from error
    if stat.S_ISDIR(mode):
        inventories = sorted(path.glob(PATTERN))
        if inventories:
            return read_inventories(inventories)
        pickled = sorted(path.glob("pytorch_model*.bin"))
        if pickled and not any(path.glob("*.safetensors")):
            sides = [_unpickled(one, scratch / str(number), python) for number, one in enumerate(pickled)]
            leaves = {name: found for side in sides for name, found in side.leaves.items()}
            return replace(sides[0], path=path, leaves=leaves, config=config_beside(path), files=tuple(pickled))
        return read_folder(path)
    if path.suffix == ".jsonl":
        return read_inventories([path])
    if path.suffix in PICKLED:
        return _unpickled(path, scratch, python)
    return read_file(path)


def _unpickled(path: Path, scratch: Path, python: str | None) -> Side:
    """Its tensors, written out by torch in a process of its own with ``weights_only=True``: nothing in the file can run."""
    if not os.path.isfile(path):
        raise TensorFileError(_("this is no regular file"), where=str(path))
    script = Path(payload_inventory.__file__)
    environment = {**os.environ, "PROBEPATCH_INVENTORY": str(scratch), "PROBEPATCH_INVENTORY_DATA": "1"}
    command = [python or sys.executable, str(script), "file", str(path.absolute())]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=_LIMIT)
    except subprocess.TimeoutExpired as error:
        text = _("{path} is pickled, and was not read within {limit} s")
        raise TensorFileError(text.format(path=path, limit=_LIMIT)) from error
    except OSError as error:
        raise NoTensorsError(_("{python} does not run").format(python=command[0]), why=error.strerror) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = "".join(c if c.isprintable() else "?" for c in said[-1][:300]) if said else None
        lacking = b"No module named 'torch'" in done.stderr
        if b"UnpicklingError" in done.stderr:
            why = _("it holds more than tensors and plain values, and nothing else is unpickled")
        raise (NoTensorsError if lacking else TensorFileError)(
            _("{path} is pickled, and could not be read").format(path=path),
            why=why,
            todo=_("--torch-python names an interpreter that has torch") if lacking else None,
        )
    side = read_inventories(sorted(scratch.glob(PATTERN)))
    return replace(side, path=path, config=config_beside(path.parent), files=(path,))
