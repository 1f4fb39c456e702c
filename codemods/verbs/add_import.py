"""An import: of a module beside its kin, else above its first import; or at the start of a function.

One that is there already is not added again.
"""

from __future__ import annotations

import ast
import re

from codemods.errors import InvalidError
from codemods.fields import Field
from codemods.import_place import as_import, neighbour, same_section
from codemods.layout import Text
from codemods.outline import Import, one_by_one
from codemods.scope import flat
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.body_start import at_body_start, module_splice
from codemods.verbs.verb import FUNCTION, MODULE, Verb
from locales import _

_DEFINITION = re.compile(rb"@|class\b|(async[ \t]+)?def\b")
_OPENING_COMMENT = re.compile(rb"(?:[ \t\f]*\r?\n)*(?:[ \t\f]*#.*\n?)*")


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
    statement = _parsed(code)
    if set(one_by_one(statement)) <= _there(site):
        return Change()
    if site.definition is None:
        return Change((_of_module(site, as_import(statement), code),))
    return Change(tuple(at_body_start(site, code)))


def _of_module(site: Site, new: Import, code: str) -> Splice:
    """The same text at the same place in every recipe, so that it is shared."""
    offset, blank_above, blank_below = _place(site, new)
    marked = f"{code}  # probepatch: import" if site.marker else code
    text = site.lines(marked, b"", b"    ", offset, marker=False)
    blank = Text(site.source.newline_near(offset), ())
    before, after = site.source.text[:offset], site.source.text[offset : site.source.line_end(offset)]
    if blank_above and before and before[site.source.line_start(offset - 1) :].strip():
        text = blank + text
    if blank_below and after.strip():
        text = text + blank + (blank if _DEFINITION.match(after) else Text(b"", ()))
    return module_splice(site, offset, text.data, text.lines, shared=True)


def _place(site: Site, new: Import) -> tuple[int, bool, bool]:
    """An offset, and whether blank lines part the import from what is above and below.

    Where nothing is imported but from ``__future__``, it joins those.
    """
    outline = site.outline
    found = neighbour(new, outline.leading, site.source.text)
    if found is None and not outline.leading:
        return _below_head(site), outline.prologue == outline.docstring, True
    beside, behind = found or (outline.leading[0], False)
    if behind:
        return beside.end, False, False
    offset = site.comment_above(beside.start)
    return offset, beside is outline.leading[0], offset < beside.start or not (found or same_section(new, beside))


def _below_head(site: Site) -> int:
    """The offset behind docstring and ``__future__`` imports, else behind the file's opening comment."""
    found = _OPENING_COMMENT.match(site.source.text)
    return site.outline.prologue or (found.end() if found else 0)


VERB = Verb({"add_import": Field("code", "the import statement")}, change, scopes=(FUNCTION, MODULE))
