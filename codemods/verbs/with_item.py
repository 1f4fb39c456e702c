"""One more item in an existing ``with``: the last one, entered last and left first. Nothing is re-indented."""

from __future__ import annotations

import libcst as cst

from codemods.fields import Field
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import STATEMENT, Verb
from locales import _


def change(site: Site) -> Change:
    node = site.first.node
    if not isinstance(node, cst.With) or len(site.match.statements if site.match else ()) != 1:
        raise site.refuse(_("the pattern of `with_item` has to be one `with` statement"))
    end = site.parsed.span(node.items[-1])[1]
    return Change((Splice(end, b"", b", " + site.inline("item", end)),))


VERB = Verb(
    {
        "with_item": Field("pattern", "the `with` statement that gets one more item"),
        "item": Field("code", "the item: an expression, or `expression as name`", required=True),
    },
    change,
    STATEMENT,
)
