"""The reader against bash itself: the same arguments, or an honest "unknown"."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.errors import ProbePatchError
from stages.inputs.quoting import for_shell
from stages.inputs.shell.values import assumptions, shown, why_unknown
from tests.stages.inputs.reading import SCRIPTS, reading

BASH = shutil.which("bash")
SAME = {
    "quotes": r"""launch a 'b c' "d e" f\ g "h\"i" 'j"k' $'l\tm' """,
    "continuation": "launch a \\\n  b \\\n  c # d\n",
    "comment": "# launch x\nlaunch a # b\nlaunch '#c' d#e\n",
    "array": 'A=(\n  --x 1  # one\n  # --y 2\n  --z "a b"\n)\nA+=(--w)\nlaunch "${A[@]}" ${A[@]} "${#A[@]}" "${A[1]}"\n',
    "empty array": 'A=()\nlaunch a "${A[@]}" ${A[*]} b\n',
    "defaults": 'unset X Y\nY=y\nlaunch ${X:-8} "${X:-a b}" ${Y:-z} ${X-} "${Y:+set}" ${Y+set} "${X:-${Y}}"\n',
    "assigning default": "unset X\n: ${X:=5}\nlaunch $X\n",
    "split text": 'ARGS=\'--a 1 --b="2"\'\nlaunch $ARGS\nlaunch "$ARGS"\n',
    "continued text": 'X=3\nARGS="a=1 \\\n  b=$X \\\n  c=2"\nlaunch $ARGS\n',
    "empty": 'E=\nlaunch a $E "$E" ${E}b\n',
    "arithmetic": "a=7 b=2\nlaunch $((a + b * 3)) $((a / b)) $((-a / b)) $((a % b)) $(( (a+1) * 2 )) $((a > b)) $(($a ** 2))\n",
    "counting": "((n = 3))\n((n++))\n((n += 2))\nlaunch $n\n",
    "if": 'X=yes\nif [ "$X" = yes ]; then A=1; elif true; then A=2; else A=3; fi\nlaunch $A\n',
    "test": '[[ abc == a* ]] && A=1 || A=2\n[ 3 -gt 4 ] && B=1\n[[ -z "" && ! -n "" ]] && C=1\nlaunch $A ${B:-none} $C\n',
    "case": 'X=npu\ncase "$X" in gpu) A=1 ;; npu|cpu) A=2 ;; *) A=3 ;; esac\nlaunch $A\n',
    "for": 'S=\nfor i in 1 2 3; do S="$S $i"; done\nlaunch $S\nfor x in a \'b c\'; do launch "$x"; done\n',
    "function": 'go() { local n=$1; shift; launch "$n" "$@"; }\ngo one two "three four"\n',
    "heredoc": 'X=1\nread -r -d "" J <<EOF\n{"a": "$X", "b": "\\$X"}\nEOF\nlaunch "$J"\n',
    "quoted heredoc": 'read -r -d \'\' J <<\'EOF\'\n{"a": "$X"}\nEOF\nlaunch "$J"\n',
    "indented heredoc": 'J=$(echo a)\nread -r -d "" K <<-EOF\n\tone\n\tEOF\nlaunch "$J" "$K"\n',
    "patterns": "P=/a/b/c.tar.gz\nlaunch ${P##*/} ${P%.*} ${P%%.*} ${P#/} ${P/b/x} ${P//a/y} ${P^^} ${P:3:1}\n",
    "subshell": "X=1\n(X=2; launch $X)\nlaunch $X\n{ X=3; }\nlaunch $X\n",
    "chains": "true && X=1\nfalse || Y=2\nlaunch $X $Y; launch b | : && launch c &\nwait\n",
    "redirections": "launch a >/dev/null 2>&1 b </dev/null &>/dev/null\n",
    "environment": "export X=1\nX=2 launch a\nlaunch $X\n",
    "eval": "eval 'launch a' b\n",
    "set": "set -- x 'y z'\nlaunch \"$@\" $#\n",
    "length": 'X=hello\nlaunch ${#X} "${X}-$X"\n',
    "append": "X=a\nX+=b\nlaunch $X\n",
    "backslash at end": "launch a\\\\ 'b\\'\n",
    "exit": "launch a\nexit 0\nlaunch b\n",
    "return": "f() { launch a; return; launch b; }\nf\nlaunch c\n",
}


def by_bash(script: str, folder: Path) -> list[list[str]]:
    """The arguments of every ``launch``, as bash passes them."""
    (folder / "launch").write_text('#!/bin/bash\nprintf "%s\\0" "$@" >> "$OUT"\nprintf "\\1\\0" >> "$OUT"\n')
    (folder / "launch").chmod(0o755)
    (folder / "script.sh").write_text(script)
    out = folder / "out"
    out.write_bytes(b"")
    env = {"PATH": f"{folder}:/usr/bin:/bin", "OUT": str(out)}
    subprocess.run(
        [str(BASH), str(folder / "script.sh")], env=env, cwd=folder, capture_output=True, check=False, timeout=60
    )
    return [one.decode().split("\0")[:-1] for one in out.read_bytes().split(b"\1\0")[:-1]]


def by_us(script: str) -> list[list[str | None]]:
    found = [one.args for one in reading(script).commands if one.args[0].text == "launch"]
    return [[arg.text for arg in args[1:]] for args in found]


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
@pytest.mark.parametrize("name", SAME)
def test_the_same_arguments_as_bash(name, tmp_path):
    assert sorted(map(str, by_us(SAME[name]))) == sorted(map(str, by_bash(SAME[name], tmp_path)))


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("launch $NOWHERE", "comes from the environment"),
        ("launch $1", "argument of the script"),
        ('X=$(nvidia-smi -L | wc -l)\nlaunch "$X"', "not known before it runs"),
        ('if [ "$N" -gt 1 ]; then X=1; else X=2; fi\nlaunch $X', "condition in script.sh:1"),
        ("while read -r x; do Y=$x; done\nlaunch $Y", "loop in script.sh:1"),
        ("launch $((N + 1))", "cannot be calculated"),
        ("launch a{1,2}b", "expands braces"),
        ("read X\nlaunch $X", "read while the script runs"),
        ("launch ~/data", "home folder"),
        ("launch ${X:?must be set}", "has to be set"),
    ],
)
def test_what_only_a_run_can_tell_is_unknown(script, why):
    (command,) = [one for one in reading(script).commands if one.args[0].text == "launch"]
    assert command.args[1].text is None
    assert why in why_unknown(command.args[1].value)


def test_a_default_rests_on_the_environment_and_says_so():
    (command,) = reading("B=${B:-2}\nlaunch ${A:-1} $((B * 3))").commands
    assert [arg.text for arg in command.args] == ["launch", "1", "6"]
    assert [assumptions(arg.value) for arg in command.args[1:]] == [{"A"}, {"B"}]
    (command,) = reading("launch ${A:-1}", A="9").commands
    assert command.args[1].text == "9"


def test_what_may_be_there_is_marked():
    (command,) = reading('A=(x)\nif [ -n "$Q" ]; then A=(x y); fi\nlaunch "${A[@]}" z').commands
    assert [(arg.text, bool(arg.maybe)) for arg in command.args[1:]] == [("x", False), ("y", True), ("z", False)]


def test_a_script_that_ends_where_something_is_not_set_is_read_on():
    text = 'X=${X:-}\nif [ -z "$X" ]; then echo no; exit 1; fi\nlaunch "$X"\n'
    (command,) = reading(text).commands
    assert command.args[1].text is None


def test_places():
    text = 'A=(\n  --flag value\n)\nlaunch "${A[@]}" "ü$X" \\\n  last\n'
    (command,) = reading(text).commands
    flag, value, last = command.args[1], command.args[2], command.args[-1]
    assert (flag.where, last.where) == ("script.sh:2", "script.sh:5")
    assert text[value.start : value.end] == "value"
    assert shown(command.args[3].value) == "ü…"
    assert command.source.byte(last.start) == last.start + 1


def test_sourced_and_called_scripts(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models/m.sh").write_text("ARGS=(--n ${N:-1})\n")
    (tmp_path / "inner.sh").write_text('launch "$1" "$E" "$F"\n')
    text = (
        'D="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"\nN=7 source "$D/models/m.sh"\n'
        'launch "${ARGS[@]}" ${N:-none}\nexport E=e\nF=f\nbash "$D/inner.sh" arg\nsource "$D/missing.sh"\n'
    )
    found = reading(text, str(tmp_path / "outer.sh"))
    first, second = found.commands
    assert [arg.text for arg in first.args[1:]] == ["--n", "7", "none"]
    assert first.args[1].where == "m.sh:1"
    assert [arg.text for arg in second.args[1:3]] == ["arg", "e"]
    assert second.args[3].text is None  # F was not exported
    assert ["missing.sh" in text for _where, text in found.notes] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "launch 'open",
        'launch "open',
        "launch ${open",
        "launch $(open",
        "if true; then launch",
        "A=(open",
        ")",
        "case x in a) launch",
        "x() { x; }; x",
        "while true; do launch; done",
        "((((((((((" * 50,
        "$(" * 500,
        "a" * 100_000,
        "for i in "
        + "1 " * 63
        + "; do for j in "
        + "1 " * 63
        + "; do for k in "
        + "1 " * 63
        + "; do x; done; done; done",
        "source /dev/stdin\n",
        "\ufeff\x01launch\x7f",
    ],
)
def test_hostile_scripts_end_in_a_result_or_one_clear_error(text):
    try:
        reading(text)
    except ProbePatchError as error:
        assert error.what
        assert error.exit_code == 1


@given(st.text(alphabet=st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=30))
def test_every_text_is_quoted_for_the_shell(text):
    (command,) = reading(f"launch {for_shell(text)} x").commands
    assert [arg.text for arg in command.args] == ["launch", text, "x"]


@given(st.text(alphabet="ab $\"'\\{}()#&|;<>\n\t=~*`-+[]!", max_size=60))
def test_any_text_is_read_without_a_crash(text):
    try:
        reading(text)
    except ProbePatchError as error:
        assert error.where


def test_the_example_scripts_are_read_as_bash_reads_them(tmp_path):
    """The launch of the slime-like example, started for real with stand-ins for every program."""
    (tmp_path / "bin").mkdir()
    for name in ("pkill", "nvidia-smi", "grep", "wc"):
        (tmp_path / "bin" / name).write_text("#!/bin/bash\n")
    (tmp_path / "bin/ray").write_text('#!/bin/bash\n[ "$1" = job ] && printf "%s\\0" "$@" > "$OUT"\nexit 0\n')
    for file in (tmp_path / "bin").iterdir():
        file.chmod(0o755)
    script, out = SCRIPTS / "slime.sh", tmp_path / "out"
    env = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "OUT": str(out)}
    subprocess.run([str(BASH), str(script)], env=env, capture_output=True, check=False, timeout=60)
    real = out.read_text().split("\0")[:-1]
    (command,) = [one for one in reading(script.read_text(), str(script)).commands if one.args[1].text == "job"]
    ours = [arg.text for arg in command.args[1:]]
    assert [text for text in ours if text is not None] == [b for a, b in zip(ours, real, strict=True) if a is not None]
    assert ours.count(None) == 1  # the runtime environment with what nvidia-smi counted
