"""One more item in an existing ``with``: the last one, entered last and left first. Nothing is re-indented.

Where the items of a parenthesised `with` have lines of their own, the new one gets one, too. A call that would make the file's
longest line has its arguments on a line of their own.
"""

from __future__ import annotations

import ast

import libcst as cst

from codemods.fields import Field
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import STATEMENT, Verb
from locales import _

_LONG = 100  # characters


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
    return Change((_on_the_line(site, b", " + item, end),))


def _on_the_line(site: Site, text: bytes, end: int) -> Splice:
    """Broken as black does for Pythons that know no parenthesised `with`."""
    source = site.source
    line = source.text[source.line_start(end) : source.line_end(end)].rstrip() + text
    longest = max(map(_columns, source.text.split(b"\n")))
    span = _arguments(text)
    if span is None or _columns(line) <= max(_LONG, longest):
        return Splice(end, b"", text)
    newline, indent = source.newline_near(end), source.indent_at(end)
    parts = (
        text[: span[0]] + newline,
        indent + site.unit(site.first) + text[slice(*span)] + newline,
        indent + text[span[1] :],
    )
    return Splice(end, b"", b"".join(parts), lines=(len(parts[0]), len(parts[0] + parts[1])))


def _columns(line: bytes) -> int:
    """The line's width, a tab being one indentation of four."""
    return len(line.rstrip().decode("utf-8").expandtabs(4))


def _arguments(text: bytes) -> tuple[int, int] | None:
    """From where to where the arguments stand in `, item`; None when it is no call with arguments, or has several lines."""
    try:
        statement = ast.parse(b"with a" + text + b": pass").body[0]
    except SyntaxError:
        return None
    call = statement.items[-1].context_expr if isinstance(statement, ast.With) else None
    if not isinstance(call, ast.Call) or not (call.args or call.keywords) or b"\n" in text:
        return None
    opening = text.index(b"(", (call.func.end_col_offset or 0) - len("with a"))
    return opening + 1, (call.end_col_offset or 0) - len("with a") - 1


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
