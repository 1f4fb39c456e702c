"""Known failures by what they leave in a log: lines as the frameworks print them, and lines of runs that are right."""

from __future__ import annotations

import pytest

from stages.instrument.failures import FAILURES, Watch

LINES = {
    "lost-flag": "NotImplementedError: Rule-based RM type is not specified.",
    "json-cut": "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    "msprobe-missing": "ModuleNotFoundError: No module named 'tensorboard'",
    "two-debuggers": "RuntimeError: msprobe allows one debugger per process, and /a.json is the config of the first",
    "switch-refused": "RuntimeError: DUMP_ON=1 needs a config: set MSPROBE_ACTOR_CONFIG",
    "port-in-use": "OSError: [Errno 98] Address already in use",
    "out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "engine-not-started": "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "no-deterministic-operator": (
        "RuntimeError: cumsum_cuda_kernel does not have a deterministic implementation, but you set"
        " 'torch.use_deterministic_algorithms(True)'"
    ),
    "program-missing": "bash: line 1: vllm: command not found",
}
MORE = [
    (
        "msprobe-missing",
        "ImportError: cannot import name 'PrecisionDebugger' from 'msprobe.pytorch' (unknown location)",
    ),
    ("msprobe-missing", "WARNING: Please install msprobe to use the dump: pip install mindstudio-probe"),
    (
        "json-cut",
        "error: argument --chat-template-kwargs: Value {a:b} cannot be converted to <function loads at 0x7f>.",
    ),
    ("port-in-use", "ERROR: port 8265 is already in use"),
    ("out-of-memory", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"),
    ("out-of-memory", "ValueError: Free memory on device (3.1/79.2 GiB) on startup is less than desired GPU memory"),
    ("out-of-memory", "RuntimeError: NPU out of memory. Tried to allocate 1.50 GiB"),
    ("engine-not-started", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."),
    ("program-missing", "/venv/bin/python3: No module named verl"),
    ("program-missing", "bash: run.sh: No such file or directory"),
]
RIGHT = [
    "INFO: error_rate 0.0",
    "Error fetching remote version, using the local one",
    "WARNING 11-02 memory usage is high",
    "step:1 - actor/pg_loss:-0.01 - perf/max_memory_allocated_gb:3.1",
    "msprobe: dump.json is at /root/out",
    "INFO Using port 8000",
]


def told(text, ended_well=False):
    watch = Watch()
    watch.read(text)
    return [(one.name, one.line) for one in watch.seen(ended_well)]


def test_every_failure_has_a_line_and_a_remedy():
    assert set(LINES) == {one.name for one in FAILURES}
    assert all(one.what and one.todo for one in FAILURES)


@pytest.mark.parametrize(("name", "line"), [*LINES.items(), *MORE])
def test_a_line(name, line):
    assert told(f"(WorkerDict pid=12) begin\n  {line}\nend\n") == [(name, 2)]


def test_lines_of_a_run_that_is_right():
    assert told("\n".join(RIGHT)) == []


def test_of_a_run_that_ended_well_only_what_costs_the_dump_is_told():
    assert told("\n".join(LINES.values()), ended_well=True) == [("msprobe-missing", 3)]


def test_the_first_line_of_each_and_the_deeper_cause_first():
    text = "\n".join([LINES["engine-not-started"], LINES["out-of-memory"], LINES["out-of-memory"]])
    assert told(text) == [("out-of-memory", 2), ("engine-not-started", 1)]


@pytest.mark.parametrize("size", [1, 3, 7])
def test_pieces_are_put_together(size):
    text = f"\n\x0b\x0c\x1c\x85\u2028one line\n{LINES['lost-flag']}\nmore"
    watch = Watch()
    for begin in range(0, len(text), size):
        watch.read(text[begin : begin + size])
    assert [(one.name, one.line) for one in watch.seen(False)] == [("lost-flag", 3)]


def test_a_line_without_end_takes_no_memory():
    watch = Watch()
    for _each in range(100):
        watch.read("x" * (1 << 16))
    assert len(watch._begun) == 4000
    watch.read(f"\n{LINES['lost-flag']}")
    assert [(one.name, one.line) for one in watch.seen(False)] == [("lost-flag", 2)]
