"""Configs, mappings, results and bridges that want to run, to grow or to be something else: one clear line, in bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stages.params.values import same
from tests.cli.test_shell import ROOT, run
from tests.stages.params.test_fix import instruction

GOOD = {"model_type": "qwen2", "num_hidden_layers": 2, "rms_norm_eps": 1e-6, "hidden_size": 8}
BOUNDED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); sys.argv = sys.argv[1:];"
    " sys.path.insert(0, sys.argv[0]); runpy.run_module('probepatch', run_name='__main__', alter_sys=True)"
)


def bounded(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``probepatch params …`` in 1 GB of memory and a minute."""
    return subprocess.run(
        [sys.executable, "-c", BOUNDED, str(ROOT), "params", *map(str, arguments)],
        cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def refused(done: subprocess.CompletedProcess[str], *codes: int) -> str:
    assert done.returncode in codes, done.stdout[-500:] + done.stderr[-500:]
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    return done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    return tmp_path


def aliases(kind: str) -> str:
    first = {"maps": "{a: 1}", "lists": "[1]", "merges": "{a0: 1}"}[kind]
    line = {"maps": "{a: *b%d, b: *b%d}", "lists": "[*b%d, *b%d]", "merges": "{<<: [*b%d, *b%d], a%d: 1}"}[kind]
    rows = [f"b{n}: &b{n} " + line % ((n - 1,) * 2 + ((n,) if kind == "merges" else ())) for n in range(1, 40)]
    return "\n".join([f"b0: &b0 {first}", *rows]) + "\n"


CONFIGS = {
    "maps.yaml": aliases("maps"),
    "lists.yaml": aliases("lists"),
    "merges.yaml": aliases("merges"),
    "deep.yaml": "a: " + "[" * 100_000,
    "self.yaml": "a: &a {b: *a}\n",
    "number.yaml": "model_type: qwen2\na: 0x" + "f" * 100_000 + "\n",
    "many.yaml": "model_type: qwen2\n" + "".join(f"k{n}: 1\n" for n in range(30_000)),
    "long.yaml": "a: " + "x" * (1 << 20) + "\n",
    "tag.yaml": "a: !!python/object/apply:os.system ['touch ran']\n",
    "many.json": "{" + ",".join(f'"k{n}":1' for n in range(30_000)) + "}",
    "twice.json": "{" + ",".join(f'"k{n % 150_000}":1' for n in range(200_000)) + "}",
    "number.json": '{"a": ' + "9" * 4_000 + "}",
    "deep.json": '{"a":' * 100_000,
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configs(folder, name):
    (folder / name).write_text(CONFIGS[name])
    refused(bounded("check", "--train-cfg", "good.json", "--infer-cfg", name, "--train-is-hf", cwd=folder), 4)
    refused(bounded("check", "--train-cfg", name, "--infer-cfg", "good.json", "--train-is-hf", cwd=folder), 4)
    assert not (folder / "ran").exists()


def test_what_is_no_file(folder):
    os.mkfifo(folder / "pipe.json")
    (folder / "loop.json").symlink_to("loop.json")
    for name in ("pipe.json", "loop.json", "x" * 5000, "/dev/zero"):
        options = ("--infer-cfg", "good.json", "--train-is-hf")
        refused(bounded("check", "--train-cfg", name, *options, cwd=folder), 2)
        refused(bounded("check", "--train-cfg", "good.json", *options, "--mapping", name, cwd=folder), 2)
        refused(bounded("check", "--train-cfg", "good.json", *options, "--modules", name, cwd=folder), 2)
        refused(bounded("fix", name, cwd=folder), 2)
        assert bounded("report", "--config", name, "--folder", folder, cwd=folder).returncode == 1


FIELD = {"name": "x", "train": "rms_norm_eps", "infer": "rms_norm_eps"}
MAPPINGS = {
    "a call": ({**FIELD, "train": "=__import__('os').system('touch ran')"}, 4),
    "a power": ({**FIELD, "train": "=9**9**9**9"}, 4),
    "a deep formula": ({**FIELD, "train": "=" + "(" * 140 + "hidden_size" + ")" * 140}, 1),
    "a large product": ({**FIELD, "train": "=" + "*".join(["hidden_size"] * 20)}, 1),
    "nothing divided": ({**FIELD, "train": "=hidden_size//0"}, 1),
    "no text": ({"name": 1, "train": [], "infer": {}}, 4),
    "no condition": ({**FIELD, "when": [[[]]]}, 4),
}


@pytest.mark.parametrize("name", MAPPINGS)
def test_mappings(folder, name):
    field, code = MAPPINGS[name]
    (folder / "m.json").write_text(json.dumps({"fields": [field]}))
    options = ("--infer-cfg", "good.json", "--train-is-hf", "--mapping", "m.json")
    done = bounded("check", "--train-cfg", "good.json", *options, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "ran").exists()


def test_a_mapping_that_includes_everything_ten_times(folder):
    for level in range(8):
        include = [f"{level + 1}-{n}.json" for n in range(10)] if level < 7 else []
        for number in range(10):
            (folder / f"{level}-{number}.json").write_text(json.dumps({"include": include, "fields": [FIELD]}))
    options = ("--infer-cfg", "good.json", "--train-is-hf", "--mapping", "0-0.json")
    assert bounded("check", "--train-cfg", "good.json", *options, cwd=folder).returncode == 0


def test_globs_end(folder):
    glob, name = "*a" * 40 + "b", "a" * 3000 + "c"
    (folder / "long.json").write_text(json.dumps({**GOOD, name: 1}))
    (folder / "modules.json").write_text(json.dumps({side: {name: {"eps": 1e-6}} for side in ("train", "infer")}))
    pair = {"train": "*a" * 40 + ".x", "infer": "*a" * 40 + ".y"}
    mapping = {"fields": [{**FIELD, "read": {"train": [f"{glob}:eps"]}}], "ignore": [glob], "modules": [pair]}
    (folder / "m.json").write_text(json.dumps(mapping))
    options = ("--infer-cfg", "good.json", "--train-is-hf", "--mapping", "m.json", "--modules", "modules.json")
    assert bounded("check", "--train-cfg", "long.json", *options, cwd=folder).returncode == 1


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": 5},
        {"inputs": {"": 1}},
        {"sides": 5},
        {"sides": {"train": 5}},
        {"sides": {"train": {"files": 5}}},
        {"sides": {"train": {"files": [5, {}, {"path": 5}, {"path": "\0"}]}}},
        {"train_only_keys": 5},
        {"infer_only_keys": [5, None]},
        {"findings": [{"name": "a", "verdict": "DIFF", "train": 5, "infer": [], "note": 5}]},
        {"verdict": None},
        {"verdict": []},
    ],
)
def test_results_that_somebody_wrote(folder, change):
    good = {"verdict": "EXACT", "compared": 1, "findings": [], "inputs": {}}
    (folder / "param_weights.json").write_text(json.dumps({**good, **change}))
    done = bounded("report", "--json", cwd=folder)
    assert done.returncode in (1, 4), done.stdout
    assert "Traceback" not in done.stderr
    json.loads(done.stdout)


@pytest.mark.parametrize(
    "reading",
    [5, [], "x", {"value": 1}, {"path": 5, "value": {}}, {"undeclared": 5}, {"undeclared": {"a": 1}, "path": "b"}],
)
def test_items_that_somebody_wrote(folder, reading):
    item = {"name": "n", "layer": "config", "kind": "switch", "result": "DIFF", "side": 5, "why": 5, "module": 5}
    both = {"train": reading, "infer": reading}
    data = {"format": "probepatch/param-config/1", "items": [{**item, **both}], "train": {"path": 5}, "infer": 5}
    (folder / "param_config.json").write_text(json.dumps(data))
    done = bounded("report", "--json", cwd=folder)
    assert done.returncode in (1, 4), done.stdout
    assert "Traceback" not in done.stderr
    json.loads(done.stdout)


@pytest.mark.parametrize(
    "item",
    [
        {"file": "\0", "value": 1},
        {"file": "x" * 5000, "value": 1},
        {"file": "/dev/zero", "value": 1},
        {"file": "pipe.json", "value": 1},
        {"file": "loop.json", "value": 1},
        {"file": "bomb.yaml", "key": "b0.a", "value": 1},
        {"file": "deep.py", "method": "code", "rename": {"from": "a", "to": "b"}},
        {"file": "nul.py", "method": "code", "rename": {"from": "a", "to": "b"}},
        {"file": "good.json", "key": "." * 3000, "value": 1},
        {"file": "good.json", "key": "hidden_size", "value": "x" * 1000, "rename": 5},
    ],
)
def test_instructions_that_somebody_wrote(folder, item):
    os.mkfifo(folder / "pipe.json")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "bomb.yaml").write_text(aliases("maps"))
    (folder / "deep.py").write_text("P(a=" + "[" * 5000 + "]" * 5000 + ")")
    (folder / "nul.py").write_bytes(b"P(a=1)\0")
    instruction(folder, item)
    refused(bounded("fix", cwd=folder), 1, 2, 3, 4)
    assert json.loads((folder / "good.json").read_text()) == GOOD


BRIDGES = {
    "raises": "raise ValueError('no\\x1b[31m luck')",
    "exits": "import sys; sys.exit(0)",
    "interrupts": "raise KeyboardInterrupt",
    "ends at once": "import os; os._exit(0)",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "no bridge": "Other = 1",
}
CLASS = "class MyBridge:\n    def provider_bridge(self, pretrained):\n        {body}\n"


def bridge(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model/config.json").write_text(json.dumps(GOOD))
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src/mine.py").write_text(text)
    options = ("--bridge", "mine.MyBridge", "--bridge-src", folder / "src")
    return run(
        "params", "provider", folder / "model", folder / "out.json", *options, "--python", sys.executable, cwd=folder
    )


@pytest.mark.parametrize("where", ["import", "build"])
@pytest.mark.parametrize("name", BRIDGES)
def test_bridges(folder, name, where):
    text = BRIDGES[name]
    done = bridge(folder, text if where == "import" else CLASS.format(body=text.replace("\n", "\n        ")))
    assert "\x1b" not in refused(done, 1, 3)
    assert not (folder / "out.json").exists()


@pytest.mark.parametrize(
    "body",
    [
        "[print('x' * 1000) for _n in range(20_000)]",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import os; os.write(1, b'\\xff' * 1000); os.system('yes | head -c 1000000; yes | head -c 1000000 >&2')",
        "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
        "import atexit; atexit.register(print, 'late')",
    ],
)
def test_a_bridge_that_talks_is_heard_all_the_same(folder, body):
    made = "import types; return types.SimpleNamespace(num_layers=2)"
    done = bridge(folder, CLASS.format(body=f"{body}\n        {made}"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((folder / "out.json").read_text())["config"] == {"num_layers": 2}


def test_names_of_dtypes():
    for one, other in (
        ("BF16", "torch.bfloat16"),
        ("F8_E4M3", "fp8_e4m3"),
        ("F16", "half"),
        ("F8_E5M2", "torch.float8_e5m2"),
    ):
        assert same(one, other)
    assert not same("float8_e4m3fn", "float8_e4m3fnuz")
    assert not same("bf16", "fp16")
