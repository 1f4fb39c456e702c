"""Over HTTP: the same command as a Ray job, run by a driver inside the cluster, whose Python and Ray are its own."""

from __future__ import annotations

import io
import logging
import shlex
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from codemods.errors import RefusedError
from fleet.bundle import make_bundle
from fleet.cluster import NoClusterError, no_ray
from locales import _

_MARK = "==probepatch-fleet=="
_LIMIT = 3600.0  # seconds
_PAUSE = 1.0
_ITS_OWN = ("env", "-u", "RAY_JOB_CONFIG_JSON_ENV_VAR")
"""Else the job's folder would be sent to every node, and stand in its workers' PYTHONPATH before the framework."""


class NoAnswerError(RefusedError):
    """The job ended without an answer."""


def over_http(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def run_as_job(address: str, words: Sequence[str], recipes: Sequence[Path] = ()) -> tuple[int, str, str]:
    """``probepatch WORDS --address auto`` inside the cluster: its exit code, and what it printed on both streams. Raises
    NoRayError, NoClusterError, NoAnswerError. The job goes on when nobody waits for it any more."""
    try:
        from ray.job_submission import JobSubmissionClient
    except ImportError as error:
        raise no_ray() from error
    logging.getLogger("ray").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="probepatch-job-") as folder:
        with zipfile.ZipFile(io.BytesIO(make_bundle(recipes))) as archive:
            archive.extractall(folder)
        command = shlex.join([*_ITS_OWN, "python", "probepatch.py", *words, "--address", "auto"])
        shown = f"echo {_MARK}; cat answer.out; echo {_MARK}; cat answer.err; echo {_MARK} $code"
        entry = f"{command} > answer.out 2> answer.err; code=$?; {shown}"
        try:
            client = JobSubmissionClient(address)
            job = client.submit_job(
                entrypoint=f"sh -c {shlex.quote(entry)}", runtime_env={"working_dir": folder}, entrypoint_num_cpus=0
            )
        except Exception as error:
            raise NoClusterError(
                _("the Ray cluster at {address} takes no job").format(address=address), why=str(error)[:300]
            ) from error
    try:
        until = time.monotonic() + _LIMIT
        while not client.get_job_status(job).is_terminal() and time.monotonic() < until:
            time.sleep(_PAUSE)
        log = client.get_job_logs(job)
    except Exception as error:
        raise _no_answer(job, str(error)[:300]) from error
    return _answer(log, job)


def _answer(log: str, job: str) -> tuple[int, str, str]:
    parts = log.split(_MARK)[-3:]  # the command line, with these marks, may stand before
    if len(parts) < 3 or not parts[2].strip().isdecimal():
        lines = [line for line in log.splitlines() if line.strip()]
        raise _no_answer(job, lines[-1][:300] if lines else None)
    return int(parts[2]), parts[0].removeprefix("\n"), parts[1].removeprefix("\n")


def _no_answer(job: str, why: str | None) -> NoAnswerError:
    return NoAnswerError(
        _("the job {job} gave no answer").format(job=job),
        why=why,
        todo=_("`ray job logs {job}`, and `probepatch fleet status`").format(job=job),
    )
