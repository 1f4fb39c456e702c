"""One tree with everything a transaction can do: files that change, a file that is added, a folder that is made."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.splice import PlannedEdit
from tests.ledger.trees import PlainTree, after_line, around, insertion

PAYLOAD = "pkg/extra/payload.py"


def edits_of(tree: PlainTree) -> dict[str, Sequence[PlannedEdit]]:
    base = (tree.root / "pkg/a.py").read_bytes()
    other = (tree.root / "pkg/b.py").read_bytes()
    return {
        "pkg/a.py": [after_line(base, 1, b"    tap_a(x)\n", name="r/a")],
        "pkg/b.py": [around(other, 2, 3, name="r/b")],
        PAYLOAD: [insertion(0, b"X = 1\n", name="r/payload")],
    }
