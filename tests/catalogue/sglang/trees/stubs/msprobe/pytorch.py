"""Stands for msprobe: says what was called, in order."""

import json

CALLS = []


def seed_all(mode=False):
    CALLS.append(f"seed_all mode={mode}")


class PrecisionDebugger:
    _instance = None

    def __init__(self, config_path, **settings):
        PrecisionDebugger._instance = self
        with open(config_path, encoding="utf-8") as file:
            self.config = type("Config", (), json.load(file))
        CALLS.append(f"build {json.dumps(settings, sort_keys=True)}")

    @classmethod
    def start(cls, model=None, rank_id=None):
        CALLS.append(f"start {model} rank_id={rank_id}")

    @classmethod
    def stop(cls):
        CALLS.append("stop")

    @classmethod
    def step(cls):
        CALLS.append("step")
