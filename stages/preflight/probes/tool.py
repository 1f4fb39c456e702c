"""What a vendor's tool says, run by the side's interpreter: banners of the way there are not among its words."""

from __future__ import annotations

import subprocess
from typing import Any

_LARGEST = 4 << 20  # bytes


def probe(given: dict[str, Any]) -> list[dict[str, Any]]:
    """``given``: ``commands``, lists of words; ``limit`` in seconds for each. One after the other, until one fails."""
    out: list[dict[str, Any]] = []
    for command in given["commands"]:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=given["limit"], check=False
            )
        except (OSError, ValueError) as error:
            out.append({"code": None, "out": "", "err": str(error)})
        except subprocess.TimeoutExpired:
            out.append({"code": None, "out": "", "err": "no answer in {} s".format(given["limit"])})
        else:
            said, err = (text[:_LARGEST].decode("utf-8", "replace") for text in (done.stdout, done.stderr))
            out.append({"code": done.returncode, "out": said, "err": err})
        if out[-1]["code"] != 0:
            break
    return out
