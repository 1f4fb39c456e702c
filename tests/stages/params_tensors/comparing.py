"""Two sides in, verdicts out, as the commands do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stages.params_tensors.alignment import Options, Report, open_both, structure, weights


def report(train: Path, infer: Path, kind: str = "weights", **options: Any) -> Report:
    names = {"train": options.pop("train_names", "common"), "infer": options.pop("infer_names", "common")}
    wish = Options(names, options.pop("numbers", {}), options.pop("ignore", ()))
    opened = open_both(train, infer, wish, train.parent / "scratch")
    found = weights(opened, 2, lambda done: None) if kind == "weights" else structure(opened)
    json.dumps(found.as_json(), allow_nan=False)
    return found


def verdicts(found: Report) -> dict[str, str]:
    return {one.name: one.verdict for one in found.findings}


def finding(found: Report, name: str) -> Any:
    return next(one for one in found.findings if one.name == name)
