"""Hand-made changes to a small file, and the verbs by which they are recorded; each recording is proved on the bytes."""

from __future__ import annotations

import random

import pytest

from authoring.record.bench import Bench
from authoring.record.hunks import Hunk, between, slides
from authoring.record.layout import as_code, with_blank_first
from authoring.record.literals import header_parameters, looks_like_path
from authoring.record.markers import marked_lines, without_markers
from authoring.record.solve import Solved, solve
from codemods.layout import lay_out
from codemods.source import read_source

BASE = '''"""Doc."""

import os


class Worker:
    """Works."""

    def run(self, batch):
        """Run."""
        # forward
        out = self.model(batch["ids"])
        if not out:
            return None
        for item in out:
            self.step(item, n=1)
            self.note(item)
        return out

    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, value):
        self._size = value


def top(a):
    with ctx, torch.no_grad():
        y = f(a)
        y = f(a)
    return server.generate.remote(
        a,
        sampling_params=params,  # as they are
        request_id=uuid4().hex,
    )
'''


def recorded(edited: str, base: str = BASE, newline: str = "\n") -> tuple[Bench, Solved]:
    before, after = (text.replace("\n", newline).encode() for text in (base, edited))
    bench = Bench.of("m.py", before)
    solved = solve(bench, read_source("m.py", after))
    if not solved.unsolved:
        assert bench.made(solved.drafts) == after
    return bench, solved


def verbs(edited: str, base: str = BASE) -> list[tuple[str, str, str]]:
    """(verb, symbol, its first key) of each edit; nothing may be left."""
    _bench, solved = recorded(edited, base)
    assert solved.unsolved == ()
    return [(draft.verb, draft.home.symbol, draft.fields[draft.verb]) for draft in solved.drafts]


def edit(old: str, new: str) -> str:
    assert BASE.count(old) == 1, old
    return BASE.replace(old, new)


CASES = {
    "import": (("import os\n", "import json\nimport os\n"), [("add_import", "", "import json")]),
    "import-behind": (("import os\n", "import os\nimport abc\n"), [("after", "", "import os")]),
    "import-in-function": (
        ("        # forward\n", "        import time\n\n        # forward\n"),
        [("replace", "Worker.run", '"""Run."""\nout = self.model(batch["ids"])')],
    ),
    "body-start": (
        ("        # forward\n", "        probe()\n        # forward\n"),
        [("body_start", "Worker.run", "probe()")],
    ),
    "before": (
        ("        if not out:\n", "        probe(out)\n        if not out:\n"),
        [("before", "Worker.run", "if not out:")],
    ),
    "after-in-loop": (
        ("            self.note(item)\n", "            self.note(item)\n            probe(item)\n"),
        [("after", "Worker.run", "self.note(item)")],
    ),
    "after-loop": (
        ("            self.note(item)\n", "            self.note(item)\n        probe(out)\n"),
        [("before", "Worker.run", "return out")],
    ),
    "under-its-comment": (
        ("        # forward\n", "        # forward\n        probe()\n"),
        [("replace", "Worker.run", 'out = self.model(batch["ids"])')],
    ),
    "body-end": (
        ("        self._size = value\n", "        self._size = value\n        probe(value)\n"),
        [("body_end", "Worker.size", "probe(value)")],
    ),
    "argument": (("n=1)", "n=2)"), [("set_argument", "Worker.run", "self.step(...)")]),
    "argument-new": (("n=1)", "n=1, k=item)"), [("set_argument", "Worker.run", "self.step(...)")]),
    "walrus": (
        ("request_id=uuid4().hex,", "request_id=(name := uuid4().hex),"),
        [("set_argument", "top", "server.generate.remote(...)")],
    ),
    "expression": (("self.model(batch", "self.model(probe(batch)"), [("replace_expression", "Worker.run", "batch")]),
    "with-item": (
        ("torch.no_grad():", "torch.no_grad(), probe.step(a) as step:"),
        [("with_item", "top", "with ctx, torch.no_grad():")],
    ),
    "decorator": (
        ("    @property\n", "    @property\n    @probe.timed\n"),
        [("decorator", "Worker.size", "@probe.timed")],
    ),
    "attribute": (
        ('    """Works."""\n', '    """Works."""\n    probed = False\n'),
        [("add_attribute", "Worker", "probed = False")],
    ),
    "delete": (("            self.note(item)\n", ""), [("delete", "Worker.run", "self.note(item)")]),
    "replace": (("self.note(item)", "probe(item)"), [("replace_expression", "Worker.run", "self.note")]),
    "method": (
        ("        self._size = value\n", "        self._size = value\n\n    def more(self):\n        return 1\n"),
        [("add_method", "Worker", "def more(self):\n    return 1")],
    ),
    "two-methods-and-a-line": (
        (
            "        self._size = value\n",
            "        self._size = value\n        probe()\n\n    def a(self):\n        return 1\n"
            "\n    def b(self):\n        return 2\n",
        ),
        [
            ("body_end", "Worker.size", "probe()"),
            ("add_method", "Worker", "def a(self):\n    return 1"),
            ("add_method", "Worker", "def b(self):\n    return 2"),
        ],
    ),
    "around": (
        (
            '        out = self.model(batch["ids"])\n',
            '        dbg.start()\n        try:\n            out = self.model(batch["ids"])\n'
            "        finally:\n            dbg.stop()\n",
        ),
        [("around", "Worker.run", 'out = self.model(batch["ids"])')],
    ),
    "around-body": (
        (
            "        self._size = value\n",
            "        try:\n            self._size = value\n        finally:\n            probe()\n",
        ),
        [("around_body", "Worker.size", " ")],
    ),
    "comment": (
        ("        if not out:\n", "        # nothing came out\n        if not out:\n"),
        [("before", "Worker.run", "if not out:")],
    ),
    "blank-line-above": (
        ("        if not out:\n", "\n        probe(out)\n        if not out:\n"),
        [("before", "Worker.run", "if not out:")],
    ),
    "signature": (("def top(a):", "def top(a, b):"), [("replace", "", "def top(...):")]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_verb_that_tells_the_change(name, newline):
    (old, new), wanted = CASES[name]
    _bench, solved = recorded(edit(old, new), newline=newline)
    assert solved.unsolved == ()
    assert [(draft.verb, draft.home.symbol, draft.fields[draft.verb]) for draft in solved.drafts] == wanted


def test_before_every_return():
    edited = edit("            return None", "            left()\n            return None")
    edited = edited.replace("        return out\n", "        left()\n        return out\n")
    assert verbs(edited) == [("before_each_return", "Worker.run", "left()")]


def test_the_same_at_every_match_is_one_edit():
    edited = BASE.replace("        y = f(a)\n", "        y = f(a)\n        probe(y)\n")
    _bench, solved = recorded(edited)
    (draft,) = solved.drafts
    assert (draft.verb, draft.nth, draft.expect) == ("after", None, 2)


def test_one_of_several_matches_is_named_by_its_number():
    edited = BASE.replace("        y = f(a)\n        y", "        z = f(a)\n        y")
    _bench, solved = recorded(edited)
    (draft,) = solved.drafts
    assert (draft.nth, draft.expect) == (1, 2)


def test_twins_are_told_apart():
    _bench, solved = recorded(edit("        return self._size\n", "        probe()\n        return self._size\n"))
    assert [(draft.home.symbol, dict(draft.home.select)) for draft in solved.drafts] == [
        ("Worker.size", {"decorator": "property"})
    ]


def test_several_changes_in_one_statement():
    edited = edit("sampling_params=params,", "sampling_params=probe.ask(params),").replace(
        "=uuid4().hex", "=(x := uuid4().hex)"
    )
    assert [verb for verb, _symbol, _key in verbs(edited)] == ["set_argument"] * 2 or len(verbs(edited)) == 2


def test_several_files_worth_of_changes_together():
    edited = BASE
    for name in ("import", "body-start", "around", "argument", "method", "with-item"):
        (old, new), _wanted = CASES[name]
        edited = edited.replace(old, new)
    found = [verb for verb, _symbol, _key in verbs(edited.replace("    def run", "    @probe.timed\n    def run"))]
    assert sorted(found) == sorted(
        ["add_import", "body_start", "around", "set_argument", "add_method", "with_item", "decorator"]
    )


def test_what_no_verb_can_say_is_left_and_told():
    _bench, solved = recorded("# new\n" + BASE, "# old\n" + BASE)
    assert [hunk.start for hunk in solved.unsolved] == [0]
    _bench, solved = recorded(BASE.rstrip("\n"))
    assert len(solved.unsolved) == 1


def test_a_function_at_the_end_with_and_without_a_final_newline():
    more = "\n\n\ndef new():\n    return 1"
    assert verbs(BASE + more[1:] + "\n")[0][0] == "add_function"
    assert verbs(BASE.rstrip("\n") + more, BASE.rstrip("\n"))[0][0] == "add_function"


def test_tabs():
    base, edited = (
        text.replace("    ", "\t")
        for text in (BASE, edit("        if not out:\n", "        if x:\n            y\n        if not out:\n"))
    )
    _bench, solved = recorded(edited, base)
    assert [draft.fields["insert"] for draft in solved.drafts] == ["if x:\n    y"]


PIECES = (
    "probe(1)",
    "if probe.on():\n    probe.note(1)\n    # why\n    more()",
    "x = probe(\n    1,\n    2,\n)",
    "import probe",
    "# a comment only",
    'text = """a\n  b\n"""',
    "\nprobe(2)",
    "probe(3)\n",
)


@pytest.mark.parametrize("seed", range(60))
def test_any_lines_anywhere_are_recorded_right_or_not_at_all(seed):
    """Where nothing is left over the bytes are the edited ones (``recorded`` asserts it)."""
    random_ = random.Random(seed)
    lines = BASE.splitlines()
    for _time in range(random_.randint(1, 4)):
        at = random_.randrange(len(lines))
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        if random_.random() < 0.25:
            del lines[at]
            continue
        piece = random_.choice(PIECES).split("\n")
        lines[at:at] = [indent + line if line else "" for line in piece]
    edited = "\n".join(lines) + "\n"
    try:
        compile(edited, "m.py", "exec")
    except SyntaxError:
        return
    recorded(edited)


# --- parts ------------------------------------------------------------------------------------------------------------


def test_an_insertion_between_equal_lines_has_several_places():
    base = b"a\n\nb\n"
    (hunk,) = between(base, b"a\n\nx\n\nb\n")
    assert {way.applied(base) for way in slides(base, hunk)} == {b"a\n\nx\n\nb\n"}
    assert {way.start for way in slides(base, hunk)} == {2, 3}
    assert Hunk(2, 2, b"\nx\n") in slides(base, hunk)


@pytest.mark.parametrize(
    "text",
    ["x = 1\n", "if a:\n    b\n\n    c\n", 's = """q\n  w\n"""\n', "x = f(\n    1,\n)\n", "# c\nx\n"],
)
@pytest.mark.parametrize(("indent", "unit"), [("", "    "), ("        ", "    "), ("\t", "\t"), ("  ", "  ")])
def test_code_is_laid_out_as_it_was_written(text, indent, unit):
    inside = text.startswith("s =")
    lines = text.replace("    ", unit).splitlines()
    written = "".join(
        f"{indent}{line}\n" if line and not (inside and n) else f"{line}\n" for n, line in enumerate(lines)
    )
    code = as_code(written.encode(), indent.encode())
    assert code is not None
    assert lay_out(code, indent.encode(), unit.encode(), b"\n").data == written.encode()
    blank = with_blank_first(code, 2)
    assert blank is not None
    assert lay_out(blank, indent.encode(), unit.encode(), b"\n").data == b"\n\n" + written.encode()


def test_markers_come_off_and_are_read():
    marked = b"a  # probepatch: r/one\r\nb\n    # probepatch: r/two\n    c = '''\n'''\nimport d  # probepatch: import\n"
    assert without_markers(marked) == b"a\r\nb\n    c = '''\n'''\nimport d\n"
    assert marked_lines(marked) == ["r/one", "", "r/two", "", "import"]
    header = b"PARAMETERS: dict = {}  # probepatch: parameters\n"
    assert without_markers(header) == header
    assert without_markers(marked, marked) == marked


def test_a_filled_header_becomes_parameters():
    data = b"PARAMETERS: dict = {'config': ('MY_CONFIG', '/home/me/c.json')}  # probepatch: parameters\nx = 1\n"
    emptied, found = header_parameters(data)
    assert emptied == b"PARAMETERS: dict = {}  # probepatch: parameters\nx = 1\n"
    assert found == {"config": ("MY_CONFIG", "/home/me/c.json")}
    for other in (b"PARAMETERS: dict = {1: 2}  # probepatch: parameters\n", b"PARAMETERS = {'a': ('A', 1)}\n"):
        assert header_parameters(other) == (other, {})


@pytest.mark.parametrize("text", ["/home/me/config.json", "~/dump", "./out/x", "conf/msprobe.json", "/dev/shm/x"])
def test_paths_look_like_paths(text):
    assert looks_like_path(text)


@pytest.mark.parametrize(
    "text", ["", "/", "a/b", "ids", "a sentence. With / slashes", "https://example.invalid/x", "%d/%s"]
)
def test_other_strings_do_not(text):
    assert not looks_like_path(text)
