"""One expression gives way to another."""

from __future__ import annotations

from codemods.fields import Field
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import EXPRESSION, Verb


def change(site: Site) -> Change:
    assert site.match is not None and site.match.expression is not None
    start, end = site.parsed.span(site.match.expression)
    return Change((Splice(start, site.source.text[start:end], site.inline("with", start)),))


VERB = Verb(
    {
        "replace_expression": Field("pattern", "the expression to replace"),
        "with": Field("code", "the expression that stands there instead; captured holes may be used", required=True),
    },
    change,
    EXPRESSION,
)
