"""Code behind a statement, its whole block included."""

from __future__ import annotations

from codemods.fields import Field
from codemods.site import Change, Site
from codemods.verbs.body_end import leaves
from codemods.verbs.verb import STATEMENT, Verb
from locales import _


def change(site: Site) -> Change:
    last = site.last
    if leaves(last.node):
        raise site.refuse(_("code behind this statement would never run"), todo=_("use `before` or `around`"))
    text = site.lines(site.field("insert"), site.indent(last), site.unit(last), site.parsed.span(last.node)[1])
    return Change(tuple(site.after(last, text)))


VERB = Verb(
    {
        "after": Field("pattern", "the statements behind which the code goes"),
        "insert": Field("code", "the code; captured holes may be used", required=True),
    },
    change,
    STATEMENT,
)
