"""Following a script without running it: every command that it would start, with its arguments and its environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from locales import _
from stages.inputs.shell.builtins import Builtins
from stages.inputs.shell.conditions import UNDECIDED, Truth, decide
from stages.inputs.shell.expand import Expander
from stages.inputs.shell.nodes import (
    Assign,
    Case,
    Chain,
    Counting,
    Function,
    If,
    Loop,
    Node,
    Pipeline,
    Simple,
    Source,
    Word,
)
from stages.inputs.shell.others import called_script, find_file
from stages.inputs.shell.parse import parse
from stages.inputs.shell.reading import Command, Reading, TooLongError
from stages.inputs.shell.scope import Scope
from stages.inputs.shell.substitutions import output
from stages.inputs.shell.values import Arg, Value, Var, assuming, assumptions, leaves, literal, text_of, unknown
from stages.inputs.shell.ways import assigned, ends, expected_to_succeed, has_to_be_set, is_arguments, sets_only

_STEPS, _DEEPEST, _ROUNDS = 50_000, 24, 64
_FILE = 1_000  # pieces that reading a file counts for, besides its length


def read_script(source: Source, env: Mapping[str, str] | None = None) -> Reading:
    """What a script would start when it is called without arguments and ``env`` is set. Raises FindingError."""
    follow = _Follow()
    variables = {name: Var(literal(value)) for name, value in (env or {}).items()}
    try:
        follow.file(source, Scope(variables, exported=set(variables)))
    except RecursionError as error:
        raise TooLongError(_("the script is nested too deep to be followed"), where=source.where(0)) from error
    return follow.reading


class _Follow:
    def __init__(self) -> None:
        self.reading = Reading()
        self.steps = self.depth = 0
        self.maybe: list[str] = []
        self.builtins = Builtins(self)

    def file(self, source: Source, scope: Scope) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TooLongError(_("scripts call one another without an end"), where=source.where(0))
        self.reading.sources.append(source)
        self.nodes(parse(source).nodes, source, scope)
        self.depth -= 1

    def text(self, source: Source, scope: Scope) -> None:
        """Commands in a text, in the scope of whoever evaluates it."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TooLongError(_("a text evaluates itself without an end"), where=source.where(0))
        self.nodes(parse(source).nodes, source, scope)
        self.depth -= 1

    def nodes(self, nodes: Sequence[Node], source: Source, scope: Scope) -> None:
        for node in nodes:
            if scope.ended:
                return
            self.steps += 1
            if self.steps > _STEPS:
                raise TooLongError(_("the script goes on and on"), where=source.where(node.start))
            self.node(node, source, scope)

    def node(self, node: Node, source: Source, scope: Scope) -> None:
        if isinstance(node, Simple):
            self.simple(node, source, scope)
        elif isinstance(node, If):
            self._if(node, source, scope)
        elif isinstance(node, Loop):
            self._loop(node, source, scope)
        elif isinstance(node, Case):
            self._case(node, source, scope)
        elif isinstance(node, Chain):
            self._chain(node, source, scope)
        elif isinstance(node, Function):
            scope.functions[node.name] = (source, node.body)
        elif isinstance(node, Counting):
            self.builtins.counting(node.text, scope)
        elif isinstance(node, Pipeline):
            for part in node.nodes:  # each in a shell of its own
                self.node(part, source, scope.copy() if len(node.nodes) > 1 else scope)
        else:
            inside = scope.copy() if node.subshell else scope
            self.nodes(node.body, source, inside)

    # --- ways ----------------------------------------------------------------------------------------------------------

    def expander(self, source: Source, scope: Scope) -> Expander:
        return Expander(source, scope, lambda src, scp, body: output(self.expander(src, scp), body), self.reading.spend)

    def _ways(self, ways: Sequence[Sequence[Node]], source: Source, scope: Scope, start: int) -> None:
        """Bodies of which one runs, and nobody knows which."""
        why = _("it depends on the condition in {where}").format(where=source.where(start))
        after = []
        for body in ways:
            way = scope.copy()
            self.maybe.append(why)
            self.nodes(body, source, way)
            self.maybe.pop()
            after.append(way)
        scope.join(after, why)

    def _decided(
        self, truth: Truth, body: Sequence[Node], others: Sequence[Sequence[Node]], source: Source, scope: Scope
    ) -> None:
        """The body of a condition that is decided. What it rests on goes with everything that the condition could set."""
        self.nodes(body, source, scope)
        if truth[1]:
            for name in {name for one in (body, *others) for name in assigned(one)}:
                var = scope.variables.get(name)
                if var is not None and var.array is None:
                    scope.variables[name] = Var(assuming(var.value, truth[1]))

    def _if(self, node: If, source: Source, scope: Scope) -> None:
        bodies = [body for _condition, body in node.branches] + [node.otherwise]
        open_ways: list[Sequence[Node]] = []
        for condition, body in node.branches:
            truth = self.condition(condition, source, scope)
            if truth[0] and not open_ways:
                if truth[1] and ends(body):
                    has_to_be_set(scope, truth[1])
                    continue  # called as it has to be, it does not end there
                return self._decided(truth, body, bodies, source, scope)
            if truth[0] is not False:
                open_ways.append(body)
            if truth[0]:
                return self._ways(open_ways, source, scope, node.start)
        if open_ways:
            return self._ways([*open_ways, node.otherwise], source, scope, node.start)
        return self._decided((False, frozenset()), node.otherwise, bodies, source, scope)

    def condition(self, nodes: Sequence[Node], source: Source, scope: Scope) -> Truth:
        truth = decide(nodes, self.expander(source, scope))
        if truth == UNDECIDED:
            self.maybe.append(_("it is a condition"))
            self.nodes(nodes, source, scope.copy())
            self.maybe.pop()
        return truth

    def _loop(self, node: Loop, source: Source, scope: Scope) -> None:
        if node.kind in ("for", "select") and node.words is not None and node.kind == "for":
            items = list(self.expander(source, scope).args(node.words))
            if len(items) <= _ROUNDS and all(item.text is not None and not item.maybe for item in items):
                for item in items:
                    scope.set(node.name, Var(item.value))
                    self.nodes(node.body, source, scope)
                return
        elif node.kind in ("while", "until"):
            truth, _assumed = self.condition(node.condition, source, scope)
            if truth is (node.kind == "until"):
                return
        inside = scope.copy()
        if node.name:
            inside.set(
                node.name,
                Var(
                    unknown(
                        _("{name} changes in the loop in {where}").format(
                            name=node.name, where=source.where(node.start)
                        )
                    )
                ),
            )
        for name in assigned(node.body):
            inside.variables.pop(name, None)
        before = scope.copy()
        why = _("it depends on the loop in {where}").format(where=source.where(node.start))
        self.maybe.append(why)
        self.nodes(node.body, source, inside)
        self.maybe.pop()
        scope.join([before, inside], why)

    def _case(self, node: Case, source: Source, scope: Scope) -> None:
        value = self.expander(source, scope).value(node.word)
        text = text_of(value)
        bodies = [body for _patterns, body in node.arms]
        if text is None:
            return self._ways([*bodies, ()], source, scope, node.start)
        for patterns, body in node.arms:
            texts = [text_of(self.expander(source, scope).value(pattern)) for pattern in patterns]
            if any(pattern is not None and fnmatchcase(text, pattern) for pattern in texts):
                return self._decided((True, assumptions(value)), body, bodies, source, scope)
        return None

    def _chain(self, node: Chain, source: Source, scope: Scope) -> None:
        """``a && b``: b runs when a is known to succeed, or is a command whose failure would be an accident."""
        truth = decide([node.nodes[0]], self.expander(source, scope))
        self.node(node.nodes[0], source, scope)
        for operator, after in zip(node.operators, node.nodes[1:], strict=True):
            wanted = operator == "&&"
            if truth[0] is (not wanted):
                continue  # passed over, and the outcome so far stays
            if truth[0] is wanted or (wanted and expected_to_succeed(node.nodes[0])):
                self._decided(truth, [after], [], source, scope)
                truth = (True, truth[1]) if sets_only(after) else decide([after], self.expander(source, scope))
                continue
            if not ends([after]):
                self._ways([[after], []], source, scope, node.start)
            truth = UNDECIDED

    # --- simple commands -----------------------------------------------------------------------------------------------

    def simple(self, node: Simple, source: Source, scope: Scope) -> None:
        expander = self.expander(source, scope)
        if not node.words:
            for assign in node.assigns:
                self.assign(assign, expander)
            return
        words = list(expander.args(node.words))
        if not words:
            return
        env = {assign.name: expander.value(assign.value) for assign in node.assigns if isinstance(assign.value, Word)}
        name = words[0].text
        before = (
            {one: scope.variables.get(one) for one in env} if name in ("source", ".", "eval", *scope.functions) else {}
        )
        for one in before:  # of `NAME=value source FILE`: set for that command alone
            scope.set(one, Var(env[one]))
        inside = name is not None and self.builtins.run(name, words, node, expander)
        if not inside and name in scope.functions:
            self.function(*scope.functions[str(name)], words[1:], scope)
            inside = True
        for one, var in before.items():
            scope.variables.pop(one, None)
            if var is not None:
                scope.variables[one] = var
        if inside:
            return
        if self._other_script(words, env, expander):
            return
        exported = {name: scope.variables[name].value for name in scope.exported if name in scope.variables}
        self.reading.commands.append(
            Command(
                tuple(words),
                exported | env,
                source,
                node,
                self.maybe[-1] if self.maybe else "",
                scope.arguments is None and any(is_arguments(word) for word in node.words),
                scope.folder,
                len(self.reading.commands),
            )
        )

    def assign(self, assign: Assign, expander: Expander) -> None:
        scope, before = expander.scope, expander.scope.variables.get(assign.name)
        if isinstance(assign.value, Word):
            value = expander.value(assign.value)
            if assign.index is not None:
                array = (before.array or ()) if before else ()
                why = _("an element of {name} is set").format(name=assign.name)
                scope.set(assign.name, Var(array=tuple(array), open=why))
                return
            if assign.append:
                old = before.value if before is not None and before.array is None else expander.named(assign.name)
                value = (*old, *value)
            scope.set(assign.name, Var(value))
            return
        elements = tuple(expander.args(assign.value))
        if assign.append and before is not None:
            old_array = before.array if before.array is not None else (Arg(before.value, None, 0, 0),)
            scope.set(assign.name, Var(array=(*old_array, *elements), open=before.open))
        else:
            scope.set(assign.name, Var(array=elements))

    def function(self, source: Source, body: Sequence[Node], args: Sequence[Arg], scope: Scope) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TooLongError(_("functions call one another without an end"), where=source.where(0))
        outside, scope.arguments = scope.arguments, tuple(args)
        self.nodes(body, source, scope)
        scope.arguments, scope.ended = outside, False
        self.depth -= 1

    def _other_script(self, words: Sequence[Arg], env: dict[str, Value], expander: Expander) -> bool:
        """``bash other.sh …``, ``./other.sh …``: followed where the file is there."""
        given = called_script(words)
        source = self.load(given[0].value, expander) if given else None
        if source is None:
            return False
        outside = expander.scope
        scope = Scope(
            {name: var for name, var in outside.variables.items() if name in outside.exported}
            | {name: Var(value) for name, value in env.items()},
            outside.exported | set(env),
            arguments=tuple(given[1:]),
            folder=outside.folder,
        )
        self.file(source, scope)
        return True

    def load(self, value: Value, expander: Expander) -> Source | None:
        """Another file of the script; with a note when it cannot be had."""
        source = find_file(value, expander)
        if source is not None:
            self.reading.spend(_FILE + len(source.text) // 4, source.where(0))
        else:
            where = next((leaf for leaf in leaves(value) if leaf.source is not None), None)
            place = where.source.where(where.start) if where is not None and where.source is not None else ""
            text = _("{file} is not there to be read; what it sets is not known")
            self.reading.missing.append(text_of(value) or "")
            self.reading.notes.append((place, text.format(file=text_of(value) or _("a script"))))
        return source
