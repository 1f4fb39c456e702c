"""A debugger that writes down what it is told; forwards write themselves down between."""

EVENTS = []


def seed_all(seed=1234, mode=False):
    EVENTS.append("seed")


class PrecisionDebugger:
    _instance = None

    def __init__(self, config_path=None, task=None, level=None, step=None):
        PrecisionDebugger._instance = self
        EVENTS.append("build")

    @classmethod
    def start(cls, model=None):
        EVENTS.append("start")

    @classmethod
    def stop(cls):
        EVENTS.append("stop")

    @classmethod
    def step(cls):
        EVENTS.append("step")
