"""``probepatch fleet tree``: what the fleet asks of each node. One process tells all of a tree: where it is, which folder that is
really, what stands in it, and which run of a fleet it belongs to."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from commands.output import print_json
from commands.recorded import find_recorded
from commands.status import FINE
from commands.target import as_json as tree_as_json
from commands.target import checkout_options
from fleet.place import place_of
from fleet.runs import run_of
from patch_ledger import admin
from patch_ledger.status import status


@click.command(hidden=True)
@click.option("--marks", "search", is_flag=True)
@checkout_options
@click.option("--json", "as_json", is_flag=True)
def command(checkout: Path | None, package: str | None, python: str | None, search: bool, as_json: bool) -> None:
    """Prints JSON in any case: nobody else reads it."""
    from stages.restore.marks import marks

    tree = find_recorded(checkout, package, python)
    found = status(tree)
    run = run_of(admin.show(tree))
    print_json(
        {
            "checkout": tree_as_json(tree),
            "place": place_of(tree.import_root),
            "edits": [asdict(edit) | {"fine": edit.state in FINE} for edit in found.edits],
            "interrupted": asdict(found.interrupted) if found.interrupted is not None else None,
            "run": asdict(run) if run is not None else None,
            "marks": [one.as_json() for one in marks(Path(tree.given))] if search else None,
        }
    )
