"""One mission as a user runs it: two patched copies, two launch scripts, a task card, and probepatch's own commands."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e import environments

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
DRIVE = HERE / "drive"
PAYLOADS = (REPOSITORY / "stages" / "params" / "payloads", REPOSITORY / "stages" / "params_tensors")
REQUESTS = [
    {"id": "6f1c0f0b5c3d4e0f9a7b2c1d0e8f7a61", "prompt": list(range(2, 13)), "response": [31, 32, 33, 34]},
    {"id": "0a9d8c7b6e5f4a3b2c1d0e9f8a7b6c52", "prompt": list(range(40, 47)), "response": [51, 52, 53, 54, 55]},
]
SWITCHES = ("DUMP_ON", "PROMPTS_ONLY", "TORCHDYNAMO_DISABLE")
Answer = dict[str, Any]


class Mission:
    """``folder`` holds it all: verl, engine, train.sh, infer.sh, run.sh, task/; what is captured is beside it."""

    def __init__(
        self, folder: Path, model: Path, verl: str, engine: str, requests: list[Answer] = REQUESTS[:1]
    ) -> None:
        self.folder, self.model = folder, model
        self.verl_version, self.engine = verl, engine
        self.verl = environments.verl_tree(verl, folder / "verl")
        self.tree = folder / "engine"
        if engine != "transformers":
            environments.engine_tree(engine, self.tree)
        self.pythons = {"train": environments.interpreter("verl"), "infer": environments.interpreter(engine)}
        (folder / "sample.json").write_text(json.dumps({"requests": requests}))
        self.plain: dict[str, Answer] = {}  # what the unpatched frameworks gave
        self.captured: Answer = {}
        self._write_scripts()
        self.pristine = {name: snapshot(tree) for name, tree in self.trees.items()}
        self.scripts = {name: (folder / name).read_bytes() for name in ("train.sh", "infer.sh", "run.sh")}

    @property
    def trees(self) -> dict[str, Path]:
        return {"train": self.verl} | ({"infer": self.tree} if self.engine != "transformers" else {})

    @property
    def card(self) -> Path:
        return self.folder / "task" / "task_card.json"

    @property
    def artifacts(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-artifacts")

    # --- processes -----------------------------------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        """No settings of the developer's; the stand-ins before everything else."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROBEPATCH_", "MSPROBE_"))}
        kept.pop("PYTHONPATH", None)
        path = f"{self.folder / 'bin'}:{kept['PATH']}"
        fixed = {"SAMPLE": str(self.folder / "sample.json"), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
        return kept | {"PATH": path, "OMP_NUM_THREADS": "1"} | fixed | more

    def __call__(self, *line: str | Path, code: int | None = 0, card: bool = True) -> Answer:
        """Run a command of probepatch, as it stands in the manual, and read what it says to programs."""
        words = [str(word) for word in line]
        asked = [*words, *(["--task", str(self.card)] if card else []), "--json"]
        command = [sys.executable, str(REPOSITORY / "probepatch.py"), *asked]
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True)
        said = f"probepatch {' '.join(words)} -> {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        assert code is None or done.returncode == code, said
        answer: Answer = json.loads(done.stdout) if done.stdout.strip() else {}
        return answer | {"exit": done.returncode, "stderr": done.stderr}

    def start(
        self, script: str, seen: str = "", code: int | None = 0, arguments: tuple[str, ...] = (), **switches: str
    ) -> Answer:
        """Start a launch script as the user does, and give what its driver saw."""
        out = self.folder / f"{seen or script}.seen.json"
        out.unlink(missing_ok=True)
        environment = self.environment(SEEN=str(out), **switches)
        done = subprocess.run(
            ["bash", script, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        (self.folder / f"{seen or script}.log").write_text(done.stdout + done.stderr)
        assert code is None or done.returncode == code, (done.stdout + done.stderr)[-4000:]
        answer: Answer = json.loads(out.read_text()) if out.exists() else {}
        return answer | {"exit": done.returncode, "said": done.stdout + done.stderr}

    # --- the stages before the capture ---------------------------------------------------------------------------------

    def up_to_scene(self, usage: str = "analysis") -> None:
        """Stages 0 to 3."""
        self("task", "init", self.card.parent, card=False)
        facts = {
            "usage": usage,
            "model.path": self.model,
            "train.framework": "verl",
            "train.backend": "fsdp",
            "train.checkout": self.verl,
            "train.python": self.pythons["train"],
            "train.workdir": self.folder,
            "infer.framework": self.engine,
            "infer.python": self.pythons["infer"],
            "infer.workdir": self.folder,
            "hardware": "cpu",
            "baseline_command": f"bash {self.folder}/run.sh",
            "artifacts": self.artifacts,
        } | ({"infer.checkout": self.tree} if "infer" in self.trees else {})
        self("task", "set", *(f"{name}={value}" for name, value in facts.items()))
        self("task", "permit", "--all", "--scope", "this test's own folder")
        found = self("preflight", code=None)
        if found["exit"]:  # somebody else's Ray or engine on this machine: it is there on purpose
            kept = [word for one in found["processes"] for word in ("--keep", str(one["pid"]))]
            self("preflight", *kept)
        self("scene")

    def align_inputs(self, *more: str) -> Answer:
        """Stage 4: the scripts are mended; what the capture will export for the engine is told beforehand."""
        scripts = ["train.sh", *(["infer.sh"] if self.engine != "transformers" else [])]
        known = [word for name in SWITCHES for word in ("--env", f"{name}=1")]
        before = self("inputs", "check", *scripts, code=1)
        assert before["counts"]["FAIL"] > 0
        self("inputs", "fix", *scripts, code=None)
        return self("inputs", "check", *scripts, *known, *more)

    def align_parameters(self, built: Built) -> Answer:
        """Stage 5, from what both sides really built."""
        config = self.model / "config.json"
        modules = ["--modules", built.modules] if built.modules else []
        self("params", "check", "--train-cfg", config, "--infer-cfg", config, "--train-is-hf", *modules)
        sides = ("--train", built.train, "--infer", built.infer)
        self("params", "structure", *sides)
        self("params", "weights", *sides)
        report = self("params", "report", code=None)
        for point in ("modules-layer",) if not built.modules else ():
            self("params", "waive", point, "--why", "the engine's processes are not asked for their modules")
            report = self("params", "report", code=None)
        assert report["exit"] == 0, report
        return report

    def aligned(self, built: Built) -> Mission:
        self.up_to_scene()
        self.align_inputs()
        self.align_parameters(built)
        return self

    # --- the capture ---------------------------------------------------------------------------------------------------

    def instrument(self, *options: str) -> Answer:
        """Stage 6."""
        return self("capture", "prepare", *options)

    def capture(self, *options: str, code: int | None = 0) -> Answer:
        """The run itself; ``seen`` then has what each side's driver saw."""
        for side in ("train", "infer"):
            (self.folder / f"{side}.seen.json").unlink(missing_ok=True)
        return self("capture", "run", "--timeout", "300", *options, code=code)

    def seen(self, side: str) -> Answer:
        found: Answer = json.loads((self.folder / f"{side}.seen.json").read_text())
        return found

    def dump(self, side: str, round_: int = 0, step: int = 0) -> Path:
        """The one rank's folder of a step."""
        root = self.artifacts / "dump" / (f"round{round_}/{side}" if round_ else side)
        (folder,) = (root / f"step{step}").iterdir()
        return folder

    def differences(self, train: Path, infer: Path) -> dict[str, float | None]:
        """The largest difference at each boundary of the model."""
        line = [self.pythons["train"], DRIVE / "boundaries.py", train, infer]
        done = subprocess.run(line, env=self.environment(), check=True, capture_output=True, text=True)
        found: dict[str, float | None] = json.loads(done.stdout)
        return found

    # --- what is left --------------------------------------------------------------------------------------------------

    def untouched(self) -> bool:
        """Both trees and all scripts are byte for byte as they were."""
        same = all(snapshot(tree) == self.pristine[name] for name, tree in self.trees.items())
        return same and all((self.folder / name).read_bytes() == was for name, was in self.scripts.items())

    def _write_scripts(self) -> None:
        older = self.verl_version < "0.8"  # lexically: all of them have one digit in each place
        places = {
            "DRIVE": ":".join(map(str, (DRIVE, REPOSITORY / "tests" / "real" / "drive", *PAYLOADS))),
            "HERE": DRIVE,
            "LEGACY": f":{environments.legacy_libraries()}" if older else "",
            "TRAIN_PYTHON": self.pythons["train"],
            "INFER_PYTHON": self.pythons["infer"],
            "MODEL": self.model,
            "VERL": self.verl,
            "ENGINE": self.tree if self.engine != "transformers" else REPOSITORY / "recipes" / "payloads",
            "FOLDER": self.folder,
        }
        (self.folder / "bin").mkdir()
        chosen = {"train.sh": "train.sh", "infer.sh": f"infer-{self.engine}.sh", "run.sh": "run.sh"}
        for name, source in {**chosen, "bin/python3": "python3", "bin/vllm": "vllm"}.items():
            text = (HERE / "scripts" / source).read_text()
            for place, value in places.items():
                text = text.replace(f"@{place}@", str(value))
            if name == "train.sh" and older:
                last = "trainer.val_before_train=True"
                text = text.replace(last, f"++actor_rollout_ref.actor.fsdp_config.dtype=float32 \\\n    {last}")
            (self.folder / name).write_text(text)
            shutil.copymode(HERE / "scripts" / source, self.folder / name)


class Built:
    """Inventories of what the sides really built (or a checkpoint), and what their modules hold."""

    def __init__(self, train: Path, infer: Path, modules: Path | None) -> None:
        self.train, self.infer, self.modules = train, infer, modules


def snapshot(tree: Path) -> dict[str, str]:
    """Digest of every file, and where each link leads."""
    found = {}
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
