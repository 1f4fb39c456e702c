"""Statements in a ``try`` … ``finally``: nothing is moved, every line gets one more indent."""

from __future__ import annotations

import libcst as cst

from codemods.fields import Field
from codemods.layout import SnippetError
from codemods.parsing import UnparsableError, parse_snippet
from codemods.scope import blocks, holds_yield
from codemods.site import Change, Site
from codemods.verbs.body_start import is_docstring
from codemods.verbs.verb import STATEMENT, Verb
from locales import _

ENTER = Field("code", "code right before the try")
FINALLY = Field("code", "code that runs on every way out", required=True)


def checked_final(code: str) -> str:
    """The code of a ``finally``; one that leaves it would swallow results and exceptions."""
    try:
        module = parse_snippet(code)
    except UnparsableError as error:
        raise SnippetError(_("the code of `finally` cannot be parsed"), why=str(error)) from error
    if any(
        isinstance(statement.node, (cst.Return, cst.Break, cst.Continue))
        for block in blocks(module)
        for statement in block
    ):
        raise SnippetError(_("the code of `finally` must not return, break or continue: it would swallow exceptions"))
    return code


def change(site: Site) -> Change:
    statements = site.match.statements if site.match else ()
    for statement in statements:
        if holds_yield(statement.node):
            raise site.refuse(_("the statement yields: `finally` would wait for whoever iterates"))
    if is_docstring(statements[0].node) and statements[0].depth == 0 and statements[0].row == 0:
        raise site.refuse(_("a docstring inside `try` is none any more"), todo=_("use `around_body`"))
    return site.around(
        statements, site.fields.get("enter", "") and site.field("enter"), checked_final(site.field("finally"))
    )


VERB = Verb(
    {"around": Field("pattern", "the statements that go into the try"), "enter": ENTER, "finally": FINALLY},
    change,
    STATEMENT,
)
