"""The printed patch against the real `git apply`: byte-equal, whatever the bytes are."""

from __future__ import annotations

import random
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemods.patchtext import file_patch, hunks, split_lines

LINES = st.sampled_from(
    [
        b"x = 1",
        b"",
        b"    return y",
        b"\tz",
        b"caf\xe9",
        "π = 3".encode(),
        b"a\rb",
        b"\x0c",
        b"x\r",
        b"-- x",
        b"+++ b/x",
        b"@@ -1 +1 @@",
    ]
)
BODY = st.builds(
    lambda bom, lines, end, last: bom + end.join(lines) + (end if last else b""),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(LINES, max_size=30),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)
NAMES = st.sampled_from(
    ["m.py", "a b/c d.py", "π/模型.py", 'q"uote\\.py', "tab\there.py", "trailing .py", "-dash", "日 本/ü.py"]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=NAMES, before=st.none() | BODY, after=st.none() | BODY, mode=st.sampled_from([0o644, 0o755]))
def test_git_apply_gives_exactly_the_bytes(tmp_path_factory, path, before, after, mode):
    root = tmp_path_factory.mktemp("apply")
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if before is not None:
        file.write_bytes(before)
        file.chmod(mode)
    patch = file_patch(path, before, after, mode)
    if before == after:
        assert patch == b""
        return
    command = ["git", "apply", "--whitespace=nowarn", "-p1", "-"]
    done = subprocess.run(command, cwd=root, input=patch, capture_output=True)
    assert done.returncode == 0, done.stderr.decode() + patch.decode("utf-8", "replace")
    assert (file.read_bytes() if file.exists() else None) == after
    if after is not None:
        assert bool(file.stat().st_mode & 0o100) == bool(mode & 0o100)


@settings(max_examples=300, deadline=None)
@given(before=BODY, after=BODY, context=st.integers(0, 4))
def test_hunks_tell_the_whole_difference(before, after, context):
    old, rebuilt, at = split_lines(before), [], 0
    for hunk in hunks(before, after, context):
        rebuilt += old[at : hunk.old_start]
        assert [line[1:] for line in hunk.lines if line[:1] != b"+"] == old[hunk.old_start : hunk.old_end]
        added = [line[1:] for line in hunk.lines if line[:1] != b"-"]
        assert len(rebuilt) == hunk.new_start
        rebuilt += added
        assert len(rebuilt) == hunk.new_end
        at = hunk.old_end
    assert b"".join(rebuilt + old[at:]) == after


def test_the_patch_reads_as_gits_own():
    assert file_patch("a b.py", b"a\nb\nc\nd\ne\n", b"a\nb\nC\nd\ne") == (
        b"diff --git a/a b.py b/a b.py\n"
        b"--- a/a b.py\t\n"
        b"+++ b/a b.py\t\n"
        b"@@ -1,5 +1,5 @@\n a\n b\n-c\n+C\n d\n-e\n+e\n\\ No newline at end of file\n"
    )
    assert file_patch("\u03c0.py", None, b"", 0o755) == (
        b'diff --git "a/\\317\\200.py" "b/\\317\\200.py"\nnew file mode 100755\n'
    )


def test_the_context_at_both_ends_of_a_file():
    assert [hunk.header for hunk in hunks(b"a\n" * 3, b"x\n" + b"a\n" * 3 + b"y\n")] == [b"@@ -1,3 +1,5 @@"]
    assert [hunk.header for hunk in hunks(b"", b"x\n")] == [b"@@ -0,0 +1 @@"]


@pytest.mark.parametrize("kind", ["source", "all lines alike"])
def test_large_files_with_few_changes_give_small_hunks(kind):
    rng = random.Random(1)
    alike = [b"x = 1\n"] * 20_000
    source = [rng.choice([b"\n", b"    return x\n", b"y = %d\n" % n]) for n in range(20_000)]
    old = alike if kind == "all lines alike" else source
    new = list(old)
    new.insert(19_000, b"# one\n")
    new.insert(100, b"# two\n")
    before, after = b"".join(old), b"".join(new)
    found = list(hunks(before, after))
    if kind == "source":
        assert [hunk.new_start for hunk in found] == [97, 18_998]
        assert [line for hunk in found for line in hunk.lines if line[:1] != b" "] == [b"+# two\n", b"+# one\n"]
    else:  # nothing to hold on to: one block, and still right
        assert sum(len(hunk.lines) for hunk in found) < 40_000
