"""The whole body of a function, but its docstring, in a ``try`` … ``finally``."""

from __future__ import annotations

from codemods.fields import Field
from codemods.scope import flat
from codemods.site import Change, Site
from codemods.verbs.around import ENTER, FINALLY, checked_final
from codemods.verbs.body_start import is_docstring
from codemods.verbs.verb import FUNCTION, Verb
from locales import _


def change(site: Site) -> Change:
    statements = flat(site.parsed.body, site.parsed.node)
    if site.parsed.is_generator:
        raise site.refuse(_("the function is a generator: `finally` would wait for whoever iterates"), _place(site))
    if is_docstring(statements[0].node):
        statements = statements[1:]
    if not statements:
        raise site.refuse(_("the function has nothing but a docstring"), _place(site))
    return site.around(statements, site.fields.get("enter", ""), checked_final(site.fields["finally"]))


def _place(site: Site) -> int:
    assert site.parsed.node is not None
    return site.parsed.span(site.parsed.node)[0]


VERB = Verb(
    {
        "around_body": Field(
            "table", "enter and finally for the whole body", fields={"enter": ENTER, "finally": FINALLY}
        ),
    },
    change,
    scopes=(FUNCTION,),
)
