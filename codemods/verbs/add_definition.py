"""A method or an attribute for a class, a function for a module. A name that is there already is refused."""

from __future__ import annotations

import libcst as cst

from codemods.errors import InvalidError
from codemods.fields import Field
from codemods.layout import Text
from codemods.parsing import UnparsableError, parse_snippet
from codemods.scope import flat
from codemods.site import Change, Site
from codemods.splice import trailing
from codemods.verbs.body_end import at_module_end, last_statement
from codemods.verbs.body_start import at_body_start
from codemods.verbs.verb import CLASS, MODULE, Verb
from locales import _


def _function_name(code: str) -> str:
    try:
        body = parse_snippet(code.strip("\n") + "\n").body
    except UnparsableError as error:
        raise InvalidError(_("the code to add cannot be parsed"), why=str(error)) from error
    if len(body) != 1 or not isinstance(body[0], cst.FunctionDef):
        raise InvalidError(_("the code to add has to be one function"))
    return body[0].name.value


def _refuse_twin(site: Site, name: str) -> None:
    for twin in site.outline.named(name):
        raise site.refuse(_("`{name}` is there already").format(name=name), twin.start)


def method(site: Site) -> Change:
    """Behind the class's last line. Only a class without any method has to be parsed for its indentation."""
    assert site.definition is not None
    code = site.fields["add_method"]
    _refuse_twin(site, f"{site.definition.qualname}.{_function_name(code)}")
    first = next(
        (d for d in site.outline.definitions if d.qualname.rpartition(".")[0] == site.definition.qualname), None
    )
    end = site.definition.end - 1
    newline = Text(site.source.newline_near(end), ())
    if first is not None:
        indent, outer = site.source.indent_at(first.start), site.source.indent_at(site.definition.start)
        text = newline + site.lines(code, indent, indent.removeprefix(outer), end)
        return Change((site.at_line_end(end, text, trailing(0, 2)),))
    last = last_statement(site)
    text = newline + site.lines(code, site.indent(last), site.unit(last), end)
    return Change(tuple(site.after(last, text, trailing(last.depth, 2))))


def function(site: Site) -> Change:
    code = site.fields["add_function"]
    _refuse_twin(site, _function_name(code))
    return Change((at_module_end(site, code, blank_lines=2),))


def attribute(site: Site) -> Change:
    name = site.fields["add_attribute"].partition("=")[0].partition(":")[0].strip()
    for statement in flat(site.parsed.body, site.parsed.node):
        targets = getattr(statement.node, "targets", None) or [statement.node]
        if any(getattr(getattr(t, "target", None), "value", None) == name for t in targets):
            raise site.refuse(_("`{name}` is there already").format(name=name), site.parsed.span(statement.node)[0])
    return Change(tuple(at_body_start(site, site.fields["add_attribute"])))


METHOD = Verb({"add_method": Field("code", "the method, at the end of the class")}, method, scopes=(CLASS,))
FUNCTION_ = Verb({"add_function": Field("code", "the function, at the end of the module")}, function, scopes=(MODULE,))
ATTRIBUTE = Verb(
    {"add_attribute": Field("code", "`name = value`, at the start of the class")}, attribute, scopes=(CLASS,)
)
