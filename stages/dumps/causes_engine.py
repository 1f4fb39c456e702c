"""The causes that only the side's own interpreter can tell: msprobe there, the engine's flag, the copy that it imports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from locales import _
from stages.dumps.situation import CONFIRMED, NOT_CHECKED, RULED_OUT, Cause, Signs, Situation, given
from stages.preflight.asking import ask
from stages.sides import Side, SideError

_LIMIT = 300.0  # seconds: a first import from a cold disk is slow
_V2 = ("VLLM_USE_V2_MODEL_RUNNER", "USE_V2_RUNNER")
_NATIVE = {"vllm_ascend": ("dump_config_path", "dump_config"), "sglang": ("msprobe_dump_config",)}
"""Names of the engines' own options for msprobe, the usual one first."""

_ENGINE = """
import importlib.metadata, importlib.util, os, re, sys
sys.path[:] = [*GIVEN["pythonpath"], *(place for place in sys.path if place)]
if GIVEN["workdir"] and os.path.isdir(GIVEN["workdir"]):
    sys.path.insert(0, GIVEN["workdir"])
found = {"folder": None, "version": None, "names": [], "payload": False}
try:
    spec = importlib.util.find_spec(GIVEN["package"])
except (ImportError, ValueError, AttributeError):
    spec = None
if spec is not None and spec.submodule_search_locations:
    found["folder"] = os.path.realpath(list(spec.submodule_search_locations)[0])
for name in (GIVEN["package"], GIVEN["package"].replace("_", "-")):
    try:
        found["version"] = found["version"] or importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
words = {name: re.compile(rb"\\b" + name.encode() + rb"\\b") for name in GIVEN["names"]}
for folder, _folders, files in os.walk(found["folder"] or "", onerror=None):
    for file in files:
        if not file.endswith(".py"):
            continue
        found["payload"] = found["payload"] or file.startswith("probepatch_")
        if len(found["names"]) < len(words):
            try:
                with open(os.path.join(folder, file), "rb") as source:
                    text = source.read(4 << 20)
            except OSError:
                continue
            found["names"] += [n for n, word in words.items() if n not in found["names"] and word.search(text)]
answer(found)
"""


def msprobe_cause(known: Situation, signs: Signs | None) -> Cause:
    place = _environment(known.name)
    what = _("msprobe cannot be imported in {place}").format(place=place)
    if known.side is not None:
        try:
            told: Any = ask(known.side, "msprobe", _given(known), _LIMIT)
        except SideError as error:
            why = " ".join(filter(None, (error.what, error.why)))
            return Cause("msprobe-missing", NOT_CHECKED, what, why, error.todo or "")
        if told["imported"]:
            why = _("msprobe {version} is imported by {python}").format(
                version=told["version"] or "?", python=known.side.python
            )
            return Cause("msprobe-missing", RULED_OUT, what, why)
        return _missing(place, told, known.side)
    if signs is not None and signs.swallowed:
        return Cause("msprobe-missing", CONFIRMED, what, _("the log says: {said}").format(said=signs.swallowed))
    return Cause(
        "msprobe-missing", NOT_CHECKED, what, _("this side's interpreter is unknown"), _todo_python(known.name)
    )


def _missing(place: str, told: Mapping[str, Any], side: Side) -> Cause:
    """Engines swallow this error, and then dump nothing without a word."""
    module = (told["missing"] or "").partition(".")[0]
    own = not module or module == "msprobe"
    text = _("msprobe cannot be imported in {place}")
    if not own:
        text = _("msprobe cannot be imported in {place}: {module} missing")
    elif told["version"] is None:
        text = _("msprobe cannot be imported in {place}: it is not installed")
    todo = _("install {name} there ({python}) and capture again").format(
        name="mindstudio-probe" if own else module, python=side.python
    )
    what = text.format(place=place, module=module)
    return Cause("msprobe-missing", CONFIRMED, what, str(told["error"] or ""), todo)


def _environment(name: str) -> str:
    return _("the inference side's environment") if name == "infer" else _("the training side's environment")


def _todo_python(name: str) -> str:
    return _("`probepatch task set {side}.python=…`, or --{side}-python").format(side=name)


def _given(known: Situation) -> dict[str, Any]:
    places = (given(known, "PYTHONPATH") or "").split(":")
    return {"workdir": known.workdir, "pythonpath": [one for one in places if one.startswith("/") and "$" not in one]}


def flag_cause(known: Situation) -> list[Cause]:
    """Of an engine that dumps by itself: whether its option is given, and known to the version that is there."""
    names = _NATIVE.get(known.framework or "") if known.name == "infer" else None
    if names is None or (known.recipes is not None and not known.native):
        return []
    what = _("the engine's option for msprobe is not given, or this version does not know it")

    def cause(state: str, why: str, todo: str = "") -> list[Cause]:
        return [Cause("engine-flag", state, what, why, todo)]

    if known.launch is None:
        return cause(NOT_CHECKED, _("the launch line is unknown"))
    pattern = "|".join(rf"(?<![a-z]){name.replace('_', '[-_]')}(?!\w)" for name in names)
    written = re.search(pattern, known.launch)
    todo = _todo_flag(names[0])
    if written is None:
        return cause(CONFIRMED, _("the launch line has no {name}").format(name=names[0]), todo)
    used = written.group().replace("-", "_")
    told, why = _engine(known)
    if told is None:
        return cause(NOT_CHECKED, why, _todo_python(known.name))
    version, right = f"{known.framework} {told['version'] or '?'}", next(iter(told["names"]), "")
    if used not in told["names"]:
        text = _("{version} does not know `{name}`, and ignores it without a word")
        if right:
            text = _("{version} does not know `{name}`: it expects a path under `{right}`")
        return cause(
            CONFIRMED, text.format(version=version, name=used, right=right), _todo_flag(right) if right else ""
        )
    object_given = re.match(r"\W{0,4}[:=]\s*\\?['\"]?\{", known.launch[written.end() :])
    if used == "dump_config" and "dump_config_path" in told["names"] and not object_given:
        why = _("`{name}` wants an object; a path goes under `{right}`").format(name=used, right=names[0])
        return cause(CONFIRMED, why, todo)
    return cause(RULED_OUT, _("{version} knows `{name}`").format(version=version, name=used))


def _todo_flag(name: str) -> str:
    if name.startswith("dump_config"):
        return _("""give it as --additional-config '{{"{name}":"CONFIG.json"}}', without spaces""").format(name=name)
    return _("start it with --{flag} PATH").format(flag=name.replace("_", "-"))


def _engine(known: Situation) -> tuple[dict[str, Any] | None, str]:
    """(what the interpreter finds of the framework, or None and why)."""
    if known.side is None:
        return None, _("this side's interpreter is unknown")
    asked = {**_given(known), "package": known.framework, "names": list(_NATIVE.get(known.framework or "", ()))}
    try:
        told = known.side.ask(_ENGINE, asked)
    except SideError as error:
        return None, " ".join(filter(None, (error.what, error.why)))
    if told["folder"] is None:
        return None, _("{package} is not in this interpreter").format(package=known.framework)
    return dict(told), ""


def runner_cause(known: Situation, signs: Signs | None) -> list[Cause]:
    """vLLM chooses between two model runners; only the one that was instrumented dumps."""
    if known.name != "infer" or known.framework not in ("vllm", "vllm_ascend"):
        return []
    what = _("the second model runner is in use, which has no dump code")
    todo = _("start it with VLLM_USE_V2_MODEL_RUNNER=0")

    def cause(state: str, why: str) -> list[Cause]:
        return [Cause("model-runner-v2", state, what, why, todo if state != RULED_OUT else "")]

    if any(one.endswith("-v2-runner") for one in known.recipes or ()):
        return cause(RULED_OUT, _("it was instrumented as well"))
    if signs is not None and signs.runner:
        why = _("the log names the {name} model runner").format(name=signs.runner)
        return cause(CONFIRMED if signs.runner == "V2" else RULED_OUT, why)
    for name in _V2:
        value = given(known, name)
        if value in ("0", "1"):
            return cause(CONFIRMED if value == "1" else RULED_OUT, f"{name}={value}")
    return cause(NOT_CHECKED, _("neither the log nor the environment says; newer versions choose it by themselves"))


def copy_cause(known: Situation) -> list[Cause]:
    """Of a patched framework: whether the copy that the interpreter imports is the patched one."""
    if known.native or not known.recipes or known.framework in (None, "own", "transformers"):
        return []
    what = _("the job runs another copy of {package} than the one that was patched").format(package=known.framework)
    told, why = _engine(known)
    if told is None:
        return [Cause("other-copy", NOT_CHECKED, what, why)]
    python = known.side.python if known.side is not None else ""
    why = _("{python} imports it from {folder}").format(python=python, folder=told["folder"])
    if told["payload"]:
        return [Cause("other-copy", RULED_OUT, what, why)]
    if known.script_checked:
        why = _("the launch script puts the patched one first (stage 4, rule package); {why}").format(why=why)
        return [Cause("other-copy", RULED_OUT, what, why)]
    todo = _("put the checkout first in PYTHONPATH, install it with pip -e, or patch that folder")
    return [Cause("other-copy", CONFIRMED, what, why, todo)]
