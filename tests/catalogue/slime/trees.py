"""slime's releases from a folder of checkouts, trees with vime's names and shapes, and small ones of both for everybody.

PROBEPATCH_CORPUS names the folder; slime's tags are in its `slime/v0.2.0`, …, `slime/v0.3.1` and `slime/main`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

CORPUS = os.environ.get("PROBEPATCH_CORPUS")  # read before the tests clear the environment
FIRST = ("v0.2.0", "v0.2.0.post1")
LATER = ("v0.2.1", "v0.2.2", "v0.2.3", "v0.2.4", "v0.3.0", "v0.3.1", "main")
VIME = {"three-arguments": "v0.2.4", "one-argument": "main"}
SMALL = ("small-three-arguments", "small-one-argument")  # of get_data_iterator

FIXTURE = Path(__file__).parent / "fixtures" / "tree"
THREE = {
    "PARTITION": 'rollout_data = {}\n            rollout_data["partition"] = partition',
    "FIXED_SIZE": "self.micro_batch_size = micro_batch_size",
    "GET_DATA_ITERATOR": """def get_data_iterator(args, model, rollout_data):
    if args.use_dynamic_batch_size:
        return [DataIterator(rollout_data, None, [[2, 3], [0, 1]])], [2]
    return [DataIterator(rollout_data, args.micro_batch_size)], [len(rollout_data["tokens"]) // args.micro_batch_size]
""",
    "ITERATORS": "data_iterator, num_microbatches = get_data_iterator(self.args, self.model, rollout_data)",
    "OUTCOME": "result",
    "**COLLECT,": "collect_non_loss_data=True,",
    "TOP_P=None": "unused=None",
    "REUSE": "can_reuse_log_probs_in_loss = False",
}
ONE = {
    "PARTITION": 'rollout_data = {"partition": partition}',
    "FIXED_SIZE": "assert micro_batch_size is None",
    "GET_DATA_ITERATOR": """def get_data_iterator(rollout_data):
    return [DataIterator(rollout_data, micro_batch_indices=rollout_data["micro_batch_indices"])]
""",
    "ITERATORS": """data_iterator = get_data_iterator(rollout_data)
        num_microbatches = rollout_data["num_microbatches"]""",
    "OUTCOME": "None, result",
    "**COLLECT,": "",
    "TOP_P=None": "use_rollout_top_p_replay=False",
    "REUSE": "can_reuse_log_probs_in_loss = len(num_microbatches) == 1 and self.args.kl_coef == 0",
}


def recipe_of(tag: str) -> str:
    return "slime-megatron-0.2.0" if tag in FIRST else "slime-megatron"


def slime(tag: str, into: Path) -> Path:
    """The package of a release, copied below ``into``."""
    if tag in SMALL:
        return small("slime", tag, into)
    if not CORPUS:
        pytest.skip("PROBEPATCH_CORPUS is not set: a folder with slime's checkouts, slime/v0.2.0, …, slime/main")
    source = Path(CORPUS, "slime", tag, "slime")
    if not source.is_dir():
        pytest.skip(f"{source} is not there")
    into.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, into / "slime", ignore=shutil.ignore_patterns("__pycache__"))
    return into


def small(package: str, shape: str, into: Path) -> Path:
    """A package with the shapes that the recipes look for and no more."""
    shutil.copytree(FIXTURE, into / package)
    words = {**(THREE if "three" in shape else ONE), "PACKAGE": package}
    for path in (into / package).rglob("*.py"):
        text = path.read_text()
        for word, code in words.items():
            text = text.replace(word, code)
        path.write_text(text)
    if "one" in shape:
        for name in ("hf_checkpoint_saver.py", "stateless_adam.py"):
            (into / package / "backends" / "megatron_utils" / name).touch()
    return into


def vime(shape: str, into: Path) -> Path:
    """A tree of vime's shape: slime's training side under vime's name, with a client of vLLM's token endpoint."""
    if shape in SMALL:
        return small("vime", shape, into)
    slime(VIME[shape], into).joinpath("slime").rename(into / "vime")
    for path in (into / "vime").rglob("*.py"):
        path.write_text(path.read_text().replace("slime", "vime"))
    client = (FIXTURE / "rollout" / "vllm_rollout.py").read_text().replace("PACKAGE", "vime")
    (into / "vime" / "rollout" / "vllm_rollout.py").write_text(client)
    if shape == "one-argument":
        collect_drafts(into / "vime" / "backends" / "megatron_utils")
    return into


def collect_drafts(folder: Path) -> None:
    """vime's log-prob pass may hand the forward to a collector of draft features."""
    model = folder / "model.py"
    text = model.read_text()
    signature = "    use_rollout_top_p_replay: bool = False,\n"
    assert text.count(signature) == 1
    text = text.replace(signature, signature + "    draft_feature_collector=None,\n")
    call = "        output_tensor = model(**forward_kwargs)\n\n        output_kwargs"
    assert text.count(call) == 1
    branch = """        if draft_feature_collector is None:
            output_tensor = model(**forward_kwargs)
        else:
            output_tensor = draft_feature_collector.forward(model, forward_kwargs)

        output_kwargs"""
    model.write_text(text.replace(call, branch))
