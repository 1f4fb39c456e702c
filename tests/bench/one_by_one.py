"""What one does without a matrix: every version unpacked, and ``probepatch diff`` run on it for each recipe.

Ends with 1 when one fails. Called with a JSON file (``repo``, and for each version its ``source`` and ``recipes``) and a
folder to work in.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def unpack(repo: str | None, source: str, into: Path) -> None:
    if repo is None:
        with zipfile.ZipFile(source) as archive:
            archive.extractall(into)
        return
    packed = subprocess.Popen(["git", f"--git-dir={repo}", "archive", source], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(into)], stdin=packed.stdout, check=True)
    if packed.wait():
        raise SystemExit(f"git archive {source}: {packed.returncode}")


def main() -> int:
    plan, scratch = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]
    worst = 0
    for version in plan["versions"]:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            unpack(plan["repo"], version["source"], Path(folder))
            for recipe in version["recipes"]:
                command = [sys.executable, "-m", "probepatch", "diff", folder, "--recipe", recipe, "--json"]
                worst = max(worst, subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
