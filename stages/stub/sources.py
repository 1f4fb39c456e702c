"""The .pt files that an instruction names: within the source side's dump, with no way out of it, and of a dump that has inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from locales import _
from stages.stub.target import MODULE_LEVELS, Place, read_dump


def source_path(text: str, source: Path) -> Path:
    """Raises ValueError with what is wrong."""
    given = PurePosixPath(text)
    if ".." in given.parts:
        raise ValueError(_("it leads upwards: {path}").format(path=text))
    try:
        root = source.resolve(strict=True)
        path = (root / given).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ValueError(_("it is not there: {path}").format(path=text)) from error
    if not path.is_relative_to(root):
        raise ValueError(_("it is not within the source side's dump {folder}: {path}").format(folder=source, path=text))
    if not path.is_file() or path.parent.name != "dump_tensor_data" or path.suffix != ".pt":
        raise ValueError(_("it is no .pt file of a folder dump_tensor_data: {path}").format(path=text))
    if ".parameters." in path.name or ".parameters_grad." in path.name:
        raise ValueError(_("it is a parameter, and `load` overrides inputs only: {path}").format(path=text))
    return path


def levels(paths: set[Path], side: str) -> Iterator[str]:
    """What is wrong with the dumps of the sources: inputs of modules are dumped at L0 and mix, and kept by the task tensor. Raises
    StubDumpError."""
    for folder in sorted({path.parent.parent for path in paths}):
        dump = read_dump(Place(folder, 0, None), set())
        if dump.task != "tensor" or dump.level not in MODULE_LEVELS:
            what = _(
                "the {side} side's dump is of task {task}, level {level}; sources are of task tensor, level L0 or mix: {path}"
            )
            yield what.format(side=side, task=dump.task, level=dump.level, path=folder)
