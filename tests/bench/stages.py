"""Where the time of `probepatch diff` goes: the real command in a fresh process, its functions and imports wrapped in clocks.

``python -m tests.bench.stages CHECKOUT RECIPE``; prints CPU seconds by stage as JSON. A stage's time is its own: what a stage
within it took is that stage's.
"""

from __future__ import annotations

import builtins
import functools
import io
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from tests.bench.inside import OURS, load

LIBRARIES = {
    "libcst": "import LibCST",
    "ruamel": "import ruamel.yaml",
    "click": "import click",
    "packaging": "import packaging",
}
OWN_IMPORTS = "import probepatch itself"
STAGES = {
    "find the checkout, read its ledger": ("codemods.checkout.open_tree", "patch_ledger.store.open_ledger"),
    "read base files": ("patch_ledger.merge.read_base", "codemods.source.read_source"),
    "recipes: YAML": ("codemods.yamlfile.read_yaml",),
    "recipes: check patterns": ("codemods.pattern.compile_statements", "codemods.pattern.compile_expression"),
    "recipes: everything else": (
        "codemods.recipe_reader.load_recipe",
        "codemods.recipe_reader.load_heading",
        "codemods.catalogue.load_framework",
    ),
    "outline (ast)": ("codemods.outline.outline",),
    "nesting guard (ast)": ("codemods.nesting.nesting",),
    "parse definitions and patterns (LibCST)": ("codemods.parsing.parse_module",),
    "print them back, positions (LibCST)": ("codemods.scope.parse_scope",),
    "match anchors": ("codemods.locate.find_sites", "codemods.locate.matches_in"),
    "identify": ("codemods.identify.identify", "codemods.identify.choose"),
    "verbs and layout": ("codemods.planner.plan_edits",),
    "merge and render": ("patch_ledger.merge.merge",),
    "compile": ("codemods.compiling.check",),
    "print": ("commands.preview.print_plan", "commands.diff.print_summary", "commands.diff.print_notes"),
}
REST = "everything else"
ROOMS = ("commands", "codemods", "patch_ledger", "cli")


class Clocks:
    """CPU seconds by name; the clock of the outer name stands still while an inner one runs."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = 0.0

    def _turn(self) -> None:
        now = time.process_time()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        self._turn()
        self._running.append(name)
        try:
            yield
        finally:
            self._turn()
            self._running.pop()

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            with self.running(name):
                return function(*arguments, **options)

        return timed


@contextmanager
def imports_timed(clocks: Clocks) -> Iterator[None]:
    """An import counts for the library that was asked for first: what LibCST pulls in is LibCST's."""
    original = builtins.__import__
    inside: list[str] = []

    def watched(name: str, *arguments: Any) -> Any:
        library = LIBRARIES.get(name.partition(".")[0])
        if library is None or inside or (name in sys.modules):
            return original(name, *arguments)
        inside.append(library)
        try:
            with clocks.running(library):
                return original(name, *arguments)
        finally:
            inside.pop()

    builtins.__import__ = watched
    try:
        yield
    finally:
        builtins.__import__ = original


def clock_stages(clocks: Clocks) -> None:
    """Put each stage's functions behind their clock, under every name that our modules know them by."""
    spaces = [vars(module) for name, module in sys.modules.items() if name.partition(".")[0] in ROOMS]
    for stage, functions in STAGES.items():
        for dotted in functions:
            module, _dot, name = dotted.rpartition(".")
            original = getattr(sys.modules[module], name)
            timed = clocks.around(stage, original)
            for space in spaces:
                for key in [key for key, value in space.items() if value is original]:
                    space[key] = timed


def main(checkout: str, recipe: str) -> None:
    clocks = Clocks()
    with imports_timed(clocks), clocks.running(OWN_IMPORTS):
        import cli

        load(("commands.diff", *OURS))
    clock_stages(clocks)
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(printed), redirect_stderr(io.StringIO()), clocks.running(REST):
        code = cli.main(["diff", checkout, "--recipe", recipe])
    if code:
        raise SystemExit(code)
    total = sum(clocks.seconds.values())
    json.dump({"work": {"wall": total, "cpu": total}, "stages": clocks.seconds}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
