"""What is said where there is no Ray, or no cluster."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fleet.conftest import FILES, ROOT, checked

NO_RAY = "import sys; sys.modules['ray'] = None; sys.argv[0] = 'probepatch'; import cli; sys.exit(cli.main())"


def _without_ray(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", NO_RAY, *words], capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize("address", ["auto", "10.0.0.1:6379", "http://10.0.0.1:8265"])
@pytest.mark.parametrize("command", ["identify", "diff", "apply", "status", "revert", "restore"])
def test_without_ray_one_line_says_what_to_install(command, address):
    wish = FILES if command in ("diff", "apply") else []
    done = _without_ray("fleet", command, "--package", "verl", "--address", address, *wish)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = [line for line in done.stderr.splitlines() if "pip install" in line]
    assert "probepatch[ray]" in line


def test_without_ray_programs_get_json():
    done = _without_ray("fleet", "status", "--path", "/opt/verl", "--json")
    assert checked("status", done.stdout)["error"]["kind"] == "no-ray"


@pytest.mark.parametrize("words", [["--package", "a", "--path", "/b"], [], ["--path", "verl"]])
def test_the_place_is_one(words):
    done = _without_ray("fleet", "status", *words)
    assert done.returncode == 2 and done.stderr.startswith("error: ")
