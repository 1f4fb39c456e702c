"""What each captured step is: told by the log's line for it and by the tokens that went into its forward; its number tells nothing.

Fit for comparison is the prefill of exactly one request whose input is the prompt, the whole prompt and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from locales import _, ngettext
from stages.dumps.layout import Folder
from stages.dumps.lines import alone, line_of, lines_by_place
from stages.dumps.outline import Outline
from stages.dumps.problem import ERROR, WARNING, Problem
from stages.dumps.reading import said
from stages.dumps.records import Line

PREFILL, DECODE, CHUNKED, CACHED, DUMMY = "prefill", "decode", "chunked-prefill", "prefix-cached", "dummy"
MIXED, PADDED, EMPTY, UNKNOWN = "mixed", "padded", "empty", "unknown"
LABELS = (PREFILL, DECODE, CHUNKED, CACHED, DUMMY, MIXED, PADDED, EMPTY, UNKNOWN)
WARM_UP = "warm-up-captured"
TODO = {
    "padding-left": _(
        "take the padding out (use_remove_padding=True, --data-pad-size-multiplier 1), and capture again"
    ),
    "response-left": _("PROMPTS_ONLY=1 for the training side, and capture again"),
    WARM_UP: _("start the debugger at the forward of a request, or add its step to `step` of the config"),
    "prefix-cache-hit": _("switch the prefix cache off, or send a prompt that was not sent before"),
    "chunked-prefill": _(
        "more tokens for a batch (max_num_batched_tokens, --chunked-prefill-size), or a shorter prompt"
    ),
    "several-requests": _("send the request alone, or one at a time"),
    "input-too-short": _("is the prompt cut, or shared out over context-parallel ranks?"),
}


@dataclass(frozen=True)
class Step:
    """``tokens``: rows of the model's input, padding included; None when the dump does not say. ``problem``: the name of what
    makes it unfit, where it has one."""

    folder: Folder
    line: Line | None
    tokens: int | None
    label: str
    why: str
    outline: Outline
    problem: str = ""

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.outline.heads[0].shape if self.outline.heads else None

    @property
    def requests(self) -> tuple[str, ...]:
        return tuple(one for one in self.line.request_ids if one is not None) if self.line else ()

    @property
    def prompt_tokens(self) -> int | None:
        """Real tokens of all its prompts; None where one is unknown."""
        return _sum(self.line.prompt_tokens) if self.line else None


@dataclass(frozen=True)
class Choice:
    """``unfit``: every other step of the process, and why it is not the one."""

    step: Step | None
    unfit: tuple[tuple[Step, str], ...]
    problems: tuple[Problem, ...]


def label_all(
    folders: Iterable[Folder], lines: Sequence[Line], outlines: Iterable[Outline]
) -> tuple[tuple[Step, ...], tuple[Problem, ...]]:
    """A step for each folder; ``outlines`` in the folders' order. ``lines`` of one side; without any, dumps tell what they can."""
    places, problems = lines_by_place(lines)
    steps, named = [], [(folder, line_of(folder, places)) for folder in folders]
    lines_of = alone(named)
    for folder, one in zip((folder for folder, _line in named), outlines, strict=True):
        line, ambiguous = lines_of[folder.path]
        if ambiguous:
            steps.append(Step(folder, None, _tokens(one), UNKNOWN, ambiguous, one))
        else:
            steps.append(label(folder, line, one, logged=bool(lines)))
    problems += [_problem(step) for step in steps if step.problem == WARM_UP]
    return tuple(steps), tuple(problems)


def label(folder: Folder, line: Line | None, dump: Outline, *, logged: bool = True) -> Step:
    """``logged``: whether the side keeps a log at all; where it does, a step without a line is nobody's request."""
    tokens = _tokens(dump)
    if dump.empty:
        told = EMPTY, _("there are no entries in its dump"), ""
    elif len({one.rows for one in dump.heads}) > 1:
        told = _several_forwards(line, [one.rows for one in dump.heads])
    elif line is not None:
        told = _by_line(line, tokens)
    elif logged:
        told = DUMMY, _("no line of the log names it: a profile, warm-up or dummy run"), WARM_UP
    else:
        told = UNKNOWN, _("no log says what it is"), ""
    return Step(folder, line, tokens, told[0], told[1], dump, told[2])


def _several_forwards(line: Line | None, rows: list[int]) -> tuple[str, str, str]:
    """Label, why, problem. A request's forward behind others: the debugger was on too early."""
    shown = ", ".join(map(str, rows[:6])) + (", …" if len(rows) > 6 else "")
    why = _("{count} forwards in one step, of {tokens} tokens").format(count=len(rows), tokens=shown)
    expected = _sum(line.prompt_tokens) if line else None
    warm = expected is not None and rows[0] != expected and expected in rows[1:]
    return MIXED, why, WARM_UP if warm else ""


def _by_line(line: Line, tokens: int | None) -> tuple[str, str, str]:
    """Label, why, problem."""
    phase = line.phase or ""
    if not line.request_ids:
        phase = said(phase or _("a dummy run"), 40)
        return DUMMY, _("no request was in it: {phase}").format(phase=phase), WARM_UP
    if phase == "health_check":
        return DUMMY, _("a health check of the engine"), WARM_UP
    if phase == "mixed" or len({one for one in line.phases or () if one}) > 1:
        return MIXED, _("prefill and decode in one step"), ""
    if phase == "decode":
        return DECODE, _("a decode step"), ""
    if phase == "chunked_prefill":
        return CHUNKED, _("a part of a prompt, or a prompt computed again"), "chunked-prefill"
    if line.computed and any(line.computed):
        why = _("{cached} tokens of the prompt came from the prefix cache").format(cached=sum(line.computed))
        return CACHED, why, "prefix-cache-hit"
    return _by_tokens(line, phase, tokens)


def _by_tokens(line: Line, phase: str, tokens: int | None) -> tuple[str, str, str]:
    prompts = _sum(line.prompt_tokens)
    if tokens is None:
        return UNKNOWN, _("its dump does not show how many tokens went in"), ""
    if prompts is None:
        return UNKNOWN, _("the log does not say how long the prompt is"), ""
    if tokens == prompts:
        count = len(line.request_ids)
        why = ngettext("the prefill of {count} request", "the prefill of {count} requests", count)
        return PREFILL, why.format(count=count), ""
    given = _("{tokens} tokens went in, the prompt has {prompts}").format(tokens=tokens, prompts=prompts)
    if tokens < prompts:
        if phase == "prefill" and line.computed is None:
            return CACHED, _("{given}: a prefix cache, or a part").format(given=given), "prefix-cache-hit"
        return UNKNOWN, given, "input-too-short"
    if line.token_count is not None and line.token_count > prompts and tokens == line.token_count:
        return PADDED, _("{given}: the response is still in it").format(given=given), "response-left"
    return PADDED, _("{given}: padding is still in it").format(given=given), "padding-left"


def choose(steps: Iterable[Step], requests: Collection[str], tokens: int | None) -> Choice:
    """Of one process's steps, the one that is the prefill of this request alone. ``requests``: the ids that it has on this
    side; ``tokens``: real length of its prompt, None where only the log knows."""
    found: Step | None = None
    unfit: list[tuple[Step, str]] = []
    named: list[Problem] = []
    for step in sorted(steps, key=lambda one: (one.folder.step, one.folder.above)):
        why, problem = _unfit(step, requests, tokens)
        if not why and found is not None:
            why = _("step {step} was the first of this request").format(step=found.folder.step)
        if not why:
            found = step
            continue
        unfit.append((step, why))
        if problem:
            what = _("step {step}: {why}").format(step=step.folder.step, why=why)
            named.append(Problem(problem, WARNING, what, str(step.folder.path), TODO[problem]))
    if found is not None:
        return Choice(found, tuple(unfit), tuple(one for one in named if one.name != WARM_UP))
    errors = [Problem(one.name, ERROR, one.what, one.where, one.todo) for one in named]
    what = _("no step is the prefill of this request alone")
    seen = "; ".join(f"step {one.folder.step}: {one.label}" for one, _why in unfit[:12])
    errors.append(Problem("no-step-fits", ERROR, f"{what} ({seen})" if seen else what, "", _("capture again")))
    return Choice(None, tuple(unfit), tuple(errors))


def choose_each(steps: Iterable[Step], requests: Collection[str], tokens: int | None) -> dict[str, Choice]:
    """`choose` for each process, by ``rank0`` or ``proc123`` (behind what is above it, where there is something). A
    data-parallel rank that never saw the request has no step; it is a failure when none has one (`chosen`)."""
    groups: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        above = f"{step.folder.above}/" if step.folder.above else ""
        groups[above + step.folder.process].append(step)
    return {name: choose(own, requests, tokens) for name, own in groups.items()}


def chosen(choices: Mapping[str, Choice]) -> tuple[tuple[Step, ...], tuple[Problem, ...]]:
    """The steps that fit, one for each process that has one, and what is to be said: the errors only where there is none."""
    fit = [one for one in choices.values() if one.step is not None]
    if fit:
        steps = tuple(one.step for one in fit if one.step is not None)
        return steps, tuple(problem for one in fit for problem in one.problems)
    problems = tuple(dict.fromkeys(problem for one in choices.values() for problem in one.problems))
    return (), problems or (Problem("no-step-fits", ERROR, _("there are no steps")),)


def _unfit(step: Step, requests: Collection[str], tokens: int | None) -> tuple[str, str]:
    """Why it is not the one, and the problem's name where it is about this request; both empty for the one."""
    own = any(one in requests for one in step.requests)
    if step.label != PREFILL:
        about = own or step.problem == WARM_UP
        return f"{step.label}: {step.why}", step.problem if about else ""
    if not own and not any(step.requests):
        return _("the prefill of no request that has an id: a warm-up, or ids that were not handed on"), WARM_UP
    if not own:
        return _("the prefill of another request"), ""
    if step.line is not None and len(step.line.request_ids) > 1:
        return step.why, "several-requests"
    if tokens is not None and step.tokens != tokens:
        why = _("{tokens} tokens went in, the prompt has {prompts}").format(tokens=step.tokens, prompts=tokens)
        return why, "input-too-short" if (step.tokens or 0) < tokens else "padding-left"
    return "", ""


def _problem(step: Step) -> Problem:
    what = _("step {step}: {why}").format(step=step.folder.step, why=step.why)
    return Problem(step.problem, WARNING, what, str(step.folder.path), TODO[step.problem])


def _tokens(dump: Outline) -> int | None:
    return dump.heads[0].rows if dump.heads else None


def _sum(tokens: Iterable[int | None]) -> int | None:
    total = 0
    for one in tokens:
        if one is None:
            return None
        total += one
    return total
