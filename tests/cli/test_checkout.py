"""Which folder is patched, who owns it, and what git may say about it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from codemods.checkout import NoCheckoutError, NoFrameworkError, open_tree
from codemods.compiling import check
from codemods.gitrepo import diff_digest, find_git_dir, git_facts
from codemods.interpreter import InterpreterError, PackageNotFoundError, locate_package, same_copy
from tests.cli.test_commands import FILES, answer
from tests.conftest import write

VERL = {"verl/__init__.py": "", "verl/workers/fsdp.py": "x = 1\n", "examples/run.sh": "true\n"}


@pytest.mark.parametrize("layout", ["", "src", "python"])
def test_layouts(repo, layout):
    root = repo({f"{layout}/{name}".lstrip("/"): text for name, text in VERL.items()})
    tree = open_tree(root)
    assert (tree.root, tree.git_dir) == (root, root / ".git")
    assert (tree.import_root, tree.prefix) == (root / layout, layout)
    assert tree.path("verl/workers/fsdp.py") == f"{layout}/verl/workers/fsdp.py".lstrip("/")
    assert tree.packages == ("verl",)


@pytest.mark.parametrize("kind", ["purelib", "platlib"])
def test_an_unpacked_wheel_with_a_folder_of_its_own_for_the_package(tmp_path, kind):
    info = {"verl-0.9.1.dist-info/METADATA": "Name: verl\nVersion: 0.9.1\n"}
    write(tmp_path, {**{f"verl-0.9.1.data/{kind}/{name}": text for name, text in VERL.items()}, **info})
    for given in (tmp_path, tmp_path / f"verl-0.9.1.data/{kind}", tmp_path / f"verl-0.9.1.data/{kind}/verl"):
        assert open_tree(given).import_root == tmp_path / f"verl-0.9.1.data/{kind}"
    version = answer("identify", "identify", tmp_path, code=1)["version"]  # there is nothing of 0.9.1 in it
    assert (version["declared"], version["declared_in"]) == ("0.9.1", "verl-0.9.1.dist-info/METADATA")


@pytest.mark.parametrize("below", ["verl", "verl/workers", "examples"])
def test_a_folder_below_the_checkout(repo, below):
    root = repo(VERL)
    tree = open_tree(root / below)
    assert (tree.root, tree.import_root, tree.given) == (root, root, str(root / below))


def test_a_clone_named_like_its_package(repo):
    root = repo({**VERL, "__init__.py": ""}, name="verl")
    assert open_tree(root).import_root == root
    assert open_tree(root / "verl").import_root == root


def test_a_framework_that_holds_another_ones_name(repo):
    root = repo({**VERL, "verl/third_party/__init__.py": "", "verl/third_party/vllm/__init__.py": ""})
    assert open_tree(root / "verl/third_party").packages == ("verl",)


def test_linked_worktree_has_its_own_git_dir(repo, git, tmp_path):
    root = repo(VERL)
    git(root, "worktree", "add", "-q", str(tmp_path / "second"))
    tree = open_tree(tmp_path / "second")
    assert tree.root == tmp_path / "second"
    assert tree.git_dir == root / ".git/worktrees/second"
    assert git_facts(tree.git).branch == "second"


def test_submodule(repo, git):
    inner = repo(VERL, name="inner")
    outer = repo({"README": ""}, name="outer")
    git(outer, "submodule", "add", "-q", str(inner), "third_party/verl")
    tree = open_tree(outer / "third_party/verl")
    assert tree.root == outer / "third_party/verl"
    assert tree.git_dir == outer / ".git/modules/third_party/verl"


def test_plain_folder(tmp_path):
    write(tmp_path, VERL)
    tree = open_tree(tmp_path)
    assert (tree.root, tree.git_dir, tree.prefix) == (tmp_path, None, "")
    assert git_facts(tree.git).commit is None


@pytest.mark.parametrize("given", ["", "verl"])
def test_a_venv_inside_a_repository_is_not_owned_by_it(repo, given):
    root = repo({**VERL, ".gitignore": ".venv\n"})
    site = root / ".venv/lib/python3.11/site-packages"
    write(site, VERL)
    tree = open_tree(site / given)
    assert (tree.root, tree.git_dir) == (site, None)


def test_site_packages_without_a_framework_is_not_the_repository_around_it(repo):
    site = repo(VERL) / ".venv/lib/python3.11/site-packages"
    write(site, {"click/__init__.py": ""})
    with pytest.raises(NoFrameworkError):
        open_tree(site)


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_index_version_tells_what_is_tracked(repo, git, version):
    root = repo(VERL)
    git(root, "update-index", "--index-version", version)
    if version == "3":
        git(root, "update-index", "--skip-worktree", "verl/__init__.py")
    assert open_tree(root).git_dir == root / ".git"


def test_added_but_never_committed_is_owned(tmp_path, git):
    write(tmp_path, VERL)
    git(tmp_path, "init", "-q")
    assert open_tree(tmp_path).git_dir is None
    git(tmp_path, "add", "verl/workers")
    tree = open_tree(tmp_path)
    assert tree.git_dir == tmp_path / ".git"
    facts = git_facts(tree.git)
    assert (facts.commit, facts.branch) == (None, "main")
    assert diff_digest(tree.git, ["verl/workers/fsdp.py"]) is None


def test_a_package_linked_into_site_packages_is_patched_where_it_lives(repo, tmp_path):
    root = repo(VERL)
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "verl").symlink_to(root / "verl")
    for given in (site, site / "verl"):
        tree = open_tree(given)
        assert (tree.root, tree.import_root) == (root, root)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give the tree away")
def test_a_checkout_of_another_owner(repo):
    root = repo(VERL)
    for path in (root, *root.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    ask = subprocess.run(["git", "status"], cwd=root, capture_output=True, text=True)
    assert "dubious" in ask.stderr
    tree = open_tree(root)
    assert tree.git_dir == root / ".git"
    assert git_facts(tree.git).dirty == 0


def test_a_broken_gitfile_means_a_plain_folder(tmp_path):
    write(tmp_path, {**VERL, ".git": "gitdir: ../nowhere\n"})
    assert open_tree(tmp_path).git_dir is None


def test_git_that_cannot_be_asked_is_said(repo, git, monkeypatch):
    root = repo(VERL)
    git(root, "update-index", "--index-version", "4")
    monkeypatch.setenv("PATH", "/nonexistent")
    tree = open_tree(root)
    assert tree.git_dir is None
    assert "git is not installed" in tree.notes[0]


def test_bad_paths(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for bad in ("missing", "file", "loop", "x" * 300, "nul\0nul"):
        with pytest.raises(NoCheckoutError) as caught:
            open_tree(tmp_path / bad)
        assert "\n" not in caught.value.what
        assert caught.value.exit_code == 2
    with pytest.raises(NoFrameworkError) as finding:
        open_tree(tmp_path)
    assert finding.value.exit_code == 1
    assert open_tree(tmp_path, packages=()).import_root == tmp_path


def test_facts_and_digest_change_with_the_file_only(repo, git):
    root = repo(VERL)
    tree = open_tree(root)
    before = diff_digest(tree.git, ["verl/workers/fsdp.py"])
    facts = git_facts(tree.git)
    assert (facts.branch, facts.dirty) == ("main", 0)
    assert facts.commit == git(root, "rev-parse", "HEAD").strip()
    (root / "verl/workers/fsdp.py").write_text("x = 2\n")
    assert git_facts(tree.git).dirty == 1
    assert diff_digest(tree.git, ["verl/workers/fsdp.py"]) != before
    (root / "verl/workers/fsdp.py").write_text("x = 1\n")
    assert diff_digest(tree.git, ["verl/workers/fsdp.py"]) == before


def test_a_hostile_repository_runs_nothing(repo, git, tmp_path):
    root = repo({**VERL, ".gitattributes": "*.py filter=evil diff=evil\n"})
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/sprung\ncat\n')
    trap.chmod(0o755)
    hooks = root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").symlink_to(trap)
    for key in (
        "core.fsmonitor",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.process",
    ):
        git(root, "config", key, str(trap))
    git(root, "config", "filter.evil.required", "true")
    (root / "verl/workers/fsdp.py").write_text("x = 2\n")
    index = (root / ".git/index").read_bytes()
    tree = open_tree(root)
    assert git_facts(tree.git).dirty == 1
    assert diff_digest(tree.git, ["verl/workers/fsdp.py"]) is not None
    assert not (tmp_path / "sprung").exists()
    assert (root / ".git/index").read_bytes() == index
    subprocess.run(["git", "status"], cwd=root, capture_output=True)
    assert (tmp_path / "sprung").exists()  # the trap itself works


def test_variables_of_a_git_hook_do_not_mislead(repo, monkeypatch, tmp_path):
    root, other = repo(VERL), repo({"a": ""}, name="other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nothing"))
    assert git_facts(open_tree(root).git).dirty == 0


def test_find_git_dir_needs_no_git(repo, monkeypatch):
    root = repo(VERL)
    monkeypatch.setenv("PATH", "/nonexistent")
    found = find_git_dir(root / "verl")
    assert found is not None
    assert (found.top, found.git_dir) == (root, root / ".git")
    assert open_tree(root).git_dir == root / ".git"


def test_locate_package_asks_the_interpreter(tmp_path, monkeypatch):
    write(tmp_path / "path", {"verl/__init__.py": f"open({str(tmp_path / 'imported')!r}, 'w')\n"})
    write(tmp_path / "here", {"verl/__init__.py": ""})
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(PackageNotFoundError):
        locate_package("verl", sys.executable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "path")
    assert locate_package("verl", sys.executable) == tmp_path / "path/verl"
    assert same_copy(open_tree(tmp_path / "path"), "verl", sys.executable)
    assert not same_copy(open_tree(tmp_path / "here"), "verl", sys.executable)
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("name", "script", "words"),
    [
        ("silent", "exit 0", "does not answer"),
        ("liar", 'echo "${4}not json"; exit 0', "does not answer"),
        ("odd", """echo "${4}{\\"places\\": 3, \\"origin\\": 1}" """, "does not answer"),
        ("flood", "exec yes", "does not answer"),
        ("sleeper", "sleep 60 & sleep 60", "no answer in"),
    ],
)
def test_locate_package_survives_a_hostile_interpreter(tmp_path, name, script, words):
    exe = tmp_path / name
    exe.write_text(f"#!/bin/sh\n{script}\n")
    exe.chmod(0o755)
    with pytest.raises(InterpreterError, match=words):
        locate_package("verl", str(exe), limit=1.0)


HOSTILE = [
    ("exit 1", "does not answer"),
    ("echo broken >&2; exit 1", "does not answer"),
    ('echo "${5}[]"', "does not answer"),
    ('echo "${5}{\\"python\\": 1, \\"answers\\": 3}"', "does not answer"),
    ('echo "${5}{\\"python\\": 1, \\"answers\\": []}"', "does not answer"),
    ("exec yes", "does not answer"),
    ("cat; exec yes", "does not answer"),
    ("sleep 60 & sleep 60", "no answer in"),
    ("setsid sleep 20", "no answer in"),
]


@pytest.mark.parametrize(("script", "words"), HOSTILE)
def test_compiling_survives_a_hostile_interpreter(tmp_path, monkeypatch, script, words):
    exe = tmp_path / "python"
    exe.write_text(f"#!/bin/sh\n{script}\n")
    exe.chmod(0o755)
    monkeypatch.setattr("codemods.interpreter.TIME_LIMIT", 1.0)
    with pytest.raises(InterpreterError, match=words) as caught:
        check([("m.py", None, b"x = 1\n" * 100_000)], str(exe))
    assert "b64decode" not in str(caught.value.why)
    assert caught.value.exit_code == 2


def test_the_interpreter_may_be_named_relative_to_where_one_stands(tmp_path, monkeypatch):
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert "compiles under" in check([("m.py", None, b"x = 1\n")], "./python")["m.py"]
    with pytest.raises(PackageNotFoundError):
        locate_package("verl", "./python")


def test_a_wrong_interpreter_is_the_same_error_everywhere(demo_checkout):
    for command in ("identify", "diff", "apply"):
        error = answer("error", command, demo_checkout, *FILES, "--python", "/nonexistent", code=2)["error"]
        assert error["kind"] == "interpreter"


def test_an_index_that_is_no_file_is_no_hang(repo):
    root = repo(VERL)
    (root / ".git/index").unlink()
    os.mkfifo(root / ".git/index")
    tree = open_tree(root)
    assert tree.git_dir is None
    assert "index" in tree.notes[0]


def test_locate_package_bad_questions(tmp_path):
    for python in ("/nonexistent/python", str(tmp_path), ""):
        with pytest.raises(InterpreterError, match="does not run"):
            locate_package("verl", python)
    for name, kind in (
        ("no.such", "not a package name"),
        ("sys", "finds|does not import"),
        ("json.tool", "not a package"),
    ):
        with pytest.raises(Exception, match=kind):
            locate_package(name, sys.executable)
