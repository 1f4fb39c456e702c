"""Why an edit was not planned. Each is one finding; a plan reports all of them."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.errors import FindingError, ProbePatchError
from locales import _, ngettext


class FileMissingError(FindingError):
    """The edit's file is not in the checkout."""


class SymbolMissingError(FindingError):
    """The named function or class is not in the file."""


class AmbiguousSymbolError(FindingError):
    """The name is defined several times and nothing says which one is meant."""


class NoMatchError(FindingError):
    """The anchor's code is not in the place."""


class MatchCountError(FindingError):
    """There are more or fewer matches than the edit expects."""


class WrongScopeError(FindingError):
    """The verb does not work on this kind of place."""


class NameTakenError(FindingError):
    """A file or name that the edit would add is there already."""


class PlanError(FindingError):
    """Everything that keeps the plan from being made. ``findings`` are the single errors."""

    def __init__(self, findings: Sequence[ProbePatchError]) -> None:
        count = len(findings)
        super().__init__(
            ngettext("{count} edit cannot be planned", "{count} edits cannot be planned", count).format(count=count)
        )
        self.findings = tuple(findings)
        self.exit_code = max(finding.exit_code for finding in findings)
        self.todo = _("nothing was written")

    def as_json(self) -> dict[str, object]:
        return super().as_json() | {"findings": [finding.as_json() for finding in self.findings]}
