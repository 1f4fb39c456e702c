"""``probepatch stub schema``."""

from __future__ import annotations

import click

from commands.output import print_json
from locales import _


@click.command(help=_("Print the JSON Schema of stub_instruction.json; with --example an instruction to start from."))
@click.option("--example", is_flag=True, help=_("an instruction that is valid, with its sources to be filled in"))
@click.option("--json", "as_json", is_flag=True, help=_("accepted for symmetry: it is JSON anyway"))
def command(example: bool, as_json: bool) -> None:
    """On standard output."""
    import json
    from pathlib import Path

    import stages.stub
    from stages.stub.schema import instruction_schema

    folder = Path(stages.stub.__file__).parent
    print_json(
        json.loads((folder / "stub_instruction.example.json").read_text("utf-8")) if example else instruction_schema()
    )
