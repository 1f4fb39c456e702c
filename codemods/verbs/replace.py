"""Statements give way to other statements; the comments above and behind stay."""

from __future__ import annotations

import libcst as cst

from codemods.fields import Field
from codemods.layout import SnippetError
from codemods.parsing import UnparsableError, parse_snippet
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import STATEMENT, Verb
from locales import _


def _fits_on_line(code: str) -> bool:
    try:
        module = parse_snippet(code.strip())
    except UnparsableError as error:
        raise SnippetError(_("the code of `with` cannot be parsed"), why=str(error)) from error
    return "\n" not in code.strip() and len(module.body) == 1 and isinstance(module.body[0], cst.SimpleStatementLine)


def change(site: Site) -> Change:
    first, last = site.first, site.last
    start, end = site.extent()
    code = site.field("with")
    removed = site.source.text[start:end]
    shares_line = first.siblings > 1 or first.suite_on_line or last.siblings > 1
    if _fits_on_line(code):
        return Change((Splice(start, removed, site.inline("with", start)),))
    splices: list[Splice] = []
    indent = site.indent(first)
    text = site.lines(code, indent, site.unit(first), start)
    if shares_line:
        splices += site.alone(first, last)
    data = text.data.removeprefix(indent)
    shift = len(text.data) - len(data)
    newline = site.source.newline_near(start)
    lines = tuple(line - shift for line in text.lines if line > shift)
    return Change((*splices, Splice(start, removed, data.removesuffix(newline), lines=lines)))


VERB = Verb(
    {
        "replace": Field("pattern", "the statements to replace"),
        "with": Field("code", "the code that stands there instead; captured holes may be used", required=True),
    },
    change,
    STATEMENT,
)
