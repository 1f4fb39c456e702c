"""The recipes that ship with the project, and what is known of their frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet

from codemods.fields import Field
from codemods.recipe import Heading
from codemods.recipe_reader import RECIPES, inner_path, load_heading, specifier
from codemods.yamlfile import read_yaml

FRAMEWORK = {
    "framework": Field("text", "the framework's name", required=True),
    "package": Field("text", "its top-level Python package", required=True),
    "version_files": Field(
        "tables",
        "where the tree states its version",
        required=True,
        fields={"file": Field("text", "a text file, or a .py with __version__", required=True)},
    ),
    "probes": Field(
        "tables",
        "what a tree has, or lacks, in which versions",
        fields={
            "versions": Field("version", "the versions (PEP 440)", required=True),
            "file": Field("text", "path in the checkout", required=True),
            "symbol": Field("text", "qualified name in the file"),
            "has": Field("pattern", "statements in the symbol or module"),
            "lacks": Field("flag", "true: the versions are those without it"),
        },
    ),
}


@dataclass(frozen=True)
class Probe:
    """``versions`` are those that have (or lack) the file, symbol or statements."""

    versions: SpecifierSet
    file: str
    symbol: str
    has: str
    lacks: bool


@dataclass(frozen=True)
class Framework:
    name: str
    package: str
    version_files: tuple[str, ...]
    probes: tuple[Probe, ...]


def load_framework(path: Path) -> Framework:
    """Raises RecipeError."""
    table = read_yaml(path, FRAMEWORK)
    probes = tuple(
        Probe(
            specifier(item, "versions"),
            inner_path(item["file"], item.where("file")),
            item.get("symbol", ""),
            item.get("has", ""),
            item.get("lacks", False),
        )
        for item in table.get("probes", ())
    )
    files = tuple(inner_path(item["file"], item.where("file")) for item in table["version_files"])
    return Framework(table["framework"], table["package"], files, probes)


def frameworks(root: Path = RECIPES) -> Mapping[str, Framework]:
    """By name."""
    found = [load_framework(path) for path in sorted(root.glob("*/framework.yaml"))]
    return {framework.name: framework for framework in found}


def catalogue(framework: str | None = None, root: Path = RECIPES) -> tuple[Heading, ...]:
    """The shipped recipes' headings, of one framework or of all, ordered by framework and name."""
    paths = sorted(root.glob(f"{framework or '*'}/*.yaml"))
    return tuple(
        load_heading(path) for path in paths if path.name != "framework.yaml" and not path.name.startswith("_")
    )
