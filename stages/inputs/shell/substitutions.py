"""The few ``$(…)`` whose output the script itself tells: ``dirname``, ``cd … && pwd``, ``basename``, ``echo``, ``cat <<EOF``."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from stages.inputs.shell.expand import Expander
from stages.inputs.shell.nodes import Chain, Node, Simple
from stages.inputs.shell.values import Arg, Piece, Value, assuming, assumptions, leaves, literal, text_of


def output(expander: Expander, nodes: Sequence[Node]) -> Value | None:
    """None where a run is needed to know."""
    if len(nodes) != 1:
        return None
    node = nodes[0]
    if isinstance(node, Chain) and node.operators == ("&&",):
        return _cd_pwd(expander, node)
    if not isinstance(node, Simple) or node.assigns:
        return None
    words = list(expander.args(node.words))
    name = words[0].text if words else None
    if name == "cat" and len(words) == 1:
        bodies = [redirect.body for redirect in node.redirects if redirect.body is not None]
        return without_last_line_end(expander.value(bodies[0])) if len(bodies) == 1 else None
    operands = [arg for arg in words[1:] if not (arg.text or "").startswith("-")]
    texts = [arg.text for arg in operands]
    if name == "echo" and len(words) > 1 and len(operands) == len(words) - 1:
        return _joined(operands)
    if name == "pwd" and not operands:
        return expander.scope.folder or None
    if not operands or texts[0] is None:
        return None
    path, assumed = texts[0], assumptions(operands[0].value)
    if name == "dirname" and len(operands) == 1:
        return assuming(literal(posixpath.dirname(path) or "."), assumed)
    if name == "basename":
        base = posixpath.basename(path.rstrip("/"))
        suffix = texts[1] if len(texts) > 1 else ""
        return None if suffix is None else assuming(literal(base.removesuffix(suffix)), assumed)
    if name in ("realpath", "readlink") and len(operands) == 1 and path.startswith("/"):
        return assuming(literal(posixpath.normpath(path)), assumed)
    return None


def _joined(args: Sequence[Arg]) -> Value:
    pieces: list[Piece] = []
    for number, arg in enumerate(args):
        pieces += [Piece(" ")] if number else []
        pieces += arg.value
    return tuple(pieces)


def _cd_pwd(expander: Expander, node: Chain) -> Value | None:
    first, second = node.nodes
    if not (isinstance(first, Simple) and isinstance(second, Simple)):
        return None
    cd, pwd = list(expander.args(first.words)), list(expander.args(second.words))
    operands = [arg for arg in cd[1:] if not (arg.text or "").startswith("-")]
    if not cd or cd[0].text != "cd" or not pwd or pwd[0].text != "pwd" or len(operands) != 1:
        return None
    path = operands[0].text
    if path is None or not path.startswith("/"):
        return None
    return assuming(literal(posixpath.normpath(path)), assumptions(operands[0].value))


def without_last_line_end(value: Value) -> Value:
    """As a substitution gives it; the pieces keep their places."""
    pieces = list(leaves(value))
    while pieces and pieces[-1].text is not None and pieces[-1].text.endswith("\n"):
        last = pieces.pop()
        assert last.text is not None
        kept = last.text.rstrip("\n")
        if kept:
            pieces.append(last.cut(0, len(kept)))
    return tuple(pieces)


def expanded_path(expander: Expander, value: Value) -> str | None:
    """An absolute path; one that is relative counts from the current folder, where that is known."""
    path = text_of(value)
    if path is None or path.startswith("/"):
        return path
    folder = text_of(expander.scope.folder) if expander.scope.folder else None
    return posixpath.join(folder, path) if folder else None
