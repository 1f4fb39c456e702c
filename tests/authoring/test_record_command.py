"""``recipe record`` as a real process on real checkouts, hostile ones too: what it writes is applied to the pristine tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from codemods.recipe_reader import load_recipe
from tests.authoring.test_record import BASE, CASES
from tests.cli.test_shell import ROOT, run
from tests.conftest import FIXTURES, write

WORKER = '''"""Doc."""
import os


class Worker:
    def run(self, batch):
        out = self.model(batch)
        return out
'''
FILES: dict[str, str | bytes] = {
    "verl/__init__.py": "",
    "verl/version/version": "0.9.1\n",
    "verl/worker.py": WORKER,
    "verl/other.py": "import os\n",
    "run.sh": "python -m verl\n",
}
Repo = Callable[..., Path]


def answer(*arguments: str | Path, code: int = 0, schema: str = "recipe-record", **environment: str) -> dict:
    done = run("recipe", "record", *arguments, "--json", **environment)
    assert done.returncode == code, done.stdout + done.stderr
    result = json.loads(done.stdout)
    jsonschema.validate(result, json.loads((ROOT / f"docs/schemas/{schema}.json").read_text()))
    return result


def change(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new))


def contents(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def edited(repo: Repo) -> Path:
    root = repo(FILES)
    change(root, "verl/worker.py", "        return out\n", "        probe.note(out)\n        return out\n")
    change(root, "verl/worker.py", "import os\n", "from verl import probe\nprobe.on = True\nimport os\n")
    write(root, {"verl/probe.py": "def note(out):\n    print('/home/me/dump', out)\n", "verl/scratch.py": "x = 1\n"})
    return root


def test_what_is_recorded_gives_the_same_bytes_again(edited, tmp_path, git):
    wanted = contents(edited)
    found = answer(edited, "--out", tmp_path / "mine/recipe.yaml")
    assert found["complete"]
    assert [(one["path"], one["proof"]) for one in found["files"]] == [
        ("verl/worker.py", "equal"),
        ("verl/probe.py", "equal"),
    ]
    assert [one["verb"] for one in found["edits"]] == ["add_file", "body_start", "before"]
    assert [one["text"] for one in found["literals"]] == ["/home/me/dump"]
    assert "verl/scratch.py" in " ".join(found["notes"])
    assert contents(edited) == wanted  # it only reads

    recipe = load_recipe(tmp_path / "mine/recipe.yaml")
    assert (recipe.framework, str(recipe.versions), recipe.verified) == ("verl", "==0.9.1", ("0.9.1",))
    assert recipe.why.startswith("TODO")
    assert len(recipe.examples) == 1
    assert (tmp_path / "mine/payloads/probe.py").read_bytes() == wanted["verl/probe.py"]
    assert run("recipe", "check", tmp_path / "mine/recipe.yaml").returncode == 0
    assert run("recipe", "test", tmp_path / "mine/recipe.yaml").returncode == 0

    git(edited, "stash", "-q", "-u")
    assert run("apply", edited, "--recipe-file", tmp_path / "mine/recipe.yaml").returncode == 0
    made = contents(edited)
    assert {name: made[name] for name in ("verl/worker.py", "verl/probe.py")} == {
        name: wanted[name] for name in ("verl/worker.py", "verl/probe.py")
    }


def test_every_kind_of_change_goes_through_the_yaml_and_back(repo, tmp_path, git):
    files = {f"verl/case_{number}.py": BASE for number in range(len(CASES))}
    root = repo({**FILES, **files})
    for file, ((old, new), _verbs) in zip(files, CASES.values(), strict=True):
        change(root, file, old, new)
    wanted = contents(root)
    found = answer(root, "--out", tmp_path / "r.yaml")
    assert {one["proof"] for one in found["files"]} == {"equal"}
    assert run("recipe", "test", tmp_path / "r.yaml").returncode == 0
    git(root, "reset", "-q", "--hard")
    assert run("apply", root, "--recipe-file", tmp_path / "r.yaml").returncode == 0
    assert contents(root) == wanted


def test_for_people(edited, tmp_path):
    done = run("recipe", "record", edited)
    assert done.returncode == 0
    assert done.stdout.startswith("# Recorded by `probepatch recipe record` from verl 0.9.1.\n")
    assert "TODO" in done.stdout
    assert "proved: 2 files byte-equal" in done.stderr
    assert "payloads/" in done.stderr
    done = run("recipe", "record", edited, "--out", tmp_path / "r.yaml", "--id", "mine", "--side", "infer")
    assert "proved: 2 files byte-equal" in done.stdout
    assert "[before]  verl/worker.py:8 Worker.run" in done.stdout
    assert load_recipe(tmp_path / "r.yaml").id == "mine"
    assert load_recipe(tmp_path / "r.yaml").side == "infer"


def test_nothing_is_overwritten_unasked(edited, tmp_path):
    out = tmp_path / "r.yaml"
    out.write_text("mine\n")
    assert answer(edited, "--out", out, code=3, schema="error")["error"]["kind"] == "refused"
    assert (out.read_text(), (tmp_path / "payloads").exists()) == ("mine\n", False)
    answer(edited, "--out", out, "--overwrite")
    answer(edited, "--out", out)  # the same again changes nothing
    (tmp_path / "payloads/probe.py").write_text("mine\n")
    assert answer(edited, "--out", out, code=3, schema="error")["error"]["kind"] == "refused"


def test_a_new_file_by_name_and_one_that_git_was_told_of(edited, git):
    found = answer(edited, "--add", "verl/scratch.py")
    assert "add-scratch" in [one["id"] for one in found["edits"]]
    git(edited, "add", "verl/scratch.py")
    assert "add-scratch" in [one["id"] for one in answer(edited)["edits"]]
    assert answer(edited, "--add", "verl/nowhere.py", code=2, schema="error")["error"]["kind"] == "usage"


def test_our_own_recipe_is_recorded_under_its_own_names(demo_checkout, tmp_path, git):
    files = sorted((FIXTURES / "recipes/tinyrl").glob("tinyrl-engine.yaml"))
    assert run("apply", demo_checkout, "--recipe-file", files[0]).returncode == 0
    wanted = contents(demo_checkout)
    found = answer(demo_checkout, "--out", tmp_path / "r.yaml", "--framework", "tinyrl", "--side", "infer")
    shipped = load_recipe(files[0])
    assert found["recipe"] == shipped.id
    assert {one["proof"] for one in found["files"]} == {"equal"}
    marked = {edit.id for edit in shipped.edits if edit.verb.name in ("before", "after", "around", "add_method")}
    assert marked <= {one["id"] for one in found["edits"]}
    assert "marker: false" not in found["yaml"]
    git(demo_checkout, "stash", "-q", "-u")
    shutil.rmtree(demo_checkout / ".git/probepatch")
    assert run("apply", demo_checkout, "--recipe-file", tmp_path / "r.yaml").returncode == 0
    assert contents(demo_checkout) == wanted


def test_an_installed_package_against_a_folder_and_a_wheel(tmp_path):
    site, base = tmp_path / "site-packages", tmp_path / "pristine"
    for root in (site, base):
        write(root, {**FILES, "other/__init__.py": "x = 1\n"})
    change(site, "verl/worker.py", "self.model(batch)", "self.model(batch, probe=True)")
    write(site, {"other/__init__.py": "x = 2\n"})
    assert answer(site, code=2, schema="error")["error"]["kind"] == "usage"
    with zipfile.ZipFile(tmp_path / "verl-0.9.1-py3-none-any.whl", "w") as wheel:
        for name, data in FILES.items():
            wheel.writestr(name, data)
    for pristine in (base, tmp_path / "verl-0.9.1-py3-none-any.whl"):
        found = answer(site, "--base", pristine)
        assert [(one["verb"], one["path"]) for one in found["edits"]] == [("set_argument", "verl/worker.py")]
    assert answer(site, "--base", tmp_path / "nowhere", code=2, schema="error")["error"]["kind"] == "no-checkout"
    (tmp_path / "empty").mkdir()
    answer(site, "--base", tmp_path / "empty", code=1, schema="error")
    (tmp_path / "no.whl").write_bytes(b"PK no")
    answer(site, "--base", tmp_path / "no.whl", code=1, schema="error")


def test_a_package_below_the_top_of_its_repository(repo, tmp_path, git):
    files = {name.replace("verl", "python/verl", 1): data for name, data in FILES.items() if name.startswith("verl/")}
    root = repo({**files, "tools/t.py": "x = 1\n"})
    change(
        root,
        "python/verl/worker.py",
        "        return out",
        "        from verl import probe\n\n        probe(out)\n        return out",
    )
    write(root, {"python/verl/probe.py": "x = 1\n", "python/verl/more.py": "x = 2\n"})
    wanted = contents(root)
    out = tmp_path / "r.yaml"
    found = answer(root, "--add", "python/verl/more.py", "--out", out)
    assert {one["path"] for one in found["files"]} == {f"python/verl/{name}.py" for name in ("worker", "probe", "more")}
    assert {edit.places[0].file for edit in load_recipe(out).edits} == {
        f"verl/{name}.py" for name in ("worker", "probe", "more")
    }
    git(root, "stash", "-q", "-u")
    assert run("apply", root, "--recipe-file", out).returncode == 0
    assert contents(root) == wanted
    write(root, {"tools/t.py": "x = 2\n", "python/verl/other.py": "import os\n# c\n\n# d\n"})
    found = answer(root, code=1)
    assert {one["where"] for one in found["findings"]} <= {"tools/t.py", "python/verl/other.py:2"}


def test_an_unknown_framework_in_any_folder(repo, tmp_path):
    root = repo({"pkg/m.py": "def f(x):\n    return x\n"}, name="openrlhf")
    change(root, "pkg/m.py", "    return x", "    print(x)\n    return x")
    found = answer(root, "--out", tmp_path / "r.yaml")
    recipe = load_recipe(tmp_path / "r.yaml")
    assert (recipe.framework, str(recipe.versions)) == ("openrlhf", ">=0")
    assert 'versions: ">=0"  # TODO' in found["yaml"]
    assert "side: train  # TODO" in found["yaml"]


def test_paths_become_parameters_when_that_is_asked_for(repo, tmp_path, git):
    root = repo(FILES)
    call = 'debugger(config_path="/home/me/c.json", other="/home/me/c.json", text="a b")'
    change(root, "verl/worker.py", "        out = self", f"        {call}\n        out = self")
    assert [one["text"] for one in answer(root)["literals"]] == ["/home/me/c.json"] * 2
    found = answer(root, "--parameters", "--out", tmp_path / "r.yaml")
    assert found["complete"]
    assert found["literals"] == []
    assert [one["proof"] for one in found["files"]] == ["equal-but-parameters"]
    recipe = load_recipe(tmp_path / "r.yaml")
    assert {p.name: (p.type, p.env, p.default) for p in recipe.parameters} == {
        name: ("path", f"PROBEPATCH_{name.upper()}", "/home/me/c.json") for name in ("config_path", "other")
    }
    assert run("recipe", "test", tmp_path / "r.yaml").returncode == 0
    git(root, "reset", "-q", "--hard")
    done = run("apply", root, "--recipe-file", tmp_path / "r.yaml", "--set", "other=/tmp/x")
    assert done.returncode == 0, done.stderr
    code = "import sys; from verl import probepatch_values as v; print(v.value('config_path'), v.value('other'))"
    for given, said in (({}, "/home/me/c.json /tmp/x\n"), ({"PROBEPATCH_OTHER": "/y"}, "/home/me/c.json /y\n")):
        done = subprocess.run([sys.executable, "-c", code], cwd=root, env=given, capture_output=True, text=True)
        assert done.stdout == said


# --- what cannot be recorded ------------------------------------------------------------------------------------------


def test_no_change_is_a_clear_finding(repo):
    assert answer(repo(FILES), code=1, schema="error")["error"]["kind"] == "nothing-changed"


def refused(root: Path, *words: str) -> None:
    """Nothing of it can be recorded: one error, which says why in these words."""
    error = answer(root, code=1, schema="error")["error"]
    assert error["kind"] == "nothing-recorded"
    text = json.dumps(error)
    assert all(word in text for word in words), text
    shown = run("recipe", "record", root)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "Traceback" not in shown.stderr


def test_deleted_renamed_and_foreign_files(repo, git):
    root = repo(FILES)
    (root / "verl/other.py").unlink()
    refused(root, "verl/other.py", "deletes no file")
    git(root, "reset", "-q", "--hard")
    git(root, "mv", "verl/other.py", "verl/renamed.py")
    found = answer(root, code=1)
    assert not found["complete"]
    assert [one["where"] for one in found["findings"]] == ["verl/other.py"]
    assert "# NOT COMPLETE" in found["yaml"]
    git(root, "reset", "-q", "--hard")
    (root / "run.sh").write_text("echo\n")
    refused(root, "run.sh", "no Python", "--only")
    for path in ("verl", "./verl/", root / "verl"):
        assert answer(root, "--only", path, code=1, schema="error")["error"]["kind"] == "nothing-changed"
    assert answer(root, "--only", "ver", code=2, schema="error")["error"]["kind"] == "usage"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x00\x01binary", ["NUL"]),
        (b"# -*- coding: latin-1 -*-\nx = 1\n", ["encoding"]),
        (b"# -*- coding: nonsense -*-\nx = 1\n", ["decoded"]),
        (b"x = '\xff'\n", ["decoded"]),
        (b"\xef\xbb\xbfimport os\n", ["encoding"]),
        (b"import os\r", ["bare CR"]),
        (b"import os\n<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> other\n", ["merge", "verl/other.py:2"]),
        (b"def f(:\n", ["verl/other.py:1"]),
        (b"x = " + b"(" * 3000 + b")" * 3000 + b"\n", ["verl/other.py"]),
    ],
)
def test_files_that_cannot_be_read(repo, data, words):
    root = repo(FILES)
    (root / "verl/other.py").write_bytes(data)
    refused(root, *words)


@pytest.mark.parametrize("name", [b"verl/a:b.py", b"verl/a\nb.py", b"verl/\xff.py", b"verl/\x1b[31m.py"])
def test_names_that_no_recipe_can_hold(repo, git, name):
    root = repo(FILES)
    path = Path(os.fsdecode(os.fsencode(root) + b"/" + name))
    path.write_text("x = 1\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "odd")
    path.write_text("x = 2\n")
    refused(root, "path")
    change(root, "verl/worker.py", "        return out", "        probe(out)\n        return out")
    found = answer(root, code=1)
    assert {one["proof"] for one in found["files"] if one["path"] == "verl/worker.py"} == {"equal"}
    assert len(found["findings"]) == 1
    path.unlink()
    assert answer(root, code=1)["findings"]


def test_a_link_a_folder_and_a_pipe_in_the_place_of_a_file(repo):
    root = repo(FILES)
    for make in (
        lambda path: path.symlink_to("worker.py"),
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
    ):
        path = root / "verl/other.py"
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
        make(path)
        refused(root, "verl/other.py")


def test_a_comment_that_no_statement_holds_is_told_with_its_line(repo):
    root = repo({**FILES, "verl/other.py": "# old\nimport os\n"})
    (root / "verl/other.py").write_text("# new\nimport os\n")
    refused(root, "verl/other.py:1", "comments")


def test_what_can_be_recorded_is_and_the_rest_is_told(edited):
    (edited / "verl/other.py").unlink()
    change(edited, "verl/worker.py", '"""Doc."""', '# why\n"""Doc."""')
    done = run("recipe", "record", edited)
    assert done.returncode == 1
    assert "# NOT COMPLETE" in done.stdout
    assert "verl/other.py" in done.stdout
    assert "not complete" in done.stderr


def test_a_submodule_that_was_changed(repo, git, tmp_path):
    inner = repo({"x.py": "x = 1\n"}, name="inner")
    root = repo(FILES)
    git(root, "submodule", "add", "-q", str(inner), "third")
    git(root, "commit", "-q", "-m", "submodule")
    assert answer(root, code=1, schema="error")["error"]["kind"] == "nothing-changed"
    (root / "third/x.py").write_text("x = 2\n")
    refused(root, "third", "submodule")


def test_a_merge_under_way(repo, git):
    root = repo(FILES)
    git(root, "checkout", "-q", "-b", "other")
    change(root, "verl/worker.py", "self.model(batch)", "self.model(batch, 1)")
    git(root, "commit", "-q", "-a", "-m", "theirs")
    git(root, "checkout", "-q", "main")
    change(root, "verl/worker.py", "self.model(batch)", "self.model(batch, 2)")
    git(root, "commit", "-q", "-a", "-m", "ours")
    subprocess.run(["git", "merge", "-q", "other"], cwd=root, capture_output=True, check=False)
    refused(root, "conflict of a merge", "verl/worker.py:7")
    change(root, "verl/worker.py", "self.model", "self.model")
    text = (root / "verl/worker.py").read_text()
    head, _mark, rest = text.partition("<<<<<<< ")
    (root / "verl/worker.py").write_text(
        head + "        out = self.model(batch, 3)\n" + rest.partition(">>>>>>> ")[2].partition("\n")[2]
    )
    assert "a merge is under way" in " ".join(answer(root)["notes"])


def test_line_endings_that_git_converts(repo, git):
    root = repo({**FILES, ".gitattributes": "*.py text eol=crlf\n"})
    for path in (root / "verl").glob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert answer(root, code=1, schema="error")["error"]["kind"] == "nothing-changed"
    data = (root / "verl/worker.py").read_bytes()
    (root / "verl/worker.py").write_bytes(
        data.replace(b"        return out", b"        probe(out)\r\n        return out")
    )
    found = answer(root)
    assert [one["verb"] for one in found["edits"]] == ["before"]
    assert "CR LF" in " ".join(found["notes"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# -*- coding: latin-1 -*-\nx = 'é'\n", "# -*- coding: latin-1 -*-\ny = 1\nx = 'é'\n"),
        ("\ufeffimport os\nx = 'é'\n", "\ufeffimport os\nx = 'é'\ny = 2\n"),
        ("import os\r\nx = 1\r\n", "import os\r\ny = 2\r\nx = 1\r\n"),
        ("import os\nx = 1", "import os\nx = 1\ny = 2"),
        ("if x:\n\ty = 1\n\tz = 2\n", "if x:\n\ty = 1\n\tif y:\n\t\tpass\n\tz = 2\n"),
    ],
)
def test_encodings_and_line_endings_are_kept(repo, before, after):
    encoding = "latin-1" if "latin-1" in before else "utf-8"
    root = repo({**FILES, "verl/other.py": before.encode(encoding)})
    (root / "verl/other.py").write_bytes(after.encode(encoding))
    found = answer(root)
    assert [one["proof"] for one in found["files"]] == ["equal"]


def test_a_rewritten_file_ends_in_time(repo):
    lines = "".join(f"def f{n}(a):\n    x = a + {n}\n    return x\n\n\n" for n in range(1200))
    root = repo({**FILES, "verl/other.py": lines})
    (root / "verl/other.py").write_text(lines.replace("x = a", "y = b").replace("return x", "return y"))
    refused(root, "verl/other.py", "rewrite")


def test_no_commit_yet(tmp_path, git):
    root = tmp_path / "new"
    write(root, FILES)
    git(root, "init", "-q")
    git(root, "add", "-A")
    assert "HEAD" in answer(root, code=1, schema="error")["error"]["what"]
