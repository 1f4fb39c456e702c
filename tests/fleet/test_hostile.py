"""Busy clusters, wrong addresses, trees that want to harm, other platforms, and the way through a job."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.fleet.conftest import BEFORE, FILES, RECIPES, ROOT, Machines, checked, contents, until

pytestmark = pytest.mark.fleet

TAKES_ALL = """
import os, sys, time, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as Bound

@ray.remote(num_cpus=1)
def sleep(file):
    with open(file, "w") as done:
        done.write("here")
    time.sleep(600)

ray.init(address=sys.argv[1], log_to_driver=False)
nodes = [node for node in ray.nodes() if node["Alive"] and node["NodeName"] in sys.argv[3:]]
ray.get([sleep.options(scheduling_strategy=Bound(node["NodeID"], False)).remote(
    os.path.join(sys.argv[2], "busy-" + node["NodeName"])) for node in nodes])
"""

OTHER = """
import sys
import fleet.bundle
fleet.bundle.abi = lambda: "cpython-399 Linux riscv64"
import cli
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_busy_cluster_does_not_block(machines: Machines) -> None:
    names = machines.names[:2]
    words = [machines.cluster.address, str(machines.base), *names]
    with subprocess.Popen([sys.executable, "-c", TAKES_ALL, *words], stderr=subprocess.DEVNULL) as other:
        try:
            until(lambda: all((machines.base / f"busy-{name}").exists() for name in names))
            assert machines.answer("status", *machines.only(0, 1))["even"]
            assert other.poll() is None
        finally:
            other.kill()


def test_hostile_trees_are_named(machines: Machines) -> None:
    machines.inject(0, "print('a plugin of the house is loaded')")
    machines.inject(1, "import sys\nwhile 'diff' in sys.orig_argv:\n    print('x' * 10000)")
    secret = machines.base / "secret.py"
    secret.write_bytes(BEFORE["tinyrl/trainer/worker.py"])
    worker = machines.trees[2] / "tinyrl/trainer/worker.py"
    worker.unlink()
    worker.symlink_to(secret)
    shutil.rmtree(machines.trees[3] / "tinyrl")
    (machines.trees[3] / "tinyrl").symlink_to("tinyrl")
    error = machines.answer("apply", *machines.only(0, 1, 2, 3), *FILES, code=1)["error"]
    details = dict(line.split(": ", 1) for line in error["details"])
    assert set(details) == set(machines.names[1:4])
    assert "MB of output" in details[machines.names[1]]
    assert secret.read_bytes() == BEFORE["tinyrl/trainer/worker.py"]
    assert contents(machines.trees[0]) == BEFORE


def test_other_bytes_and_another_platform_are_named(machines: Machines) -> None:
    changed = machines.trees[1] / "tinyrl/trainer/worker.py"
    changed.write_bytes(changed.read_bytes() + b"# of ours\n")
    shown = machines.run("diff", *machines.only(0, 1, 2), *FILES)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert f"{machines.names[1]}: differs from most in tinyrl/trainer/worker.py" in shown.stderr

    words = machines.command("diff", *machines.only(0, 1), *FILES, "--json")[2:]
    done = subprocess.run([sys.executable, "-c", OTHER, *words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1, done.stderr
    (detail,) = checked("diff", done.stdout)["error"]["details"]
    assert detail.startswith(f"{machines.names[0]}, {machines.names[1]}: its Python (")
    assert "riscv64" in detail


def test_names_and_addresses_that_are_not_there(machines: Machines) -> None:
    assert machines.answer("status", "--node", "nod0", code=2)["error"]["todo"] == "did you mean `node0`?"
    for address, code in (("127.0.0.1:1", 3), ("ray://there:10001", 2), ("http://127.0.0.1:1", 3)):
        assert machines.answer("status", code=code, address=address)["error"]


def test_through_a_job_with_recipes_of_ones_own(machines: Machines) -> None:
    """As somebody does it who has no Ray port, only that of the dashboard."""
    address, two = f"http://127.0.0.1:{machines.port}", machines.only(0, 1)
    own = machines.base / "own"
    shutil.copytree(RECIPES, own, dirs_exist_ok=True)
    recipe = own / "tinyrl-engine.yaml"
    payload = own / "payloads/probepatch_tinyrl.py"
    payload.write_bytes(payload.read_bytes() + b"\n# a line of one's own\n")
    done = machines.answer("apply", *two, "--recipe-file", str(recipe), address=address)
    assert done["complete"]
    added = [tree / "tinyrl/probepatch_tinyrl.py" for tree in machines.trees[:2]]
    assert all(path.read_bytes().endswith(b"# a line of one's own\n") for path in added)

    shown = machines.run("apply", *two, *FILES, address=address)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert f"{', '.join(machines.names[:2])}: it holds edits of these recipes already" in shown.stderr
    assert machines.answer("revert", *two, address=address)["finished"]
    assert [contents(tree) for tree in machines.trees] == [BEFORE] * 8
