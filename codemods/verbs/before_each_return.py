"""Code before every ``return`` of a function, not of functions nested in it."""

from __future__ import annotations

import libcst as cst

from codemods.fields import Field
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import FUNCTION, Verb
from locales import _


def change(site: Site) -> Change:
    if site.parsed.is_generator:
        raise site.refuse(
            _("a generator is left without a `return`, too; the code would not run on every way out"), _start(site)
        )
    returns = [
        statement for block in site.parsed.blocks for statement in block if isinstance(statement.node, cst.Return)
    ]
    if not returns:
        raise site.refuse(_("the function has no `return`"), _start(site), _("use `body_end` or `around_body`"))
    splices: list[Splice] = []
    for statement in returns:
        start = site.parsed.span(statement.node)[0]
        text = site.lines(site.fields["before_each_return"], site.indent(statement), site.unit(statement), start)
        splices += site.before(statement, text)
    return Change(tuple(dict.fromkeys(splices)))


def _start(site: Site) -> int:
    assert site.parsed.node is not None
    return site.parsed.span(site.parsed.node)[0]


VERB = Verb(
    {"before_each_return": Field("code", "code before every return of the function")}, change, scopes=(FUNCTION,)
)
