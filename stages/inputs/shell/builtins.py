"""The shell's own commands, as far as they change what a script goes on with."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from locales import _
from stages.inputs.shell.arithmetic import calculate
from stages.inputs.shell.expand import Expander
from stages.inputs.shell.nodes import Simple, Source
from stages.inputs.shell.scope import Scope
from stages.inputs.shell.simple import DECLARING
from stages.inputs.shell.substitutions import expanded_path, without_last_line_end
from stages.inputs.shell.values import Arg, Var, literal, text_of, unknown

if TYPE_CHECKING:
    from stages.inputs.shell.run import _Follow

_SILENT = (
    "set", "shopt", "echo", "printf", "true", "false", ":", "[", "test", "[[", "trap", "ulimit", "umask", "wait", "sleep",
    "alias", "hash", "type", "kill", "pkill", "break", "continue", "getopts",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*")


class Builtins:
    """``run`` tells whether the command was one."""

    def __init__(self, follow: _Follow) -> None:
        self.follow = follow

    def run(self, name: str, words: Sequence[Arg], node: Simple, expander: Expander) -> bool:
        scope = expander.scope
        if name in DECLARING:
            self._declare(name, words, node, expander)
        elif name == "unset":
            for word in words[1:]:
                if word.text and not word.text.startswith("-"):
                    scope.variables.pop(word.text, None)
                    scope.exported.discard(word.text)
                    scope.unset.add(word.text)
        elif name in ("source", "."):
            self._source(words, expander)
        elif name in ("cd", "pushd", "popd"):
            self._cd(words, expander)
        elif name in ("exit", "return"):
            scope.ended = True
        elif name in ("read", "mapfile", "readarray"):
            self._read(name, words, node, expander)
        elif name == "eval" or (name in ("bash", "sh") and len(words) > 2 and words[1].text in ("-c", "-lc")):
            return self._text(words[1:] if name == "eval" else words[2:3], expander)
        elif name == "let":
            for word in words[1:]:
                self.counting(word.text or "", scope)
        elif name == "shift":
            count = int(words[1].text) if len(words) > 1 and (words[1].text or "").isdigit() else 1  # type: ignore[arg-type]
            scope.arguments = scope.arguments[count:] if scope.arguments is not None else None
        elif name in _SILENT:
            if name == "set":
                self._set(words, scope)
            if name == "printf" and len(words) > 2 and words[1].text == "-v" and words[2].text:
                scope.set(words[2].text, Var(unknown(_("printf sets {name}").format(name=words[2].text))))
        else:
            return False
        return True

    def _declare(self, name: str, words: Sequence[Arg], node: Simple, expander: Expander) -> None:
        scope = expander.scope
        options = "".join((word.text or "") for word in words[1:] if (word.text or "").startswith("-"))
        exports = name == "export" or (name in ("declare", "typeset") and "x" in options)
        for assign in node.assigns:
            self.follow.assign(assign, expander)
            if exports:
                scope.exported.add(assign.name)
        for word in words[1:]:
            text = word.text
            if text is not None and _NAME.fullmatch(text):
                if exports:
                    scope.exported.add(text)
                elif text not in scope.variables and name in ("declare", "local", "typeset"):
                    scope.set(text, Var(array=()) if "a" in options or "A" in options else Var(literal("")))

    def _source(self, words: Sequence[Arg], expander: Expander) -> None:
        if len(words) < 2:
            return
        source = self.follow.load(words[1].value, expander)
        if source is None:
            return
        scope = expander.scope
        outside = scope.arguments
        if len(words) > 2:
            scope.arguments = tuple(words[2:])
        self.follow.file(source, scope)
        scope.arguments, scope.ended = outside, False

    def _cd(self, words: Sequence[Arg], expander: Expander) -> None:
        operands = [word for word in words[1:] if word.text not in ("--", "-P", "-L")]
        path = expanded_path(expander, operands[0].value) if len(operands) == 1 else None
        why = _("where `{command}` leads is not known").format(command=" ".join(word.text or "…" for word in words))
        expander.scope.folder = literal(posixpath.normpath(path)) if path else unknown(why)

    def _read(self, name: str, words: Sequence[Arg], node: Simple, expander: Expander) -> None:
        """``read -r -d '' NAME <<EOF`` gives the document; every other is unknown."""
        names = [word.text for word in words[1:] if word.text and _NAME.fullmatch(word.text)]
        whole = any(word.text == "" for word in words) and any((word.text or "").endswith("d") for word in words)
        bodies = [redirect.body for redirect in node.redirects if redirect.body is not None]
        for one in names:
            if whole and len(bodies) == 1 and len(names) == 1:
                expander.scope.set(one, Var(without_last_line_end(expander.value(bodies[0]))))
            elif name == "read":
                expander.scope.set(one, Var(unknown(_("{name} is read while the script runs").format(name=one))))
            else:
                expander.scope.set(one, Var(array=(), open=_("{name} is read while the script runs").format(name=one)))

    def _text(self, words: Sequence[Arg], expander: Expander) -> bool:
        """Commands in a text: what they start is followed, but nothing in them can be edited."""
        texts = [word.text for word in words]
        if not texts or None in texts:
            return False
        source = Source(
            None, " ".join(text for text in texts if text is not None), expander.source.where(words[0].start)
        )
        self.follow.text(source, expander.scope)
        return True

    def _set(self, words: Sequence[Arg], scope: Scope) -> None:
        texts = [word.text or "" for word in words[1:]]
        if "--" in texts:
            scope.arguments = tuple(words[texts.index("--") + 2 :])
        if any(text.startswith("-") and not text.startswith("--") and "a" in text[1:] for text in texts):
            scope.export_all = True
        if "+a" in texts:
            scope.export_all = False

    def counting(self, text: str, scope: Scope) -> None:
        """``((x = y + 1))``, ``((x++))``."""

        def variable(name: str) -> str | None:
            var = scope.variables.get(name)
            return text_of(var.value) if var is not None and var.array is None else None

        for step in text.split(","):
            found = re.fullmatch(r"\s*(?:(?:\+\+|--)?(\w+)(?:\+\+|--)?|(\w+)\s*([-+*/%]?)=(?!=)(.*))\s*", step, re.S)
            if found is None or (found.group(1) and "++" not in step and "--" not in step):
                continue
            name = found.group(1) or found.group(2)
            if found.group(1):
                value = calculate(f"{name}{'+' if '++' in step else '-'}1", variable)
            else:
                op, right = found.group(3), found.group(4)
                value = calculate(f"{name}{op}({right})" if op else right, variable)
            known = (
                literal(str(value))
                if value is not None
                else unknown(_("(({text})) cannot be calculated").format(text=step.strip()))
            )
            scope.set(name, Var(known))
