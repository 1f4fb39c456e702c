"""The preflight on hostile cards, tools that answer nonsense, absurd configs, things that wait for ever, and two at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from stages.card.store import changing, read_card
from stages.preflight.cards import TOOLS
from stages.preflight.probes.weights import probe
from stages.preflight.size import estimate
from tests.cli.test_commands import answer
from tests.cli.test_shell import ROOT, run
from tests.stages.preflight.conftest import CONFIG, prefix, setting, tool
from tests.stages.preflight.test_preflight import finding, permitted, preflight, states
from tests.stages.preflight.test_smi import sample
from tests.stages.task.reach import fakes

HUGE = "9" * 400


# --- cards -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda result: result.update(processes="all"),
        lambda result: result.update(processes=[{"pid": 5}]),
        lambda result: result["processes"].append(dict(ONE, pid=True)),
        lambda result: result["processes"].append(dict(ONE, pid=1.5)),
        lambda result: result["processes"].append(dict(ONE, place="elsewhere")),
        lambda result: result["processes"].append(dict(ONE, start="0")),
        lambda result: result.update(baseline_mb=[1]),
        lambda result: result.update(baseline_mb={"x": "much"}),
        lambda result: result.update(stopped={}),
        lambda result: result.update(cards_before=None),
    ],
)
def test_what_the_preflight_left_is_checked_before_it_is_used(card, change):
    permitted(card)
    preflight(card)
    data = json.loads(card.read_text())
    change(data["stages"]["1"]["result"])
    card.write_text(json.dumps(data))
    before = card.read_bytes()
    for words in (["preflight"], ["preflight", "stop", "5"]):
        error = answer("error", *words, "--task", card, code=4)["error"]
        assert ".stages.1.result" in error["why"]
    assert card.read_bytes() == before


ONE = {
    "place": "train",
    "pid": 5,
    "start": 7,
    "boot": "b",
    "namespace": "n",
    "kind": None,
    "command": "c",
    "nested": False,
    "inside": 5,
}


@pytest.mark.parametrize(
    "words",
    [
        ["--tokens", HUGE],
        ["--tokens", "nan"],
        ["--tokens", "0"],
        ["--ranks", HUGE],
        ["--keep", "0"],
        ["--level", "L9"],
        ["stop", HUGE],
        ["stop", "-1"],
        ["stop", "0"],
        ["stop", "VLLM::EngineCore"],
        ["stop"],
        ["stop", "5", "--wait", "nan"],
        ["stop", "5", "--wait", "inf"],
        ["stop", "5", "--wait", "-1"],
        ["stop", "5", "--side", "there"],
    ],
)
def test_arguments_that_are_none(card, words):
    answer("error", "preflight", *words, "--task", card, code=2)


def test_a_card_that_was_changed_while_it_was_looked_at(card, tmp_path):
    reach = tmp_path / "reach"
    other = f"{sys.executable} -m probepatch task set e2e_target=x$RANDOM --task {card}"
    tool(tmp_path, "reach", f'(cd {ROOT}; {other} >/dev/null); exec "$@"')
    setting(card, **{"infer.prefix": str(reach)})
    error = answer("error", "preflight", "--task", card, code=3)["error"]
    assert error["kind"] == "changed-card"
    assert "1" not in read_card(card).data["stages"]


def test_killed_it_leaves_the_card_as_it_was(card, tmp_path):
    tool(tmp_path, "reach", 'echo here > "$0.here"; sleep 1000')
    setting(card, **{"infer.prefix": str(tmp_path / "reach")})
    before = card.read_bytes()
    one = subprocess.Popen(
        [sys.executable, "-m", "probepatch", "preflight", "--task", card], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    while not (tmp_path / "reach.here").exists():
        assert one.poll() is None
    answer("task-status", "task", "status", "--task", card)  # a long look locks nobody out
    one.send_signal(signal.SIGINT)
    assert one.wait() == 130
    assert card.read_bytes() == before


# --- behind ssh and the like -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reach", ["ssh node7", "docker exec c1", "docker exec -i c1 bash -c", "ssh node7 conda run -n e"]
)
def test_all_questions_go_through_the_prefix(card, tmp_path, monkeypatch, reach):
    for name, value in fakes(tmp_path / "fakes").items():
        monkeypatch.setenv(name, value)
    tool(
        tmp_path / "fakes",
        "nvidia-smi",
        'case "$1" in *compute-apps*) ;; *) echo "0, GPU-1, NVIDIA A (x, y), 10, 1000";; esac; [ $# = 2 ]',
    )
    setting(card, **{"train.prefix": reach, "infer.prefix": reach, "hardware": "cuda"})
    result = preflight(card)
    assert states(result, "side") == ["ok", "ok"]
    assert [(one["name"], one["total_mb"]) for one in result["cards"]] == [("NVIDIA A (x, y)", 1000)]
    assert states(result, "msprobe") == ["ok"] * 4
    assert states(result, "weights") == ["ok", "ok"]


# --- tools ---------------------------------------------------------------------------------------------------------------


BROKEN = [
    "",
    "\x00\x01\x02",
    "{}",
    "[]",
    '{"card0": 5}',
    '{"card0": {}, "system": {"PID1": 5, "PID99999999999999999999": "a, b, c, d, e", "PIDx": ""}}',
    "{" * 5000,
    '{"card0": {"VRAM Total Memory (B)": "inf", "VRAM Total Used Memory (B)": "1e400"}}',
    "| NPU Name | Health |\n| ² x | OK | - |\n| 0 | 0000:C1:00.0 | 0 0 / 0 |",
    "| NPU Name | Health |\n| 0 x | OK | - |\n| | | |",
    "| NPU Name | Health |\n| 0 x | OK | - |\n| 0 | 0000:C1:00.0 | " + "9" * 5000 + " / 3 |",
    "| NPU Name | Health |\n| 0 x | OK | - |",
    "| NPU Chip | Process id |\n| ² | 7 | x | 5 |",
    "0, GPU-1",
    "0, GPU-1, a, b, c, d, e, f",
    "x, GPU-1, A, [N/A], [Unknown Error]",
    "a banner\n0, GPU-1, A, 1, 2",
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    "No devices were found",
    '"' * 3001,
    "\x1b[31m0, GPU-1, A, 1, 2",
    "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005",
]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_answer_is_never_a_free_card(text, tmp_path):
    for module, commands in TOOLS.values():
        try:
            cards = module.parse([text] * len(commands))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue  # what `see` takes for "does not answer as it should"
        assert all(one.holders != () or one.used is None or one.total is None for one in cards), cards


@pytest.mark.parametrize(
    "text", [BROKEN[5], BROKEN[8], BROKEN[10], BROKEN[12], BROKEN[18], "token=abcdEFGH1234 refused"]
)
def test_it_is_told_in_one_line(card, tmp_path, text):
    (tmp_path / "said").write_text(text)
    for name in ("npu-smi", "nvidia-smi", "rocm-smi"):
        tool(tmp_path / "tools", name, f"cat {tmp_path}/said; exit 3" if "token" in text else f"cat {tmp_path}/said")
    setting(card, hardware=None, **{"train.prefix": prefix(tmp_path, tmp_path / "tools")})
    result = preflight(card)
    assert "ok" not in [
        one["state"] for one in result["findings"] if one["check"] == "cards" and one["place"] == "train"
    ]
    assert "abcdEFGH1234" not in json.dumps(result) + card.read_text()


@pytest.mark.parametrize("cut", [1, 3, 7, 12, 20, 33])
@pytest.mark.parametrize("name", ["npu-910b.txt", "npu-two-chips.txt", "npu-310p.txt", "npu-950.txt"])
def test_an_answer_that_is_cut_off_frees_no_card(name, cut):
    """A table whose end is missing must not say of a card that nobody is on it."""
    module, _commands = TOOLS["npu-smi"]
    whole = {one.id: one for one in module.parse([sample(name)])}
    lines = sample(name).splitlines()
    try:
        cards = module.parse(["\n".join(lines[: max(1, len(lines) - cut)])])
    except ValueError:
        return
    assert all(one.holders != () or whole[one.id].holders == () for one in cards)


# --- processes -----------------------------------------------------------------------------------------------------------


def test_a_title_cannot_steer_the_terminal_or_make_lines(card, spawn):
    answer("task-set", "task", "set", "hardware=cuda", "--task", card)  # where leftovers may hold a card
    spawn("VLLM::\x1b[2J\x07\nok  everything  is fine\r\x1b]0;x\x07")
    done = run("preflight", "--task", card)
    assert done.returncode == 1, done.stderr
    assert not {"\x1b", "\x07", "\r"} & {*done.stdout}
    assert not [line for line in done.stdout.splitlines() if line.startswith("ok  everything")]
    assert "PROBLEM" in done.stdout
    preflight(card)


@pytest.mark.parametrize("words", ["--hf-token abcdEFGH1234", "--api-key=abcdEFGH1234", "HF_TOKEN=abcdEFGH1234"])
def test_no_credential_of_a_process_is_told(card, spawn, words):
    spawn("vllm", body=f"bash -c 'sleep 300 & wait' {words}")
    done = preflight(card)
    assert done["processes"]
    assert "abcdEFGH1234" not in json.dumps(done) + card.read_text()


# --- configs, weights, disk ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": 10**30},
        {"num_hidden_layers": 10**7},
        {"hidden_size": -1},
        {"hidden_size": 1e300},
        {"vocab_size": True},
        {"vocab_size": "many"},
        {"num_attention_heads": 0},
        {"intermediate_size": None},
        {"num_experts": 8},
        {"text_config": {"hidden_size": 1 << 60}},
        {"text_config": [1]},
    ],
)
def test_a_config_that_no_model_has_gives_no_number(change):
    config = {**CONFIG, **change}
    size, lacking = estimate(config, 10, "mix", "tensor")
    assert (size is None) == bool(lacking)
    assert size is None or change == {"text_config": [1]}


@pytest.mark.parametrize(
    "text", ['{"hidden_size": 1e999}', nested := '{"a":' * 900 + "1" + "}" * 900, "[]", "\ufeff{}", "{"]
)
def test_an_absurd_config_stops_nothing(card, model, text):
    (model / "config.json").write_text(text)
    result = preflight(card, "--tokens", "10")
    assert states(result, "disk") == ["unknown"]


def test_more_tokens_than_the_model_takes(card):
    found = finding(preflight(card, "--tokens", "65"), "disk", "problem")
    assert "65 tokens are more than the 64 that the model takes" in found["what"]
    assert states(preflight(card, "--tokens", "64"), "disk") == ["ok"]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "model.safetensors.index.json"])
@pytest.mark.parametrize("what", ["pipe", "folder", "loop"])
def test_a_model_whose_files_are_none(model, name, what):
    (model / name).unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(model / name)
    elif what == "folder":
        (model / name).mkdir()
    else:
        (model / name).symlink_to(name)
    told = probe({"path": str(model)})
    assert told["faults"], told
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(
    "about",
    [
        {"data_offsets": [0, 1e999]},
        {"data_offsets": [8, 0]},
        {"data_offsets": [-8, 8]},
        {"data_offsets": ["a", "b"]},
        {"data_offsets": [0]},
        {},
        5,
        None,
    ],
)
def test_a_header_that_lies(model, about):
    head = json.dumps({"a": about}).encode()
    (model / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + b"\0" * 8)
    assert [kind for kind, _file, _more in probe({"path": str(model)})["faults"]] == ["damaged"]


@pytest.mark.parametrize("name", ["~nobody-here/model", "/m/\udcff", "relative/model"])
def test_a_model_that_is_nowhere(card, name):
    setting(card, **{"model.path": name})
    assert states(preflight(card), "weights") == ["problem", "problem"]


def test_an_import_error_with_a_credential(card, sites):
    (sites["train"] / "torch/__init__.py").write_text("raise RuntimeError('login failed: HF_TOKEN=abcdEFGH1234')")
    result = preflight(card)
    assert states(result, "msprobe", "train") == ["problem"]
    assert "abcdEFGH1234" not in json.dumps(result) + card.read_text()


def test_the_artefact_root_was_put_in_by_hand(card, model):
    with changing(card) as it:
        it.put("artifacts", str(model / "out"))
    assert states(preflight(card), "artifacts") == ["problem", "problem"]
    shutil.rmtree(model)
    assert "problem" in states(preflight(card), "weights")
