"""What the tests share: scripts from text, and their verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stages.inputs.report import Report, judge
from stages.inputs.run import Known, Run, parse, read, runs
from stages.inputs.shell.nodes import Source
from stages.inputs.shell.reading import Reading
from stages.inputs.shell.run import read_script

SCRIPTS = Path(__file__).parent / "scripts"
CASES = Path(__file__).parent.parent / "cases"


def reading(text: str, path: str = "/nowhere/script.sh", **env: str) -> Reading:
    return read_script(Source(Path(path), text), env)


def run_of(text: str, name: str = "/nowhere/script.sh", **known: Any) -> Run:
    """The only run of a script."""
    facts = Known(**known)
    (run,) = runs([parse(Path(name), text, facts)], facts)
    return run


def report_of(*paths: Path, **known: Any) -> Report:
    facts = Known(**known)
    scripts = [read(path, facts) for path in paths]
    return judge(scripts, runs(scripts, facts))


def states(report: Report) -> dict[str, str]:
    """rule -> PASS, FAIL, UNKNOWN; of one run."""
    return {item.rule.id: item.verdict.state for item in report.all()}


def verdict(text: str, rule: str, **known: Any) -> Any:
    run = run_of(text, **known)
    report = judge([], [run])
    return next(item.verdict for item in report.all() if item.rule.id == rule)


def verl(*overrides: str, before: str = "") -> str:
    return f"{before}\npython3 -m verl.trainer.main_ppo {' '.join(overrides)}\n"


def slime(*flags: str, job: bool = False) -> str:
    return f"{'ray job submit -- ' if job else ''}python3 train.py --sglang-mem-fraction-static 0.7 {' '.join(flags)}\n"
