"""Over HTTP: the same command as a Ray job, run by a driver inside the cluster, whose Python and Ray are its own."""

from __future__ import annotations

import io
import shlex
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from codemods.errors import RefusedError
from fleet.bundle import make_bundle
from fleet.cluster import NoClusterError, NoRayError
from locales import _

_MARK = "==probepatch-fleet=="
_LIMIT = 3600.0  # seconds
_PAUSE = 1.0


class NoAnswerError(RefusedError):
    """The job ended without an answer."""


def over_http(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def run_as_job(address: str, words: Sequence[str], recipes: Sequence[Path] = ()) -> tuple[int, str]:
    """``probepatch WORDS --address auto`` inside the cluster: its exit code, and what it printed. Raises NoRayError,
    NoClusterError, NoAnswerError."""
    try:
        from ray.job_submission import JobSubmissionClient
    except ImportError as error:
        raise NoRayError(
            _("Ray's job client is not installed in this environment"), todo=_("`pip install 'ray[default]'`")
        ) from error
    with tempfile.TemporaryDirectory(prefix="probepatch-job-") as folder:
        with zipfile.ZipFile(io.BytesIO(make_bundle(recipes))) as archive:
            archive.extractall(folder)
        command = shlex.join(["python", "probepatch.py", *words, "--address", "auto"])
        entry = f"{command} > answer.out; code=$?; echo {_MARK}; cat answer.out; echo {_MARK} $code"
        try:
            client = JobSubmissionClient(address)
            job = client.submit_job(
                entrypoint=f"sh -c {shlex.quote(entry)}", runtime_env={"working_dir": folder}, entrypoint_num_cpus=0
            )
        except Exception as error:
            raise NoClusterError(
                _("the Ray cluster at {address} takes no job").format(address=address), why=str(error)[:300]
            ) from error
    until = time.monotonic() + _LIMIT
    while not client.get_job_status(job).is_terminal() and time.monotonic() < until:
        time.sleep(_PAUSE)
    return _answer(client.get_job_logs(job), job)


def _answer(log: str, job: str) -> tuple[int, str]:
    parts = log.split(f"{_MARK}")
    if len(parts) < 3 or not parts[-1].split()[:1] or not parts[-1].split()[0].isdigit():
        lines = [line for line in log.splitlines() if line.strip()]
        raise NoAnswerError(
            _("the job {job} ended without an answer").format(job=job),
            why=lines[-1][:300] if lines else None,
            todo=f"ray job logs {job}",
        )
    return int(parts[-1].split()[0]), parts[-2].removeprefix("\n")
