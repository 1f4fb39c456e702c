"""Quoting for every parser on the way: one shell, two shells, hydra."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from subprocess import list2cmdline

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.inputs.quoting import (
    QuotingError,
    for_hydra,
    for_ray,
    for_shell,
    in_quotes,
    override,
    second_parse,
    survives,
)

SHELLS = [shell for shell in ("/bin/sh", shutil.which("bash"), shutil.which("dash")) if shell]
PRINT = "import json, sys; print(json.dumps(sys.argv[1:]))"


def echo_twice(shell: str, words: str) -> list[str]:
    """What a program gets whose command line went through a script's shell and then through the job's, joined as ray joins it."""
    inner = f"import subprocess, sys; subprocess.run([{shell!r}, '-c', subprocess.list2cmdline(sys.argv[1:])])"
    outer = (
        f"{for_shell(sys.executable)} -c {for_shell(inner)} {for_shell(sys.executable)} -c {for_shell(PRINT)} {words}"
    )
    done = subprocess.run([shell, "-c", outer], capture_output=True, text=True, timeout=60, check=False)
    return json.loads(done.stdout) if done.stdout.strip() else []


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "value",
    [
        {"dump_config_path": "/d/a.json"},
        {"a": 1, "b": "x", "c": [1, 2], "d": {"e": None, "f": True}},
        {"a": "$HOME", "b": "x;y", "c": "a&b|c", "d": "(x)"},
        {"a": "训推"},
    ],
)
def test_json_survives_two_shells(shell, value):
    (arrived,) = echo_twice(shell, for_shell(for_ray(value)))
    assert json.loads(arrived) == value
    assert " " not in for_ray(value)


@pytest.mark.parametrize("value", [{"a": "b c"}, {"a": "x\ty"}])
def test_json_that_cannot_survive_is_refused(value):
    with pytest.raises(QuotingError) as caught:
        for_ray(value)
    assert "file" in str(caught.value.todo)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "a=b",
        '{"a":"b"}',
        '{"a":1,"b":2}',
        '{"a": "b c"}',
        "{'a':1}",
        "a;b",
        "$HOME",
        "a b",
        '"quoted"',
        "",
        "back\\slash",
        "[1,2]",
        '+x.y="1"',
        "a>b",
        "#c",
    ],
)
def test_what_is_said_to_survive_does(shell, text):
    """The prediction is safe in every shell: what it calls unchanged arrives unchanged."""
    if survives(text):
        assert echo_twice(shell, for_shell(text)) == [text]


def test_both_kinds_are_among_them():
    assert survives('{"a":"b"}')
    assert survives('{"a": "b c"}')
    assert not survives('{"a":1,"b":2}')  # bash as sh expands the braces
    assert not survives("{'a':1}")
    assert second_parse(["x", "a;b"]) is None
    assert second_parse(["x", "{'a':1}"]) == ["x", "{a:1}"]


@given(st.lists(st.text(alphabet='ab "\\', min_size=1, max_size=8), min_size=1, max_size=4))
def test_the_second_parse_is_what_a_shell_does(texts):
    arrived = second_parse(["x", *texts])
    done = subprocess.run(
        ["/bin/sh", "-c", list2cmdline([sys.executable, "-c", PRINT, *texts])],
        capture_output=True,
        text=True,
        check=False,
    )
    if arrived is not None and None not in arrived and done.returncode == 0:
        assert json.loads(done.stdout) == arrived[1:]


@pytest.mark.parametrize("quote", ['"', "'", "<<", "<<'"])
@pytest.mark.parametrize("text", ['{"a": "1"}', "it's", "$x `y` \\z", '"'])
def test_text_within_quotes_that_are_there(quote, text):
    written = in_quotes(text, quote)
    script = {
        '"': f'X="{written}"\n',
        "'": f"X='{written}'\n",
        "<<": f"read -r -d '' X <<EOF\n{written}\nEOF\n",
        "<<'": f"read -r -d '' X <<'EOF'\n{written}\nEOF\n",
    }[quote]
    done = subprocess.run(["bash", "-c", script + 'printf %s "$X"'], capture_output=True, text=True, check=False)
    assert done.stdout == text


HYDRA = [
    ("a", "plain", "a=plain"),
    ("a", "mlx5_0:1,mlx5_1:1", 'a="mlx5_0:1,mlx5_1:1"'),
    ("a", "训推一致", 'a="训推一致"'),
    ("a", "/a/b=c", 'a="/a/b=c"'),
    ("a", {"dump_config_path": "/d/a.json"}, "a={dump_config_path:/d/a.json}"),
    ("a", ["x", 1, None, True, "b c"], 'a=[x,1,null,true,"b c"]'),
    ("a", "1", 'a="1"'),
    ("a", "true", 'a="true"'),
    ("a", 'say "x"', 'a="say \\"x\\""'),
    ("a", "end\\", 'a="end\\\\"'),
    ("a", "", 'a=""'),
    ("a", "${b}", 'a="${b}"'),
]


@pytest.mark.parametrize(("name", "value", "text"), HYDRA)
def test_overrides_are_written_for_hydra(name, value, text):
    assert override(name, value) == text


@pytest.mark.parametrize(("name", "value", "text"), [one for one in HYDRA if one[1] != "${b}"])
def test_hydra_reads_them_back(name, value, text):
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser")
    read = parser.OverridesParser.create().parse_override(text)
    assert read.value() == value


def test_a_key_that_hydra_cannot_read_is_refused():
    with pytest.raises(QuotingError):
        for_hydra({"a b": 1})
