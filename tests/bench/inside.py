"""One plan inside of a fresh process, with the imports measured apart: ours, or the LibCST codemod's.

``python -m tests.bench.inside ours CHECKOUT RECIPE`` or ``… CLASS CHECKOUT EDITS FILE…`` with a class of ``verl_codemod``;
prints JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path

OURS = (
    "libcst.native",
    "commands.planning",
    "codemods.compiling",
    "codemods.planner",
    "codemods.settings",
    "ruamel.yaml",
    "ruamel.yaml.error",
    "encodings.utf_8_sig",
)
LIBCST = ("libcst.native", "libcst.codemod", "libcst.helpers", "verl_codemod")


def load(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(name)


def plan(checkout: str, recipe: str) -> int:
    """Identify, read the recipes, plan, merge with the ledger, render, compile. Gives the number of changed files."""
    from commands.planning import Wish, prepare

    prepared = prepare(Wish(Path(checkout), None, None, ids=(recipe,)))
    return sum(len(file.after or b"") > 0 for file in prepared.plan.changed)


def codemod(name: str, checkout: str, edits: str, *files: str) -> int:
    """What the codemod command does with a file, between reading and writing it. Gives the number of changed files."""
    import libcst
    import verl_codemod
    from libcst.codemod import CodemodContext

    changed = 0
    for file in files:
        path = f"{checkout}/{file}"
        old = Path(path).read_bytes()
        command = getattr(verl_codemod, name)(CodemodContext(filename=path), edits)
        changed += command.transform_module(libcst.parse_module(old)).bytes != old
    return changed


def main(kind: str, *arguments: str) -> None:
    load(OURS if kind == "ours" else LIBCST)
    loaded = set(sys.modules)
    wall, cpu = time.perf_counter(), time.process_time()
    changed = plan(*arguments) if kind == "ours" else codemod(kind, *arguments)
    took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    late = sorted(set(sys.modules) - loaded)
    json.dump({"work": took, "changed": changed, "late": late}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
