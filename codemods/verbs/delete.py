"""Statements go away with their own trailing comment; comments and blank lines above stay. A block left empty gets ``pass``."""

from __future__ import annotations

from codemods.fields import Field
from codemods.scope import flat
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import STATEMENT, Verb


def change(site: Site) -> Change:
    first, last = site.first, site.last
    text = site.source.text
    start, end = site.extent()
    block = flat(first.block, first.owner, first.depth)
    count = len(site.match.statements) if site.match else 0
    if count == len(block) and first.owner is not None:
        return Change((Splice(start, text[start:end], b"pass"),))
    if last.column + 1 < last.siblings:
        following = next(s for s in block if s.row == last.row and s.column == last.column + 1)
        end = site.parsed.span(following.node)[0]
    elif first.column:
        previous = next(s for s in block if s.row == first.row and s.column == first.column - 1)
        start = site.parsed.span(previous.node)[1]
    else:
        start, end = site.statement_start(first), site.source.line_end(end)
    return Change((Splice(start, text[start:end], b""),))


VERB = Verb({"delete": Field("pattern", "the statements to delete")}, change, STATEMENT)
