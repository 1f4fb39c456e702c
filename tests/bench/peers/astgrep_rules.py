"""The verl recipes' edits as ast-grep rules, one YAML document each."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML

from tests.bench.peers.edits import PeerEdit

Rule = dict[str, Any]


def rules_of(edits: Sequence[PeerEdit]) -> str:
    """The rule file."""
    documents: list[Rule] = []
    imports: Counter[str] = Counter()
    for edit in edits:
        imports[edit.file] += edit.verb == "add_import"
        rule, fix = _add_import(edit, imports[edit.file]) if edit.verb == "add_import" else _MADE[edit.verb](edit)
        files = [f"**/{edit.file}"]
        documents.append(
            {"id": edit.id, "language": "python", "severity": "hint", "files": files, "rule": rule, "fix": fix}
        )
    yaml = YAML()
    yaml.representer.ignore_aliases = lambda _data: True
    text = io.StringIO()
    yaml.dump_all(documents, text)
    return text.getvalue()


def _in_symbol(symbol: str) -> Rule:
    """Inside of the innermost definition, which stands inside of the one before it, and so on."""
    rule: Rule = {}
    for name in symbol.split("."):
        kinds = [{"kind": "class_definition"}, {"kind": "function_definition"}]
        named: Rule = {"any": kinds, "has": {"field": "name", "regex": f"^{name}$"}}
        rule = {"inside": {"stopBy": "end", **named, **rule}}
    return rule


def _add_import(edit: PeerEdit, position: int) -> tuple[Rule, str]:
    """Above the file's import of this position (two fixes at one place would drop one of them), unless it is there."""
    line = edit.fields["add_import"]
    _from, module, _import, name = line.split()
    there = {
        "kind": "import_from_statement",
        "all": [
            {"has": {"field": "module_name", "regex": f"^{re.escape(module)}$"}},
            {"has": {"field": "name", "regex": f"^{name}$"}},
        ],
    }
    imports = {"any": [{"kind": "import_statement"}, {"kind": "import_from_statement"}]}
    rule = [
        {"pattern": "$IMPORT"},
        imports,
        {"nthChild": {"position": position, "ofRule": imports}},
        {"inside": {"kind": "module", "not": {"has": there}}},
    ]
    return {"all": rule}, f"{line}\n$IMPORT"


def _add_method(edit: PeerEdit) -> tuple[Rule, str]:
    """Above the class's first decorated method. A fix behind the last method would have to put that method's lines in
    again, and would indent the blank ones in its docstring."""
    decorated = {"kind": "decorated_definition"}
    in_class = {"kind": "class_definition", "has": {"field": "name", "regex": f"^{edit.symbol}$"}}
    first = {"nthChild": {"position": 1, "ofRule": decorated}, "inside": {"kind": "block", "inside": in_class}}
    rule = [{"pattern": "$DECORATOR"}, {"kind": "decorator"}, {"nthChild": 1}, {"inside": {**decorated, **first}}]
    return {"all": rule}, edit.fields["add_method"].strip("\n") + "\n\n$DECORATOR"


def _statement(edit: PeerEdit) -> Rule:
    anchor = edit.fields[edit.verb].replace("...", "$$$")
    kinds = {"any": [{"kind": "expression_statement"}, {"kind": "return_statement"}]}
    return {
        "all": [
            {"pattern": "$HERE"},
            kinds,
            {"any": [{"pattern": anchor}, {"has": {"pattern": anchor}}]},
            _in_symbol(edit.symbol),
        ]
    }


def _before(edit: PeerEdit) -> tuple[Rule, str]:
    return _statement(edit), edit.fields["insert"].strip("\n") + "\n$HERE"


def _after(edit: PeerEdit) -> tuple[Rule, str]:
    return _statement(edit), "$HERE\n" + edit.fields["insert"].strip("\n")


def _with_item(edit: PeerEdit) -> tuple[Rule, str]:
    first = edit.fields["with_item"].removeprefix("with ").partition(",")[0].rstrip(":")
    item = {"has": {"kind": "with_item", "nthChild": 1, "regex": f"^{re.escape(first)}$"}}
    return {
        "all": [{"pattern": "$ITEMS"}, {"kind": "with_clause"}, item, _in_symbol(edit.symbol)]
    }, "$ITEMS, " + edit.fields["item"]


def _set_argument(edit: PeerEdit) -> tuple[Rule, str]:
    name, _eq, _value = edit.fields["argument"].partition("=")
    call = edit.fields["set_argument"].partition("(")[0]
    argument = {"pattern": {"context": f"f({name}=$ID)", "selector": "keyword_argument"}}
    inside = {
        "inside": {
            "kind": "argument_list",
            "inside": {"kind": "call", "has": {"field": "function", "regex": f"^{re.escape(call)}$"}},
        }
    }
    return {"all": [argument, inside, _in_symbol(edit.symbol)]}, edit.fields["argument"]


_MADE = {
    "add_method": _add_method,
    "before": _before,
    "after": _after,
    "with_item": _with_item,
    "set_argument": _set_argument,
}
