"""One more decorator, the innermost: it gets the function or class itself."""

from __future__ import annotations

from codemods.fields import Field
from codemods.site import Change, Site
from codemods.splice import Splice, leading
from codemods.verbs.verb import CLASS, FUNCTION, Verb


def change(site: Site) -> Change:
    node = site.parsed.node
    assert node is not None
    start = site.parsed.span(node)[0]
    text = site.lines(
        f"@{site.fields['decorator'].strip().removeprefix('@')}", site.source.indent_at(start), b"    ", start
    )
    return Change((Splice(site.source.line_start(start), b"", text.data, rank=leading(), lines=text.lines),))


VERB = Verb({"decorator": Field("code", "the decorator, with or without its @")}, change, scopes=(FUNCTION, CLASS))
