"""A file of ``recipes/payloads``, put into the checkout with its parameters filled in. The edit's ``file`` is its path there."""

from __future__ import annotations

from codemods.fields import Field
from codemods.site import Change, Site
from codemods.splice import Splice
from codemods.verbs.verb import MODULE, Verb


def change(site: Site) -> Change:
    return Change((Splice(0, b"", site.fields["add_file"].encode("utf-8"), shared=True),))


VERB = Verb({"add_file": Field("text", "the payload's name in recipes/payloads")}, change, scopes=(MODULE,))
