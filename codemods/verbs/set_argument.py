"""A keyword argument of a call: its value is replaced when it is there, else it is added as the last argument."""

from __future__ import annotations

import re

import libcst as cst

from codemods.errors import InvalidError
from codemods.fields import Field
from codemods.nesting import syntax
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import EXPRESSION, Verb
from locales import _

_ARGUMENT = re.compile(r"\s*(\w+)\s*=(?!=)\s*(.+)", re.DOTALL)


def _one_keyword(argument: str) -> bool:
    try:
        call = syntax(f"f({argument})").body[0].value  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # newer syntax than this Python's; the compile check decides
    return len(call.keywords) == 1 and not call.args


def change(site: Site) -> Change:
    call = site.match.expression if site.match else None
    start = site.parsed.span(site.first.node)[0]
    argument = _ARGUMENT.fullmatch(site.inline("argument", start).decode("utf-8"))
    if argument is None:
        raise InvalidError(_("`argument` has to be `name=expression`"), why=site.fields["argument"])
    if not _one_keyword(argument.group()):
        raise InvalidError(_("`argument` has to be one `name=expression`"), why=site.fields["argument"])
    if not isinstance(call, cst.Call):
        raise site.refuse(_("the pattern of `set_argument` has to be a call"))
    name, value = argument.groups()
    for given in call.args:
        if given.keyword is not None and given.keyword.value == name:
            start, end = site.parsed.full_span(given.value)
            return Change((Splice(start, site.source.text[start:end], value.encode("utf-8")),))
    text = f"{name}={value}".encode()
    if not call.args:
        return Change((Splice(site.parsed.span(call)[1] - 1, b"", text),))
    if isinstance(call.args[0].value, cst.GeneratorExp) and len(call.args) == 1 and not call.args[0].value.lpar:
        raise site.refuse(_("a bare generator expression takes no second argument"))
    return Change((Splice(site.parsed.span(call.args[-1])[1], b"", b", " + text),))


VERB = Verb(
    {
        "set_argument": Field("pattern", "the call"),
        "argument": Field("code", "name=expression; captured holes may be used", required=True),
    },
    change,
    EXPRESSION,
)
