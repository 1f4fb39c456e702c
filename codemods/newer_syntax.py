"""Child process: outline, with LibCST, a file that this interpreter's ``ast`` cannot read.

UTF-8 text on standard input, the outline as JSON on standard output. LibCST may die of deep nesting; then only this process does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from codemods.outline import AMONG_IMPORTS, Definition, Outline, Row, leading_imports, to_json

_BRANCHES = {"If": "if", "Else": "else", "For": "for", "While": "while", "With": "with", "Try": "try", "TryStar": "try"}
_BRANCHES |= {"ExceptHandler": "except", "ExceptStarHandler": "except", "Finally": "finally", "MatchCase": "case"}


class _Outliner(cst.CSTVisitor):
    def __init__(self, text: bytes, wrapper: MetadataWrapper) -> None:
        super().__init__()
        self.spans = wrapper.resolve(ByteSpanPositionProvider)
        self.text = text
        self.module = wrapper.module
        self.names: list[str] = []
        self.branches: list[str] = [""]
        self.found: list[Definition] = []

    def lines_of(self, node: cst.CSTNode) -> tuple[int, int]:
        span = self.spans[node]
        end = self.text.find(b"\n", span.start + span.length)
        return self.text.rfind(b"\n", 0, span.start) + 1, len(self.text) if end < 0 else end + 1

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self.names.append(node.name.value)
            start, end = self.lines_of(node)
            line = self.text.count(b"\n", 0, start) + 1
            if node.decorators:
                start = self.lines_of(node.decorators[0])[0]
            kind = "class" if isinstance(node, cst.ClassDef) else "function"
            if isinstance(node, cst.FunctionDef) and node.asynchronous:
                kind = "async function"
            decorators = tuple(self.module.code_for_node(item.decorator) for item in node.decorators)
            self.found.append(Definition(".".join(self.names), kind, start, end, line, decorators, self.branches[-1]))
            self.branches.append("")
        elif type(node).__name__ in _BRANCHES:
            self.branches.append(_BRANCHES[type(node).__name__])
        return not isinstance(node, (cst.BaseExpression, cst.BaseSmallStatement))

    def on_leave(self, node: cst.CSTNode) -> None:
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self.names.pop()
            self.branches.pop()
        elif type(node).__name__ in _BRANCHES:
            self.branches.pop()


def _import_texts(module: cst.Module, line: cst.SimpleStatementLine) -> list[str]:
    texts: list[str] = []
    for small in line.body:
        if isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
            origin = "." * len(small.relative) + (module.code_for_node(small.module) if small.module else "")
            texts += [
                f"from {origin} import {module.code_for_node(a.with_changes(comma=cst.MaybeSentinel.DEFAULT))}"
                for a in small.names
            ]
        elif isinstance(small, cst.Import):
            texts += [
                f"import {module.code_for_node(a.with_changes(comma=cst.MaybeSentinel.DEFAULT))}" for a in small.names
            ]
    return texts


def _is_docstring(line: cst.SimpleStatementLine) -> bool:
    first = line.body[0]
    return isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString))


def _is_future(line: cst.SimpleStatementLine) -> bool:
    first = line.body[0]
    return isinstance(first, cst.ImportFrom) and first.module is not None and first.module.value == "__future__"


def _prologue(outliner: _Outliner) -> tuple[int, int]:
    """The outline's ``docstring`` and ``prologue``."""
    docstring = prologue = 0
    for place, node in enumerate(outliner.module.body):
        _start, end = outliner.lines_of(node)
        if place == 0 and isinstance(node, cst.SimpleStatementLine) and _is_docstring(node):
            docstring = prologue = end
        elif isinstance(node, cst.SimpleStatementLine) and _is_future(node):
            prologue = end
        else:
            break
    return docstring, prologue


def _rows(outliner: _Outliner) -> Iterator[Row]:
    for node in outliner.module.body:
        if type(node).__name__ not in AMONG_IMPORTS:
            yield *outliner.lines_of(node), _head(outliner.module, node)


def _head(module: cst.Module, node: cst.CSTNode) -> tuple[str, bool] | None:
    if not isinstance(node, cst.SimpleStatementLine):
        return None
    if not all(isinstance(small, (cst.Import, cst.ImportFrom)) for small in node.body):
        return None
    first = node.body[0]
    if isinstance(first, cst.Import):
        return module.code_for_node(first.names[0].name), True
    assert isinstance(first, cst.ImportFrom)
    return "." * len(first.relative) + (module.code_for_node(first.module) if first.module else ""), False


def _stretches(outliner: _Outliner) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    fresh = True
    for node in outliner.module.body:
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            fresh = True
            continue
        start, end = outliner.lines_of(node)
        if fresh:
            found.append((start, end))
        else:
            found[-1] = (found[-1][0], end)
        fresh = False
    return found


def _outline(text: bytes) -> Outline:
    module = cst.parse_module(text.decode("utf-8"))
    outliner = _Outliner(text, MetadataWrapper(module, unsafe_skip_copy=True))
    module.visit(outliner)
    docstring, prologue = _prologue(outliner)
    lines = [node for node in module.body if isinstance(node, cst.SimpleStatementLine)]
    imports = [one for line in lines for one in _import_texts(module, line)]
    leading = tuple(leading_imports(_rows(outliner), prologue, text))
    return Outline(tuple(outliner.found), docstring, prologue, tuple(_stretches(outliner)), tuple(imports), leading)


if __name__ == "__main__":
    try:
        print(json.dumps(to_json(_outline(sys.stdin.buffer.read()))))
    except Exception as error:  # noqa: BLE001 - whatever LibCST raises (TypeError, too) means: not read
        version = getattr(cst, "__version__", "") or getattr(getattr(cst, "_version", None), "version", "")
        if not version:
            from importlib.metadata import version as installed

            version = installed("libcst")
        detail = " ".join(str(error).split())[:300]
        print(f"libcst {version}: {type(error).__name__}: {detail}", file=sys.stderr)
        sys.exit(1)
