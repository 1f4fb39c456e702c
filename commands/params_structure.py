"""``probepatch params structure``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commands.output import json_option
from commands.tensor_sides import both, finish, may_begin, options_of, two_sides, write_inventory_payload
from locales import _


@click.command(
    help=_(
        "Compare what parameters and buffers both sides have: names, shapes, dtypes. Reads headers and inventories only; fused,"
        " padded and sharded tensors are matched by rules."
    )
)
@two_sides
@json_option
def command(
    train: Path | None,
    infer: Path | None,
    payload: Path | None,
    out: Path | None,
    task: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Exit code 1 when anything is not exact, or nothing could be compared."""
    import tempfile

    if payload is not None:
        write_inventory_payload(payload)
        return 0
    paths = both(train, infer)
    wish = options_of(**options)
    card = may_begin(task)
    from stages.params_tensors.alignment import open_both, structure

    with tempfile.TemporaryDirectory(prefix="probepatch-") as scratch:
        report = structure(open_both(*paths, wish, Path(scratch)))
        return finish(report, card, out, task, as_json)
