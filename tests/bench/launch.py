"""Starts commands and measures them, in a process of its own that is as small as Python gets.

The size matters: Linux counts the memory of the process that forked into the peak of its child. Reads one JSON table a line
(argv, cwd, env, out, err), answers with one (seconds, cpu, peak, code). Run with ``python -I -S``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, NoReturn


def run(job: dict[str, Any]) -> dict[str, float]:
    """Wall and CPU seconds (user and system, children included), peak resident kibibytes, exit code."""
    before = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        _become(job)
    _pid, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - before
    code = os.waitstatus_to_exitcode(status)
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss, "code": code}


def _become(job: dict[str, Any]) -> NoReturn:
    try:
        os.chdir(job["cwd"])
        for number, name, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, job["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            os.dup2(os.open(name, flags, 0o600), number)
        os.execve(job["argv"][0], job["argv"], job["env"])
    finally:
        os._exit(127)


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
