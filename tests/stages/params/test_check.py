"""What is taken as the training's config, values that are one, mappings that are none."""

from __future__ import annotations

import json

import pytest

from codemods.errors import UsageError
from stages.params.check import Wish, check
from stages.params.mapping import SHIPPED, kinds_by_name, read_mapping, shipped
from stages.params.paths import read
from stages.params.reading import UNKNOWN, Config, ConfigError, read_config
from stages.params.values import on, same
from tests.cli.test_shell import run
from tests.stages.params.conftest import card_in
from tests.stages.params.pairs import hf, provider


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1e6, 1000000, True),
        (1000000, "1e6", True),
        ("1_000_000", 1000000.0, True),
        (1e-06, "0.000001", True),
        (1e-06, 1.0000001e-06, False),
        (2**60, 2**60 + 1, False),
        (True, "true", True),
        (True, 1, False),
        (None, 0, False),
        (None, None, True),
        ("torch.bfloat16", "bf16", True),
        ("float16", "half", True),
        ("torch.float32", "float16", False),
        ("torch.nn.functional.silu", "swish", True),
        ("gelu", "gelu_pytorch_tanh", False),
        ([1, 2.0], [1.0, 2], True),
        ([1], [1, 1], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"b": 1}, False),
        ("yarn", "Yarn", False),
        ("9" * 5000, 9, False),
    ],
)
def test_equality(a, b, equal):
    assert same(a, b) is equal
    assert same(b, a) is equal


@pytest.mark.parametrize(
    ("value", "is_on"), [(None, False), (0, False), ("false", False), ([], False), ("None", False)]
)
def test_off(value, is_on):
    assert on(value) is is_on


@pytest.mark.parametrize("value", [1, 4, "true", "yarn", True, [1]])
def test_on(value):
    assert on(value)


def test_a_raw_config_is_not_what_the_training_runs_with(params, tmp_path):
    pair = ("--train-cfg", hf("qwen3"), "--infer-cfg", hf("qwen3"))
    error = params("check", *pair, code=1, cwd=tmp_path)["error"]
    assert error["kind"] == "raw-config"
    assert "params provider" in error["todo"]
    assert params("check", *pair, "--train-is-hf", cwd=tmp_path)["verdict"] == "EXACT"


@pytest.mark.parametrize(
    ("backend", "flag", "code"), [("fsdp", (), 0), ("megatron", ("--train-is-hf",), 1), ("own", (), 1)]
)
def test_the_card_s_backend_says_whether_a_raw_config_is_the_model(params, tmp_path, backend, flag, code):
    from stages.card.store import changing

    with changing(card_in(tmp_path)) as card:
        card.put("train.backend", backend)
    params("check", "--train-cfg", hf("qwen3"), "--infer-cfg", hf("qwen3"), *flag, code=code, cwd=tmp_path)
    assert (tmp_path / "param_config.json").exists() is (code == 0)


def test_swapped_sides_are_told():
    with pytest.raises(UsageError, match="looks like a trainer"):
        check(Wish(hf("qwen3"), provider("qwen3"), "auto", train_is_hf=True))


def test_a_run_s_yaml(tmp_path):
    config = json.loads(provider("qwen3").read_text())["config"]
    lines = "\n".join(f"  {key}: {json.dumps(value)}" for key, value in config.items())
    (tmp_path / "run.yaml").write_text(
        f"_target_: x.ConfigContainer\nmodel:\n  _target_: x.Qwen3ModelProvider\n{lines}\n"
    )
    checked = check(Wish(tmp_path / "run.yaml", hf("qwen3"), "auto"))
    assert checked.aligned, checked.points
    assert any("`model`" in note for note in checked.notes)


def test_a_folder_stands_for_its_config(tmp_path):
    (tmp_path / "config.json").write_text(hf("qwen3").read_text())
    assert read_config(tmp_path).model_type == "qwen3"


@pytest.mark.parametrize("version", ["4.57.6", "5.9.0"])
def test_nested_text_configs_are_the_language_model_s(tmp_path, version):
    inner = json.loads(hf("qwen3", version).read_text())
    outer = {
        "model_type": "qwen3_vl",
        "architectures": ["Q"],
        "text_config": inner,
        "vision_config": {"hidden_size": 7},
    }
    (tmp_path / "vl.json").write_text(json.dumps(outer))
    checked = check(Wish(hf("qwen3"), tmp_path / "vl.json", "hf-hf", train_is_hf=True))
    assert checked.aligned, checked.points
    assert check(Wish(provider("qwen3"), tmp_path / "vl.json", "auto")).aligned


def test_shipped_mappings_are_whole():
    assert set(shipped()) == {
        f"hf-{name}" for name in ("hf", "megatron", *(f"megatron-{x}" for x in ("dense", "mhc", "mla", "moe")))
    }
    for name in shipped():
        assert read_mapping(SHIPPED / f"{name}.json").fields
    assert kinds_by_name()["num_hidden_layers"] == "structure"


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ([{"train": "a"}], "what to compare"),
        ([{"train": "a", "infer": "b", "kind": "x"}], "kind"),
        ([{"train": "a", "infer": "b", "infr": 1}], "infr"),
        ([{"train": "=a**b", "infer": "b"}], "formula"),
        ([{"train": "=__import__('os')", "infer": "b"}], "formula"),
        ([{"train": "a b", "infer": "b"}], "names"),
        ([{"train": "a", "infer": "b", "infer_expected": 1}], "what to compare"),
        ([{"train": "a", "infer": "b", "infer_as": "eval"}], "infer_as"),
        ([{"train": "a", "infer": "b", "when": {"elsewhere": "x"}}], "when"),
        ([{"train": 1, "infer": "b"}], "no text"),
        (["a"], "no object"),
        ("a", "lists"),
    ],
)
def test_a_mapping_that_is_none(tmp_path, fields, word):
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"fields": fields}))
    with pytest.raises(ConfigError) as raised:
        read_mapping(path)
    assert word in raised.value.what + str(raised.value.why)


def test_a_mapping_that_includes_itself(tmp_path):
    path = tmp_path / "m.json"
    path.write_text('{"include": ["m.json"], "fields": []}')
    with pytest.raises(ConfigError, match="includes itself"):
        read_mapping(path)


@pytest.mark.parametrize(
    ("spec", "value", "path"),
    [
        ("a.b", 1, "a.b"),
        ("x|a.b", 1, "a.b"),
        ("c.d", 2, "c.d"),
        ("=n*m", 6, "=n*m"),
        ("=n*m+1//1", 7, "=n*m+1//1"),
        ("x else =n-m", -1, "=n-m"),
        ("=n*x", None, None),
        ("=n//zero", None, None),
        ("inner", 5, "text_config.inner"),
    ],
)
def test_where_a_value_stands(tmp_path, spec, value, path):
    values = {"a": {"b": 1}, "c.d": 2, "n": 2, "m": 3, "zero": 0, "text_config": {"inner": 5}}
    reading = read(Config(tmp_path, values, UNKNOWN), spec)
    assert (reading.value, reading.path) == (value, path)


def test_out_of_order_is_refused_with_the_next_command(params, tmp_path):
    card_in(tmp_path, upto=3)
    for arguments in (
        ("check", "--train-cfg", "a", "--infer-cfg", "b"),
        ("report",),
        ("waive", "x", "--why", "y"),
        ("provider", "a", "b"),
    ):
        error = params(*arguments, code=3, cwd=tmp_path)["error"]
        assert error["kind"] == "out-of-order"
        assert "probepatch inputs check" in error["todo"]


def test_for_people(tmp_path):
    done = run(
        "params",
        "check",
        "--train-cfg",
        provider("qwen3", "5.9.0"),
        "--infer-cfg",
        hf("qwen3", "5.9.0"),
        "--mapping",
        "auto",
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "P1  DIFF    value  rope_theta  10000  1000000.0  nobody set it: 10000 is the default" in done.stdout
    assert "24 of 25 items EXACT; what the modules consume was not computed" in done.stdout
    assert "no task card: nothing was recorded" in done.stdout
    assert not list(tmp_path.iterdir())


def test_secrets_and_control_characters_do_not_get_out(params, tmp_path):
    secret = "hf_" + "a1" * 20
    (tmp_path / "a.json").write_text(json.dumps({"x": secret, "y": 1, "n\x1b[2J": 1}))
    (tmp_path / "b.json").write_text(json.dumps({"x": "other", "y": 1}))
    pair = ("--train-cfg", "a.json", "--infer-cfg", "b.json")
    assert secret not in json.dumps(params("check", *pair, code=1, cwd=tmp_path))
    shown = run("params", "check", *pair, cwd=tmp_path)
    assert secret not in shown.stdout + shown.stderr
    assert "\x1b" not in shown.stdout + shown.stderr


def test_help_of_the_group_imports_no_command():
    import subprocess
    import sys

    code = "import sys, cli; cli.main(['params', '--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=SHIPPED.parent.parent.parent
    )
    assert "provider" in done.stdout
    assert not [
        name for name in done.stderr.split() if name.startswith(("commands.params_", "stages.", "torch", "numpy"))
    ]
