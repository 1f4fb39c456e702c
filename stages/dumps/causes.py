"""Why a side left no dump, or an almost empty one: the likely causes in order, each checked where it can be, with the interpreter
that ran the job. What cannot be checked is said to be so; nothing is guessed."""

from __future__ import annotations

import re

from locales import _
from stages.dumps.causes_engine import copy_cause, flag_cause, msprobe_cause, runner_cause
from stages.dumps.situation import CONFIRMED, NOT_CHECKED, RULED_OUT, Cause, Signs, Situation, given, read_signs
from stages.msprobe_config import check_config

_ANY_SIZE = 1 << 20  # processes: a size that no rank is beyond
_EAGER = re.compile(
    r"--enforce[-_]eager(?!\S*[= ]?[Ff]alse)|enforce_eager['\"]?\s*[=:]\s*(?:True|true|1)\b|(?<![\w-])-cc\.mode=none"
)
_NOT_EAGER = re.compile(r"enforce[-_]eager['\"]?\s*[=: ]\s*(?:False|false|0)\b|--no-enforce-eager")
_NO_GRAPH = re.compile(r"disable[-_]cuda[-_]graph|cuda_graph_mode\S*none|msprobe[-_]dump[-_]config")
_VLLM = re.compile(r"vllm serve\b|vllm\.entrypoints\.\S*api_server|vllm bench\b")
_COMMANDS = {
    "vllm": _VLLM,
    "vllm_ascend": _VLLM,
    "sglang": re.compile(r"sglang\.launch_server|sglang serve\b|sglang\.bench"),
}
"""Commands that take every option on their own line, so that what is not there is not set."""


def likely_causes(known: Situation) -> tuple[Cause, ...]:
    """All causes in order of likelihood. A side that does not answer leaves its causes unchecked."""
    signs = read_signs(known.log) if known.log is not None else None
    causes = [_job(known), msprobe_cause(known, signs), *flag_cause(known)]
    if known.name == "infer":
        causes.append(_graphs(known))
    causes.append(_filter(known))
    causes += [*runner_cause(known, signs), *copy_cause(known), _switch(known, signs)]
    return tuple(causes)


def first_confirmed(causes: tuple[Cause, ...]) -> Cause | None:
    return next((one for one in causes if one.state == CONFIRMED), None)


def _job(known: Situation) -> Cause:
    what = _("the job itself failed")
    if known.job_rc is None:
        return Cause("job-failed", NOT_CHECKED, what, _("its exit code is not on record"))
    why = _("its exit code is {code}").format(code=known.job_rc)
    if known.job_rc == 0:
        return Cause("job-failed", RULED_OUT, what, why)
    todo = _("look at the end of its log; it has to run without the switches first")
    return Cause("job-failed", CONFIRMED, what, why, todo)


def _graphs(known: Situation) -> Cause:
    what = _("graph mode: a captured or compiled model does not call the hooks again, so most modules are missing")

    def cause(state: str, why: str, todo: str = "") -> Cause:
        return Cause("graph-mode", state, what, why, todo)

    if known.framework == "transformers":
        return cause(RULED_OUT, _("plain Transformers captures no graphs"))
    if not known.launch:
        return cause(NOT_CHECKED, _("the launch line is unknown"))
    sglang = known.framework == "sglang"
    todo = _("add {flag} and capture again").format(flag="--disable-cuda-graph" if sglang else "--enforce-eager")
    if not sglang and _NOT_EAGER.search(known.launch):
        return cause(CONFIRMED, _("the launch line switches eager mode off"), todo)
    if (_NO_GRAPH if sglang else _EAGER).search(known.launch):
        return cause(RULED_OUT, _("the launch line asks for eager mode"))
    command = _COMMANDS.get(known.framework or "")
    if command is not None and command.search(known.launch):
        return cause(CONFIRMED, _("the launch line does not ask for eager mode"), todo)
    why = _("the launch line does not say; the setting may be in a script or a config")
    return cause(NOT_CHECKED, why, _("`probepatch inputs check SCRIPT` reads them"))


def _filter(known: Situation) -> Cause:
    what = _("msprobe's config asks for ranks, steps or a level that give nothing")

    def cause(state: str, why: str, todo: str = "") -> Cause:
        return Cause("config-filter", state, what, why, todo)

    if known.config is None:
        return cause(NOT_CHECKED, _("the config is unknown"))
    checked = check_config(known.config, known.world_size or _ANY_SIZE)
    findings = [*checked.errors, *(one for one in checked.findings if one.key in ("level", "task"))]
    if findings:
        return cause(CONFIRMED, f"{findings[0].key}: {findings[0].what}".lstrip(": "), findings[0].todo)
    if checked.steps and known.steps_logged and not known.steps_logged & set(checked.steps):
        why = _("step {wanted} is asked for, and the job had {had}").format(
            wanted=_some(checked.steps), had=_some(tuple(sorted(known.steps_logged)))
        )
        return cause(CONFIRMED, why, _("step counts captured forwards from 0: use [0], or [] for all"))
    if checked.ranks and known.world_size is None:
        return cause(NOT_CHECKED, _("how many processes the job had is unknown"))
    return cause(RULED_OUT, _("its ranks, steps and level are fit"))


def _some(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")


def _switch(known: Situation, signs: Signs | None) -> Cause:
    what = _("DUMP_ON=1 did not reach the workers")

    def cause(state: str, why: str, todo: str = "") -> Cause:
        return Cause("switch-missing", state, what, why, todo)

    if known.steps_logged:
        return cause(RULED_OUT, _("the workers logged steps, which they do only with the switch on"))
    todo = _(
        "hand it to the workers: Ray's runtime_env, `docker exec -e`, the engine's own processes; not only to the driver"
    )
    if given(known, "DUMP_ON") not in (None, "1"):
        return cause(CONFIRMED, _("the command sets it to something else than 1"), todo)
    if signs is None:
        return cause(NOT_CHECKED, _("there is no log to look into"))
    if signs.started:
        return cause(RULED_OUT, _("the log tells of a debugger that started"))
    return cause(CONFIRMED, _("the log has no sign of a debugger, and no step was logged"), todo)
