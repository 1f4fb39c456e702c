"""Where an edit that no longer matches could belong, best first. Hints with scores; whether one may be taken is said apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from authoring.drift.anchors import Near, Was, matches, mended, nearest, was
from authoring.drift.names import unbound
from authoring.drift.shape import Shape, body_likeness, name_likeness, path_likeness, signature_likeness
from authoring.drift.view import View
from codemods.errors import ProbePatchError
from codemods.locate import find_definition
from codemods.outline import Definition
from codemods.recipe import Edit, Place
from codemods.verbs.verb import CLASS
from locales import _, ngettext

SHOWN = 3
LEAST = 0.55  # a candidate below this is no help
SURE = 0.6  # the likeness of a definition that may be taken for the old one, where the anchor matches in it
SURE_ALONE = 0.85  # the same where there is no anchor
MARGIN = 0.15  # by which it has to lead
_LEAST_LIKE = 0.35  # a definition below this is another one, whatever matches in it
_LEAST_NAMED = 0.5  # the same where only names can be compared
_LEAST_NEAR = 0.6  # a changed anchor below this is another statement
_FILES = 60  # searched for an anchor or for words
_LIKE = 6  # definitions looked into for their likeness alone
_PARSED = 30  # definitions looked into because they hold the anchor's words
_ASKED, _WORDS = 40, 12  # words that are counted; those of them, the rarest, that vote
_IDENTIFIER = re.compile(r"(?<![$\w])[A-Za-z_]\w{2,}")
_COMMON = {"self", "return", "None", "True", "False", "with", "for", "not", "and", "def", "class", "import", "from"}


@dataclass(frozen=True)
class Candidate:
    """``place`` is the mended place, ``line`` and ``code`` what stands there; ``exact`` says that the anchor matches there as
    it is; ``doubts`` are reasons to look before taking it."""

    score: float
    kinds: tuple[str, ...]
    place: Place
    line: int
    code: str
    exact: bool
    likeness: float
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Old:
    """What the tree that the recipe was written for tells of a place: its definition's shape, and the anchor."""

    shape: Shape | None
    anchor: Was | None


def old_of(view: View | None, edit: Edit, place: Place) -> Old:
    if view is None or (target := view.target(place.file)) is None:
        return Old(None, None)
    try:
        definition = find_definition(target, place) if place.symbol else None
    except ProbePatchError:
        return Old(None, None)
    shape = view.shape(place.file, definition) if definition is not None else None
    return Old(shape, was(target, edit, place) if edit.verb.anchor else None)


def candidates(edit: Edit, place: Place, view: View, old: Old, added: frozenset[str] = frozenset()) -> list[Candidate]:
    """The nearest places in the tree, at most three. ``added`` are names that the recipe brings into the file itself."""
    moved = view.renamed(place.file) if view.target(place.file) is None else None
    found: list[Candidate] = []
    for likeness, file, definition in _worth_parsing(edit, place, view, old):
        found += _in_definition(edit, place, view, old, file, definition, likeness, added)
    found = _at_home_first(found, place, view) or _same_name(edit, place, view, old)
    if moved is not None:
        said = _("git renamed the file in {commit}").format(commit=moved[1])
        found = [replace(one, kinds=(*one.kinds, said)) if one.place.file == moved[0] else one for one in found]
    best = sorted(found, key=lambda one: (-one.score, -one.exact, one.place.file, one.line))
    return [one for one in best if one.score >= LEAST][:SHOWN]


def _same_name(edit: Edit, place: Place, view: View, old: Old) -> list[Candidate]:
    """The definition in another file under its old name, where the anchor is not in it: for the author to look at."""
    target = view.target(place.file)
    if old.shape is None or (target is not None and target.outline.named(place.symbol)):
        return []
    found = []
    for likeness, file, definition in _worth_parsing(edit, place, view, old)[:_LIKE]:
        if definition is not None and definition.qualname == place.symbol and likeness >= SURE:
            here = replace(place, file=file)
            doubt = _("the anchor is not in it, nor anything like it")
            kinds = _kinds(place, here)
            found.append(Candidate(LEAST, kinds, here, definition.line, definition.qualname, False, likeness, (doubt,)))
    return found


def _at_home_first(found: list[Candidate], place: Place, view: View) -> list[Candidate]:
    """While the definition is where it was, what stands in it comes before whatever matches elsewhere."""
    target = view.target(place.file)
    if not place.symbol or target is None or not target.outline.named(place.symbol):
        return found
    home = (place.file, place.symbol)
    return [
        replace(one, score=(1 + one.score) / 2 if (one.place.file, one.place.symbol) == home else 0.8 * one.score)
        for one in found
    ]


def _worth_parsing(edit: Edit, place: Place, view: View, old: Old) -> list[tuple[float, str, Definition | None]]:
    """Definitions in which the anchor can match, and those most like the old one; each with its likeness."""
    words = _anchor_words(edit, place)
    rated: list[tuple[float, bool, str, Definition | None]] = []
    for file, definition in _definitions(edit, place, view, old):
        target = view.target(file)
        assert target is not None
        text = target.source.text
        code = text if definition is None else text[definition.start : definition.end]
        new = view.shape(file, definition) if definition is not None else None
        likeness = likeness_of(place, file, definition, new, old.shape)
        rated.append((likeness, all(word in code for word in words), file, definition))
    rated.sort(key=lambda item: -item[0])
    holding = [item for item in rated if item[1]][:_PARSED]
    return [(likeness, file, definition) for likeness, _all, file, definition in dict.fromkeys(rated[:_LIKE] + holding)]


def _definitions(edit: Edit, place: Place, view: View, old: Old) -> Iterator[tuple[str, Definition | None]]:
    """Definitions to look at, each once: of the same file, then those of the same name, then those that share words."""
    if not place.symbol:
        for file in _files(edit, place, view):
            yield file, None
        return
    seen = set()
    wanted = {"class"} if edit.verb.scopes == (CLASS,) else {"function", "async function"}
    if edit.verb.anchor and CLASS in edit.verb.scopes and old.shape is None:
        wanted = {"class", "function", "async function"}
    for file in dict.fromkeys([place.file, *_files(edit, place, view), *_by_words(place, view, old)]):
        target = view.target(file)
        for definition in target.outline.definitions if target is not None else ():
            key = (file, definition.qualname, definition.line)
            if definition.kind in wanted and key not in seen:
                seen.add(key)
                yield file, definition


def _files(edit: Edit, place: Place, view: View) -> list[str]:
    """Files that define the symbol's last name, or hold all words of the anchor."""
    package = place.file.partition("/")[0]
    moved = view.renamed(place.file) if view.target(place.file) is None else None
    last = place.symbol.rpartition(".")[2].encode()
    named = [
        file
        for file in (view.files_with([last], package) if last else [])
        if re.search(rb"\b(?:def|class)\s+" + last + rb"\b", view.raw(file))
    ]
    words = _anchor_words(edit, place)
    holding = view.files_with(words, package) if len(words) > 1 else []
    same_name = [file for file in holding if file.rpartition("/")[2] == place.file.rpartition("/")[2]]
    near = sorted(dict.fromkeys([*named, *same_name, *holding]), key=lambda file: -path_likeness(place.file, file))
    return [*([moved[0]] if moved is not None and view.target(moved[0]) is not None else []), *near[:_FILES]]


def _anchor_words(edit: Edit, place: Place) -> list[bytes]:
    text = place.fields[edit.verb.name] if edit.verb.anchor else ""
    return sorted({word.encode() for word in _IDENTIFIER.findall(text) if word not in _COMMON})


def _by_words(place: Place, view: View, old: Old) -> list[str]:
    """Files that hold most of the rarer words of the old definition."""
    if old.shape is None:
        return []
    package = place.file.partition("/")[0]
    longest = sorted(old.shape.words, key=len)[-_ASKED:]  # the longer, the rarer
    counts = {word: len(view.files_with([word.encode()], package)) for word in longest}
    rare = sorted((count, word) for word, count in counts.items() if count)[:_WORDS]
    votes: dict[str, int] = {}
    for _count, word in rare:
        for file in view.files_with([word.encode()], package)[:_FILES]:
            votes[file] = votes.get(file, 0) + 1
    return [file for file, n in sorted(votes.items(), key=lambda item: -item[1]) if 2 * n >= len(rare)][:5]


def likeness_of(place: Place, file: str, definition: Definition | None, new: Shape | None, old: Shape | None) -> float:
    """How much a definition looks like the one that the place means, 0 … 1; by names alone where no body is known."""
    name = name_likeness(place.symbol, definition.qualname if definition is not None else "")
    path = path_likeness(place.file, file)
    if old is None or new is None:
        return 0.7 * name + 0.3 * path
    return 0.5 * body_likeness(old, new) + 0.15 * signature_likeness(old, new) + 0.25 * name + 0.1 * path


def _in_definition(
    edit: Edit,
    place: Place,
    view: View,
    old: Old,
    file: str,
    definition: Definition | None,
    likeness: float,
    added: frozenset[str],
) -> Iterator[Candidate]:
    target = view.target(file)
    assert target is not None
    symbol = definition.qualname if definition is not None else ""
    here = replace(place, file=file, symbol=symbol, select=_selector(target.outline.named(symbol), definition))
    kinds = _kinds(place, here)
    names = tuple(
        _("the inserted code reads `{name}`, which nothing binds there").format(name=name)
        for name in unbound(edit, here, target, added)
    )
    if not edit.verb.anchor:
        line = definition.line if definition is not None else 1
        yield Candidate(likeness, kinds, here, line, symbol or file, True, likeness, names)
        return
    around = file == place.file and place.symbol.startswith(f"{symbol}.")
    if likeness < (_LEAST_LIKE if old.shape is not None else _LEAST_NAMED) and not around:
        return
    found = matches(target, edit, place, definition, old.anchor)
    if len(found) == place.expect:
        score = 0.6 * likeness + 0.4
        yield Candidate(score, kinds, here, found[0].line, found[0].code, True, likeness, names)
    elif found:
        yield from _several(here, kinds, found, likeness, names)
    else:
        near_by = nearest(target, edit, place, definition, old.anchor)[:2]
        for near in (one for one in near_by if one.likeness >= _LEAST_NEAR and (one.context or one.likeness > 0.8)):
            mend = mended(edit, here, near, old.anchor, target, definition)
            yield _changed(mend, kinds, near, likeness, names)


def _several(
    here: Place, kinds: tuple[str, ...], found: list[Near], likeness: float, doubts: tuple[str, ...]
) -> Iterator[Candidate]:
    """The anchor matches more often than it is to: all of them, or one by its number."""
    count = len(found)
    kinds = (*kinds, ngettext("{count} match", "{count} matches", count).format(count=count))
    look = (*doubts, _("which of them is meant is for you to say"))
    score = 0.6 * likeness + 0.25
    yield Candidate(
        score + 0.02, kinds, replace(here, expect=count, nth=None), found[0].line, found[0].code, True, 0.0, look
    )
    for number, near in enumerate(found, 1):
        bonus = 0.1 * near.context
        one = replace(here, expect=count, nth=number)
        yield Candidate(score + bonus - 0.05, kinds, one, near.line, near.code, True, 0.0, look)


def _changed(
    mend: tuple[Place, tuple[str, ...]], kinds: tuple[str, ...], near: Near, likeness: float, names: tuple[str, ...]
) -> Candidate:
    place, doubts = mend
    anchor = 0.75 * near.likeness + 0.25 * near.context
    score = 0.5 * likeness + 0.5 * anchor * near.likeness
    kinds = (*kinds, _("anchor changed"))
    return Candidate(score, kinds, place, near.line, near.code, False, likeness, (*names, *doubts))


def _selector(named: tuple[Definition, ...], definition: Definition | None) -> dict[str, int]:
    if definition is None or len(named) < 2:
        return {}
    return {"nth": named.index(definition) + 1}


def _kinds(old: Place, new: Place) -> tuple[str, ...]:
    found = []
    if old.file != new.file:
        found.append(_("other file"))
    outer, _dot, last = old.symbol.rpartition(".")
    new_outer, _dot, new_last = new.symbol.rpartition(".")
    if last != new_last:
        found.append(_("other name"))
    if outer and not new_outer:
        found.append(_("method became function"))
    elif new_outer and not outer and old.symbol:
        found.append(_("function became method"))
    elif outer != new_outer:
        found.append(_("out of the nested function") if old.symbol.startswith(f"{new.symbol}.") else _("other class"))
    return tuple(found)
