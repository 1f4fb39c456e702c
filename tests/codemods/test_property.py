"""Random modules, random edits: what we insert, taken out of the syntax tree again, leaves the tree of the base."""

from __future__ import annotations

import ast
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemods.planner import plan_edits
from codemods.recipe_reader import load_recipe
from codemods.splice import PlannedEdit, check_order, render
from codemods.target import Bases

HEAD = 'recipe: random\nframework: example\nside: train\nversions: ">=0"\nwhy: chance\nedits:\n'


@dataclass
class Writer:
    """Writes a random function body; every simple statement calls a name of its own, ``s0``, ``s1`` …"""

    draw: st.DrawFn
    unit: str
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def call(self) -> str:
        text = f"s{self.count}(x)"
        self.count += 1
        return text

    def chance(self, *texts: str) -> str:
        return self.draw(st.sampled_from(texts))

    def simple(self) -> str:
        shape = self.draw(st.sampled_from(["{}", "v = {}", "{}  # comment", '"""text""" + {}']))
        return shape.format(self.call())

    def put(self, depth: int, text: str) -> None:
        self.lines.append(self.unit * depth + text)

    def block(self, depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        if self.draw(st.booleans()):
            self.put(depth, self.chance("# about the next", ""))
        kinds = ["simple", "semicolons", "one-line", "multi-line", "string"]
        kind = self.chance(*kinds, *(("if", "for", "with", "try", "nested") if depth < 4 else ()))
        getattr(self, f"put_{kind}".replace("-", "_"))(depth)

    def put_simple(self, depth: int) -> None:
        self.put(depth, self.simple())

    def put_semicolons(self, depth: int) -> None:
        self.put(depth, "; ".join(self.call() for _ in range(3)) + self.chance("", ";", "  # three"))

    def put_one_line(self, depth: int) -> None:
        head = self.chance("if x:", "while x:", "with x as y:", "for i in x:")
        self.put(depth, f"{head}{self.chance(' ', '')}{self.call()}; {self.call()}{self.chance('', '  # short')}")

    def put_multi_line(self, depth: int) -> None:
        self.put(depth, f"v = s{self.count}(  # open")
        self.lines.append("   x,")
        self.put(depth, ")")
        self.count += 1

    def put_string(self, depth: int) -> None:
        self.put(depth, f's{self.count}("""first')
        self.lines += ["", "  kept", self.unit * depth + '  last""")']
        self.count += 1

    def put_if(self, depth: int) -> None:
        self.put(depth, "if x:")
        self.block(depth + 1)
        if self.draw(st.booleans()):
            self.put(depth, "elif y:")
            self.block(depth + 1)
        if self.draw(st.booleans()):
            self.put(depth, "else:")
            self.block(depth + 1)

    def put_for(self, depth: int) -> None:
        self.put(depth, "for i in (x,):  # loop")
        self.block(depth + 1)

    def put_with(self, depth: int) -> None:
        self.put(depth, "with (x as a,")
        self.lines.append("  y): ")
        self.block(depth + 1)

    def put_try(self, depth: int) -> None:
        self.put(depth, "try:")
        self.block(depth + 1)
        self.put(depth, self.chance("except E as e:", "finally:"))
        self.block(depth + 1)

    def put_nested(self, depth: int) -> None:
        self.put(depth, "@deco")
        self.put(depth, f"def inner(x): {self.chance('pass', 'return x', 'yield x')}")


@st.composite
def modules(draw: st.DrawFn) -> tuple[bytes, int]:
    writer = Writer(draw, draw(st.sampled_from(["    ", "  ", "\t"])))
    writer.lines = [draw(st.sampled_from(["import os", '"""Module."""', "# top"])), "", "def f(x, y):"]
    if draw(st.booleans()):
        writer.put(1, '"""Doc."""')
    writer.block(1)
    writer.put(0, "")
    text = "\n".join(writer.lines) + draw(st.sampled_from(["\n", "", "\n\n# end"]))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return text.replace("\n", newline).encode(), writer.count


@st.composite
def recipes(draw: st.DrawFn, count: int) -> str:
    edits = []
    used: set[int] = set()
    for number in range(draw(st.integers(1, 5))):
        target = draw(st.integers(0, count - 1))
        verb = draw(st.sampled_from(["before", "after", "around", "body_start", "around_body"]))
        pattern = draw(st.sampled_from([f"$V = s{target}($A)", f"s{target}($A)", f"$T + s{target}($A)"]))
        place = f"id: e{number}, file: m.py, in: f"
        probe = draw(st.sampled_from([f"probe_{number}()", f"if on:\\n    probe_{number}()\\n\\n    probe_{number}()"]))
        if verb in ("before", "after"):
            edits.append((f'{verb}: "{pattern}", insert: "{probe}"', place))
        elif verb == "around":
            if target in used:
                continue
            used.add(target)
            edits.append((f'around: "{pattern}", enter: "probe_{number}()", finally: "{probe}"', place))
        elif verb == "body_start":
            edits.append((f'body_start: "{probe}"', place))
        else:
            edits.append((f'around_body: {{finally: "{probe}"}}', place))
    return HEAD + "".join(f"  - {{{place}, {verb}}}\n" for verb, place in edits)


class Strip(ast.NodeTransformer):
    """Takes out what only we insert."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if ast.unparse(node).startswith("probe_") else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "on" else self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.stmt] | None:
        self.generic_visit(node)
        ours = not node.handlers and not node.finalbody
        return node.body if ours else node


def one_at_a_time(source: bytes, text: str) -> list[PlannedEdit]:
    """The edits of the recipe that find their place: a random pattern often does not."""
    found: list[PlannedEdit] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.yaml")
        path.write_text(text)
        recipe = load_recipe(path)
        for number, edit in enumerate(recipe.edits):
            single = Path(folder, f"{number}.yaml")
            single.write_text(HEAD + text.splitlines()[len(HEAD.splitlines()) + number] + "\n")
            try:
                planned = plan_edits([load_recipe(single)], Bases({"m.py": source}.get))["m.py"][0]
            except Exception as error:  # noqa: BLE001 - only findings are allowed to come out of a plan
                assert hasattr(error, "findings"), error
                assert {finding.exit_code for finding in error.findings} == {1}
                continue
            order = (recipe.order, number)
            found.append(PlannedEdit(recipe.id, edit.id, "", order, "f", 0, "", planned.splices, planned.indents))
    return found


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_taking_our_statements_out_of_the_tree_gives_the_base(data: st.DataObject) -> None:
    source, count = data.draw(modules())
    if count == 0:
        return
    edits = one_at_a_time(source, data.draw(recipes(count)))
    check_order("m.py", edits)
    patched = render(source, edits)
    stripped = Strip().visit(ast.parse(patched))
    assert ast.dump(stripped) == ast.dump(ast.parse(source)), patched.decode()
    assert patched.count(b"\r\n") == patched.count(b"\n") or b"\r\n" not in source
    some = data.draw(st.lists(st.sampled_from(edits), unique=True) if edits else st.just([]))
    assert ast.dump(Strip().visit(ast.parse(render(source, some)))) == ast.dump(ast.parse(source))
    assert render(source, ()) == source
