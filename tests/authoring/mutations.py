"""Trees changed on purpose in one way, and where an edit belongs in them: the measure of what is taken without asking."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from authoring.trees import SourceTree
from codemods.recipe import Edit, Place
from codemods.target import Bases


@dataclass(frozen=True)
class Changed:
    """``tree`` with some files replaced (None: taken away)."""

    tree: SourceTree
    files_changed: Mapping[str, bytes | None]
    label: str = "changed"

    def files(self) -> tuple[str, ...]:
        kept = {file for file in self.tree.files() if self.files_changed.get(file, b"") is not None}
        return tuple(sorted(kept | {file for file, data in self.files_changed.items() if data is not None}))

    def read(self, file: str) -> bytes | None:
        return self.files_changed[file] if file in self.files_changed else self.tree.read(file)

    def key(self, file: str) -> str | None:
        return file if self.read(file) is not None else None


@dataclass(frozen=True)
class Mutation:
    """``truth`` is where the edit belongs now; None when its place is gone."""

    name: str
    tree: Changed
    truth: Place | None


def mutations(edit: Edit, place: Place, tree: SourceTree) -> Iterator[Mutation]:
    """Renamed, moved, deleted, copied: one at a time."""
    data = tree.read(place.file)
    if data is None or not place.symbol:
        return
    outline = Bases(tree.read).target(place.file).outline
    named = outline.named(place.symbol)
    if len(named) != 1:
        return
    one = named[0]
    block = data[one.start : one.end]
    outer, _dot, last = place.symbol.rpartition(".")
    dot = "." if outer else ""
    renamed = re.sub(rb"\b(def|class) " + last.encode() + rb"\b", rb"\1 " + last.encode() + b"_v2", block, count=1)
    there = data[: one.start] + renamed + data[one.end :]
    yield Mutation("renamed", Changed(tree, {place.file: there}), replace(place, symbol=f"{outer}{dot}{last}_v2"))
    folder, _slash, name = place.file.rpartition("/")
    moved = f"{folder}/inner_{name}"
    yield Mutation("file moved", Changed(tree, {place.file: None, moved: data}), replace(place, file=moved))
    if outer and outline.named(outer):
        holder = outer.rpartition(".")[2].encode()
        text = re.sub(rb"\bclass " + holder + rb"\b", b"class New" + holder, data)
        if text != data:
            symbol = ".".join([*outer.split(".")[:-1], "New" + holder.decode(), last])
            yield Mutation("class renamed", Changed(tree, {place.file: text}), replace(place, symbol=symbol))
            both = Changed(tree, {place.file: None, moved: text})
            yield Mutation("class renamed, file moved", both, replace(place, file=moved, symbol=symbol))
    yield Mutation("deleted", Changed(tree, {place.file: data[: one.start] + data[one.end :]}), None)
    yield Mutation("file deleted", Changed(tree, {place.file: None}), None)
    twice = Changed(tree, {place.file: there, moved: data.replace(block, renamed)})
    yield Mutation("renamed, and a copy elsewhere", twice, None)


def taken_is(taken: Place, truth: Place) -> bool:
    return (taken.file, taken.symbol) == (truth.file, truth.symbol)
