"""Code before a statement, above the comment that belongs to it."""

from __future__ import annotations

import libcst as cst

from codemods.fields import Field
from codemods.site import Change, Site
from codemods.verbs.body_start import is_docstring
from codemods.verbs.verb import STATEMENT, Verb
from locales import _


def change(site: Site) -> Change:
    first = site.first
    if first.row == 0 and first.column == 0 and first.depth == 0 and is_docstring(first.node):
        raise site.refuse(_("code before a docstring would take it away"), todo=_("use `body_start`"))
    if (
        isinstance(first.node, cst.ImportFrom)
        and first.node.module is not None
        and first.node.module.value == "__future__"
    ):
        raise site.refuse(_("nothing may stand before a `__future__` import"), todo=_("use `body_start`"))
    text = site.lines(site.field("insert"), site.indent(first), site.unit(first), site.parsed.span(first.node)[0])
    return Change(tuple(site.before(first, text)))


VERB = Verb(
    {
        "before": Field("pattern", "the statements before which the code goes"),
        "insert": Field("code", "the code; captured holes may be used", required=True),
    },
    change,
    STATEMENT,
)
