"""One expression gives way to another; in parentheses where it would mean something else without."""

from __future__ import annotations

from codemods.fields import Field
from codemods.inserted import same_syntax
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import EXPRESSION, Verb


def change(site: Site) -> Change:
    assert site.match is not None and site.match.expression is not None
    start, end = site.parsed.span(site.match.expression)
    code = site.inline("with", start)
    text, offset = site.around_expression()
    head, tail = text[: start - offset], text[end - offset :]
    plain, safe = (head + new + tail for new in (code, b"(" + code + b")"))
    if not same_syntax(plain.decode("utf-8"), safe.decode("utf-8")):
        code = b"(" + code + b")"
    return Change((Splice(start, site.source.text[start:end], code),))


VERB = Verb(
    {
        "replace_expression": Field("pattern", "the expression to replace"),
        "with": Field("code", "the expression that stands there instead; captured holes may be used", required=True),
    },
    change,
    EXPRESSION,
)
