"""The value of a setting in one launch: from its arguments, its base config, or the framework's default; with its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from locales import _
from stages.inputs.entries import Entry
from stages.inputs.settings import SETTINGS, VERIFIED, Key, Scalar, key_of
from stages.inputs.shell.expand import ARGUMENTS

_TRUE, _FALSE, _NULL = ("true", "yes", "on"), ("false", "no", "off"), ("null", "none", "~", "")


@dataclass(frozen=True)
class Found:
    """``known`` with its ``value`` (None: null), or not, with ``why``. ``entry`` is None for a default. ``written``: as it stands
    there. ``assumes``: variables that were taken as not set."""

    name: str
    known: bool
    value: Scalar = None
    why: str = ""
    entry: Entry | None = None
    where: str | None = None
    written: str = ""
    assumes: frozenset[str] = frozenset()

    @property
    def default(self) -> bool:
        return self.known and self.entry is None


@dataclass(frozen=True)
class Facts:
    """``entries`` of the launch and ``base`` of a config that it names. ``base_unknown``: why a base config was not read."""

    dialect: str
    entries: Sequence[Entry]
    base: Sequence[Entry] = ()
    base_unknown: str = ""
    version: str | None = None
    open: bool = False
    engine: str | None = None
    cache: dict[str, Found] = field(default_factory=dict, compare=False)

    def get(self, name: str) -> Found | None:
        """None when the framework has no such setting."""
        key = self.key(name)
        if key is None:
            return None
        if name not in self.cache:
            self.cache[name] = self._find(name, key)
        return self.cache[name]

    def key(self, name: str) -> Key | None:
        return key_of(name, self.dialect, self.engine)

    def entry(self, *names: str) -> Entry | None:
        """The last argument of one of these names."""
        return next((one for one in reversed(self.entries) if one.name in names), None)

    def _find(self, name: str, key: Key) -> Found:
        found = self._given(name, key, self.entries) or self._given(name, key, self.base)
        if found is None:
            found = self._default(name, key)
        if self.open and found.known and "$@" not in found.assumes:
            found = replace(found, assumes=found.assumes | {ARGUMENTS})
        return found

    def _given(self, name: str, key: Key, entries: Sequence[Entry]) -> Found | None:
        """The last entry decides; one that may not be there leaves it open, unless it makes no difference."""
        hits = [one for one in entries if _meant(one.name, key)]
        if not hits:
            return None
        last = hits[-1]
        found = _read(name, key, last)
        if last.maybe and found.known:
            before = [one for one in hits[:-1] if not one.maybe]
            other = _read(name, key, before[-1]) if before else self._default(name, key)
            if not other.known or other.value != found.value:
                return replace(found, known=False, why=last.maybe)
        return found

    def _default(self, name: str, key: Key) -> Found:
        if self.base_unknown:
            return Found(name, False, why=self.base_unknown)
        framework = self.dialect.partition("/")[0]
        values = {value for _range, value in key.defaults}
        if not key.defaults:
            return Found(name, False, why=_("{key} is not given, and its default is not known").format(key=key.name))
        if self.version is None:
            if len(values) == 1:
                return Found(name, True, key.defaults[0][1], written=_shown(key, key.defaults[0][1]))
            why = _("{key} is not given, and its default is not the same in every version of {framework}")
            return Found(name, False, why=why.format(key=key.name, framework=framework))
        if not within(self.version, VERIFIED.get(framework, "")):
            why = _("{key} is not given, and its default in {framework} {version} is not known here")
            return Found(name, False, why=why.format(key=key.name, framework=framework, version=self.version))
        for versions, value in key.defaults:
            if within(self.version, versions):
                return Found(name, True, value, written=_shown(key, value))
        return Found(name, False, why=_("{key} is not given, and its default is not known").format(key=key.name))


def within(version: str, versions: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(versions).contains(version, prereleases=True)
    except InvalidVersion:
        return False


def _shown(key: Key, value: Scalar) -> str:
    """A default, as it would be written; of a flag whether it is there."""
    if key.form in ("on", "off"):
        return _("no {flag}").format(flag=key.name) if value is (key.form == "off") else key.name
    if key.form == "pair":
        return key.name if value else no(key.name)
    value = not value if key.form == "inverse" else value
    return f"{key.name}={'null' if value is None else value}"


def _meant(name: str, key: Key) -> bool:
    names = (key.name, *key.also)
    if name in names:
        return True
    if key.form != "pair":
        return False
    return name in [no(one) for one in names]


def no(flag: str) -> str:
    """How argparse's BooleanOptionalAction spells the opposite."""
    return "--no-" + flag.removeprefix("--")


def _read(name: str, key: Key, entry: Entry) -> Found:
    found = Found(name, True, None, "", entry, entry.where, entry.written, entry.assumes)
    if key.form in ("on", "off"):
        return replace(found, value=key.form == "on")
    if key.form == "pair" and entry.value is None:
        return replace(found, value=entry.name in (key.name, *key.also))
    if entry.prefix == "~":
        return replace(found, known=False, why=_("{name} is taken out of the config").format(name=entry.name))
    text = entry.text
    if text is None:
        return replace(found, known=False, why=entry.why or _("{name} has no value").format(name=entry.name))
    try:
        value = typed(text, SETTINGS[name].kind)
        return replace(found, value=not value if key.form == "inverse" else value)
    except ValueError:
        why = _("`{text}` is not {kind}").format(text=" ".join(text.split())[:60], kind=_kind(SETTINGS[name].kind))
        return replace(found, known=False, why=why)


def _kind(kind: str) -> str:
    return {"int": _("a whole number"), "float": _("a number"), "bool": _("true or false")}.get(kind, kind)


def typed(text: str, kind: str) -> Scalar:
    """A value as YAML, hydra and argparse understand it. Raises ValueError."""
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"":
        bare = bare[1:-1]
    elif bare.lower() in _NULL:
        return None
    if kind == "bool":
        if bare.lower() in _TRUE + _FALSE:
            return bare.lower() in _TRUE
        raise ValueError(bare)
    if kind == "int":
        if re.fullmatch(r"[+-]?\d[\d_]*", bare):
            return int(bare)
        raise ValueError(bare)
    return float(bare) if kind == "float" else bare
