"""`params fix`: instructions carried out through the ledger, only in the bytes that they name, and taken back by revert."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from stages.card.order import INPUTS, PARAMS, state_of
from stages.card.permissions import permit
from stages.card.store import changing, read_card
from stages.params.keys import NotSettableError, set_key
from stages.params.renaming import RenameError, find_places
from tests.cli.test_shell import run
from tests.stages.params.pairs import PLANTED, hf, load, planted, provider

BRIDGE = '''"""A bridge that sets enable_hyper_connections."""
# enable_hyper_connections, spelled as nobody reads it: é


class Bridge:
    MAP = [("hc_mult", "enable_hyper_connections"), ("x", 'y')]

    def provider_bridge(self, hf):
        made = Provider(enable_hyper_connections=hf.enable_hyper_connections, é="é")
        made.enable_hyper_connections = getattr(hf, "enable_hyper_connections", False)
        if made.enable_hyper_connections and "enable_hyper_connections" in hf:
            setattr(made, "enable_hyper_connections", True)
        return made
'''
OLD, NEW = "enable_hyper_connections", "enable_mhc_connections"


def instruction(folder: Path, *items: dict, name: str = "param_alignment_instruction.json") -> Path:
    common = {"align_side": "train", "method": "config", "target": "t", "action": "a", "verify": "v"}
    path = folder / name
    path.write_text(
        json.dumps({"instructions": [{"point": f"P{n}", **common, **item} for n, item in enumerate(items, 1)]})
    )
    return path


def fix(params, folder: Path, *more: str, code: int = 0) -> dict:
    return params("fix", *more, code=code, cwd=folder)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a bridge, a config, a YAML and a launch script; all committed."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "bridge.py").write_bytes(BRIDGE.replace("\n", "\r\n").encode())
    (folder / "config.json").write_text('{\n  "a": 1,\t"b": {"c.d": [1, 2], "e": 1e-06},\n  "f": "é"\n}')
    (folder / "run.yaml").write_text("# é\nmodel:\n  theta: 10000  # why\n  name: 'x'\n  block: |\n    y\n")
    (folder / "run.sh").write_text(
        "#!/bin/bash\npython3 -m verl.trainer.main_ppo \\\n    trainer.nnodes=1 \\\n    x.y=1\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


ALL = (
    {"file": "config.json", "key": "b.e", "value": 1e-05},
    {"file": "run.yaml", "key": "model.theta", "value": 1000000},
    {"file": "run.sh", "key": "a.rotary_base", "value": 1000000},
    {"method": "code", "file": "bridge.py", "rename": {"from": OLD, "to": NEW}},
)


def test_a_layer_that_was_not_computed_is_left_with_its_command(params, tmp_path):
    params("report", code=1, cwd=tmp_path)
    left = {one["why"].split()[1]: one["why"] for one in fix(params, tmp_path, code=1)["left"]}
    assert set(left) == {"config", "modules", "structure", "weights"}
    for layer, command in (
        ("config", "check"),
        ("modules", "check"),
        ("structure", "structure"),
        ("weights", "weights"),
    ):
        assert f"`probepatch params {command} --train" in left[layer]
    refused = params("fix", "--point", "P1", code=3, cwd=tmp_path)["error"]
    assert "`probepatch params" in refused["why"]


def test_a_round_only_the_named_bytes_and_back_again(params, checkout):
    before = contents(checkout)
    instruction(checkout, *ALL)
    before_all = contents(checkout)
    preview = fix(params, checkout, "--dry-run")
    assert contents(checkout) == before_all
    assert preview["changes"]
    assert preview["receipts"] == []
    found = fix(params, checkout)
    assert [one["point"] for one in found["done"]] == ["P1", "P2", "P3", "P4"]
    after = contents(checkout)
    assert after["config.json"] == before["config.json"].replace(b"1e-06", b"1e-05")
    assert after["run.yaml"] == before["run.yaml"].replace(b"10000 ", b"1000000 ")
    assert after["run.sh"] == before["run.sh"].replace(b"x.y=1\n", b"x.y=1 \\\n    ++a.rotary_base=1000000\n")
    bridge = before["bridge.py"].replace(b'"hc_mult", "enable_hyper', b'"hc_mult", "enable_mhc')
    bridge = bridge.replace(b"Provider(enable_hyper", b"Provider(enable_mhc").replace(
        b"made.enable_hyper", b"made.enable_mhc"
    )
    assert after["bridge.py"] == bridge.replace(b'made, "enable_hyper', b'made, "enable_mhc')
    assert "line 9, 10, 11" in found["done"][3]["notes"][0]
    again = fix(params, checkout)
    assert (again["changes"], again["receipts"]) == (False, [])
    assert run("revert", checkout).returncode == 0
    assert contents(checkout) == before_all


def test_earlier_fixes_stay_when_the_next_instruction_comes(params, checkout):
    before = contents(checkout)
    instruction(checkout, *ALL[:2])
    fix(params, checkout)
    instruction(
        checkout, {"file": "config.json", "key": "a", "value": 2}, {"file": "config.json", "key": "b.e", "value": 1.0}
    )
    fix(params, checkout)
    now = contents(checkout)
    assert json.loads(now["config.json"]) == {"a": 2, "b": {"c.d": [1, 2], "e": 1.0}, "f": "é"}
    assert now["run.yaml"] != before["run.yaml"]
    assert run("revert", checkout).returncode == 0
    left = contents(checkout)
    assert {name: left[name] for name in before} == before


def test_the_user_s_edits_between_stay(params, checkout):
    instruction(checkout, *ALL)
    fix(params, checkout)
    for name, old, new in (("config.json", b'"f"', b'"mine": 1,\n  "f"'), ("run.sh", b"nnodes=1", b"nnodes=2")):
        path = checkout / name
        path.write_bytes(path.read_bytes().replace(old, new))
    fix(params, checkout)
    assert run("revert", checkout).returncode == 0
    assert json.loads((checkout / "config.json").read_text())["mine"] == 1
    assert json.loads((checkout / "config.json").read_text())["b"]["e"] == 1e-06
    assert "nnodes=2" in (checkout / "run.sh").read_text()
    assert "rotary" not in (checkout / "run.sh").read_text()


def test_inputs_fix_and_params_fix_in_one_script(params, checkout):
    before = (checkout / "run.sh").read_bytes()
    run("inputs", "fix", "run.sh", "--rule", "balance-batch", cwd=checkout)
    instruction(checkout, ALL[2])
    fix(params, checkout)
    text = (checkout / "run.sh").read_text()
    assert "trainer.balance_batch=False" in text
    assert "++a.rotary_base=1000000" in text
    run("inputs", "fix", "run.sh", "--rule", "shuffle", cwd=checkout)
    assert "++a.rotary_base=1000000" in (checkout / "run.sh").read_text()
    assert run("revert", checkout).returncode == 0
    assert (checkout / "run.sh").read_bytes() == before


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"method": "weight"}, "loaded, not edited"),
        ({"value": 1}, "--file P1=PATH"),
        ({"file": "config.json"}, "no `value`"),
        ({"method": "code", "file": "bridge.py"}, "no `rename` and no `recipe`"),
    ],
)
def test_what_is_left_is_told_and_refused_by_name(params, checkout, item, said):
    instruction(checkout, item)
    found = fix(params, checkout, code=1)
    assert said in found["left"][0]["why"]
    error = fix(params, checkout, "--point", "P1", code=3)["error"]
    assert error["kind"] == "not-by-edit"
    assert said in error["why"]


def test_method_load_is_refused(params, checkout):
    instruction(checkout, ALL[0], {"method": "load"})
    before = contents(checkout)
    assert fix(params, checkout, code=3)["error"]["kind"] == "load-refused"
    assert contents(checkout) == before


@pytest.mark.parametrize(
    ("item", "code", "kind"),
    [
        ({"file": "none.json", "value": 1}, 2, "usage"),
        ({"file": ".", "value": 1}, 2, "usage"),
        ({"file": 5, "value": 1}, 4, "config"),
        ({"file": "bridge.py", "value": 1}, 1, "not-settable"),
        ({"file": "config.json", "key": "b.new.x", "value": 1}, 1, "not-settable"),
        ({"file": "run.yaml", "key": "model.new", "value": 1}, 1, "not-settable"),
        ({"file": "run.yaml", "key": "model.block", "value": 1}, 1, "not-settable"),
        ({"file": "run.sh", "key": "x", "value": [1]}, 1, "not-settable"),
        ({"method": "code", "file": "bridge.py", "rename": {"from": "a b", "to": "c"}}, 4, "config"),
        ({"method": "code", "file": "bridge.py", "rename": {"from": "nowhere", "to": "c"}}, 1, "rename"),
        ({"method": "code", "file": "config.json", "rename": {"from": "a", "to": "c"}}, 1, "not-settable"),
        ({"method": "code", "file": "run.sh", "recipe": "none.yaml"}, 4, "recipe"),
    ],
)
def test_what_cannot_be_done_writes_nothing_at_all(params, checkout, item, code, kind):
    instruction(checkout, ALL[0], {"target": "x", **item})
    before = contents(checkout)
    assert fix(params, checkout, code=code)["error"]["kind"] == kind
    assert contents(checkout) == before


def test_wrong_words(params, checkout):
    instruction(checkout, ALL[0])
    assert "P1" in fix(params, checkout, "--point", "P9", code=2)["error"]["todo"]
    assert fix(params, checkout, "--file", "P1", code=2)["error"]["kind"] == "usage"
    assert params("fix", "none.json", code=2, cwd=checkout)["error"]["kind"] == "usage"


def test_a_recipe_that_the_item_names(params, checkout):
    (checkout / "pkg").mkdir()
    (checkout / "pkg/__init__.py").write_text("")
    module = checkout / "pkg/model.py"
    module.write_text("def build():\n    return 1\n")
    recipe = (
        "recipe: r\nversion: 1\nframework: pkg\nversions: '*'\nside: train\nwhat: x\nedits:\n"
        "- id: a\n  in: pkg/model.py\n  why: w\n"
    )
    (checkout / "r.yaml").write_text(recipe)
    instruction(checkout, {"method": "code", "file": ".", "recipe": "r.yaml"})
    done = run("params", "fix", cwd=checkout)
    assert done.returncode in (1, 4), (
        done.stdout + done.stderr
    )  # the recipe is not whole: its own error, and nothing is written
    assert module.read_text() == "def build():\n    return 1\n"


# --- with a task card ----------------------------------------------------------------------------------------------------


def test_the_whole_way_with_a_card(params, card, checkout):
    folder = card.parent
    case = next(one for one in PLANTED if one["expect"]["name"] == "mHC" and "undeclared" in one)
    train, infer, _mapping = planted(case, folder)
    data = load(train)
    data["config"][NEW] = False
    train.write_text(json.dumps({**data, "bridge_file": str(checkout / "bridge.py"), "bridge_sha256": None}))
    check = ("check", "--train-cfg", train, "--infer-cfg", infer, "--mapping", "auto")
    params(*check, code=1, cwd=folder)
    first = params("report", code=1, cwd=folder)["instructions"][0]
    assert first["file"] == str(checkout / "bridge.py")
    assert first["rename"] == {"from": OLD, "to": NEW}
    found = fix(params, folder, "--point", "P1")
    assert found["done"][0]["edits"]
    assert OLD not in [one["inserted"] for one in found["done"][0]["edits"]]
    made = read_card(card)
    assert made.data["edits"][0]["recipes"] == ["params-fix"]
    assert state_of(made, PARAMS) == ("failed", "`params fix` has edited bridge.py since: check again")
    report = params("report", code=1, cwd=folder)
    assert report["layers"]["config"]["state"] == "not computed"
    assert "bridge.py has changed since" in report["layers"]["config"]["why"]
    assert run("revert", checkout, "--task", card).returncode == 0
    assert (checkout / "bridge.py").read_bytes() == BRIDGE.replace("\n", "\r\n").encode()
    assert read_card(card).data["edits"] == []


def test_permissions_are_asked_for_before_a_byte_is_written(params, card, checkout):
    with changing(card) as made:
        permit(made, {"AUTH_EDIT_TARGET_CODE": False}, "no")
    path = instruction(card.parent, {"file": str(checkout / "config.json"), "key": "a", "value": 2})
    before = contents(checkout)
    error = params("fix", path, code=3, cwd=card.parent)["error"]
    assert error["kind"] == "not-permitted"
    assert contents(checkout) == before
    assert params("fix", path, "--dry-run", cwd=card.parent)["changes"]


def test_an_edited_launch_script_sends_stage_4_back(params, card, checkout):
    from stages.card.evidence import record

    with changing(card) as made:
        record(made, INPUTS, True, "done", files=[checkout / "run.sh"])
    path = instruction(card.parent, {"file": str(checkout / "run.sh"), "key": "x.y", "value": 2})
    params("fix", path, cwd=card.parent)
    assert state_of(read_card(card), INPUTS)[0] == "failed"
    assert "x.y=2" in (checkout / "run.sh").read_text()


def test_the_report_names_the_config_and_the_value(params, card):
    folder = card.parent
    data = load(hf("qwen3"))
    (folder / "config.json").write_text(json.dumps({**data, "rms_norm_eps": 1e-5}, indent=2))
    params(
        "check", "--train-cfg", "config.json", "--infer-cfg", hf("qwen3"), "--train-is-hf", "--mapping", "auto", code=1,
        cwd=folder,
    )  # fmt: skip
    (one,) = [one for one in params("report", code=1, cwd=folder)["instructions"] if one["target"] == "rms_norm_eps"]
    assert (one["value"], one["file"]) == (1e-06, str(folder / "config.json"))
    fix(params, folder, "--point", one["point"])
    assert json.loads((folder / "config.json").read_text()) == data


def test_a_dump_of_a_provider_is_not_edited(params, card):
    (card.parent / "t.json").write_text(provider("qwen3").read_text())
    path = instruction(card.parent, {"file": "t.json", "key": "rotary_base", "value": 1})
    error = params("fix", path, code=1, cwd=card.parent)["error"]
    assert error["kind"] == "not-settable"
    assert "nothing reads it" in error["what"]


# --- keys and names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "key", "value", "expected"),
    [
        ("c.json", '{"a":1}', "a", 2, '{"a":2}'),
        ("c.json", '\ufeff{"a" : [1, 2] }', "a", {"b": "é"}, '\ufeff{"a" : {"b": "é"} }'),
        ("c.json", '{"a.b": 1, "a": {"b": 2}}', "a.b", 3, '{"a.b": 3, "a": {"b": 2}}'),
        ("c.json", '{"a": {"b": 2}}', "a.b", None, '{"a": {"b": null}}'),
        ("c.json", '{"a": "x\\"}{"}', "a", "y", '{"a": "y"}'),
        ("c.json", '{\r\n  "a": 1\r\n}', "b", 2, '{\r\n  "a": 1,\r\n  "b": 2\r\n}'),
        ("c.json", "{}", "b", True, '{"b": true}'),
        ("c.json", '{"a":{"x":1}}', "a.y", 2, '{"a":{"x":1,"y": 2}}'),
        ("c.json", '{"text_config": {"a": 1}}', "a", 2, None),
        ("c.json", '{"text_config": {"a": 1}}', "text_config.a", 2, '{"text_config": {"a": 2}}'),
        ("c.yaml", "a: 1\n", "a", 1e-06, "a: 1.0e-06\n"),
        ("c.yaml", "a: {b: 'x', c: 2} # é\r\n", "a.b", "no", 'a: {b: "no", c: 2} # é\r\n'),
        ("c.yaml", "a: yes\nb: x\n", "b", "true", 'a: yes\nb: "true"\n'),
        ("c.yaml", "a: &x 1\nb: *x\n", "b", 2, None),
        ("c.yaml", "a: &x 1\nb: *x\n", "a", 2, None),
        ("c.yml", "a: [1]\n", "a", 2, None),
    ],
)
def test_a_key(name, text, key, value, expected):
    if expected is None:
        with pytest.raises(NotSettableError):
            set_key(Path(name), text, key, value)
        return
    change = set_key(Path(name), text, key, value)
    assert change is not None
    after = text[: change.start] + change.new + text[change.end :]
    assert after == expected
    assert set_key(Path(name), after, key, value) is None


@pytest.mark.parametrize(
    "text",
    [
        "def f(old): return P(old=old)",  # a parameter of that name
        "P(old=1, new=2)",
        "P('ol' 'd')",  # not written as one
        "x = y.old",  # only read
        "def f(:",
        "# -*- coding: latin-1 -*-\nP(old=1)",
        "x = " + "-" * 5000 + "1\nP(old=1)",
    ],
)
def test_a_name_that_cannot_be_told(text):
    with pytest.raises(RenameError):
        find_places(Path("b.py"), text.encode(), "old", "new")


def test_names_behind_a_byte_order_mark_and_in_fields():
    data = "\ufeffP(old=1); class_ = 'old'\nclass C:\n    old: bool = True\n    x = f'{old}'\n".encode()
    found = find_places(Path("b.py"), data, "old", "new")
    assert [data[place.start - 1 : place.end] for place in found.places] == [b"(old", b"'old", b" old"]
