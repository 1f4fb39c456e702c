"""Reads recipes from YAML, strictly: keys, names, paths, versions, patterns and code are checked before anything else is done."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from codemods.errors import InvalidError
from codemods.pattern import compile_expression, compile_statements, holes_in
from codemods.recipe import Alternative, Edit, Example, Heading, Parameter, Place, Recipe, Requirement
from codemods.recipe_fields import FRAGMENT, RECIPE, VERB_KEYS
from codemods.snippets import check_snippet
from codemods.verbs import VERBS
from codemods.verbs.verb import STATEMENT, Verb
from codemods.yamlfile import MAX_BYTES, Located, RecipeError, read_yaml, wanted
from locales import _

RECIPES = Path(__file__).resolve().parent.parent / "recipes"
PAYLOADS = RECIPES / "payloads"
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_SYMBOL = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_ENV = re.compile(r"[A-Z][A-Z0-9_]*")
_VERSION = re.compile(r"\d+(\.\d+)*([abc]|rc|\.?dev|\.?post)?\d*")


def specifier(table: Located, key: str) -> SpecifierSet:
    """The version range under ``key``. Raises RecipeError."""
    value: str = table[key]
    try:
        return SpecifierSet(value, prereleases=True)
    except InvalidSpecifier as error:
        raise RecipeError(
            _("`{value}` is no version range").format(value=value),
            where=table.where(key),
            why=str(error),
            todo=_('write "=={value}" for this one version').format(value=value.strip())
            if _is_version(value)
            else None,
        ) from error


def _is_version(value: str) -> bool:
    try:
        return bool(Version(value))
    except InvalidVersion:
        return False


def _id_of(table: Located, key: str) -> str:
    value: str = table[key]
    if not _ID.fullmatch(value):
        raise RecipeError(
            _("`{value}` cannot be a name").format(value=value),
            where=table.where(key),
            todo=_("use a-z, 0-9, `.`, `_` and `-`"),
        )
    return value


def inner_path(value: str, where: str) -> str:
    """A relative path with ``/`` that stays below its root. Raises RecipeError."""
    path = PurePosixPath(value)
    if (
        path.is_absolute()
        or ".." in path.parts
        or "\\" in value
        or ":" in value
        or not path.parts
        or any(ord(c) < 32 for c in value)
    ):
        raise RecipeError(_("the path {path!r} does not stay inside the checkout").format(path=value), where=where)
    return str(path)


def _verb_fields(table: Located, verb: Verb) -> dict[str, str]:
    fields: dict[str, str] = {}
    for key in verb.keys:
        value = table.get(key)
        if isinstance(value, Located):
            fields |= {key: " ", **{name: value[name] for name in value.values}}
        elif value is not None:
            fields[key] = value
    return fields


def _verb_of(table: Located) -> Verb:
    named = [verb for verb in VERBS.values() if verb.name in table]
    if len(named) != 1:
        raise RecipeError(
            _("an edit needs exactly one verb, here are {count}").format(count=len(named)),
            where=table.where(),
            todo=_("the verbs: {verbs}").format(verbs=", ".join(VERBS)),
        )
    return named[0]


def _check_verb_keys(table: Located, verb: Verb, complete: bool) -> None:
    foreign = [key for key in VERB_KEYS if key in table and key not in verb.keys]
    if foreign:
        raise RecipeError(
            _("`{verb}` has no key `{key}`").format(verb=verb.name, key=foreign[0]), where=table.where(foreign[0])
        )
    for key, item in verb.keys.items():
        if complete and item.required and key not in table:
            raise RecipeError(
                _("`{verb}` needs the key `{key}`").format(verb=verb.name, key=key),
                where=table.where(),
                todo=wanted(key, item),
            )


def _place(table: Located, verb: Verb, fields: Mapping[str, str]) -> Place:
    if "file" not in table:
        raise RecipeError(_("the key `file` is missing"), where=table.where())
    symbol = table.get("in", "")
    if symbol and not _SYMBOL.fullmatch(symbol):
        raise RecipeError(_("`{value}` is no qualified name").format(value=symbol), where=table.where("in"))
    expect, nth = table.get("expect", 1), table.get("nth")
    if expect < 1 or (nth is not None and not 1 <= nth <= expect):
        raise RecipeError(_("`nth` has to be one of 1 … `expect`, and `expect` at least 1"), where=table.where("nth"))
    place = Place(
        inner_path(table["file"], table.where("file")),
        symbol,
        dict(getattr(table.get("select"), "values", {})),
        nth,
        expect,
        fields,
        table.where(),
    )
    _check_code(place, verb, table)
    return place


def _check_code(place: Place, verb: Verb, table: Located) -> None:
    """Patterns compile, the code parses, and it uses no hole that the pattern lacks."""
    holes: frozenset[str] = frozenset()
    if verb.anchor:
        with _located(table.where(verb.name)):
            compiled = compile_statements if verb.anchor == STATEMENT else compile_expression
            holes = compiled(place.fields[verb.name]).holes
    for key in place.fields if verb.name != "add_file" else ():
        if _is_code(verb, key):
            _check_inserted(verb, key, place.fields[key], holes, _where(table, verb, key))


def _is_code(verb: Verb, key: str) -> bool:
    fields = verb.keys[verb.name].fields  # of a verb that is a table of its own
    return {**verb.keys, **fields}[key].kind == "code"


def _where(table: Located, verb: Verb, key: str) -> str:
    """Where the verb's key is written: in the edit, or in the verb's own table."""
    inner = table.get(verb.name)
    return inner.where(key) if isinstance(inner, Located) else table.where(key)


def _check_inserted(verb: Verb, key: str, code: str, holes: frozenset[str], where: str) -> None:
    for hole in () if key == verb.name else holes_in(code):
        if hole[1:] not in holes:
            raise RecipeError(_("the pattern captures no `{hole}`").format(hole=hole), where=where)
    with _located(where):
        check_snippet(verb.name, key, code)


@contextmanager
def _located(where: str) -> Iterator[None]:
    """What is wrong with code becomes what is wrong with the recipe, at a line of it."""
    try:
        yield
    except InvalidError as error:
        raise RecipeError(error.what, where=where, why=error.why, todo=error.todo) from error


def _edit(table: Located) -> Edit:
    verb = _verb_of(table)
    variants: list[Located] = table.get("any_of") or []
    _check_verb_keys(table, verb, complete=True)
    base_fields = _verb_fields(table, verb)
    places = []
    for variant in variants or [table]:
        _check_verb_keys(variant, verb, complete=False)
        merged = Located({**table.values, **variant.values}, table.path, variant.line, {**table.lines, **variant.lines})
        places.append(_place(merged, verb, {**base_fields, **_verb_fields(variant, verb)}))
    return Edit(
        _id_of(table, "id"),
        table.get("why", ""),
        verb,
        tuple(places),
        specifier(table, "versions") if "versions" in table else None,
        table.get("marker", True),
        table.where("id"),
    )


def _parameter(name: str, table: Located) -> Parameter:
    if not name.isidentifier() or not _ENV.fullmatch(table["env"]):
        raise RecipeError(
            _("the parameter `{name}` needs a plain name and an UPPER_CASE variable").format(name=name),
            where=table.where(),
        )
    if (table["type"] == "choice") != ("choices" in table):
        raise RecipeError(_("`choices` goes with the type `choice`"), where=table.where())
    return Parameter(
        name, table["type"], table["env"], table.get("default"), tuple(table.get("choices", ())), table["help"]
    )


def _payloads(edits: tuple[Edit, ...], beside: Path) -> dict[str, str]:
    """The texts of the payload files that the edits add: of a folder ``payloads`` beside the recipe, else the shipped ones."""
    return {
        name: _payload(name, place, (beside / "payloads", PAYLOADS))
        for edit in edits
        for place in edit.places
        if (name := place.fields.get("add_file")) is not None
    }


def _payload(name: str, place: Place, folders: tuple[Path, ...]) -> str:
    inner = inner_path(name, place.where)
    for folder in folders:
        path = (folder / inner).resolve()
        if not path.is_file():
            continue
        if not path.is_relative_to(folder.resolve()):
            raise RecipeError(_("the payload `{name}` lies outside of its folder").format(name=name), where=place.where)
        try:
            data = path.read_bytes()
            if len(data) > MAX_BYTES:
                raise RecipeError(
                    _("the payload `{name}` is larger than {size} bytes").format(name=name, size=MAX_BYTES),
                    where=place.where,
                )
            text = data.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RecipeError(
                _("the payload `{name}` cannot be read").format(name=name), where=place.where, why=str(error)
            ) from error
        if folder != PAYLOADS and place.file.endswith(".py"):  # the shipped ones compile
            with _located(place.where):
                check_snippet("add_file", "add_file", text)
        return text
    raise RecipeError(
        _("there is no payload `{name}`").format(name=name),
        where=place.where,
        todo=_("it belongs into `payloads/` beside the recipe: {path}").format(path=folders[0] / inner),
    )


def _fragment(name: str, table: Located) -> Located:
    if not _ID.fullmatch(name):
        raise RecipeError(_("`{value}` cannot be a name").format(value=name), where=table.where("include"))
    return read_yaml(table.path.parent / f"_{name}.yaml", FRAGMENT)


def _requirement(table: Located) -> Requirement:
    if "has" in table:
        with _located(table.where("has")):
            compile_statements(table["has"])
    return Requirement(inner_path(table["file"], table.where("file")), table.get("symbol", ""), table.get("has", ""))


def _alternative(table: Located) -> Alternative:
    return Alternative(table["group"], specifier(table, "default"), table["because"])


def _example(table: Located, edits: tuple[Edit, ...]) -> Example:
    kinds = [kind for kind in ("before", "unchanged", "no_match") if kind in table]
    if len(kinds) != 1 or ("after" in table) != (kinds == ["before"]) or ("message" in table and kinds != ["no_match"]):
        raise RecipeError(
            _("an example has `before` with `after`, or `unchanged`, or `no_match` (with `message`)"),
            where=table.where(),
        )
    known = {edit.id: edit for edit in edits}
    for name in table["edits"]:
        if name not in known:
            raise RecipeError(_("there is no edit `{name}`").format(name=name), where=table.where("edits"))
    if len({place.file for name in table["edits"] for place in known[name].places}) > 1 and len(table["edits"]) > 1:
        raise RecipeError(_("the edits of an example are all of one file"), where=table.where("edits"))
    if "version" in table and not _VERSION.fullmatch(table["version"]):
        raise RecipeError(_("`{value}` is no version").format(value=table["version"]), where=table.where("version"))
    before = table[kinds[0]]
    after = {"before": table.get("after"), "unchanged": before, "no_match": None}[kinds[0]]
    return Example(
        tuple(table["edits"]), table.get("version", ""), before, after, table.get("message", ""), table.where()
    )


def _heading(table: Located) -> dict[str, Any]:
    for version in table.get("verified", ()):
        if not _VERSION.fullmatch(version):
            raise RecipeError(_("`{value}` is no version").format(value=version), where=table.where("verified"))
    return {
        "id": _id_of(table, "recipe"),
        "framework": _id_of(table, "framework"),
        "side": table["side"],
        "versions": specifier(table, "versions"),
        "why": table["why"],
        "path": table.path,
        "order": table.get("order", 0),
        "upstream": table.get("upstream", ""),
        "remove_when": table.get("remove_when", ""),
        "verified": tuple(table.get("verified", ())),
        "alternative": _alternative(table["alternative"]) if "alternative" in table else None,
        "requires": tuple(_requirement(item) for item in table.get("requires", ())),
        "parameters": tuple(_parameter(name, item) for name, item in table.get("parameters", {}).items()),
        "switches": tuple(table.get("switches", ())),
        "notes": tuple(table.get("notes", ())),
    }


def load_heading(path: Path) -> Heading:
    """The recipe without its edits, which are not even parsed. Raises RecipeError."""
    fields = {name: item for name, item in RECIPE.items() if name not in ("edits", "examples")}
    return Heading(**_heading(read_yaml(path, fields, without=("edits", "examples"))))


def _check_names(edits: tuple[Edit, ...]) -> None:
    known: dict[str, Edit] = {}
    for edit in edits:
        first = known.setdefault(edit.id, edit)
        if first is not edit:
            what = _("two edits are called `{id}`").format(id=edit.id)
            raise RecipeError(what, where=edit.where, why=_("the first one: {where}").format(where=first.where))


def load_recipe(path: Path) -> Recipe:
    """Read and check one recipe. Raises RecipeError."""
    table = read_yaml(path, RECIPE)
    fragments = [_fragment(name, table) for name in table.get("include", ())]
    edits = tuple(_edit(item) for source in (*fragments, table) for item in source["edits"])
    if not edits:
        raise RecipeError(_("the recipe has no edit"), where=table.where("edits"))
    _check_names(edits)
    payloads = _payloads(edits, path.parent)
    digest = hashlib.sha256()
    files = [source.path.read_bytes() for source in (table, *fragments)]
    for part in (*files, *(text.encode("utf-8") for text in payloads.values())):
        digest.update(hashlib.sha256(part).digest())
    examples = tuple(_example(item, edits) for source in (*fragments, table) for item in source.get("examples", ()))
    return Recipe(**_heading(table), edits=edits, examples=examples, digest=digest.hexdigest(), payloads=payloads)
