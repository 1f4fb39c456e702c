"""Samples of whole processes: wall time, CPU time and peak memory, and what many samples say together."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_LAUNCH = Path(__file__).with_name("launch.py")


class JobFailed(Exception):
    """A command ended with another code than 0: nothing that was measured would be worth anything."""


@dataclass(frozen=True)
class Sample:
    """Seconds of wall clock and of CPU (user and system, children included); ``peak`` resident bytes."""

    wall: float
    cpu: float
    peak: int = 0


@dataclass
class Series:
    """All samples of one thing."""

    samples: list[Sample] = field(default_factory=list)

    @property
    def wall(self) -> float:
        return statistics.median(sample.wall for sample in self.samples)

    @property
    def fastest(self) -> float:
        return min(sample.wall for sample in self.samples)

    @property
    def cpu(self) -> float:
        return statistics.median(sample.cpu for sample in self.samples)

    @property
    def peak(self) -> int:
        return max(sample.peak for sample in self.samples)


Results = defaultdict[tuple[str, str], Series]
"""By (scene, job): ("0.9.1", "diff")."""


class Launcher:
    """``run`` measures one command. Used as a context manager; ``scratch`` holds what the commands print."""

    def __init__(self, scratch: Path, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        self._out, self._err = scratch / "stdout", scratch / "stderr"
        command = [sys.executable, "-I", "-S", str(_LAUNCH)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Launcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], *, keep_output: bool = False) -> Sample:
        """Raises JobFailed."""
        out = str(self._out) if keep_output else os.devnull
        job = {"argv": list(argv), "cwd": str(cwd), "env": self._env | dict(env), "out": out, "err": str(self._err)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if answer["code"] != 0:
            raise JobFailed(f"{' '.join(argv)}\ncode {answer['code']}\n{self._err.read_text()[-3000:]}")
        return Sample(answer["seconds"], answer["cpu"], answer["peak"] * 1024)

    def output(self) -> bytes:
        """What the last command with ``keep_output`` printed."""
        return self._out.read_bytes()
