"""The errors of every room: what, where, why and what to do, with an honest exit code.

Exit codes: 1 the plan or the tree has a finding, 2 usage, 3 refused by the environment with nothing written,
4 an invalid recipe or ledger.
"""

from __future__ import annotations

import re


class ProbePatchError(Exception):
    """A sentence for people (``what``), and the facts for programs.

    ``where`` is ``file:line`` or ``file:line:column``; ``why`` the cause; ``todo`` the next step; ``details`` more lines
    (candidates, say), shown below the message.
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        why: str | None = None,
        todo: str | None = None,
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.todo = todo
        self.details = details

    @property
    def kind(self) -> str:
        """The class name in kebab-case without ``Error``: the stable word for programs."""
        name = type(self).__name__.removesuffix("Error")
        return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "what": self.what,
            "where": self.where,
            "why": self.why,
            "todo": self.todo,
            "details": list(self.details),
        }


class FindingError(ProbePatchError):
    """The plan or the tree has a finding: no match, drift, mismatch, conflict."""

    exit_code = 1


class UsageError(ProbePatchError):
    """The command was called wrongly."""

    exit_code = 2


class RefusedError(ProbePatchError):
    """The environment does not allow it (lock, mode, changed file); nothing was written."""

    exit_code = 3


class InvalidError(ProbePatchError):
    """A recipe or a ledger is not valid."""

    exit_code = 4
