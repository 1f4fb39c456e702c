"""Training steps of slime's own actor, model, data and loss code on this CPU (Megatron stands in), patched and not."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.catalogue.slime import trees
from tests.real import environment

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[3]
DRIVE = Path(__file__).parent / "drive"
PROMPTS = [[5, 6, 7, 8], [12, 13], [5, 6, 7], [30, 31, 32, 33]]
IDS = [f"request-{letter}" for letter in "abcd"]
ON = {"DUMP_ON": "1", "PROMPTS_ONLY": "1"}
PASS = ["start", "stop", "step"]

SMALL = [(package, shape) for package in ("slime", "vime") for shape in trees.SMALL]
ALL = SMALL + [("slime", tag) for tag in (*trees.FIRST, *trees.LATER)] + [("vime", shape) for shape in trees.VIME]
CLOSELY = [*SMALL[1:3], ("slime", "v0.2.0"), ("slime", "v0.2.4"), ("slime", "main"), ("vime", "one-argument")]
BY_INDICES = (
    "v0.3.0",
    "v0.3.1",
    "main",
    "one-argument",
    "small-one-argument",
)  # the others slice a fixed number of samples
BSHD = ("v0.2.3", "v0.2.4", "v0.3.0", "three-arguments")


def case(environment: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
    return {"environment": ON if environment is None else environment, **options}


def numbers(count: int) -> list[float]:
    return [-1.0 - index / 8 for index in range(count)]


WHOLE = {"DUMP_ON": "1", "PROMPTS_ONLY": "0"}
PREFILL = {"PREFILL_LOGPROB_DIFF": "1"}
DYNAMIC = {"use_dynamic_batch_size": True, "max_tokens_per_gpu": 12}
REPLAY = {"use_routing_replay": True}
REQUESTS = [{"request_id": name} for name in IDS]
ANSWERED = [
    {"request_id": name, "prompt_logprobs": numbers(len(prompt) - 1)} for name, prompt in zip(IDS, PROMPTS, strict=True)
]
ANSWERED[1] = {"request_id": IDS[1], "prompt_logprobs": None}

PATCHED = {
    "off": case({"DUMP_ON": "0", "PROMPTS_ONLY": "1"}, without_msprobe=True),
    "unset": case({}, without_msprobe=True),
    "prompts": case(requests=REQUESTS),
    "without-ids": case(),
    "dynamic": case(args=DYNAMIC),
    "whole": case(WHOLE, requests=REQUESTS),
    "update-only": case({**ON, "DUMP_PHASE": "update_actor"}),
    "reference-and-teacher": case(tags=["actor", "ref", "teacher"]),
    "whole-reference-and-teacher": case(WHOLE, tags=["actor", "ref", "teacher"]),
    "critic": case(role="critic"),
    "skipped": case(args={"use_rollout_logprobs": True}),
    "skipped-with-reference": case(args={"use_rollout_logprobs": True}, tags=["actor", "ref"]),
    "reused": case(args={"kl_coef": 0}),
    "whole-and-skipped": case(WHOLE, args={"use_rollout_logprobs": True}),
    "no-advantages": case(args={"compute_advantages_and_returns": False}, requests=REQUESTS),
    "old-actor": case(args={"keep_old_actor": True}, tags=["actor", "old_actor"]),
    "replay": case({**ON, "ROUTING_REPLAY_STAGE": "earlier"}, args=REPLAY),
    "fp8": case(args={"fp8": "hybrid"}),
    "top-p": case(args={"rollout_top_p": 0.9}),
    "failing": case(fail_at=1),
    "failing-later": case(fail_at=2),
    "whole-failing": case(WHOLE, fail_at=2),
    "one-token-prompt": case(one_token_prompt=True),
    "two-rounds": case(repeat=2),
    "other-debugger": case(other_debugger=True),
    "prefill": case({**ON, **PREFILL}, requests=ANSWERED),
    "prefill-alone": case({**ON, **PREFILL}, args=DYNAMIC),
    "prefill-only": case(PREFILL, requests=ANSWERED, without_msprobe=True),
    "prefill-only-skipped": case(PREFILL, args={"use_rollout_logprobs": True}, tags=["actor", "ref"]),
    "prefill-whole": case({**WHOLE, **PREFILL}, requests=ANSWERED),
    "prefill-of-update-only": case({**ON, **PREFILL, "DUMP_PHASE": "update_actor"}),
    "prefill-without-config": case({**PREFILL, "MSPROBE_ACTOR_CONFIG": ""}),
    "token-ids": case({**ON, "DUMP_TOKEN_IDS": "1"}),
    "wrong-switch": case({"DUMP_ON": "yes"}),
}
MAIN = [
    "prompts",
    "without-ids",
    "token-ids",
    "dynamic",
    "skipped",
    "skipped-with-reference",
    "reused",
]  # on every tree
BSHD_CASE = case(args={"qkv_format": "bshd"})


def seeded(name: str) -> dict[str, Any]:
    """The same without switches, for an unpatched tree."""
    return {"seed_all": True, **{key: value for key, value in PATCHED[name].items() if key in ("args", "tags")}}


COMPARED = ["prompts", "dynamic", "reference-and-teacher", "skipped", "skipped-with-reference", "reused", "old-actor"]
PLAIN: dict[str, Any] = {"off": {}, **{f"seeded-{name}": seeded(name) for name in COMPARED}}


class Runs:
    """All cases on one tree, as it was published and patched."""

    def __init__(self, package: str, tree: str, folder: Path) -> None:
        self.package, self.tree, self.folder = package, tree, folder
        self.closely = (package, tree) in CLOSELY
        self.plain = getattr(trees, package)(tree, folder / "plain")
        self.patched = folder / "patched"
        shutil.copytree(self.plain, self.patched)
        command = [sys.executable, "-m", "probepatch", "apply", str(self.patched)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    def _run(self, tree: Path, cases: dict[str, Any]) -> dict[str, Any]:
        out = self.folder / f"{tree.name}-seen"
        for name, options in cases.items():
            folder = out / name
            folder.mkdir(parents=True)
            (folder / "config.json").write_text(json.dumps({"dump_path": str(folder)}))
            settings = {"MSPROBE_ACTOR_CONFIG": str(folder / "config.json")}
            cases[name] = options | {"environment": settings | options.get("environment", {})}
        command = [environment.interpreter(), DRIVE / "actor.py", self.package, tree, json.dumps(cases), out]
        settings = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([str(part) for part in command], env=settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        self.errors = done.stderr
        return {name: json.loads(path.read_text()) for name in cases if (path := out / f"{name}.json").exists()}

    @cached_property
    def seen(self) -> dict[str, Any]:
        cases = {name: options for name, options in PATCHED.items() if self.closely or name in MAIN}
        if self.tree in BSHD:
            cases["bshd"] = BSHD_CASE
        return self._run(self.patched, cases)

    @cached_property
    def before(self) -> dict[str, Any]:
        wanted = PLAIN if self.closely else [name for name in PLAIN if name.removeprefix("seeded-") in MAIN]
        return self._run(self.plain, {name: PLAIN[name] for name in wanted})

    def lines(self, name: str, file: str = "update_actor_log.jsonl") -> list[dict[str, Any]]:
        path = self.folder / "patched-seen" / name / "rank0" / file
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def log(self, name: str) -> str:
        return (self.folder / "patched-seen" / f"{name}.log").read_text()

    def micro_batches(self, name: str) -> list[list[int]]:
        """Which samples they hold."""
        if self.tree in BY_INDICES:
            return [[0, 2], [3, 1]]
        return [[2, 3], [0, 1]] if name == "dynamic" else [[0, 1], [2, 3]]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    package, tree = request.param
    folder = tmp_path_factory.mktemp(f"{package}-{tree}-")
    yield Runs(package, tree, folder)
    shutil.rmtree(folder)


every = pytest.mark.parametrize("runs", ALL, indirect=True, ids="-".join)
closely = pytest.mark.parametrize("runs", CLOSELY, indirect=True, ids="-".join)


def hash_of(prompt: list[int]) -> str:
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()


def dumped(seen: dict[str, Any]) -> list[dict[str, Any]]:
    return [forward for forward in seen["forwards"] if forward["dumped"]]


@every
def test_the_bare_prompts_are_dumped_and_training_goes_on_the_same(runs: Runs) -> None:
    for name in ("prompts", "dynamic"):
        seen = runs.seen[name]
        groups = runs.micro_batches(name)
        assert seen["raised"] is None
        assert seen["rounds"] == runs.before[f"seeded-{name}"]["rounds"]
        assert seen["events"] == ["seed", *PASS, *PASS]
        assert [forward["ids"] for forward in seen["forwards"][:2]] == [
            [token for i in group for token in PROMPTS[i]] for group in groups
        ]
        assert [(f["dumped"], f["eval"], f["grad"]) for f in seen["forwards"][:2]] == [(1, True, False)] * 2
        assert seen["forwards"][2:] == runs.before[f"seeded-{name}"]["forwards"]
        assert not dumped({"forwards": seen["forwards"][2:]})


@every
def test_each_micro_batch_has_its_line(runs: Runs) -> None:
    for name, ids in (("prompts", IDS), ("without-ids", [None] * 4)):
        lines = runs.lines(name)
        for number, (line, group) in enumerate(zip(lines, runs.micro_batches(name), strict=True)):
            assert line.pop("time")
            assert line.pop("pid")
            assert line == {
                "phase": "log_prob",
                "prompts_only": True,
                "step": number,
                "rank": 0,
                "request_ids": [ids[i] for i in group],
                "prompt_sha256": [hash_of(PROMPTS[i]) for i in group],
                "prompt_tokens": [len(PROMPTS[i]) for i in group],
                "token_count": sum(len(PROMPTS[i]) for i in group),
            }
    assert [line["prompt_token_ids"] for line in runs.lines("token-ids")] == [
        [PROMPTS[i] for i in group] for group in runs.micro_batches("token-ids")
    ]


@closely
def test_the_debugger_is_built_once_from_the_training_sides_config(runs: Runs) -> None:
    seen = runs.seen["two-rounds"]
    assert seen["events"] == ["seed", *PASS * 4]
    assert {key: seen["built_with"][key] for key in ("task", "level", "step")} == {
        "task": "tensor",
        "level": "L0",
        "step": [0],
    }
    assert [line["step"] for line in runs.lines("two-rounds")] == [0, 1, 2, 3]
    assert "another PrecisionDebugger" in runs.seen["other-debugger"]["raised"]


@closely
def test_switched_off_nothing_changes(runs: Runs) -> None:
    for name in ("off", "unset"):
        seen = runs.seen[name]
        assert seen["rounds"] == runs.before["off"]["rounds"]
        assert seen["forwards"] == runs.before["off"]["forwards"]
        assert (seen["events"], seen["msprobe"]) == ([], False)
    assert runs.seen["update-only"]["events"] == []
    assert "wrong-switch" not in runs.seen
    assert "DUMP_ON='yes'" in runs.log("wrong-switch")


@closely
def test_the_whole_sequences_are_dumped_in_the_ordinary_pass(runs: Runs) -> None:
    seen = runs.seen["whole"]
    assert seen["rounds"] == runs.before["seeded-prompts"]["rounds"]
    assert [forward["dumped"] for forward in seen["forwards"]] == [1, 1, 0]
    assert [line["prompts_only"] for line in runs.lines("whole")] == [False, False]
    assert sum(line["token_count"] for line in runs.lines("whole")) == 22
    assert sorted(name for line in runs.lines("whole") for name in line["request_ids"]) == IDS
    assert runs.seen["whole-and-skipped"]["events"] == ["seed"]


@closely
def test_only_the_actor_is_dumped(runs: Runs) -> None:
    seen = runs.seen["reference-and-teacher"]
    assert seen["rounds"] == runs.before["seeded-reference-and-teacher"]["rounds"]
    assert [forward["scale"] for forward in dumped(seen)] == [1.0, 1.0]
    assert len({forward["scale"] for forward in seen["forwards"]}) > 1
    assert [forward["scale"] for forward in dumped(runs.seen["whole-reference-and-teacher"])] == [1.0, 1.0]
    critic = runs.seen["critic"]
    assert (critic["events"], critic["raised"]) == ([], None)
    assert critic["forwards"]


@every
def test_a_pass_that_slime_skips_is_dumped_all_the_same(runs: Runs) -> None:
    for name in ("skipped", "skipped-with-reference", "reused"):
        seen = runs.seen[name]
        assert seen["events"] == ["seed", *PASS, *PASS]
        assert [forward["scale"] for forward in dumped(seen)] == [1.0, 1.0]
        assert seen["rounds"] == runs.before[f"seeded-{name}"]["rounds"]
    assert "log_probs" not in runs.seen["skipped"]["rounds"][0]["keys"]
    if runs.tree in BY_INDICES:
        assert "log_probs" not in runs.seen["reused"]["rounds"][0]["keys"]


@closely
def test_the_old_actors_weights_are_dumped_where_its_log_probs_are_used(runs: Runs) -> None:
    seen = runs.seen["old-actor"]
    assert [forward["scale"] for forward in dumped(seen)] == [4.0, 4.0]
    assert seen["rounds"] == runs.before["seeded-old-actor"]["rounds"]


@closely
def test_without_a_log_prob_pass_nothing_is_dumped_and_the_requests_are_gone(runs: Runs) -> None:
    seen = runs.seen["no-advantages"]
    assert (seen["events"], seen["raised"]) == ([], None)
    assert "probepatch_requests" not in seen["rounds"][0]["keys"]


@closely
def test_routing_replay_and_padding(runs: Runs) -> None:
    seen = runs.seen["replay"]
    stages = ["fallthrough"] * 2 + ["record"] * 2 + ["replay_backward"]
    assert [forward["replay"] for forward in seen["forwards"]] == stages
    assert [forward["shape"][1] % 4 for forward in dumped(runs.seen["fp8"])] == [0, 0]
    assert runs.seen["top-p"]["raised"] is None


@closely
def test_a_failing_forward_ends_its_step(runs: Runs) -> None:
    assert runs.seen["failing"]["events"] == ["seed", *PASS]
    assert runs.seen["failing-later"]["events"] == ["seed", *PASS, *PASS]
    assert runs.seen["whole-failing"]["events"] == ["seed", *PASS, *PASS]
    for name, count in (("failing", 1), ("failing-later", 2), ("whole-failing", 2)):
        assert runs.seen[name]["raised"] == "FloatingPointError: the forward fails"
        assert len(runs.lines(name)) == count


@closely
def test_a_prompt_of_one_token_is_refused_by_name(runs: Runs) -> None:
    seen = runs.seen["one-token-prompt"]
    assert "a prompt of less than two tokens" in seen["raised"]
    assert seen["events"] == ["seed"]


@closely
def test_log_probs_of_the_prompts_at_temperature_one(runs: Runs) -> None:
    for name in ("prefill", "prefill-alone", "prefill-only", "prefill-only-skipped", "prefill-whole"):
        lines = [line for line in runs.lines(name, "prefill_logprobs.jsonl") if line["side"] == "train"]
        assert [line["prompt_sha256"] for line in lines] == [hash_of(prompt) for prompt in PROMPTS]
        for line, prompt, expected in zip(lines, PROMPTS, runs.seen[name]["expected"], strict=True):
            assert line["logprobs"] == pytest.approx(expected, abs=1e-5)
            assert (line["n_tokens"], line["logprobs_mode"], line["temperature"]) == (len(prompt), "raw", 1.0)
            assert "prompt_token_ids" not in line
    infer = [line for line in runs.lines("prefill", "prefill_logprobs.jsonl") if line["side"] == "infer"]
    assert [line["request_id"] for line in infer] == ["request-a", "request-c", "request-d"]
    assert [line["logprobs"] for line in infer] == [numbers(len(PROMPTS[i]) - 1) for i in (0, 2, 3)]


@closely
def test_log_probs_of_the_prompts_need_no_dump(runs: Runs) -> None:
    seen = runs.seen["prefill-only"]
    assert (seen["events"], seen["msprobe"], seen["raised"]) == ([], False, None)
    assert seen["rounds"] == runs.before["off"]["rounds"]
    assert seen["forwards"][2:] == runs.before["off"]["forwards"]
    assert len(seen["forwards"][0]["ids"]) < len(seen["forwards"][2]["ids"])
    assert runs.lines("prefill-only") == []
    assert re.findall(r"prefill_logprob_diff_.*", runs.log("prefill-only")) == re.findall(
        r"prefill_logprob_diff_.*", runs.log("prefill")
    )
    assert runs.seen["prefill-only-skipped"]["events"] == []

    whole = runs.seen["prefill-whole"]
    assert [forward["dumped"] for forward in whole["forwards"]] == [0, 0, 1, 1, 0]
    assert whole["rounds"] == runs.before["seeded-prompts"]["rounds"]
    assert sum(line["token_count"] for line in runs.lines("prefill-whole")) == 22
    assert runs.seen["prefill-of-update-only"]["events"] == []

    missing = runs.seen["prefill-without-config"]
    assert "PREFILL_LOGPROB_DIFF=1 needs the msprobe config of the training side" in missing["raised"]
    assert "set MSPROBE_ACTOR_CONFIG" in missing["raised"]
    assert missing["forwards"] == []


@closely
def test_the_difference_is_printed_where_both_sides_meet(runs: Runs) -> None:
    diffs = []
    for index in (0, 2, 3):
        train = runs.seen["prefill"]["expected"][index]
        diffs += [abs(math.exp(a) - math.exp(b)) for a, b in zip(train, numbers(len(train)), strict=True)]
    mean = sum(diffs) / len(diffs)
    found = dict(re.findall(r"(prefill_logprob_diff_\w+)=(\S+)", runs.log("prefill")))
    assert float(found["prefill_logprob_diff_mean"]) == pytest.approx(mean, rel=1e-4)
    assert float(found["prefill_logprob_diff_max"]) == pytest.approx(max(diffs), rel=1e-4)
    variance = sum((diff - mean) ** 2 for diff in diffs) / len(diffs)
    assert float(found["prefill_logprob_diff_std"]) == pytest.approx(math.sqrt(variance), rel=1e-4)
    assert "not computed for 1 of 4 samples" in runs.log("prefill")
    assert "not computed for 4 of 4 samples" in runs.log("prefill-alone")
    assert "prefill_logprob_diff_mean" not in runs.log("prefill-alone") + runs.log("prompts")


@pytest.mark.parametrize("runs", [item for item in ALL if item[1] in BSHD], indirect=True, ids="-".join)
def test_batches_of_rows_are_as_wide_as_their_longest_prompt(runs: Runs) -> None:
    seen = runs.seen["bshd"]
    assert seen["raised"] is None
    widths = [max(len(PROMPTS[i]) for i in group) for group in runs.micro_batches("bshd")]
    assert [forward["shape"] for forward in dumped(seen)] == [[2, width] for width in widths]
