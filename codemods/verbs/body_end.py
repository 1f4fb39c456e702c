"""Code at the end of a body. For a function it runs when the end is reached, not at a ``return``."""

from __future__ import annotations

import libcst as cst

from codemods.fields import Field
from codemods.scope import Statement, flat
from codemods.site import Change, Site
from codemods.splice import Splice, trailing
from codemods.verbs.verb import Verb
from locales import _

_LEAVES = (cst.Return, cst.Raise, cst.Continue, cst.Break)


def leaves(node: cst.CSTNode) -> bool:
    """Does control never come out behind this statement?"""
    return isinstance(node, _LEAVES)


def at_module_end(site: Site, code: str, blank_lines: int = 0) -> Splice:
    end = len(site.source.text)
    newline = site.source.newline_near(end)
    text = site.lines(code, b"", site.file_unit(), end)
    data = newline * blank_lines * bool(end) + text.data
    shift = len(data) - len(text.data)
    if end and not site.source.text.endswith(b"\n"):
        data, shift = newline + data.removesuffix(newline), shift + len(newline)
    return Splice(end, b"", data, rank=trailing(-1), lines=tuple(line + shift for line in text.lines))


def last_statement(site: Site) -> Statement:
    return flat(site.parsed.body, site.parsed.node)[-1]


def change(site: Site) -> Change:
    code = site.fields["body_end"]
    if site.definition is None:
        return Change((at_module_end(site, code),))
    last = last_statement(site)
    if leaves(last.node):
        raise site.refuse(
            _("code at the end of this body would never run"),
            site.parsed.span(last.node)[0],
            _("use `before_each_return` or `around_body`"),
        )
    text = site.lines(code, site.indent(last), site.unit(last), site.parsed.span(last.node)[1])
    return Change(tuple(site.after(last, text, trailing(last.depth, 2))))


VERB = Verb({"body_end": Field("code", "code at the end of the body")}, change)
