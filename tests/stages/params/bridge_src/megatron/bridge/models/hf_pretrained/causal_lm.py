"""What a bridge is handed: the config, read when it is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace


class PreTrainedCausalLM:
    def __init__(self, path: str) -> None:
        self.model_name_or_path = path

    @classmethod
    def from_pretrained(cls, path: str) -> PreTrainedCausalLM:
        return cls(path)

    @property
    def config(self) -> SimpleNamespace:
        return SimpleNamespace(**json.loads((Path(self.model_name_or_path) / "config.json").read_text()))
