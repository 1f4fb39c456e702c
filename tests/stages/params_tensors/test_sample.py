"""What stands for a file of weights that is not hashed whole."""

from __future__ import annotations

import os
from pathlib import Path

from stages.params.layers import FILES, read_layers
from stages.params.waivers import write_json
from stages.params_tensors.sample import SMALL, fingerprint
from tests.stages.params_tensors.comparing import report
from tests.stages.params_tensors.made import save


def test_a_large_file_is_told_by_size_time_and_slices(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(bytes(SMALL + 5))
    before = fingerprint(path)
    assert before["sample"] is not None
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    for content in (b"\1" + bytes(SMALL + 4), bytes(SMALL + 4) + b"\1", b"\1" * (SMALL + 5)):
        path.write_bytes(content)
        os.utime(path, ns=times)
        assert fingerprint(path)["mtime_ns"] == before["mtime_ns"]
        assert fingerprint(path) != before
    assert fingerprint(tmp_path / "none") == {"bytes": None, "mtime_ns": None, "sample": None}


def test_another_checkpoint_in_its_place_is_seen(tmp_path):
    """Copied over with its size and its time, as `cp -p` and `rsync -t` do: the result does not hold any more."""
    shape = [(SMALL >> 2) + 8]
    for name, byte in (("one", b"\0"), ("two", b"\1")):
        save(tmp_path / name / "model.safetensors", {"a.weight": ("F32", shape, byte * (4 * shape[0]))})
    file = tmp_path / "one/model.safetensors"
    found = report(tmp_path / "one", tmp_path / "one")
    paths = {layer: tmp_path / name for layer, name in FILES.items()}
    write_json(paths["weights"], found.as_json())
    states = lambda: {one.name: one.state for one in read_layers(paths)}  # noqa: E731
    assert states()["weights"] == "EXACT"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_bytes((tmp_path / "two/model.safetensors").read_bytes())
    os.utime(Path(file), ns=times)
    assert states()["weights"] == "not computed"
