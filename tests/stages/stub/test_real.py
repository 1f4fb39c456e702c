"""Real torch, Transformers and msprobe: differences that a stub round takes away, rounds in both directions, hostile files.

PROBEPATCH_REAL_PYTHON   an interpreter with torch, Transformers and msprobe 26.2 or later
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_commands import answer
from tests.stages.stub.made import instruction, module

pytestmark = pytest.mark.real
PYTHON = os.environ.get("PROBEPATCH_REAL_PYTHON")
DRIVE = Path(__file__).with_name("drive.py")
TENSOR = {"task": "tensor", "rank": [], "step": [0], "level": "L0", "async_dump": False}
SCALE = {"model.layers.0.mlp.down_proj.weight": 1.5}
EQUAL = """
import sys, torch, glob, json, os
def tensors(folder):
    (place,) = glob.glob(folder + "/step0/*/dump_tensor_data")
    return {os.path.basename(path): torch.load(path, weights_only=True) for path in glob.glob(place + "/*.pt")}
one, other = map(tensors, sys.argv[1:])
print(json.dumps({name: bool(torch.equal(one[name], other[name])) for name in sorted(one.keys() & other.keys())}))
"""


def python(*words: str | Path, **environment: str) -> str:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}
    done = subprocess.run([str(PYTHON), *map(str, words)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


class Pair:
    """A training side in a group of one, an inference side without one; the models' wishes are kept for every round."""

    def __init__(self, root: Path, train: dict, infer: dict) -> None:
        self.root, self.wishes = root, {"train": {"distributed": True, **train}, "infer": infer}
        for side in self.wishes:
            (root / f"{side}.json").write_text(json.dumps({**TENSOR, "dump_path": str(root / "dump" / side)}))
            self.drive(side, root / f"{side}.json")

    def drive(self, side: str, config: Path, **environment: str) -> str:
        return python(DRIVE, config, json.dumps({"architecture": "qwen2", **self.wishes[side]}), **environment)

    def source(self, side: str, name: str, round_: int = 0) -> str:
        """A .pt file's path from the dump folder on."""
        folder = self.dump(side, round_)
        (path,) = folder.glob(f"step0/*/dump_tensor_data/{name}.pt")
        return str(path.relative_to(folder))

    def dump(self, side: str, round_: int = 0) -> Path:
        return self.root / "dump" / (f"round{round_}/{side}" if round_ else side)

    def equal(self, train: int, infer: int) -> dict[str, bool]:
        """By name, of the tensors that both sides have."""
        return json.loads(python("-c", EQUAL, self.dump("train", train), self.dump("infer", infer)).splitlines()[0])

    def prepare(self, round_: int, target: str, *modules: dict, code: int = 0, source_round: int = 0, **more) -> dict:
        source = "infer" if target == "train" else "train"
        path = instruction(
            self.root / f"i{round_}.json", *modules, round=round_, target_side=target, source_side=source, **more
        )
        named = ["--source", self.dump(source, source_round), "--target", self.dump(target)]
        named += ["--out", self.root / f"stub_source_round{round_}", "--python", str(PYTHON)]
        return answer("error" if code else "stub-prepare", "stub", "prepare", path, *named, code=code)

    def run(self, round_: int, target: str, code: int = 0, **environment: str) -> dict:
        """config, the run itself, verify"""
        config, log = self.root / f"{target}.round{round_}.json", self.root / f"round{round_}.log"
        sources = ["--sources", self.root / f"stub_source_round{round_}", "--python", str(PYTHON)]
        named = ["--first", self.root / f"{target}.json", "--dump-path", self.dump(target, round_), "--out", config]
        answer("stub-config", "stub", "config", *sources, *named)
        log.write_text(self.drive(target, config, **environment))
        return answer("stub-verify", "stub", "verify", *sources, "--config", config, "--log", log, code=code)


@pytest.fixture
def pair(tmp_path):
    if PYTHON is None:
        pytest.skip("PROBEPATCH_REAL_PYTHON names no interpreter")
    return lambda train, infer: Pair(tmp_path, train, infer)


def named(problems, level):
    return {one["name"] for one in problems if one["level"] == level}


def layer(number: int, architecture: str = "Qwen2") -> str:
    return f"Module.model.layers.{number}.{architecture}DecoderLayer.forward.0"


def downstream(found: dict[str, bool]) -> dict[str, bool]:
    """What runs from layer 1 on."""
    late = ("Module.model.layers.1.", "Module.model.layers.2.", "Module.model.norm.", "Module.lm_head.")
    return {name: equal for name, equal in found.items() if name.startswith(late)}


def test_an_overridden_input_makes_all_that_follows_equal_and_then_a_fused_projection(pair):
    both = pair({"scale": SCALE, "backward": True}, {"fused": True})
    before = both.equal(0, 0)
    assert sum(not equal for equal in downstream(before).values()) > 20

    one = module(target=layer(1), source=both.source("infer", f"{layer(1)}.input.0"), transform=[{"rule": "rename"}])
    made = both.prepare(1, "train", one)
    assert made["left"] == [f"{layer(1)}.kwargs.attention_mask", f"{layer(1)}.kwargs.position_ids"]
    found = both.run(1, "train")
    assert (found["verified"], found["overridden"]) == (True, 1)
    assert named(found["problems"], "error") == set()
    assert {"source-missing", "backward-missing"} <= named(found["problems"], "note")
    assert set(downstream(both.equal(1, 0)).values()) == {True}
    # the gradient really ends at the override, in the run and not only in its dump
    (cut,) = [
        line for line in (both.root / "round1.log").read_text().splitlines() if line.startswith("without gradient")
    ]
    missing = json.loads(cut.partition(":")[2])
    assert "model.embed_tokens.weight" in missing
    assert not [name for name in missing if name.startswith("model.layers.1.")]

    # the other way: q, k and v of the training side, fused, as what the inference side splits in layer 0 of its own
    parts = [f"Module.model.layers.2.self_attn.{name}_proj.Linear.forward.0.output.0" for name in "qkv"]
    heads = {"layout": "contiguous", "q_heads": 4, "kv_heads": 2, "head_dim": 16}
    split = "Module.model.layers.2.self_attn.qkv_split.QKVSplit.forward.0"
    two = module(
        target=split,
        argument=None,
        source=[both.source("train", name) for name in parts],
        transform=[{"rule": "fuse_qkv", **heads}],
    )
    residual = module(target=layer(2), source=both.source("train", f"{layer(2)}.input.0"), transform=[])
    both.prepare(2, "infer", two, residual)
    found = both.run(2, "infer")
    assert (found["verified"], found["overridden"]) == (True, 2)
    assert {one["state"] for one in found["slots"]} == {"equal"}
    last = {name: equal for name, equal in both.equal(0, 2).items() if name.startswith("Module.model.layers.2.")}
    assert set(last.values()) == {True}


def test_a_fused_source_is_split_for_separate_projections(pair):
    scale = {f"model.layers.1.self_attn.{name}_proj.weight": 1.5 for name in "qk"}
    both = pair({"architecture": "qwen3", "scale": scale}, {"architecture": "qwen3", "fused": True})
    assert not both.equal(0, 0)["Module.model.layers.1.self_attn.o_proj.Linear.forward.0.input.0.pt"]
    fused = both.source("infer", "Module.model.layers.1.self_attn.qkv_proj.QKVLinear.forward.0.output.0")
    heads = {"layout": "contiguous", "q_heads": 4, "kv_heads": 2, "head_dim": 16}
    modules = [
        module(
            target=f"Module.model.layers.1.self_attn.{part}_norm.Qwen3RMSNorm.forward.0",
            argument=None,
            source=fused,
            transform=[
                {"rule": "split_qkv", "part": part, **heads},
                {"rule": "reshape", "shape": [1, 7, count, 16]},
            ],
        )
        for part, count in (("q", 4), ("k", 2))
    ]
    both.prepare(1, "train", *modules)
    assert both.run(1, "train")["verified"] is True
    after = both.equal(1, 0)
    assert {name: equal for name, equal in after.items() if not equal and "_proj.weight" not in name} == {
        name: False for name in after if ".layers.1.self_attn." in name and "_proj." in name and not after[name]
    }
    assert after["Module.model.layers.1.self_attn.o_proj.Linear.forward.0.input.0.pt"]
    assert {value for name, value in downstream(after).items() if ".layers.2." in name} == {True}


def test_keywords_bfloat16_and_no_group(pair):
    both = pair({"scale": SCALE, "dtype": "bfloat16"}, {})
    attention = "Module.model.layers.1.self_attn.Qwen2Attention.forward.0"
    slot = f"{attention}.kwargs.hidden_states"
    one = module(target=attention, argument="kwargs.hidden_states", source=both.source("train", slot))
    one["transform"] = [{"rule": "cast", "dtype": "float32"}]
    both.prepare(1, "infer", one)
    found = both.run(1, "infer")
    assert (found["verified"], found["slots"][0]["rank"]) == (True, None)
    back = module(target=attention, argument="kwargs.hidden_states", source=both.source("infer", slot), transform=[])
    error = both.prepare(2, "train", back, code=1)["error"]
    assert "the dtype is torch.float32 after the transform, and the target has torch.bfloat16" in error["what"]
    back["transform"] = [{"rule": "cast", "dtype": "bfloat16"}]
    both.prepare(2, "train", back)
    assert both.run(2, "train")["verified"] is True


def test_a_run_that_only_overrides_is_proved_by_its_log(pair):
    both = pair({"scale": SCALE, "steps": 3}, {"steps": 3})
    (both.root / "train.json").write_text(json.dumps({**TENSOR, "step": [], "dump_path": str(both.dump("train"))}))
    for side in ("train", "infer"):
        (both.root / f"all_{side}.json").write_text(
            json.dumps({**TENSOR, "step": [2], "dump_path": str(both.dump(side))})
        )
        both.drive(side, both.root / f"all_{side}.json")
    (path,) = both.dump("infer").glob(f"step2/*/dump_tensor_data/{layer(1)}.input.0.pt")
    one = module(target=layer(1), source=str(path.relative_to(both.dump("infer"))), transform=[])
    both.prepare(1, "train", one, step=2, dump_after_load=False)
    found = both.run(1, "train", MSPROBE_LOG_LEVEL="0")
    assert (found["verified"], found["overridden"], found["slots"][0]["state"]) == (True, 1, "logged")
    assert not both.dump("train", 1).exists()


def test_msprobe_says_what_we_read(pair):
    """A target that runs otherwise than in its last dump: every line of msprobe's own is recognised."""
    both = pair({"scale": SCALE}, {})
    one = module(target=layer(1), source=both.source("infer", f"{layer(1)}.input.0"), transform=[])
    both.prepare(1, "train", one)
    both.wishes["train"]["distributed"] = False
    found = both.run(1, "train", code=1)
    assert {"no-process-folder", "source-missing", "other-ranks"} <= named(found["problems"], "error")

    both.wishes["train"]["distributed"] = True
    both.prepare(2, "train", one)
    both.wishes["train"]["architecture"] = "qwen3"
    found = both.run(2, "train", code=1)
    assert {"invalid-module", "never-matched", "entry-missing"} <= named(found["problems"], "error")

    both.wishes["train"]["architecture"] = "qwen2"
    both.prepare(3, "train", one)
    both.wishes["train"]["prompt"] = 5
    config = both.root / "train.round3.json"
    sources = ["--sources", both.root / "stub_source_round3", "--python", str(PYTHON)]
    named_ = ["--first", both.root / "train.json", "--dump-path", both.dump("train", 3), "--out", config]
    answer("stub-config", "stub", "config", *sources, *named_)
    wish = json.dumps({"architecture": "qwen2", **both.wishes["train"]})
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([str(PYTHON), DRIVE, config, wish], env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    (both.root / "log").write_text(done.stdout + done.stderr)
    verify = ["stub", "verify", *sources, "--config", config, "--log", both.root / "log"]
    assert "tensor-mismatch" in named(answer("stub-verify", *verify, code=1)["problems"], "error")


HOSTILE = """
import os, sys, torch, zipfile
path, kind = sys.argv[1:]
class Evil:
    def __reduce__(self):
        return os.system, (f"touch {path}.ran",)
whole = torch.zeros(1, 7, 64)
makes = {
    "a pickle": Evil(), "a pickle inside": {"x": whole, "y": Evil()}, "a dict": {"x": whole}, "a module": torch.nn.Linear(2, 2),
    "expanded": torch.zeros(1).expand(1 << 40), "sparse": whole.to_sparse(), "complex": whole.to(torch.complex64),
    "meta": whole.to("meta"), "quantized": torch.quantize_per_tensor(whole, 0.1, 0, torch.qint8), "NaN": whole / 0,
    "no elements": torch.zeros(1, 0, 64), "a number": 7,
}
if kind == "old format":
    torch.save(whole, path, _use_new_zipfile_serialization=False)
elif kind == "a script":
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)
else:
    torch.save(makes.get(kind, whole), path)
data = open(path, "rb").read()
if kind == "cut":
    open(path, "wb").write(data[: len(data) // 2])
if kind == "cut inside":
    open(path, "wb").write(data.replace(b"PK\\x03\\x04", b"PK\\x03\\x05", 1))
if kind == "compressed":
    with zipfile.ZipFile(path) as old:
        parts = [(one, old.read(one)) for one in old.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, text in parts:
            new.writestr(name, text)
"""
KINDS = (
    *("a pickle", "a pickle inside", "a dict", "a module", "expanded", "sparse", "complex", "meta", "quantized", "NaN"),
    *("no elements", "a number", "old format", "a script", "cut", "cut inside", "compressed"),
)


def test_nothing_in_a_file_runs_and_nothing_hostile_is_prepared(pair, tmp_path):
    both = pair({}, {})
    name = both.source("infer", f"{layer(1)}.input.0")
    path = both.dump("infer") / name
    one = module(target=layer(1), source=name, transform=[])
    for kind in KINDS:
        python("-c", HOSTILE, path, kind)
        error = both.prepare(1, "train", one, code=1)["error"]
        assert error["kind"] == "stub-transform", kind
        assert not Path(f"{path}.ran").exists()
        assert not list(both.root.glob("*stub_source*")), kind
    python("-c", HOSTILE, path, "plain")
    assert both.prepare(1, "train", one)["round"] == 1
