"""A side's scene for people: a table of facts, then the three things with their lines."""

from __future__ import annotations

from typing import Any

from packaging.specifiers import SpecifierSet

from commands.identify import tightest
from commands.output import say, table, warn
from locales import _
from stages.scene.places import Place
from stages.scene.side import SideScene


def print_side(one: SideScene) -> None:
    unknown = _("unknown")
    say(_("{side}: {checkout}").format(side=one.side, checkout=one.checkout or one.framework), "head")
    declared = f"{one.declared} ({one.declared_in})" if one.declared else unknown
    rows = [
        (_("framework"), one.framework or _("{package} (nobody described it yet)").format(package=one.package)),
        (_("declared version"), declared),
        (_("its contents say"), tightest(SpecifierSet(one.probed)) if one.probed else unknown),
    ]
    if one.side == "train":
        choices = _("unknown: {names}; `probepatch task set train.backend=…` says which")
        choices = choices.format(names=_(" or ").join(one.backends)) if one.backends else unknown
        rows.append((_("backend"), one.backend or choices))
    loops = [loop for loop in one.loops if loop.runs is not False]
    rows += [(_("loop"), f"{loop.shape}  {loop.line}  {loop.line.code}") for loop in loops] or [(_("loop"), unknown)]
    for default in one.defaults:
        value = f"{default.fact.switch}={default.value}: " if default.fact.switch and default.value else ""
        word = default.way.word or _("told at run time")
        rows.append((default.fact.about, f"{value}{word}  {default.decided_at}  ({default.way.says})"))
    native = f"{_('yes')}  {one.native.line}  {one.native.says}" if one.native else _("no")
    rows += [
        (_("native msprobe"), native),
        (_("official guide"), ", ".join(guide.document for guide in one.guides) or unknown),
    ]
    table(("", ""), rows, "cyan")
    _print_things(one)
    for change in one.changes:
        say(_("to mend: {what}").format(what=change.what) + (f"  [{change.where}]" if change.where else ""), "bad")
        say(f"    {change.todo}")
    for note in one.notes:
        warn(note)


def _print_things(one: SideScene) -> None:
    titles = {
        "trim": _("1. trim place"),
        "capture": _("2. capture place"),
        "link": _("3. request id"),
        "skip": _("   what may skip the capture"),
    }
    for thing in one.things:
        say(titles[thing.role] + (f": {thing.says}" if thing.says else ""), "head")
        _print_places(thing.places)
        for hint in thing.candidates:
            say(f"  {hint.score:3}  {hint.file}:{hint.line}  {hint.code}")
            say(f"       {hint.symbol}: {', '.join(hint.because)}", "dim")
        if thing.role == "capture":
            for line in one.native_starts:
                say("  " + _("native: {place}  {code}").format(place=line, code=line.code))
            for told in one.skips:
                say("  " + _("may be skipped: {place}  {code}").format(place=told.line, code=told.line.code), "note")
                say(f"      {told.says}", "dim")
        if thing.role == "link":
            for told in one.links:
                say(f"  {told.line}  {told.line.code}")
                say(f"      {told.says}", "dim")


def _print_places(places: tuple[Place, ...]) -> None:
    """Each line of the tree once, with the edits that go there; what does not run by default comes last."""
    names: dict[tuple[Any, ...], list[str]] = {}
    for one in sorted(places, key=lambda one: one.runs is False):
        key = (one.file, one.line, one.code, one.symbol, one.runs)
        names.setdefault(key, []).append(f"{one.recipe}/{one.edit}")
    for (file, line, code, symbol, runs), edits in names.items():
        shown = code or _("absent: will be added to {symbol}").format(symbol=symbol or file)
        off = "  " + _("(not on the default path)") if runs is False else ""
        say(f"  {file}:{line}  {shown}{off}" if line else f"  {file}  {shown}{off}", "dim" if off else "")
        say(f"      {', '.join(edits)}", "dim")
