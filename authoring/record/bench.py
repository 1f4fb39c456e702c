"""One pristine file on the bench: drafts of edits are tried on it as the engine would make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from authoring.record.code import Code, Stmt, read_code
from codemods.errors import ProbePatchError
from codemods.locate import find_definition, find_sites, matches_in
from codemods.outline import Definition
from codemods.pattern import Pattern, compile_expression, compile_statements
from codemods.recipe import Edit, Place
from codemods.scope import Definitions
from codemods.splice import Indent, PlannedEdit, Splice, render
from codemods.target import Target
from codemods.verbs import VERBS


@dataclass(frozen=True)
class Home:
    """Where an edit says it is: the qualified name with its ``select``, and the definition; the module when None."""

    symbol: str = ""
    select: Mapping[str, Any] = field(default_factory=dict)
    definition: Definition | None = None


@dataclass(frozen=True)
class Draft:
    """An edit that is not yet in a recipe. ``fields`` are the verb's keys as the engine sees them; ``weight`` is what its anchor
    costs the reader, ``rank`` how well the verb suits the change (smaller is better)."""

    verb: str
    home: Home
    fields: Mapping[str, str]
    nth: int | None = None
    expect: int = 1
    rank: int = 0
    weight: int = 0

    def place(self, file: str) -> Place:
        return Place(file, self.home.symbol, self.home.select, self.nth, self.expect, self.fields, "")

    def edit(self, file: str, name: str = "draft", marker: bool = False) -> Edit:
        return Edit(name, "", VERBS[self.verb], (self.place(file),), None, marker, "")


@dataclass(eq=False)
class Bench:
    """``file`` is the recipe's path of it. What was looked up once is kept."""

    file: str
    target: Target
    code: Code
    _found: dict[tuple[int, str, bool], list[int]] = field(default_factory=dict)
    _planned: dict[int, PlannedEdit] = field(default_factory=dict)
    _kept: list[Draft] = field(default_factory=list)

    @classmethod
    def of(cls, file: str, base: bytes, path: str = "") -> Bench:
        """``path`` is what people are told. Raises what keeps the file from being read."""
        target = Target.of(path or file, base)
        return cls(file, target, read_code(target.source))

    @property
    def text(self) -> bytes:
        return self.target.source.text

    # --- places --------------------------------------------------------------------------------------------------------

    def home(self, stmt: Stmt | None) -> Home:
        """The definition whose own statement this is."""
        owner = stmt.parent if stmt is not None else None
        while owner is not None and not owner.is_definition:
            owner = owner.parent
        return self.home_of(owner)

    def home_of(self, owner: Stmt | None) -> Home:
        """The definition that this statement is."""
        if owner is None:
            return Home()
        line = owner.node.lineno
        known = self.target.outline.definitions
        definition = next((d for d in known if d.line == line and d.start <= owner.own < d.end), None)
        return Home() if definition is None else Home(definition.qualname, self._select(definition), definition)

    def _select(self, definition: Definition) -> Mapping[str, Any]:
        named = self.target.outline.named(definition.qualname)
        if len(named) == 1:
            return {}
        decorators = definition.decorators[:1] or ("none",)
        choices: list[dict[str, Any]] = [{"decorator": name} for name in decorators]
        choices += [{"branch": definition.branch}] if definition.branch else []
        for choice in choices:
            try:
                if find_definition(self.target, Place("", definition.qualname, choice, None, 1, {}, "")) is definition:
                    return choice
            except ProbePatchError:
                continue
        return {"nth": named.index(definition) + 1}

    def occurrences(self, home: Home, text: str, expression: bool = False) -> list[int]:
        """Where the pattern matches in the home, as the engine matches; nowhere when it is no pattern."""
        key = (home.definition.start if home.definition else -1, text, expression)
        if key not in self._found:
            try:
                pattern = compile_expression(text) if expression else compile_statements(text)
                self._found[key] = self._matches(home, pattern)
            except (ProbePatchError, RecursionError):
                self._found[key] = []
        return self._found[key]

    def _matches(self, home: Home, pattern: Pattern) -> list[int]:
        if home.definition is not None:
            places: list[tuple[int, int, Definition | None]] = [
                (home.definition.start, home.definition.end, home.definition)
            ]
        else:
            places = [(start, end, None) for start, end in self.target.outline.stretches]
            if any(isinstance(node, Definitions) for node in pattern.statements):
                known = self.target.outline.definitions
                places += [(d.start, d.end, None) for d in known if "." not in d.qualname and not d.branch]
        return sorted(at for one in places for at in matches_in(pattern, self.target.scope(*one)))

    # --- trying --------------------------------------------------------------------------------------------------------

    def planned(self, draft: Draft, number: int = 0) -> PlannedEdit | None:
        """The draft's splices in the text; None when the engine refuses it."""
        if id(draft) not in self._planned:
            try:
                self._planned[id(draft)] = self._plan(draft)
            except (ProbePatchError, RecursionError):
                return None
            self._kept.append(draft)  # its id stays its own
        return replace(self._planned[id(draft)], id=f"e{number}", order=(0, number))

    def _plan(self, draft: Draft) -> PlannedEdit:
        edit = draft.edit(self.file)
        splices: list[Splice] = []
        indents: list[Indent] = []
        for site in find_sites(self.target, edit, edit.places[0], ""):
            change = edit.verb.change(site)
            shift = len(splices)
            indents += [
                replace(one, opening=one.opening + shift, closing=one.closing + shift) for one in change.indents
            ]
            splices += change.splices
        return PlannedEdit("record", "", "", (0, 0), splices=tuple(splices), indents=tuple(indents))

    def marks(self, draft: Draft) -> bool:
        """Whether the engine writes a marker comment for it."""
        edit = draft.edit(self.file)
        sites = find_sites(self.target, edit, edit.places[0], "probepatch: record/draft")
        splices = (splice for site in sites for splice in edit.verb.change(site).splices)
        return any(b"# probepatch: " in splice.inserted for splice in splices)

    def made(self, drafts: Sequence[Draft]) -> bytes | None:
        """The text with these drafts; None when the engine refuses one of them."""
        edits = [self.planned(draft, number) for number, draft in enumerate(drafts)]
        try:
            return None if None in edits else render(self.text, [edit for edit in edits if edit is not None])
        except ProbePatchError:
            return None

    def cost(self, drafts: Sequence[Draft]) -> int:
        """How many bytes go and come."""
        total = 0
        for draft in drafts:
            edit = self.planned(draft)
            assert edit is not None
            total += sum(len(splice.removed) + len(splice.inserted) for splice in edit.splices)
            total += sum(len(indent.unit) * len(indent.lines) for indent in edit.indents)
        return total

    def offset(self, draft: Draft) -> int:
        edit = self.planned(draft)
        return min((splice.start for splice in edit.splices), default=0) if edit is not None else 0

    def first(self, drafts: Sequence[Draft], wanted: bytes) -> Draft | None:
        """The best draft that gives exactly the wanted text by itself."""
        ordered = sorted(drafts, key=lambda draft: (draft.rank, draft.weight))
        return next((draft for draft in ordered if self.made([draft]) == wanted), None)
