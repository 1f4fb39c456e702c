"""Which folder a path really is, so that many nodes that see the same one can tell."""

from __future__ import annotations

import os
import platform
from pathlib import Path

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph", "beegfs", "glusterfs", "9p", "virtiofs", "afs")


def place_of(root: Path) -> str:
    """A name for a folder that is the same wherever the same folder is seen: by the server's name on a network file system, by
    device and inode of this kernel otherwise."""
    found = root.stat()
    kind, source = _mount(found.st_dev)
    if kind in NETWORK or kind.startswith("fuse."):
        return f"{kind}:{source}:{found.st_ino}"
    return f"{_read('/proc/sys/kernel/random/boot_id')}:{found.st_dev}:{found.st_ino}"


def _mount(device: int) -> tuple[str, str]:
    """File system type and source of a device."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in _read("/proc/self/mountinfo").splitlines():
        head, _dash, tail = line.partition(" - ")
        if len(head.split()) > 2 and head.split()[2] == wanted and len(tail.split()) > 1:
            return tail.split()[0], tail.split()[1]
    return "", ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return platform.node()
