"""``probepatch recipe record CHECKOUT``: a hand-edited tree as a recipe. Writes the recipe and its payloads, never the checkout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import RefusedError
from commands.arguments import file_path, text
from commands.output import json_option, print_error, print_json, say, warn
from commands.target import as_json as tree_as_json
from commands.target import checkout_options, find_checkout
from locales import _, ngettext

if TYPE_CHECKING:
    from authoring.record.recording import Heading, Recording
    from codemods.checkout import Tree
    from codemods.target import Bases

_INFER = ("vllm", "vllm_ascend", "sglang")
_SHOWN = 5


@click.command(
    help=_(
        "Turn a hand-edited checkout into a recipe: its work tree against HEAD, or with --base against a pristine copy. "
        "Each change becomes an edit with symbol, anchor and verb; applying them to the pristine files is compared byte for "
        "byte with what was edited. Exit code 1 when something cannot be recorded."
    )
)
@checkout_options
@click.option("--base", metavar="PATH", type=file_path, help=_("the pristine copy: a folder or a wheel; else HEAD"))
@click.option("--only", metavar="PATH", type=text, multiple=True, help=_("record changes below this path only"))
@click.option("--add", metavar="FILE", type=text, multiple=True, help=_("take along a new file that no edit imports"))
@click.option("--id", "name", metavar="ID", type=text, help=_("the recipe's id"))
@click.option("--framework", metavar="NAME", type=text, help=_("the framework's name, for one that is not known here"))
@click.option("--side", type=click.Choice(["train", "infer"]), help=_("which side the recipe is for"))
@click.option(
    "--parameters", "with_parameters", is_flag=True, help=_("paths in the edits become parameters of the recipe")
)
@click.option("--out", metavar="FILE", type=file_path, help=_("write the recipe there, payloads beside it"))
@click.option("--overwrite", is_flag=True, help=_("replace files that are there already"))
@json_option
def command(checkout: Path | None, package: str | None, python: str | None, **options: Any) -> int:
    """The command."""
    from authoring.record.recording import record

    tree = find_checkout(checkout, package, python)
    changes, bases = _changes(tree, options)
    recording = record(changes, _heading(tree, bases, options), with_parameters=options["with_parameters"])
    out: Path | None = options["out"]
    written = _write(out, recording, options["overwrite"]) if out is not None else ()
    if options["as_json"]:
        print_json(_as_json(tree, recording, out, written))
    else:
        _print(recording, out, written)
    return 0 if recording.complete else 1


def _changes(tree: Tree, options: Mapping[str, Any]) -> tuple[Any, Bases]:
    """What was changed, and the pristine files to tell the framework by."""
    from authoring.record.changes import Wanted, against_base, against_head, base_tree
    from codemods.gitrepo import in_head
    from codemods.target import Bases

    only, add = (tuple(_inside(tree, path) for path in options[key]) for key in ("only", "add"))
    wanted = Wanted(only, tuple(path.removeprefix(f"{tree.prefix}/") for path in add))
    if options["base"] is not None:
        base = base_tree(options["base"], tree.packages)
        return against_base(tree, base, wanted), Bases(base.read)
    return against_head(tree, wanted), Bases(lambda path: in_head(tree.git, [path]).get(path), tree.prefix)


def _inside(tree: Tree, path: str) -> str:
    """The path as the tree has it: relative, with ``/`` and nothing else."""
    full = Path(path)
    if full.is_absolute() and full.is_relative_to(tree.root):
        full = full.relative_to(tree.root)
    return full.as_posix()


def _heading(tree: Tree, bases: Bases, options: Mapping[str, Any]) -> Heading:
    from authoring.record.names import slug
    from authoring.record.recording import Heading
    from codemods.catalogue import load_framework
    from codemods.identify import identify, identify_as

    out: Path | None = options["out"]
    own = out.parent / "framework.yaml" if out is not None else None
    if own is not None and own.is_file():
        identity = identify_as(load_framework(own), bases, tree.import_root)
    else:
        identity = identify(bases, tree.import_root, tree.packages)
    known = identity.framework.name if identity.framework is not None else ""
    name = options["framework"] or known or slug(tree.import_root.name)
    side = options["side"] or ("infer" if known in _INFER else "train")
    label = f"{name} {identity.declared or ''}".strip()
    identifier = slug(options["name"]) if options["name"] else ""
    return Heading(name, side, bool(options["side"] or known), identity.declared, identifier, label)


def _write(out: Path, recording: Recording, overwrite: bool) -> tuple[Path, ...]:
    """Write recipe and payloads; nothing when one of them is there already, unless that was allowed. Raises RefusedError."""
    files = {out: recording.yaml.encode("utf-8")}
    files |= {out.parent / "payloads" / name: data for name, data in recording.payloads.items()}
    there = [path for path, data in files.items() if path.exists() and not _holds(path, data)]
    if there and not overwrite:
        raise RefusedError(
            _("{path} is there already; nothing was written").format(path=there[0]),
            todo=_("name another file, or allow it with --overwrite"),
        )
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=str(error)) from error
    return tuple(files)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _print(recording: Recording, out: Path | None, written: tuple[Path, ...]) -> None:
    """The recipe on standard output, or where it was written; what is to be said of it on standard error in the first case."""
    tell = warn if out is None else say
    if out is None:
        click.echo(recording.yaml, nl=False)
    for path in written:
        say(_("written: {path}").format(path=path))
    for edit in recording.edits if out is not None else ():
        place = f"{edit.file}:{edit.line}" + (f" {edit.symbol}" if edit.symbol else "")
        say(f"  {edit.id}  [{edit.verb}]  {place}")
    for sentence in _sentences(recording, out):
        tell(sentence)
    for finding in recording.findings:
        print_error(finding)
    if not recording.complete:
        warn(_("the recipe is not complete: what is named above is not in it"))


def _sentences(recording: Recording, out: Path | None) -> list[str]:
    """What was proved, what was left, what the author has to do."""
    counts = {
        kind: list(recording.verdicts.values()).count(kind)
        for kind in ("equal", "equal-but-markers", "equal-but-parameters", "different")
    }
    found = []
    if counts["equal"]:
        n = counts["equal"]
        proved = ngettext("proved: {n} file byte-equal", "proved: {n} files byte-equal", n).format(n=n)
        found.append(proved + _(" when the recipe is applied to the pristine tree"))
    if counts["equal-but-markers"]:
        n = counts["equal-but-markers"]
        text = ngettext("{n} file equal but for marker comments", "{n} files equal but for marker comments", n)
        found.append(text.format(n=n))
    if counts["equal-but-parameters"]:
        n = counts["equal-but-parameters"]
        text = ngettext(
            "{n} file equal but for the paths that are parameters now",
            "{n} files equal but for the paths that are parameters now",
            n,
        )
        found.append(text.format(n=n))
    if counts["different"]:
        n = counts["different"]
        found.append(ngettext("not equal: {n} file", "not equal: {n} files", n).format(n=n))
    if recording.payloads and out is None:
        names = ", ".join(recording.payloads)
        found.append(
            _("it adds files: put them into payloads/ beside the recipe, or use --out: {names}").format(names=names)
        )
    for literal in recording.literals[:_SHOWN]:
        text = _("{where}: {value} is left in the code; --parameters makes a parameter of a path that an edit writes")
        found.append(text.format(where=f"{literal.file}:{literal.line}", value=repr(literal.text)))
    if len(recording.literals) > _SHOWN:
        found.append(_("… and {n} more paths").format(n=len(recording.literals) - _SHOWN))
    return [*found, *recording.notes]


def _as_json(tree: Tree, recording: Recording, out: Path | None, written: tuple[Path, ...]) -> dict[str, Any]:
    return {
        "checkout": tree_as_json(tree),
        "recipe": recording.id,
        "complete": recording.complete,
        "files": [{"path": tree.path(file), "proof": proof} for file, proof in recording.verdicts.items()],
        "edits": [
            {
                "id": edit.id,
                "verb": edit.verb,
                "path": tree.path(edit.file),
                "symbol": edit.symbol or None,
                "line": edit.line,
            }
            for edit in recording.edits
        ],
        "yaml": recording.yaml,
        "payloads": list(recording.payloads),
        "out": str(out) if out is not None else None,
        "written": [str(path) for path in written],
        "literals": [{"path": tree.path(one.file), "line": one.line, "text": one.text} for one in recording.literals],
        "findings": [finding.as_json() for finding in recording.findings],
        "notes": list(recording.notes),
    }
