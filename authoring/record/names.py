"""Names for what is recorded: of the recipe, of its edits, of its payloads."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

_WORDS = {
    "body_start": "start",
    "body_end": "end",
    "before_each_return": "returns",
    "around_body": "around",
    "replace_expression": "replace",
    "set_argument": "argument",
    "with_item": "with",
    "decorator": "decorate",
}
_LONGEST = 60


def recipe_name(framework: str) -> str:
    return slug(f"{framework}-recorded")


def slug(text: str) -> str:
    """``text`` in the characters of an id."""
    found = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:_LONGEST].strip("-.")
    return found or "edit"


def edit_name(verb: str, symbol: str, fields: Mapping[str, str], file: str, taken: Collection[str]) -> str:
    """A name that tells what the edit does and where; with a number when it is taken."""
    code = fields[verb]
    if verb == "add_import":
        words = re.sub(r"^from\s+|\bimport\b|\bas\b.*", " ", code).split()
        name = f"import-{words[-1] if words else 'module'}"
    elif verb == "add_file":
        name = f"add-{PurePosixPath(file).stem}"
    elif verb in ("add_method", "add_function"):
        found = re.search(r"def\s+(\w+)", code)
        name = f"add-{found.group(1) if found else 'function'}"
    elif verb == "add_attribute":
        name = f"add-{code.partition('=')[0].partition(':')[0].strip()}"
    else:
        place = symbol.rpartition(".")[2] or PurePosixPath(file).stem
        name = f"{place}-{_WORDS.get(verb, verb)}"
    name, number = slug(name), 1
    while (one := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return one


def payload_name(file: str, taken: Collection[str]) -> str:
    """The file's own name; with its folders in front when that is taken."""
    path = PurePosixPath(file)
    names = ["_".join(path.parts[-count:]) for count in range(1, len(path.parts) + 1)]
    return next((name for name in names if name not in taken), file.replace("/", "__"))
