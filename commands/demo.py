"""``probepatch demo``: the whole round on a small bundled checkout, with the real commands and the proof that it is exact."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from commands import apply, diff, identify, revert, status
from commands.output import say
from locales import _, ngettext
from patch_ledger.tree import DOT_FOLDER as LEDGER

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
EDITED = "tinyrl/trainer/worker.py"
PLANNED = ["tinyrl/engine/model_runner.py", "tinyrl/probepatch_tinyrl.py", EDITED]
THEIRS = (b"        self.model.eval()\n", b"        self.model.eval()\n        logger.debug('a line of my own')\n")
RECIPES = ("--recipe-file", "recipes/tinyrl-trainer.yaml", "--recipe-file", "recipes/tinyrl-engine.yaml")
_ASIDE = {".git", LEDGER}
_GIT_SETTINGS = (
    "user.name=probepatch demo",
    "user.email=demo@example.invalid",
    "commit.gpgsign=false",
    "core.autocrlf=false",
    f"core.hooksPath={os.devnull}",
    f"core.excludesFile={os.devnull}",
)


@dataclass
class Proofs:
    """What was claimed, and whether it held."""

    failed: int = 0
    held: int = 0

    def show(self, claim: str, holds: bool) -> None:
        """One line, green or red."""
        self.held, self.failed = self.held + holds, self.failed + (not holds)
        say(f"  {_('holds ') if holds else _('FAILED')}  {claim}", "good" if holds else "bad")


@dataclass(frozen=True)
class Snapshot:
    """Every file of a folder: its SHA-256 and its mode, by path; git's folder and the ledger's left out."""

    files: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Snapshot:
        paths = (path for path in sorted(root.rglob("*")) if path.is_file() and not _ASIDE & {*path.parts})
        return cls(
            {
                p.relative_to(root).as_posix(): (hashlib.sha256(p.read_bytes()).hexdigest(), p.stat().st_mode)
                for p in paths
            }
        )

    def differing(self, other: Snapshot) -> list[str]:
        """Paths whose bytes, mode or presence differ."""
        return sorted(path for path in {*self.files, *other.files} if self.files.get(path) != other.files.get(path))


@click.command
def command() -> int:
    """Exit code 0 only when every proof holds."""
    proofs = Proofs()
    with _workshop() as checkout:
        in_git = _commit(checkout)
        before = Snapshot.of(checkout)
        _headline(
            _("a checkout of a small RL framework: {n} files, in git: {git}"), n=len(before.files), git=_yes(in_git)
        )
        _run(identify.command, "identify", *RECIPES)
        _headline(_("look before anything is written"))
        _run(diff.command, "diff", *RECIPES)
        proofs.show(_("diff wrote nothing"), Snapshot.of(checkout) == before)
        _headline(_("write it"))
        _run(apply.command, "apply", *RECIPES)
        _run(status.command, "status")
        patched = Snapshot.of(checkout)
        proofs.show(_("only the planned files changed"), before.differing(patched) == PLANNED)
        proofs.show(_("the patched files compile"), _compiles(checkout))
        _headline(_("now you add a line of your own in a method that we patched: {path}"), path=EDITED)
        original = (checkout / EDITED).read_bytes()
        (checkout / EDITED).write_bytes(original.replace(*THEIRS))
        say(THEIRS[1].decode().splitlines()[1], "add")
        _run(status.command, "status")
        _headline(_("take our edits out again; yours stays"))
        proofs.show(_("revert ended with exit code 0"), _run(revert.command, "revert") == 0)
        _prove(checkout, before, patched, proofs, in_git)
    total = proofs.held + proofs.failed
    text = ngettext("{held} of {n} proof holds", "{held} of {n} proofs hold", total)
    say(text.format(held=proofs.held, n=total), "bad" if proofs.failed else "good")
    return 1 if proofs.failed else 0


def _prove(checkout: Path, before: Snapshot, patched: Snapshot, proofs: Proofs, in_git: bool) -> None:
    _headline(_("the proof"))
    after = Snapshot.of(checkout)
    pristine = (FIXTURES / "checkout" / EDITED).read_bytes()
    for path in before.differing(patched):
        say(f"  {path}")
        for word, snapshot in ((_("before"), before), (_("patched"), patched), (_("after"), after)):
            say(f"    {word:8} {snapshot.files.get(path, [_('no file')])[0]}", "dim")
    same = [path for path in before.files if path not in before.differing(after)]
    text = _("{n} files have the SHA-256 and the mode that they had before")
    proofs.show(text.format(n=len(same)), before.differing(after) == [EDITED])
    text = _("{path} is the original and your line, and nothing else")
    proofs.show(text.format(path=EDITED), (checkout / EDITED).read_bytes() == pristine.replace(*THEIRS))
    (checkout / EDITED).write_bytes(pristine)
    text = _("without your line every file is byte for byte the original, and no file is left over")
    proofs.show(text, Snapshot.of(checkout) == before and not (checkout / LEDGER).exists())
    if in_git:
        proofs.show(_("`git status` says: clean"), _git(checkout, "status", "--porcelain") == "")


@contextmanager
def _workshop() -> Iterator[Path]:
    """A temporary folder, the current one meanwhile, with ``checkout`` and ``recipes``."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="probepatch-demo-") as folder:
        plain = shutil.ignore_patterns("__pycache__")
        shutil.copytree(FIXTURES / "checkout", Path(folder) / "checkout", ignore=plain)
        shutil.copytree(FIXTURES / "recipes/tinyrl", Path(folder) / "recipes", ignore=plain)
        os.chdir(folder)
        try:
            yield Path(folder).resolve() / "checkout"
        finally:
            os.chdir(here)


def _commit(checkout: Path) -> bool:
    """Put the checkout into git; False where there is no git, and the demo goes on with a plain folder."""
    try:
        _git(checkout, "init", "--quiet", "--template=")
        _git(checkout, "add", "--all")
        _git(checkout, "commit", "--quiet", "--no-verify", "--message", "tinyrl")
    except (OSError, subprocess.CalledProcessError):
        shutil.rmtree(checkout / ".git", ignore_errors=True)
        return False
    return True


def _git(checkout: Path, *arguments: str) -> str:
    """git without the user's hooks, signing and line-ending settings."""
    options = [part for setting in _GIT_SETTINGS for part in ("-c", setting)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *options, *arguments], cwd=checkout, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def _run(one: click.Command, name: str, *options: str) -> int:
    """Show the command as one types it, then run it."""
    arguments = ["checkout", *options]
    say("$ " + " ".join(["probepatch", name, *arguments]), "hunk")
    code = one.main(arguments, prog_name=f"probepatch {name}", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _compiles(checkout: Path) -> bool:
    try:
        for path in checkout.rglob("*.py"):
            compile(path.read_bytes(), str(path), "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _headline(text: str, **facts: object) -> None:
    say("")
    say("# " + text.format(**facts), "head")


def _yes(answer: bool) -> str:
    return _("yes") if answer else _("no")
