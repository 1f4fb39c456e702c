"""Whether a condition holds, where the script alone says it; None where only a run could tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from stages.inputs.shell.arithmetic import calculate
from stages.inputs.shell.expand import Expander
from stages.inputs.shell.nodes import Chain, Counting, Node, Pipeline, Simple, Word
from stages.inputs.shell.values import assumptions, shown, text_of

Truth = tuple["bool | None", frozenset[str]]
"""Whether it holds, and what was taken as not set to tell."""
UNDECIDED: Truth = (None, frozenset())
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


def decide(nodes: Sequence[Node], expander: Expander) -> Truth:
    """Of a condition that is one command; a longer one is not followed."""
    return _node(nodes[0], expander) if len(nodes) == 1 else UNDECIDED


def _node(node: Node, expander: Expander) -> Truth:
    if isinstance(node, Chain):
        found = _node(node.nodes[0], expander)
        for operator, after in zip(node.operators, node.nodes[1:], strict=True):
            found = _combined(found, operator, _node(after, expander))
        return found
    if isinstance(node, Pipeline):
        if len(node.nodes) > 1:
            return UNDECIDED
        truth, assumed = _node(node.nodes[0], expander)
        return (None if truth is None else truth != node.negated), assumed
    if isinstance(node, Counting):
        return _counting(node.text, expander)
    if isinstance(node, Simple) and node.words and not node.assigns:
        return _simple(node.words, expander)
    return UNDECIDED


def _combined(first: Truth, operator: str, second: Truth) -> Truth:
    decisive = operator == "||"
    for one in (first, second):
        if one[0] is decisive:
            return one
    if first[0] is None or second[0] is None:
        return UNDECIDED
    return second[0], first[1] | second[1]


def _counting(text: str, expander: Expander) -> Truth:
    assumed: set[str] = set()

    def variable(name: str) -> str | None:
        value = expander.named(name)
        assumed.update(assumptions(value))
        return text_of(value)

    found = calculate(text, variable)
    return (None if found is None else bool(found)), frozenset(assumed)


def _simple(words: Sequence[Word], expander: Expander) -> Truth:
    name = words[0].plain
    if name in ("true", ":"):
        return True, frozenset()
    if name == "false":
        return False, frozenset()
    if name in ("[", "test", "[["):
        operands = words[1:] if name == "test" else words[1:-1]
        return _expression(list(operands), expander)
    return UNDECIDED


def _expression(words: list[Word], expander: Expander) -> Truth:
    for operators, word in ((("||", "-o"), "||"), (("&&", "-a"), "&&")):
        for number, one in enumerate(words):
            if one.plain in operators and 0 < number < len(words) - 1:
                left, right = _expression(words[:number], expander), _expression(words[number + 1 :], expander)
                return _combined(left, word, right)
    if words and words[0].plain == "!":
        truth, assumed = _expression(words[1:], expander)
        return (None if truth is None else not truth), assumed
    if len(words) == 1:
        return _of(words[0], expander, bool)
    if len(words) == 2:
        return _unary(str(words[0].plain), words[1], expander)
    return _binary(words[0], str(words[1].plain), words[2], expander) if len(words) == 3 else UNDECIDED


def _of(word: Word, expander: Expander, judge: Callable[[str], bool]) -> Truth:
    value = expander.value(word)
    text = text_of(value)
    if text is None:
        known = shown(value, "")
        return (judge("x"), frozenset()) if known and judge is bool else UNDECIDED
    return judge(text), assumptions(value)


def _unary(operator: str, word: Word, expander: Expander) -> Truth:
    if operator == "-n":
        return _of(word, expander, bool)
    if operator == "-z":
        truth, assumed = _of(word, expander, bool)
        return (None if truth is None else not truth), assumed
    return UNDECIDED  # -f, -d, -e and the like: the file system of another machine


def _binary(left: Word, operator: str, right: Word, expander: Expander) -> Truth:
    first, second = expander.value(left), expander.value(right)
    a, b = text_of(first), text_of(second)
    if a is None or b is None:
        return UNDECIDED
    assumed = assumptions(first) | assumptions(second)
    if operator in ("=", "==", "!="):
        pattern = any(not getattr(part, "quote", "x") for part in right.parts) and any(c in b for c in "*?[")
        equal = fnmatchcase(a, b) if pattern else a == b
        return equal != (operator == "!="), assumed
    if operator in _NUMBERS:
        try:
            return _NUMBERS[operator](int(a), int(b)), assumed
        except ValueError:
            return UNDECIDED
    return UNDECIDED
