"""Writing a planned capture: both checkouts or none, the capture's own files, the list of changes, the evidence."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import RefusedError
from commands import __version__
from commands.capture_sides import Work
from locales import _
from patch_ledger.receipt import Receipt
from stages.card.card import Card
from stages.card.evidence import digest, evidence
from stages.card.order import INSTRUMENT, SCENE
from stages.card.store import changing, read_card
from stages.inputs.run import Known
from stages.instrument import change_list, launching
from stages.instrument.change_list import Change, Conflict
from stages.instrument.configs import expect_empty
from stages.instrument.environment import union
from stages.instrument.launching import Started, starting
from stages.instrument.record import leave, same
from stages.instrument.together import patch
from stages.sides import INFER, TRAIN

BOTH = "both"


@dataclass(frozen=True)
class Launch:
    """How one side, or both in one job, are started."""

    started: Started
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Written:
    """``files`` those of the capture's own folder that were written, or would be."""

    changed: bool
    files: tuple[Path, ...]
    receipts: tuple[Receipt, ...]
    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...]
    change_list: Path
    notes: tuple[str, ...] = ()


def repair(card: Card) -> None:
    """Bring interrupted transactions of the task's checkouts to their end: a plan needs a tree that is one thing or the other."""
    from commands.recorded import find_recorded
    from patch_ledger.admin import recover
    from patch_ledger.store import open_ledger

    for one in card.data["edits"]:
        place = Path(one["checkout"])
        if place.is_dir():
            tree = find_recorded(place, None, None)
            if open_ledger(tree).pending is not None:
                recover(tree)


def pages(card: Card, work: Work) -> dict[str, Launch]:
    """The launch of each side, and of both in one job where their variables agree."""
    environments: dict[str, Mapping[str, str]] = {name: one.environment for name, one in work.sides.items()}
    one_job = union(dict(environments[TRAIN]), dict(environments[INFER]))
    if one_job is not None:
        environments[BOTH] = one_job
    known = Known(*(card.fact(f"train.{name}") for name in ("framework", "version", "backend", "checkout")))
    command = card.fact("baseline_command")
    out = {}
    for name, variables in environments.items():
        folder = card.fact(f"{INFER if name == INFER else TRAIN}.workdir")
        native = None if name == TRAIN else work.native.get(INFER)
        out[name] = Launch(starting(command, folder, known, variables, native), variables)
    return out


def write(card_file: Path, work: Work, launches: Mapping[str, Launch], dry_run: bool) -> Written:
    """Raises what refuses; then both checkouts are as they were."""
    card = read_card(card_file)
    root = Path(card.fact("artifacts"))
    files = {**work.files, **_launch_files(card, root, launches)}
    changes = [change for part in work.parts for change in change_list.of_part(part)]
    if work.payload is not None:
        why = _("the helpers that your script imports; nothing of the framework is patched")
        changes.append(change_list.of_file(INFER, work.payload, why))
    scene = evidence(card, SCENE)
    found = change_list.conflicts(scene.result if scene is not None else {})
    page = root / change_list.NAMES[0]

    def listed() -> dict[Path, bytes]:
        texts = change_list.texts(changes, found, work.parts, work.switches, work.advice)
        return {root / name: text.encode() for name, text in texts.items()}

    patched = all(not part.plan.changed for part in work.parts)
    new = [path for path, data in {**files, **(listed() if patched else {})}.items() if _differs(path, data)]
    if patched and not new and same(card, work.sides, work.switches, str(page)):
        return Written(False, (), (), tuple(changes), tuple(found), page)
    for name, names in work.holds.items():
        expect_empty(name, work.sides[name].dump_path, names)
    if dry_run:
        lists = () if patched else tuple(root / name for name in change_list.NAMES)
        return Written(True, (*new, *lists), (), tuple(changes), tuple(found), page)
    notes = _keep_theirs(card, [Path(one.config) for one in work.sides.values()], files)
    made = _write_all(files)
    try:
        receipts = patch(card_file, work.parts, f"probepatch {__version__}")
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.unlink()
        raise
    texts = listed()
    _write_all(texts)
    with changing(card_file) as card:
        leave(card, work.sides, work.switches, str(page))
    written = [path for path in (*files, *texts) if path in new or path in texts]
    return Written(True, tuple(written), tuple(receipts), tuple(changes), tuple(found), page, tuple(notes))


def _launch_files(card: Card, root: Path, launches: Mapping[str, Launch]) -> dict[Path, bytes]:
    folder, sections = root / "launch", []
    files: dict[Path, bytes] = {}
    for name, one in launches.items():
        files[folder / f"{name}.env"] = launching.env_file(one.environment).encode()
        side = INFER if name == INFER else TRAIN
        prefix, workdir = card.words(f"{side}.prefix"), card.fact(f"{side}.workdir")
        trainer = card.fact("train.framework")
        sections.append(launching.page(name, prefix, workdir, trainer, one.started, one.environment))
    return {**files, folder / "launch.md": "\n".join(sections).encode()}


def _differs(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() != data
    except OSError:
        return True


def _keep_theirs(card: Card, configs: Sequence[Path], files: Mapping[Path, bytes]) -> list[str]:
    """A config that somebody changed by hand is kept under another name, never lost."""
    known = evidence(card, INSTRUMENT)
    notes = []
    for path in configs:
        ours = known.files.get(str(path)) if known is not None else None
        if path.is_file() and _differs(path, files[path]) and digest(path) != ours:
            number = next(n for n in range(1, 1000) if not os.path.lexists(f"{path}.{n}"))
            os.rename(path, f"{path}.{number}")
            notes.append(_("{path} was there already; it is kept as {kept}").format(path=path, kept=f"{path}.{number}"))
    return notes


def _write_all(files: Mapping[Path, bytes]) -> list[Path]:
    """Each beside its place, flushed, renamed; those that were not there before. Raises RefusedError."""
    made = []
    for path, data in files.items():
        if not _differs(path, data):
            continue
        new = not os.path.lexists(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)  # the sides' processes read it, who may be somebody else
            os.replace(name, path)
        except OSError as error:
            raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
        if new:
            made.append(path)
    return made
