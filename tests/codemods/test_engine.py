"""The parts under the verbs: sources, outlines, patterns, the compile check, identification."""

from __future__ import annotations

import sys
from pathlib import Path

import libcst as cst
import pytest
from packaging.specifiers import SpecifierSet

from codemods.catalogue import Framework, Probe
from codemods.compiling import BrokenByEditError, InterpreterError, UncheckableError, check
from codemods.errors import ProbePatchError
from codemods.identify import choose, identify_as
from codemods.misses import PlanError
from codemods.outline import SyntaxUnknownError, outline
from codemods.pattern import PatternError, compile_expression, compile_statements, find_expressions, find_statements
from codemods.planner import plan_edits
from codemods.recipe_reader import load_recipe
from codemods.scope import flat
from codemods.settings import SettingError, digest_with, filled_payload, parse_settings
from codemods.source import UnreadableSourceError, read_source
from codemods.splice import Indent, PlannedEdit, Splice, leading, render, trailing
from codemods.target import Bases

NEWER = b'''"""doc"""
from __future__ import annotations
import a, b as c
try:
    import d
except ImportError: d = None
import e; import f
from ..g.h import (
    i)
from . import j  # isort: skip
import k; \\
import l
# isort: off
import m
@(
  # why
  deco
)
def pick[T](a: T) -> T:
    return a
class Box:
    def m(self): pass
    if 1:
        async def g(self):
            def h(): pass
    else:
        def g(self): pass
x = 1
def last(): pass'''
PLAIN = NEWER.replace(b"[T]", b"")


def test_the_outline_of_ast_and_that_of_libcst_agree() -> None:
    """A file whose syntax this Python cannot read gets the same outline from the child process."""
    import ast

    by_ast = outline(PLAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ast, "parse", _refuse)
        by_child = outline(PLAIN)
    assert by_ast.definitions == tuple(
        type(d)(d.qualname, d.kind, d.start, d.end, d.line, ours.decorators, d.branch)
        for d, ours in zip(by_child.definitions, by_ast.definitions, strict=True)
    )
    assert by_ast.stretches == by_child.stretches
    assert (by_ast.docstring, by_ast.prologue, by_ast.imports) == (
        by_child.docstring,
        by_child.prologue,
        by_child.imports,
    )
    assert by_ast.leading == by_child.leading
    assert [(one.module, one.plain) for one in by_ast.leading] == [
        ("a", True),
        ("e", True),
        ("..g.h", False),
        ("k", True),
    ]
    assert PLAIN[by_ast.named("pick")[0].start :].startswith(b"@(\n")


def _refuse(*_arguments: object, **_options: object) -> None:
    raise SyntaxError("too new")


def test_newer_syntax_is_outlined_whatever_this_python_reads() -> None:
    assert [d.qualname for d in outline(NEWER).definitions] == [
        "pick",
        "Box",
        "Box.m",
        "Box.g",
        "Box.g.h",
        "Box.g",
        "last",
    ]


@pytest.mark.parametrize(
    "text", [b"def f(:\n", b"x = (" * 5000, b"def f[T](x):\n    return " + b"(" * 3000 + b")" * 3000]
)
def test_what_nobody_can_parse_is_refused_in_one_line(text: bytes) -> None:
    """The last one takes LibCST's process down; ours goes on."""
    with pytest.raises(SyntaxUnknownError) as caught:
        outline(text, "m.py")
    assert (caught.value.where or "").startswith("m.py:")
    assert len(caught.value.why or "") < 800


def test_a_source_in_another_encoding_keeps_its_offsets() -> None:
    raw = "# coding: gbk\nx = '训推'\ny = 1\n".encode("gbk")
    source = read_source("m.py", raw)
    splice = Splice(source.text.index(b"y = 1"), b"", "z = '一致'\n".encode(), lines=(0,))
    ours = source.raw_splice(splice)
    assert render(raw, [PlannedEdit("r", "e", "d", (0, 0), splices=(ours,))]).decode("gbk") == (
        "# coding: gbk\nx = '训推'\nz = '一致'\ny = 1\n"
    )


def test_a_byte_order_mark_with_another_encoding_is_refused() -> None:
    with pytest.raises(UnreadableSourceError):
        read_source("m.py", b"\xef\xbb\xbf# coding: latin-1\nx = 1\n")


MATCHES = [
    ("x = f(..., a=1)", "x = f(1, 2, a=1)", 1),
    ("x = f(..., a=1)", "x = f(1, 2, a=1, b=2)", 0),
    ("x = f(..., a=1, ...)", "x = (f(1, 2, a=1, b=2))  # c", 1),
    ("x = 'a'", 'x = "a"', 1),
    ("x = 'ab'", "x = 'a' 'b'", 1),
    ("x = b'a'", "x = 'a'", 0),
    ("x = 1000", "x = 1_000", 1),
    ("x = 1", "x = 1.0", 0),
    ("def f(self, ...):", "@d\ndef f(self: int, *, a=1) -> int:\n  return 1", 1),
    ("def f(self):", "def f(self, a): pass", 0),
    ("async def f():", "def f(): pass", 0),
    ("if $A == $A:", "if a == a: pass\nelse: y", 1),
    ("if $A == $A:", "if a == b: pass\nelse: y", 0),
    ("from x import ..., b", "from x import (a,\n b)", 1),
    ("from x import b", "from x import a, b", 0),
    ("x = $...", "x = ...", 1),
    ("x = $...", "x = 1", 0),
    ("a = 1\n...\nb = 2", "a = 1\nc\nd\nb = 2", 1),
    ("a = 1\nb = 2", "a = 1\nc\nb = 2", 0),
    ("a = 1\nb = 2", "a = 1; b = 2", 1),
    ("with a, ...:", "with (a, b):\n  pass", 1),
    ("with a, ...:", "with b, a:\n  pass", 0),
    ("x[..., 0] = $V", "x[1, 2, 0] = 3", 1),
    ("for $I in enumerate($X):\n    ...\n    y()", "for i in enumerate(z):\n  a\n  y()", 1),
    ("f'{x}'", 'f"{x}"', 1),
    ("try:", "try:\n  a\nexcept E:\n  b", 1),
    ("$_ = f()", "x.y[0] = f()", 1),
    ("[..., a]", "[1, a]", 1),
    ("return", "return 1", 0),
    ("self.$M(...)", "self.run(1)", 1),
]


@pytest.mark.parametrize(("pattern", "code", "count"), MATCHES)
def test_patterns_match_syntax(pattern: str, code: str, count: int) -> None:
    found = find_statements(compile_statements(pattern), [flat(cst.parse_module(code + "\n"))])
    assert len(found) == count


def test_expression_patterns_look_inside_but_not_into_nested_functions() -> None:
    module = cst.parse_module("x = f(g(1), lambda: g(2))\nif g(3): pass\ndef h(): g(4)\n")
    found = find_expressions(compile_expression("g($X)"), [flat(module)])
    assert [module.code_for_node(match.captures["X"]) for match in found] == ["1", "3"]


@pytest.mark.parametrize(
    "text", ["f(", "...", "", "# nothing", "a b", "(" * 3000 + ")" * 3000, "-" * 20_000 + "a", "a" + ".a" * 100_000]
)
def test_a_pattern_that_is_none(text: str) -> None:
    with pytest.raises(PatternError):
        compile_statements(text)


@pytest.mark.parametrize("text", ["$X", "...", "x = 1", "a; b", "a, b"])
def test_an_expression_pattern_that_is_none(text: str) -> None:
    with pytest.raises(PatternError):
        compile_expression(text)


def test_many_wildcards_end_in_an_error_and_not_in_a_long_wait() -> None:
    call = cst.parse_module("f(" + ", ".join("x" for _ in range(40)) + ", y)\n")
    with pytest.raises(PatternError, match="too long"):
        find_statements(compile_statements("f(" + "..., x, " * 12 + "z)"), [flat(call)])
    block = cst.parse_module("a()\n" * 40 + "b()\n")
    with pytest.raises(PatternError, match="too long"):
        find_statements(compile_statements("a()\n...\n" * 12 + "c()"), [flat(block)])


@pytest.mark.parametrize("chain", [" or ".join(["x"] * 400), " ".join(["'x'"] * 400), "x" + " + x" * 400])
def test_a_long_chain_in_the_target_is_a_finding(chain: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        'recipe: r\nframework: example\nside: train\nversions: ">=0"\nwhy: w\nedits:\n'
        "  - {id: a, file: m.py, in: f, replace_expression: x, expect: 1, with: y}\n"
    )
    source = f"def f(x):\n    return {chain}\n".encode()
    with pytest.raises(PlanError) as caught:
        plan_edits([load_recipe(tmp_path / "r.yaml")], Bases({"m.py": source}.get))
    assert caught.value.exit_code == 1


def test_two_recipes_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(RECIPE.replace("add_file: p.py", "body_end: x = 1"))
    recipe = load_recipe(tmp_path / "r.yaml")
    with pytest.raises(ProbePatchError, match="two recipes") as caught:
        choose(identify_as(FRAMEWORK, Bases({}.get), tmp_path), files=[recipe, recipe])
    assert caught.value.exit_code == 2


def test_the_same_import_of_two_recipes_stands_once(tmp_path: Path) -> None:
    recipes = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            f'recipe: {name}\nframework: example\nside: train\nversions: ">=0"\nwhy: w\nedits:\n'
            "  - {id: a, file: m.py, add_import: import probe}\n"
        )
        recipes.append(load_recipe(path))
    edits = plan_edits(recipes, Bases({"m.py": b"x = 1\n"}.get))["m.py"]
    assert render(b"x = 1\n", edits).count(b"import probe") == 1
    assert render(b"x = 1\n", edits[1:]).count(b"import probe") == 1


def edit(name: str, order: int, *splices: Splice, indents: tuple[Indent, ...] = ()) -> PlannedEdit:
    return PlannedEdit(name, "e", "d", (order, 0), splices=splices, indents=indents)


def test_splices_at_one_offset_follow_rank_then_order() -> None:
    base = b"a\nb\n"
    before_b = edit("r", 0, Splice(2, b"", b"before b\n", rank=leading()))
    after_a = edit("s", 5, Splice(2, b"", b"after a\n", rank=trailing(0)))
    inner = edit("t", 9, Splice(2, b"", b"inner\n", rank=trailing(3)))
    for edits in ([before_b, after_a, inner], [inner, before_b, after_a]):
        assert render(base, edits) == b"a\ninner\nafter a\nbefore b\nb\n"


def test_a_shared_splice_is_made_once_and_stays_until_its_last_owner_goes() -> None:
    first, second = (edit(name, order, Splice(0, b"", b"import os\n", shared=True)) for order, name in enumerate("rs"))
    assert render(b"x\n", [first, second]) == render(b"x\n", [second]) == b"import os\nx\n"
    assert render(b"x\n", []) == b"x\n"


def test_the_compile_check_blames_only_the_edit() -> None:
    assert "compiles under" in check([("m.py", b"x = 1\n", b"x = 2\n")])["m.py"]
    assert check([("m.txt", b"(", b"((")])["m.txt"] == "not Python"
    with pytest.raises(BrokenByEditError) as broken:
        check([("m.py", b"x = 1\n", b"x = (\n")])
    assert (broken.value.exit_code, broken.value.where) == (1, "m.py:1")
    with pytest.raises(UncheckableError) as uncheckable:
        check([("m.py", b"x = (\n", b"x = (\n\n")])
    assert uncheckable.value.exit_code == 3
    assert "--python" in (uncheckable.value.todo or "")


def test_the_compile_check_in_another_interpreter(tmp_path: Path) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert "compiles under" in check([("m.py", None, b"x = 1\n")], str(link))["m.py"]
    with pytest.raises(BrokenByEditError):
        check([("m.py", b"x = 1\n", b"return\n")], str(link))
    for bad in (str(tmp_path / "gone"), "/bin/true", "/bin/false"):
        with pytest.raises(InterpreterError):
            check([("m.py", None, b"x = 1\n")], bad)


def test_compiling_leaves_no_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check([("m.py", None, b"x = 1\n")])
    assert not list(tmp_path.iterdir())


FRAMEWORK = Framework(
    "example",
    "pkg",
    ("pkg/version.txt", "pkg/version.py"),
    (
        Probe(SpecifierSet(">=2", prereleases=True), "pkg/new.py", "K.run", "go($X)", False),
        Probe(SpecifierSet("<2", prereleases=True), "pkg/new.py", "", "", True),
    ),
)


@pytest.mark.parametrize(
    ("files", "declared", "agree"),
    [
        ({"pkg/version.txt": b"2.1\n", "pkg/new.py": b"class K:\n    def run(self):\n        go(1)\n"}, "2.1", True),
        ({"pkg/version.py": b"__version__ = '2.1'\n"}, "2.1", False),
        ({"pkg/version.txt": b"1.0"}, "1.0", True),
        ({"pkg/version.txt": b"\xff\xfe nonsense"}, None, None),
        ({}, None, None),
    ],
)
def test_the_declared_version_and_the_contents_are_weighed(
    files: dict[str, bytes], declared: str | None, agree: bool | None, tmp_path: Path
) -> None:
    identity = identify_as(FRAMEWORK, Bases(files.get), tmp_path)
    assert (str(identity.declared) if identity.declared else None, identity.agree) == (declared, agree)


def test_a_version_from_the_installed_metadata(tmp_path: Path) -> None:
    (tmp_path / "pkg-3.0.1.dist-info").mkdir()
    assert str(identify_as(FRAMEWORK, Bases({}.get), tmp_path).declared) == "3.0.1"


def test_no_recipe_fits_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ProbePatchError) as caught:
        choose(identify_as(FRAMEWORK, Bases({}.get), tmp_path))
    assert caught.value.exit_code == 1


RECIPE = """\
recipe: with-parameters
framework: example
side: train
versions: ">=0"
why: an example
parameters:
  config: {type: path, env: CONFIG, help: a path}
  count: {type: int, env: COUNT, default: 3, help: a number}
  fast: {type: bool, env: FAST, help: a flag}
  mode: {type: choice, env: MODE, choices: [a, b], help: a choice}
edits:
  - {id: a, file: pkg/p.py, add_file: p.py}
"""


def test_settings_are_literals_and_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "payloads").mkdir()
    payload = "X = 1\nPARAMETERS: dict = {}  # probepatch: parameters\nY = {}\n"
    (tmp_path / "payloads" / "p.py").write_text(payload)
    (tmp_path / "r.yaml").write_text(RECIPE)
    recipe = load_recipe(tmp_path / "r.yaml")
    hostile = "config=a'; import os; os.abort(); '"
    values = parse_settings([hostile, "count=7", "fast=true", "mode=b"], [recipe])
    space: dict[str, object] = {}
    exec(filled_payload(payload, recipe, values), space)
    assert space["PARAMETERS"] == {
        "config": ("CONFIG", str(tmp_path / hostile.partition("=")[2])),
        "count": ("COUNT", 7),
        "fast": ("FAST", True),
        "mode": ("MODE", "b"),
    }
    assert digest_with(recipe, values) != digest_with(recipe, {}) == recipe.digest
    exec(filled_payload(payload, recipe, {}), space)
    assert space["PARAMETERS"]["count"] == ("COUNT", 3)  # type: ignore[index]
    for wrong in ("cuont=1", "count", "count=x", "fast=maybe", "mode=c", "config="):
        with pytest.raises(SettingError) as caught:
            parse_settings([wrong], [recipe])
        assert caught.value.exit_code == 2
    with pytest.raises(SettingError, match="cuont") as caught:
        parse_settings(["cuont=1"], [recipe])
    assert "count" in (caught.value.todo or "")
