"""Code that a recipe inserts, read before any tree is: does it parse where its verb puts it, whatever the holes capture?"""

from __future__ import annotations

import ast

from codemods.inserted import ARGUMENT, EXPRESSION, ITEM
from codemods.layout import SnippetError
from codemods.nesting import syntax
from codemods.parsing import UnparsableError, parse_snippet
from codemods.pattern import holes_in, substitute
from locales import _

_HOLE = "__probepatch_hole__"
_FRAMES = {  # by verb and key; statements else
    ("with_item", "item"): ITEM,
    ("set_argument", "argument"): ARGUMENT,
    ("replace_expression", "with"): EXPRESSION,
    ("decorator", "decorator"): "@{}\ndef f(): pass",
}
_BLOCK = "if 1:\n"  # above code with a margin of its own
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def check_snippet(verb: str, key: str, code: str) -> None:
    """Raises SnippetError for code that is no Python in its place. Syntax newer than the running Python's is left to LibCST."""
    text = substitute(code.strip("\n"), {hole[1:]: _HOLE for hole in holes_in(code)})
    frame = _FRAMES.get((verb, key), "")
    if frame:
        text = text.strip().removeprefix("@") if verb == "decorator" else text.strip()
    elif text[:1] in (" ", "\t"):
        frame = _BLOCK + "{}"
    whole = f"{frame.replace('{}', text) if frame else text}\n"
    what = _("this is no Python code for `{key}`").format(key=key)
    try:
        body = syntax(whole).body
    except SyntaxError as error:
        if not _newer_syntax(whole):
            row = (error.lineno or 1) - whole[: whole.find(text)].count("\n")
            raise SnippetError(what, why=_why(error.msg, code.strip("\n").splitlines(), row)) from error
        return
    except (ValueError, RecursionError, MemoryError) as error:
        raise SnippetError(what, why=str(error)) from error
    _check_kind(verb, body)


def _newer_syntax(text: str) -> bool:
    try:
        parse_snippet(text)
    except UnparsableError:
        return False
    return True


def _why(reason: str, lines: list[str], row: int) -> str:
    row = min(max(row, 1), len(lines))
    text = _("line {line} of the code, `{code}`: {reason}")
    return text.format(line=row, code=lines[row - 1].strip()[:160], reason=reason)


def _check_kind(verb: str, body: list[ast.stmt]) -> None:
    """What single verbs ask for, beyond syntax."""
    first = body[0] if len(body) == 1 else None
    if verb in ("add_method", "add_function") and not isinstance(first, _FUNCTIONS):
        raise SnippetError(_("the code to add has to be one function"))
    if verb == "add_import" and not isinstance(first, _IMPORTS):
        raise SnippetError(_("`add_import` takes one import statement"))
    if verb == "set_argument" and not _one_keyword(first):
        raise SnippetError(_("`argument` has to be one `name=expression`"))


def _one_keyword(call: ast.stmt | None) -> bool:
    value = call.value if isinstance(call, ast.Expr) else None
    return isinstance(value, ast.Call) and len(value.keywords) == 1 and not value.args and bool(value.keywords[0].arg)
