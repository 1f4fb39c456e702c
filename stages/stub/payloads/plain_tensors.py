"""Plain tensors from files that nobody vouches for: nothing in them runs, and nothing in them is larger than its file."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from typing import Any

LARGEST = 10 << 30  # bytes: msprobe's own limit for a .pt file


def torch_here() -> Any:
    """Raises ValueError."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except BaseException as error:
        raise ValueError(f"torch cannot be imported: {type(error).__name__}: {error}"[:300]) from error
    return torch


def load(torch: Any, path: str) -> Any:
    """A tensor on the CPU. Raises ValueError with what is wrong; the text quotes no data."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise ValueError(f"it is not there as seen from this interpreter: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no regular file")
    if found.st_size > LARGEST:
        raise ValueError(f"it is larger than {LARGEST} bytes")
    _check_archive(path, found.st_size)
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError as error:
        raise ValueError("there is not enough memory for it") from error
    except BaseException as error:
        raise ValueError(f"torch.load with weights_only=True refuses it ({type(error).__name__})") from error
    return _plain(torch, value, found.st_size)


def _check_archive(path: str, size: int) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise ValueError("it is no file of torch.save, or a truncated one") from error
    if any(one.compress_type != zipfile.ZIP_STORED for one in members) or sum(one.file_size for one in members) > size:
        raise ValueError("it is compressed, as torch.save never does")


def _plain(torch: Any, value: Any, size: int) -> Any:
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise ValueError(f"it holds no tensor, but a {type(value).__name__}")
    value = value.detach()
    if value.layout is not torch.strided or value.is_quantized or value.device.type != "cpu" or value.is_complex():
        raise ValueError("it holds no plain tensor (sparse, quantized, complex or without data)")
    if value.numel() * value.element_size() > size:
        raise ValueError("it says that it has more elements than are in the file")
    return value


def save(torch: Any, tensor: Any, path: str) -> dict[str, Any]:
    """A file of its own with just these elements, and what it is now."""
    whole = tensor.detach().clone(memory_format=torch.contiguous_format)
    with open(path, "xb") as file:
        torch.save(whole, file)
        file.flush()
        os.fsync(file.fileno())
    return {"shape": list(whole.shape), "dtype": str(whole.dtype), "sha256": digest(path)}


def digest(path: str) -> str:
    sha = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()
