"""The config that a training really runs with: builds the bridge's provider in the training side's interpreter.

Runs from standard input there, so it is one file of standard library code; no weights are read. What cannot be done is
returned as ``{"error": …}``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import re
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from typing import Any

OPTIONAL = "nvidia_resiliency_ext"  # restarts and checkpoints of NVIDIA's trainers; no config comes from it
CORE = ("megatron.bridge", "megatron.bridge.models")
DEPTH = 6


def main(given: dict[str, Any]) -> dict[str, Any]:
    """As :func:`dump`; what the side's code prints goes nowhere."""
    with _quiet():
        return dump(given)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Standard output and error closed for Python and C alike: an endless print would fill the memory of whoever listens."""
    sys.stdout.flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    nothing = os.open(os.devnull, os.O_WRONLY)
    for descriptor in saved:
        os.dup2(nothing, descriptor)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        for descriptor, kept in saved.items():
            os.dup2(kept, descriptor)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  the side's code may have closed its own


def dump(given: dict[str, Any]) -> dict[str, Any]:
    """``given``: hf_dir, bridge (``Class``, ``module.Class`` or ``module:Class``), sources (folders put before sys.path)."""
    sources = [root for root in given["sources"] if os.path.isdir(root)]
    sys.path[:0] = [root for root in sources if root not in sys.path]
    stubbed = [OPTIONAL] if _stub() else []
    try:
        config = _read_json(os.path.join(given["hf_dir"], "config.json"))
        bridge, module = _bridge_class(given["bridge"], sources)
        provider, config_from = _provider(bridge, given["hf_dir"], config)
        finalized, why_not = _finalize(provider)
        result = _dumped(finalized if finalized is not None else provider)
    except _FailedError as error:
        return {"error": error.told}
    except ModuleNotFoundError as error:
        missing = error.name or str(error)
        return {"error": {"kind": "import", "module": missing, "text": str(error), "where": _where(error)}}
    except BaseException as error:  # noqa: BLE001  whatever the side's own code raises, sys.exit too, is told, not thrown
        return {"error": {"kind": "failed", "text": f"{type(error).__name__}: {error}"[:500], "where": _where(error)}}
    return {
        **result,
        "bridge": f"{bridge.__module__}.{bridge.__qualname__}",
        **_source(module),
        "hf_dir": given["hf_dir"],
        "hf_config_read_by": config_from,
        "finalized": finalized is not None,
        "not_finalized_because": why_not,
        "stubbed": stubbed,
        "sources": sources,
        "python": sys.executable,
        "versions": _versions(),
    }


def _source(module: str) -> dict[str, str | None]:
    """The file that the bridge stands in, and its SHA-256."""
    path = getattr(sys.modules.get(module), "__file__", None)
    if not isinstance(path, str) or not os.path.isfile(path):
        return {"bridge_file": None, "bridge_sha256": None}
    with open(path, "rb") as file:
        return {"bridge_file": os.path.abspath(path), "bridge_sha256": hashlib.sha256(file.read()).hexdigest()}


class _FailedError(Exception):
    def __init__(self, kind: str, text: str, **more: Any) -> None:
        super().__init__(text)
        self.told = {"kind": kind, "text": text, **more}


class _Stub(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Any submodule of the optional package, with any name in it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != OPTIONAL:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


class _Empty(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _stub() -> bool:
    if importlib.util.find_spec(OPTIONAL) is not None:
        return False
    sys.meta_path.append(_Stub())
    return True


def _bridge_class(name: str, sources: list[str]) -> tuple[type, str]:
    """The class, and the module it was found in."""
    module, _, short = name.rpartition(":") if ":" in name else name.rpartition(".")
    for known in [module] if module else CORE:
        try:
            loaded = importlib.import_module(known)
        except ModuleNotFoundError as error:
            if error.name and known.startswith(error.name):
                continue  # this package is not there at all: look elsewhere
            raise
        if isinstance(getattr(loaded, short, None), type):
            return getattr(loaded, short), known
    for place in _defining(short, sources):
        loaded = importlib.import_module(place)
        if isinstance(getattr(loaded, short, None), type):
            return getattr(loaded, short), place
    raise _FailedError(
        "no-bridge", f"no class {short} in {module or ', '.join(CORE)} or in the sources", near=_near(short)
    )


def _roots(sources: list[str]) -> Iterator[str]:
    for source in sources:
        yield source
        if os.path.isdir(os.path.join(source, "src")):
            sys.path.insert(0, os.path.join(source, "src"))
            yield os.path.join(source, "src")
    loaded = sys.modules.get("megatron.bridge")
    for folder in getattr(loaded, "__path__", ()):
        yield os.path.dirname(os.path.dirname(folder))


def _defining(short: str, sources: list[str]) -> Iterator[str]:
    """Names of the modules whose text defines the class."""
    pattern = re.compile(rf"^class {re.escape(short)}\b".encode(), re.MULTILINE)
    seen = set()
    for root in _roots(sources):
        for folder, below, files in os.walk(root):
            below[:] = [one for one in below if one.isidentifier() and one not in ("tests", "test")]
            for file in files:
                path = os.path.join(folder, file)
                if not file.endswith(".py") or path in seen:
                    continue
                seen.add(path)
                with open(path, "rb") as opened:
                    if not pattern.search(opened.read()):
                        continue
                parts = os.path.relpath(path, root)[: -len(".py")].split(os.sep)
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _near(short: str) -> list[str]:
    """Bridges that are there, for the one that was meant."""
    models = sys.modules.get("megatron.bridge.models")
    return sorted(name for name in dir(models) if name.endswith("Bridge"))[:80] if models is not None else []


def _provider(bridge: type, hf_dir: str, config: dict[str, Any]) -> tuple[Any, str]:
    if hasattr(bridge, "from_hf_pretrained"):  # AutoBridge: dispatches by the config's architecture
        made = bridge.from_hf_pretrained(hf_dir)
        return made.to_megatron_provider(load_weights=False), "the bridge"
    if not hasattr(bridge, "provider_bridge"):
        raise _FailedError("no-bridge", f"{bridge.__name__} has no provider_bridge(); is it a bridge?", near=_near(""))
    pretrained, read_by = _pretrained(hf_dir, config)
    made = bridge()
    if getattr(made, "hf_config", None) is None:
        made.hf_config = pretrained.config
    return made.provider_bridge(pretrained), read_by


def _pretrained(hf_dir: str, config: dict[str, Any]) -> tuple[Any, str]:
    """What a bridge is handed: an object with the config; weights are loaded by nobody here."""
    try:
        wrapper = importlib.import_module("megatron.bridge.models.hf_pretrained.causal_lm").PreTrainedCausalLM
        pretrained = wrapper.from_pretrained(hf_dir)
        _ = pretrained.config
        return pretrained, "the bridge"
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("megatron"):
            raise
    if importlib.util.find_spec("transformers") is not None:
        loaded = importlib.import_module("transformers").AutoConfig.from_pretrained(hf_dir)
        return types.SimpleNamespace(config=loaded, model_name_or_path=hf_dir), "transformers"
    return types.SimpleNamespace(config=types.SimpleNamespace(**config), model_name_or_path=hf_dir), "json"


def _finalize(provider: Any) -> tuple[Any, str | None]:
    """The provider as it is right before the model is built; the derived fields (head size, groups) are filled in."""
    if not hasattr(provider, "finalize"):
        return provider, None
    import copy

    try:
        final = copy.copy(provider)
        final.finalize()
    except Exception as error:  # noqa: BLE001  it may ask for a device, or for parallel sizes of a job
        return None, f"{type(error).__name__}: {error}"[:300]
    return final, None


# --- into JSON --------------------------------------------------------------------------------------------------------


def _dumped(provider: Any) -> dict[str, Any]:
    declared = dataclasses.fields(provider) if dataclasses.is_dataclass(provider) else None
    held = {name: value for name, value in vars(provider).items() if not name.startswith("_")}
    names = [one.name for one in declared if not one.name.startswith("_")] if declared is not None else list(held)
    unreadable: dict[str, str] = {}
    config = _encoded_all({name: getattr(provider, name, None) for name in names}, unreadable)
    loose = {name: value for name, value in held.items() if name not in names and not hasattr(type(provider), name)}
    return {
        "format": "probepatch/effective-config/1",
        "provider_class": f"{type(provider).__module__}.{type(provider).__qualname__}",
        "config": config,
        "undeclared": _encoded_all(loose, unreadable) if declared is not None else None,
        "at_default": _at_default(provider, declared) if declared is not None else None,
        "unreadable": unreadable,
    }


def _at_default(provider: Any, declared: Sequence[Any]) -> list[str]:
    """Declared names whose value is the class's own default: nobody set them, or set them to the same."""
    found = []
    for one in declared:
        value = getattr(provider, one.name, None)
        plain = isinstance(value, (bool, int, float, str, type(None)))
        if (
            plain
            and one.default is not dataclasses.MISSING
            and type(value) is type(one.default)
            and value == one.default
        ):
            found.append(one.name)
    return sorted(found)


def _encoded_all(values: dict[str, Any], unreadable: dict[str, str]) -> dict[str, Any]:
    out = {}
    for name, value in sorted(values.items()):
        try:
            out[name] = _encoded(value, 0)
        except TypeError:
            unreadable[name] = type(value).__name__
    return out


def _encoded(value: Any, depth: int) -> Any:
    """JSON; a type, function or torch dtype by its name. Raises TypeError for what has no plain form."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, functools.partial):
        return _encoded(value.func, depth)
    if type(value).__module__.partition(".")[0] == "torch" and type(value).__name__ in ("dtype", "device"):
        return str(value)
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return f"{value.__module__}.{value.__qualname__}"
    if depth < DEPTH:
        if isinstance(value, dict):
            return {str(key): _encoded(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [_encoded(item, depth + 1) for item in value]
        if dataclasses.is_dataclass(value):
            return {one.name: _encoded(getattr(value, one.name), depth + 1) for one in dataclasses.fields(value)}
    raise TypeError


def _read_json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise _FailedError("no-config", f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _FailedError("no-config", f"{path} is no JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise _FailedError("no-config", f"{path} holds no object")
    return data


def _versions() -> dict[str, str | None]:
    from importlib import metadata

    found: dict[str, str | None] = {}
    for name in ("megatron-bridge", "megatron-core", "transformers", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _where(error: BaseException) -> str | None:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
