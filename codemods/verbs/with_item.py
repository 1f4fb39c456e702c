"""One more item in an existing ``with``: the last one, entered last and left first. Nothing is re-indented.

Where the items of a parenthesised `with` have lines of their own, the new one gets one, too.
"""

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
    start, end = site.parsed.span(node.items[-1])
    item = site.inline("item", end)
    if isinstance(node.lpar, cst.LeftParen) and _on_lines_of_their_own(site, start, end):
        comma = () if isinstance(node.items[-1].comma, cst.Comma) else (Splice(end, b"", b","),)
        line = site.source.indent_at(start) + item + b"," + site.source.newline_near(start)
        return Change((*comma, Splice(site.source.line_end(end), b"", line, lines=(0,))))
    return Change((Splice(end, b"", b", " + item),))


def _on_lines_of_their_own(site: Site, start: int, end: int) -> bool:
    """Whether the last item begins its line, and only a comma or a comment follows on the line where it ends."""
    text, source = site.source.text, site.source
    head = text[source.line_start(start) : start]
    tail = text[end : source.line_end(end)].lstrip(b" \t,")
    return not head.strip() and (not tail.strip() or tail.startswith(b"#"))


VERB = Verb(
    {
        "with_item": Field("pattern", "the `with` statement that gets one more item"),
        "item": Field("code", "the item: an expression, or `expression as name`", required=True),
    },
    change,
    STATEMENT,
)
