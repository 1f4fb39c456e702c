"""What a worker does with the edits that lost their place: look for them in the whole tree, beside one in which they have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from authoring.drift.diagnosis import MOVED as FOUND
from authoring.drift.diagnosis import UPSTREAM as THERE
from authoring.drift.diagnosis import diagnose_all
from authoring.drift.view import View
from authoring.matrix.tasks import AMBIGUOUS, GONE, MOVED, UPSTREAM, Verdict
from authoring.trees import GitTree, SourceTree
from codemods.recipe import Recipe

LOST = (GONE, AMBIGUOUS)


@dataclass(frozen=True)
class Search:
    """``verdicts`` are those of a recipe's edits on ``tree``, by the edit's number; ``good`` is a tree that the recipe fits."""

    tree: SourceTree
    good: SourceTree | None
    recipe: int
    verdicts: Mapping[int, Verdict]

    def work(self, recipes: Sequence[Recipe]) -> dict[int, Verdict]:
        """The verdicts again, better ones where a lost edit was found."""
        recipe = recipes[self.recipe]
        edits = [recipe.edits[number] for number in self.verdicts]
        found = diagnose_all(recipe, edits, _view(self.tree), _view(self.good) if self.good is not None else None)
        verdicts = dict(self.verdicts)
        for (number, verdict), diagnosis in zip(self.verdicts.items(), found, strict=True):
            if verdict.state not in LOST:
                continue
            if diagnosis.state == THERE:
                verdicts[number] = replace(verdict, state=UPSTREAM)
            elif diagnosis.state == FOUND and diagnosis.taken is not None:
                now = diagnosis.taken
                verdicts[number] = replace(
                    verdict, state=MOVED, file=now.place.file, symbol=now.place.symbol, line=now.line
                )
        return verdicts


def _view(tree: SourceTree) -> View:
    if isinstance(tree, GitTree):
        tree.load(tree.files())
    return View(tree)
