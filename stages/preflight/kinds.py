"""What a process is, by its words: engines, Ray and trainers. Names that only stand somewhere in a command do not count."""

from __future__ import annotations

import re
from collections.abc import Sequence

VLLM, SGLANG, RAY, TRAINER = "vLLM", "SGLang", "Ray", "trainer"

_TITLES = (
    (re.compile(r"VLLM::|EngineCore(?:_|\b)|VLLMWorker"), VLLM),
    (re.compile(r"sglang::|sgl_diffusion::"), SGLANG),
    (re.compile(r"ray::|ray-dashboard"), RAY),
)
"""Titles that processes give themselves (setproctitle), in place of their first word."""

_PROGRAMS = {
    "raylet": RAY,
    "gcs_server": RAY,
    "ray": RAY,
    "vllm": VLLM,
    "sglang": SGLANG,
    "torchrun": TRAINER,
    "deepspeed": TRAINER,
    "accelerate": TRAINER,
    "msrun": TRAINER,
}
_MODULES = (
    ("vllm", VLLM),
    ("sglang", SGLANG),
    ("sglang_router", SGLANG),
    ("ray", RAY),
    ("verl", TRAINER),
    ("slime", TRAINER),
    ("vime", TRAINER),
    ("torch.distributed.run", TRAINER),
    ("torch.distributed.launch", TRAINER),
    ("torch.distributed.elastic", TRAINER),
    ("deepspeed.launcher", TRAINER),
    ("accelerate.commands.launch", TRAINER),
)
_FILES = (
    (re.compile(r"/ray/(?:dashboard|_private|autoscaler|core)/"), RAY),
    (re.compile(r"/(?:verl/trainer|slime|vime)/(?:\w+/)*\w+\.py$"), TRAINER),
    (re.compile(r"(?:^|/)pretrain_\w+\.py$"), TRAINER),
)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*$")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_SLIME = ("--rollout-num-gpus", "--rollout-num-gpus-per-engine", "--actor-num-nodes")
"""slime and vime are started as ``train.py``; these options are their own."""
ORPHAN = "multiprocessing child"


def kind(argv: Sequence[str]) -> str | None:
    """None for a process of none of them."""
    title = argv[0].strip()
    for pattern, name in _TITLES:
        if pattern.match(title):
            return name
    program, rest = _program(argv)
    if program.startswith("-m "):
        module = program[3:]
        return next((name for start, name in _MODULES if module == start or module.startswith(start + ".")), None)
    base = program.rpartition("/")[2]
    if base in _PROGRAMS:
        return _PROGRAMS[base]
    if base in ("train.py", "train_async.py") and any(word.split("=")[0] in _SLIME for word in rest):
        return TRAINER
    return next((name for pattern, name in _FILES if pattern.search(program)), None)


def is_spawned(argv: Sequence[str]) -> bool:
    """A child of Python's multiprocessing, whose words say nothing of its work."""
    return any("multiprocessing.spawn" in word or "multiprocessing.forkserver" in word for word in argv[1:4])


def _program(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The script, ``-m MODULE`` or binary that a command runs, and what follows it."""
    words = list(argv)
    if not _PYTHON.search(words[0].rpartition("/")[2]):
        return words[0], words[1:]
    words.pop(0)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-m" and words:
            return f"-m {words[0]}", words[1:]
        if option == "-c":
            return "-c", words
        if option in _WITH_VALUE and words:
            words.pop(0)
    return (words[0], words[1:]) if words else ("", [])
