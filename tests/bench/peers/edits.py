"""What a shipped recipe does to one version of its framework, as plain data that the other tools' edits are made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.version import Version

from codemods.identify import holds
from codemods.recipe import Place
from codemods.recipe_reader import RECIPES, load_recipe
from codemods.target import Bases

ADDED = "add_file"  # the one verb that neither tool has


@dataclass(frozen=True)
class PeerEdit:
    """``fields`` are the verb's own keys, the anchor among them."""

    id: str
    verb: str
    file: str
    symbol: str
    fields: dict[str, str]

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def edits_of(recipe: str, version: str, checkout: Path) -> list[PeerEdit]:
    """The edits of a recipe of verl that are made in this version, those that add a file left out."""

    def read(path: str) -> bytes | None:
        return (checkout / path).read_bytes() if (checkout / path).is_file() else None

    bases = Bases(read)

    def there(place: Place) -> bool:
        return not place.symbol or holds(bases, place.file, place.symbol, "")

    found = []
    for edit in load_recipe(RECIPES / "verl" / f"{recipe}.yaml").edits:
        if edit.verb.name == ADDED or (edit.versions is not None and Version(version) not in edit.versions):
            continue
        place = next(place for place in edit.places if there(place))
        found.append(PeerEdit(edit.id, edit.verb.name, place.file, place.symbol, dict(place.fields)))
    return found
