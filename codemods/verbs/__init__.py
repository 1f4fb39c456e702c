"""The verbs of the recipe language, one small file each."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.verbs import (
    add_definition,
    add_file,
    add_import,
    after,
    around,
    around_body,
    before,
    before_each_return,
    body_end,
    body_start,
    decorator,
    delete,
    replace,
    replace_expression,
    set_argument,
    with_item,
)
from codemods.verbs.verb import Verb

VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        body_start.VERB,
        body_end.VERB,
        before.VERB,
        after.VERB,
        before_each_return.VERB,
        around.VERB,
        around_body.VERB,
        with_item.VERB,
        decorator.VERB,
        replace.VERB,
        replace_expression.VERB,
        delete.VERB,
        set_argument.VERB,
        add_definition.METHOD,
        add_definition.FUNCTION_,
        add_definition.ATTRIBUTE,
        add_import.VERB,
        add_file.VERB,
    )
}
