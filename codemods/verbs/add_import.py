"""An import: of a module behind its ``__future__`` imports, else above its first import; or at the start of a function.

One that is there already is not added again.
"""

from __future__ import annotations

import ast

from codemods.errors import InvalidError
from codemods.fields import Field
from codemods.outline import one_by_one
from codemods.scope import flat
from codemods.site import Change, Site
from codemods.verbs.body_start import at_body_start, module_splice, module_start
from codemods.verbs.verb import FUNCTION, MODULE, Verb
from locales import _


def _parsed(code: str) -> ast.Import | ast.ImportFrom:
    try:
        body = ast.parse(code.strip()).body
    except SyntaxError as error:
        raise InvalidError(_("the import cannot be parsed"), why=str(error)) from error
    if len(body) != 1 or not isinstance(body[0], (ast.Import, ast.ImportFrom)):
        raise InvalidError(_("`add_import` takes one import statement"), why=code)
    return body[0]


def _there(site: Site) -> set[str]:
    if site.definition is None:
        return set(site.outline.imports)
    texts = (site.parsed.code(statement.node).rstrip("; ") for statement in flat(site.parsed.body, site.parsed.node))
    return {one for text in texts if text.startswith(("import ", "from ")) for one in one_by_one(_parsed(text))}


def change(site: Site) -> Change:
    code = site.fields["add_import"].strip()
    if set(one_by_one(_parsed(code))) <= _there(site):
        return Change()
    if site.definition is None:
        marked = (
            f"{code}  # probepatch: import" if site.marker else code
        )  # the same text in every recipe, so that it is shared
        text = site.lines(marked, b"", b"    ", site.outline.prologue, marker=False)
        beside = site.outline.first_import
        if beside >= 0 and site.outline.prologue == site.outline.docstring:
            return Change((module_splice(site, beside, text.data, text.lines, shared=True),))
        return Change((module_start(site, text.data, text.lines, shared=True),))
    return Change(tuple(at_body_start(site, code)))


VERB = Verb({"add_import": Field("code", "the import statement")}, change, scopes=(FUNCTION, MODULE))
