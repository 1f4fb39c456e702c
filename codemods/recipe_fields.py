"""The keys of a recipe file, declared once for the reader and for the JSON Schema."""

from __future__ import annotations

from codemods.fields import Field
from codemods.verbs import VERBS

SELECT = {
    "nth": Field("integer", "the n-th definition of that name, from 1"),
    "decorator": Field("text", "the definition with this decorator, without its @; `none`: without any"),
    "branch": Field(
        "choice",
        "the branch it stands in",
        choices=("if", "else", "try", "except", "finally", "for", "while", "with", "case"),
    ),
}
PLACE = {
    "file": Field("text", "path in the checkout, from the folder that holds the package"),
    "in": Field(
        "text", "qualified name of the function or class, nested ones included; without it: the module's own statements"
    ),
    "select": Field("table", "which of several definitions of one name", fields=SELECT),
    "nth": Field("integer", "the n-th of exactly `expect` matches, from 1"),
    "expect": Field("integer", "how many matches there have to be; 1 when not given"),
}
VERB_KEYS: dict[str, Field] = {
    key: Field(item.kind, item.help, False, item.fields, item.choices)
    for verb in VERBS.values()
    for key, item in verb.keys.items()
}
ALTERNATIVE = PLACE | VERB_KEYS
EDIT = {
    "id": Field("text", "the edit's name, unique in the recipe", required=True),
    "why": Field("text", "what this edit is for; shown in the diff"),
    **PLACE,
    "versions": Field("version", "only for these versions of the framework (PEP 440)"),
    "any_of": Field("tables", "variants of the place: exactly one has to match", fields=ALTERNATIVE),
    "marker": Field("flag", "false: no marker comment behind the inserted lines"),
    **VERB_KEYS,
}
PARAMETER = {
    "type": Field("choice", "what the value is", required=True, choices=("path", "text", "int", "bool", "choice")),
    "env": Field("text", "the environment variable that wins at run time", required=True),
    "default": Field("value", "the value when neither --set nor the environment gives one"),
    "choices": Field("texts", "the values a choice may have"),
    "help": Field("text", "what it is for", required=True),
}
REQUIREMENT = {
    "file": Field("text", "path in the checkout", required=True),
    "symbol": Field("text", "qualified name that has to be there"),
    "has": Field("pattern", "statements that the symbol (or the module) has to hold"),
    "why": Field("text", "what this shows"),
}
EXAMPLE = {
    "edits": Field("texts", "the edits that the example is about, all of one file", required=True),
    "version": Field("text", "the version for which edits with `versions` are chosen"),
    "before": Field("code", "the file, or as much of it as the edits need"),
    "after": Field("code", "what `before` becomes"),
    "unchanged": Field("code", "a file that the edits leave as it is (their `versions` exclude the example's)"),
    "no_match": Field("code", "a file in which the edits do not find their place"),
    "message": Field("text", "words that the finding about `no_match` holds"),
}
RECIPE = {
    "recipe": Field("text", "the recipe's id", required=True),
    "framework": Field("text", "the framework it is for", required=True),
    "side": Field("choice", "train or infer", required=True, choices=("train", "infer")),
    "versions": Field("version", "versions of the framework (PEP 440), in quotes", required=True),
    "why": Field("text", "what the recipe is for", required=True),
    "upstream": Field("text", "where the framework has this itself, if anywhere"),
    "remove_when": Field("text", "when the recipe is no longer needed"),
    "verified": Field("texts", "versions on whose real sources it was tried"),
    "order": Field("integer", "smaller comes first where two recipes insert at the same place; 0 when not given"),
    "alternative": Field(
        "table",
        "one of several recipes that exclude each other",
        fields={
            "group": Field("text", "the name that the excluding recipes share", required=True),
            "default": Field("version", "versions in which the framework itself takes this way", required=True),
            "because": Field("text", "how one knows", required=True),
        },
    ),
    "requires": Field("tables", "what the tree has to hold, besides its declared version", fields=REQUIREMENT),
    "parameters": Field("mapping", "values of a run", fields=PARAMETER),
    "switches": Field("texts", "environment variables that the inserted code reads"),
    "include": Field("texts", "fragments (`_name.yaml` beside the recipe) whose edits come first"),
    "notes": Field("texts", "sentences shown with the diff"),
    "edits": Field("tables", "the edits", required=True, fields=EDIT),
    "examples": Field("tables", "small files with what the edits make of them: `recipe test`", fields=EXAMPLE),
}
FRAGMENT = {
    "fragment": Field("text", "the fragment's name", required=True),
    "edits": Field("tables", "the edits", required=True, fields=EDIT),
    "examples": Field("tables", "small files with what the edits make of them: `recipe test`", fields=EXAMPLE),
}
