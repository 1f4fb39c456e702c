"""Code at the start of a body: after the docstring; for a module after the ``__future__`` imports, too.

In a generator the code runs when the iteration begins.
"""

from __future__ import annotations

import libcst as cst

from codemods.fields import Field
from codemods.scope import flat
from codemods.site import Change, Site
from codemods.splice import Splice, leading, trailing
from codemods.verbs.verb import Verb


def is_docstring(node: cst.CSTNode) -> bool:
    """Is this first statement a docstring (a string that is neither bytes nor an f-string)?"""
    if not isinstance(node, cst.Expr) or not isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString)):
        return False
    return isinstance(node.value.evaluated_value, str)


def at_body_start(site: Site, code: str) -> list[Splice]:
    if site.definition is None:
        text = site.lines(code, b"", site.file_unit(), site.outline.prologue)
        return [_module_start(site, text.data, text.lines)]
    first = flat(site.parsed.body, site.parsed.node)[0]
    text = site.lines(code, site.indent(first), site.unit(first), site.parsed.span(first.node)[0])
    if is_docstring(first.node):
        return site.after(first, text, trailing(0, 0))
    if first.suite_on_line:
        return site.before(first, text, leading(-1))
    return [Splice(site.first_line(), b"", text.data, rank=leading(-1), lines=text.lines)]


def _module_start(site: Site, data: bytes, lines: tuple[int, ...]) -> Splice:
    """After docstring and ``__future__`` imports, else before the first statement, below the file's opening comments."""
    source, outline = site.source, site.outline
    start = outline.prologue
    if not start:
        firsts = [*(begin for begin, _end in outline.stretches[:1]), *(d.start for d in outline.definitions[:1])]
        start = min(firsts, default=len(source.text))
    return module_splice(site, start, data, lines)


def module_splice(site: Site, start: int, data: bytes, lines: tuple[int, ...], shared: bool = False) -> Splice:
    """Whole lines at the head of a line of the module, or behind its end."""
    source = site.source
    if start == len(source.text) and start > 0 and not source.text.endswith(b"\n"):
        newline = source.newline_near(start)
        data = newline + data.removesuffix(newline)
        lines = tuple(line + len(newline) for line in lines)
    return Splice(start, b"", data, shared=shared, rank=(0, 1, 0), lines=lines)


def change(site: Site) -> Change:
    return Change(tuple(at_body_start(site, site.fields["body_start"])))


VERB = Verb({"body_start": Field("code", "code at the start of the body, after the docstring")}, change)
