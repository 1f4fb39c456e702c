"""How one side names and fuses its tensors, as data: a YAML file that brings its names to those of a plain checkpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import UsageError
from codemods.fields import Field
from codemods.yamlfile import Located, RecipeError, read_yaml
from locales import _

SHIPPED = Path(__file__).with_name("rules")
LAYOUTS = ("concat", "qkv", "gqa", "experts")
"""concat: the parts below one another, as ``sizes`` says, or equal ones. qkv: the same in heads, where a few key and value heads
may be on several ranks. gqa: for each group of heads its queries, its key, its value. experts: the first dimension counts
experts, and each expert is split like concat."""

_FIELDS: Mapping[str, Field] = {
    "names": Field("text", _("the name of this set of rules"), required=True),
    "why": Field("text", _("what it is for")),
    "strip": Field("texts", _("text that is taken out of every name")),
    "rename": Field(
        "tables",
        _("names that stand for one whole tensor; the first that matches"),
        fields={
            "from": Field("text", _("the side's name: {word} is one part, {word...} several"), required=True),
            "to": Field("text", _("the plain name"), required=True),
        },
    ),
    "split": Field(
        "tables",
        _("fused tensors"),
        fields={
            "from": Field("text", _("the side's name"), required=True),
            "to": Field("texts", _("the plain names of its parts, in their order"), required=True),
            "layout": Field("choice", _("how the parts lie"), required=True, choices=LAYOUTS),
            "sizes": Field("texts", _("numbers of the model's config, one for each part; sums with +")),
        },
    ),
    "join": Field(
        "tables",
        _("tensors cut for tensor parallelism, where the inventory does not tell"),
        fields={
            "match": Field("text", _("the side's name, with *"), required=True),
            "dim": Field("integer", _("the dimension"), required=True),
        },
    ),
    "vocab": Field("texts", _("plain names whose first dimension is the vocabulary, with *")),
    "ignore": Field("texts", _("names that are not compared, with *; each is listed")),
    "ignore_alone": Field("texts", _("likewise, where only one side has them: what both have is compared")),
}
_PART = re.compile(r"\{([a-z]+)(\.\.\.)?\}")


@dataclass(frozen=True)
class Split:
    """``sizes`` are texts: numbers of the config, or sums of them; empty for equal parts."""

    pattern: re.Pattern[str]
    to: tuple[str, ...]
    layout: str
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class Rules:
    name: str
    strip: tuple[str, ...] = ()
    rename: tuple[tuple[re.Pattern[str], str], ...] = ()
    split: tuple[Split, ...] = ()
    join: tuple[tuple[str, int], ...] = ()
    vocab: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    ignore_alone: tuple[str, ...] = ()


def load_rules(name: str) -> Rules:
    """Rules by their shipped name, or from a file. Raises UsageError, RecipeError."""
    path = SHIPPED / f"{name}.yaml" if re.fullmatch(r"[a-z0-9_-]+", name) else Path(name)
    if not os.path.isfile(path):
        known = ", ".join(sorted(one.stem for one in SHIPPED.glob("*.yaml")))
        raise UsageError(
            _("there are no rules `{name}`").format(name=name), todo=_("known: {names}; or a file").format(names=known)
        )
    data = read_yaml(path, _FIELDS)
    return Rules(
        data["names"],
        tuple(data.get("strip", ())),
        tuple((_pattern(one, one["from"], (one["to"],)), one["to"]) for one in data.get("rename", ())),
        tuple(_split(one) for one in data.get("split", ())),
        tuple((one["match"], one["dim"]) for one in data.get("join", ())),
        tuple(data.get("vocab", ())),
        tuple(data.get("ignore", ())),
        tuple(data.get("ignore_alone", ())),
    )


def _split(one: Located) -> Split:
    to, sizes, layout = tuple(one["to"]), tuple(one.get("sizes", ())), one["layout"]
    if (sizes and len(sizes) != len(to)) or (layout in ("qkv", "gqa") and (len(to), len(sizes)) != (3, 3)):
        raise RecipeError(
            _("`sizes` has to have one entry for each name in `to`; qkv and gqa have three"), where=one.where("sizes")
        )
    extra = ("expert",) if layout == "experts" else ()
    return Split(_pattern(one, one["from"], to, extra), to, layout, sizes)


def _pattern(one: Located, text: str, to: tuple[str, ...], extra: tuple[str, ...] = ()) -> re.Pattern[str]:
    """The name as a regular expression. Raises RecipeError when ``to`` uses a word that ``from`` does not have."""
    words = [found.group(1) for found in _PART.finditer(text)]
    wanted = {found.group(1) for name in to for found in _PART.finditer(name)}
    if len(set(words)) != len(words) or not wanted <= {*words, *extra}:
        raise RecipeError(_("the words in braces of `from` and `to` do not fit together"), where=one.where("from"))
    for part in _PART.sub("\0", text.replace("...}", "}")).split("."):
        if part.count("\0") > 1:
            raise RecipeError(_("two words in braces stand in one part of a name"), where=one.where("from"))
    if text.count("...}") > 2:
        raise RecipeError(_("`{word...}` stands more than twice in a name"), where=one.where("from"))
    out, at = "", 0
    for found in _PART.finditer(text):
        what = r"\d+" if found.group(1) == "expert" else "[^.]+(?:\\.[^.]+)*" if found.group(2) else "[^.]+"
        out += re.escape(text[at : found.start()]) + f"(?P<{found.group(1)}>{what})"
        at = found.end()
    return re.compile(out + re.escape(text[at:]))


def filled(template: str, words: Mapping[str, str]) -> str:
    return _PART.sub(lambda found: words[found.group(1)], template)
