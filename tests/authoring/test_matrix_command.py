"""``recipe matrix`` as a real process: what people and programs get, wheels by name, workers, and the ways in which it may end."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

from authoring.matrix.cells import Matrix, build
from authoring.matrix.pool import Pool, WorkerError
from authoring.matrix.releases import framework_of, from_tags
from authoring.trees import open_repository
from codemods.recipe_reader import load_recipe
from tests.authoring.matrix_trees import CODE, recipe, release, repository, wheel
from tests.cli.test_shell import ROOT, run
from tests.conftest import write

BROKEN = CODE.replace("model", "engine")
HOSTILE = "raise SystemExit('a module of the user was imported')\n"


def answer(*arguments: str | Path, code: int = 0, **environment: str) -> dict[str, Any]:
    """The JSON of a run that has to end with ``code``, valid under the published schema."""
    done = run("recipe", "matrix", *arguments, "--json", **environment)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    result: dict[str, Any] = json.loads(done.stdout)
    schema = "error" if "error" in result else "recipe-matrix"
    jsonschema.validate(result, json.loads((ROOT / f"docs/schemas/{schema}.json").read_text()))
    return result


def refusal(*arguments: str | Path, code: int, **environment: str) -> str:
    """What is said in one sentence on standard error."""
    done = run("recipe", "matrix", *arguments, **environment)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def history(tmp_path: Path) -> Path:
    tags = {"v0.1.0": release("x = 1\n"), "v0.2.0": release(), "v0.3.0": release(), "v0.4.0": release(BROKEN)}
    return repository(tmp_path / "repo", tags)


@pytest.fixture
def long_history(tmp_path: Path) -> Path:
    """Twelve releases whose file takes about a second each."""
    one = "def f{n}(a, b):\n    if a == {n}:\n        return g(a, b, {n})\n    return [a, b]\n\n\n"
    filler = "".join(one.format(n=n) for n in range(9000))
    return repository(tmp_path / "long", {f"v0.{n}.0": release(f"{filler}M = {n}\n\n\n{CODE}") for n in range(12)})


# --- answers ----------------------------------------------------------------------------------------------------------


def test_for_programs(history, tmp_path):
    path = recipe(tmp_path, ">=0.2")
    found = answer(path, "--repo", history, code=1)
    assert found["fits"] is False
    assert (found["asked"], found["planned"]) == (4, 3)
    assert [(one["label"], one["version"], one["source"]) for one in found["versions"]][:2] == [
        ("v0.1.0", "0.1.0", "refs/tags/v0.1.0"),
        ("v0.2.0", "0.2.0", "refs/tags/v0.2.0"),
    ]
    assert found["recipes"][0]["edits"] == [
        {"id": "capture", "broke_in": "v0.4.0", "last_good": "v0.3.0", "in_range": True}
    ]
    assert [(cell["version"], cell["in_range"], cell["state"]) for cell in found["cells"]] == [
        ("v0.1.0", False, "gone"),
        ("v0.2.0", True, "ok"),
        ("v0.3.0", True, "ok"),
        ("v0.4.0", True, "gone"),
    ]
    assert found["cells"][1]["edits"][0]["line"] == 3
    assert found["cells"][3]["edits"][0]["error"]["kind"] == "no-match"
    assert answer(path, "--repo", history, "--tags", "v0.[123].0")["fits"]
    assert answer(path, "--repo", history, "--tags", "v0.1.0", "--tags", "v0.2.0")["fits"]
    limited = answer(path, "--repo", history, "--in-range", code=1)
    assert [cell["state"] for cell in limited["cells"]] == [None, "ok", "ok", "gone"]


def test_for_people(history, tmp_path):
    done = run("recipe", "matrix", recipe(tmp_path, ">=0.2"), "--repo", history)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert [line.split() for line in lines[:5]] == [
        ["version", "toy-capture"],
        ["v0.1.0", "(gone", "1/1)"],
        ["v0.2.0", "ok"],
        ["v0.3.0", "ok"],
        ["v0.4.0", "gone", "1/1"],
    ]
    why = "gone: toy/worker.py: Worker.run: the anchor is not there"
    assert f"toy-capture/capture: broke in v0.4.0 (last good v0.3.0): {why}" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_bar_and_colours_on_a_terminal_only(history, tmp_path):
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "probepatch", "recipe", "matrix", str(recipe(tmp_path))]
    process = subprocess.Popen(
        [*command, "--repo", str(history)], cwd=ROOT, env={**os.environ, "TERM": "xterm"}, stdout=child, stderr=child
    )
    os.close(child)
    shown = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(parent)
    assert process.wait() == 1
    assert b"planning" in shown
    assert b"\x1b[32mok" in shown


def test_shipped_recipes_by_id_and_what_was_meant(history):
    assert "no recipe `slime-megatro`" in (said := refusal("slime-megatro", "--repo", history, code=2))
    assert "slime-megatron" in said
    assert "none of 4 versions holds the package `slime`" in refusal("slime-megatron", "--repo", history, code=2)


def test_wrong_calls(history, tmp_path):
    own = (recipe(tmp_path),)
    assert "--wheels" in refusal(*own, code=2)
    assert "--wheels" in refusal(*own, "--repo", history, "--wheels", "toy==1.0", code=2)
    assert "--tags" in refusal(*own, "--wheels", "toy==1.0", "--tags", "v1", code=2)
    assert "name a recipe" in refusal("--repo", history, code=2)
    assert "no tag matches v9*" in refusal(*own, "--repo", history, "--tags", "v9*", code=2)
    assert "no git repository" in refusal(*own, "--repo", tmp_path / "nowhere", code=2)
    assert "in a recipe's range" in refusal(recipe(tmp_path, ">9"), "--repo", history, "--in-range", code=2)
    assert answer(*own, "--repo", history, "--tags", "v9*", code=2)["error"]["kind"] == "no-versions"


# --- wheels -----------------------------------------------------------------------------------------------------------


def test_wheels_by_path_and_by_name(tmp_path):
    folder, cached, path = tmp_path / "wheels", tmp_path / "cache", recipe(tmp_path)
    one, two = wheel(folder, "0.1.0", release()), wheel(cached, "0.2.0", release(BROKEN))
    named = (path, "--wheels", "Toy == 0.1, 0.2.0", "--wheels-dir", folder)
    found = answer(*named, code=1, PROBEPATCH_WHEELS=str(cached))
    assert [(item["label"], item["source"]) for item in found["versions"]] == [("0.1.0", str(one)), ("0.2.0", str(two))]
    assert [cell["state"] for cell in found["cells"]] == ["ok", "gone"]
    assert answer(path, "--wheels", one)["fits"]
    before = one.read_bytes()
    assert sorted(entry.name for entry in folder.iterdir()) == [one.name]
    assert one.read_bytes() == before


def test_a_wheel_that_is_nowhere_is_fetched_by_pip_once(tmp_path):
    pytest.importorskip("pip")
    source, cache, path = tmp_path / "source", tmp_path / "new" / "cache", recipe(tmp_path)
    wheel(source, "0.1.0", release())
    environment = {"PROBEPATCH_WHEELS": str(cache), "PIP_NO_INDEX": "1"}
    asked = (path, "--wheels", "toy==0.1.0")
    assert "no wheel toy==0.1.0 here, and pip cannot get one" in refusal(*asked, code=3, **environment)
    assert answer(*asked, PIP_FIND_LINKS=str(source), **environment)["fits"]
    assert [entry.name for entry in cache.iterdir()] == ["toy-0.1.0-py3-none-any.whl"]
    assert answer(*asked, **environment)["fits"]


@pytest.mark.parametrize("wish", ["toy", "toy==", "toy==x", "toy>=1", "--index==1", "a.whl", "toy==1 -r x"])
def test_wishes_that_name_no_wheel(wish, tmp_path):
    refusal(recipe(tmp_path), f"--wheels={wish}", code=2, PROBEPATCH_WHEELS=str(tmp_path))


def test_only_broken_wheels_are_an_error(tmp_path):
    write(tmp_path, {"toy-1.0-py3-none-any.whl": b"PK\x03\x04" + bytes(99)})
    said = refusal(recipe(tmp_path), "--wheels", tmp_path / "toy-1.0-py3-none-any.whl", code=2)
    assert "File is not a zip file" in said


# --- workers ----------------------------------------------------------------------------------------------------------


def loaded(repo: Path, path: Path, workers: int) -> Matrix:
    recipes = [load_recipe(path)]
    return build(recipes, from_tags(open_repository(repo), ["*"], framework_of(recipes)), workers=workers)


def test_workers_say_what_one_process_says(tmp_path):
    tags = {f"v0.{n}.0": release(CODE if n % 2 else BROKEN + f"M = {n}\n") for n in range(10)}
    repo, path = repository(tmp_path / "repo", tags), recipe(tmp_path)
    alone, together = loaded(repo, path, 1), loaded(repo, path, 2)
    assert [(cell.state, cell.in_range) for cell in alone.cells] == [
        (cell.state, cell.in_range) for cell in together.cells
    ]
    assert [repr(cell.verdicts) for cell in alone.cells] == [repr(cell.verdicts) for cell in together.cells]
    assert not _workers(psutil.Process())


def test_modules_of_the_user_do_not_get_into_workers(tmp_path):
    tags = {f"v0.{n}.0": release(f"{CODE}M = {n}\n") for n in range(8)}
    repo, path = repository(tmp_path / "repo", tags), recipe(tmp_path)
    names = ("socket.py", "pickle.py", "cli.py", "libcst.py", "multiprocessing/__init__.py", "authoring/__init__.py")
    write(tmp_path / "theirs", dict.fromkeys(names, HOSTILE))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'theirs'}{os.pathsep}{ROOT}"}
    code = "import runpy, sys; sys.argv[0] = 'probepatch'; runpy.run_module('probepatch', run_name='__main__')"
    for start in (["-m", "probepatch"], ["-c", code]):
        command = [sys.executable, *start, "recipe", "matrix", str(path), "--repo", str(repo)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout


class _Exit:
    def work(self, recipes: object) -> None:
        os._exit(9)


def test_a_worker_that_dies_is_one_clear_error(tmp_path):
    with pytest.raises(WorkerError, match="ended before its work was done"), Pool([], workers=2) as pool:
        pool.run([_Exit()] * 8, lambda done, total: None)
    assert not _workers(psutil.Process())


def _workers(process: psutil.Process) -> list[psutil.Process]:
    found = []
    for child in process.children(recursive=True):
        try:
            if any("spawn_main" in word for word in child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def _eventually(what: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="with one CPU there are no workers")
@pytest.mark.parametrize("how", ["interrupted at once", "interrupted", "killed"])
def test_no_worker_stays_behind(how, long_history, tmp_path):
    command = [sys.executable, "-m", "probepatch", "recipe", "matrix", str(recipe(tmp_path))]
    process = subprocess.Popen(
        [*command, "--repo", str(long_history)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    parent = psutil.Process(process.pid)
    _eventually(lambda: len(_workers(parent)) >= (1 if how == "interrupted at once" else 2))
    workers = _workers(parent)
    if how != "killed":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (130, b"", b"")
    else:
        process.kill()
        process.communicate(timeout=60)
    _eventually(lambda: not any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers))
