"""The verl recipes' edits as a LibCST codemod, written as an experienced author would: one visit, and it goes only into the
definitions that are to be changed. Run by ``python -m libcst.tool codemod -x verl_codemod.VerlCodemod``, with the module
``verl_anchors`` (see anchors.py) on the path.

Most of its time goes into LibCST's own ``AddImportsVisitor``, which walks every file twice more; ``LeanVerlCodemod`` does without.
"""

import argparse
import json
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from libcst.codemod import CodemodContext, VisitorBasedCodemodCommand
from libcst.codemod.visitors import AddImportsVisitor
from verl_anchors import ANCHORS


class VerlCodemod(VisitorBasedCodemodCommand):
    """``edits`` is a JSON file: a list of tables, each with id, verb, file, symbol and fields."""

    DESCRIPTION = "Makes the edits of a verl recipe."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.add_argument("--edits", required=True)

    def __init__(self, context: CodemodContext, edits: str) -> None:
        super().__init__(context)
        with open(edits, encoding="utf-8") as file:
            every = json.load(file)
        self.edits = [edit for edit in every if (context.filename or "").endswith("/" + edit["file"])]
        self.path: list[str] = []

    def here(self, *verbs: str) -> Iterator[dict]:
        symbol = ".".join(self.path)
        return (edit for edit in self.edits if edit["verb"] in verbs and edit["symbol"] == symbol)

    def enter(self, name: str) -> bool:
        self.path.append(name)
        symbol = ".".join(self.path)
        return any((edit["symbol"] + ".").startswith(symbol + ".") for edit in self.edits)

    def imports(self) -> Iterator[tuple[str, str]]:
        """Module and name."""
        for edit in self.here("add_import"):
            _from, module, _import, name = edit["fields"]["add_import"].split()
            yield module, name

    def visit_Module(self, node: cst.Module) -> None:
        for module, name in self.imports():
            AddImportsVisitor.add_needed_import(self.context, module, name)

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return self.enter(node.name.value)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return self.enter(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.path.pop()
        return updated_node

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        for edit in self.here("add_method"):
            method = cst.parse_statement(edit["fields"]["add_method"])
            method = method.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
            block = updated_node.body
            updated_node = updated_node.with_changes(body=block.with_changes(body=[*block.body, method]))
        self.path.pop()
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        for edit in self.here("before", "after"):
            if m.matches(original_node.body[0], ANCHORS[edit["id"]]):
                inserted = cst.parse_module(edit["fields"]["insert"]).body
                both = [*inserted, updated_node] if edit["verb"] == "before" else [updated_node, *inserted]
                return cst.FlattenSentinel(both)
        return updated_node

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        for edit in self.here("with_item"):
            if m.matches(original_node, ANCHORS[edit["id"]]):
                last = updated_node.items[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
                item = cst.WithItem(cst.parse_expression(edit["fields"]["item"]))
                updated_node = updated_node.with_changes(items=[*updated_node.items[:-1], last, item])
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        for edit in self.here("set_argument"):
            if m.matches(original_node, ANCHORS[edit["id"]]):
                name, text = edit["fields"]["argument"].split("=", 1)
                updated_node = updated_node.with_changes(args=[_set(arg, name, text) for arg in updated_node.args])
        return updated_node


class LeanVerlCodemod(VerlCodemod):
    """Puts imports in front of the first one by hand, if they are not there; knows nothing of ``__future__`` or of aliases."""

    DESCRIPTION = "Makes the edits of a verl recipe, without AddImportsVisitor."

    def visit_Module(self, node: cst.Module) -> None:
        pass

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        added = [
            cst.parse_statement(f"from {module} import {name}")
            for module, name in self.imports()
            if not any(m.matches(line, _from_import(module, name)) for line in original_node.body)
        ]
        body = updated_node.body
        first = next(place for place, line in enumerate(body) if m.matches(line, IMPORT_LINE))
        return updated_node.with_changes(body=[*body[:first], *added, *body[first:]])


IMPORT_LINE = m.SimpleStatementLine([m.Import() | m.ImportFrom()])


def _from_import(module: str, name: str) -> m.SimpleStatementLine:
    alias = m.ImportAlias(m.Name(name), asname=None)
    return m.SimpleStatementLine([m.ImportFrom(m.Name(module), [m.ZeroOrMore(), alias, m.ZeroOrMore()])])


def _set(arg: cst.Arg, name: str, text: str) -> cst.Arg:
    if arg.keyword is None or arg.keyword.value != name:
        return arg
    return arg.with_changes(value=cst.parse_expression(text.replace("$ID", cst.Module([]).code_for_node(arg.value))))
