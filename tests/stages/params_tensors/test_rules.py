"""Names and layouts: what a framework fused, cut and renamed comes to be the plain checkpoint again, to the bit."""

from __future__ import annotations

import json

import pytest

from codemods.errors import InvalidError, UsageError
from stages.params_tensors.rules import SHIPPED, load_rules
from tests.stages.params_tensors.comparing import finding, report, verdicts
from tests.stages.params_tensors.made import (
    Tensor,
    below,
    columns_of,
    entry,
    inventory,
    matrix,
    rows_of,
    save,
    with_bytes,
)

HEADS, KV, DIM, HIDDEN, INNER, EXPERTS = 4, 2, 2, 6, 8, 4
CONFIG = {"num_attention_heads": HEADS, "num_key_value_heads": KV, "num_experts": EXPERTS, "vocab_size": 10}
ATTENTION, MLP = "model.layers.3.self_attn", "model.layers.3.mlp"


def plain() -> dict[str, Tensor]:
    """One layer of a checkpoint; no two elements are equal."""
    shapes = {
        "model.embed_tokens.weight": (10, HIDDEN),
        f"{ATTENTION}.q_proj.weight": (HEADS * DIM, HIDDEN),
        f"{ATTENTION}.k_proj.weight": (KV * DIM, HIDDEN),
        f"{ATTENTION}.v_proj.weight": (KV * DIM, HIDDEN),
        f"{ATTENTION}.o_proj.weight": (HIDDEN, HEADS * DIM),
        f"{MLP}.gate_proj.weight": (INNER, HIDDEN),
        f"{MLP}.up_proj.weight": (INNER, HIDDEN),
        f"{MLP}.down_proj.weight": (HIDDEN, INNER),
    }
    return {name: matrix(*shape, start=1000 * at) for at, (name, shape) in enumerate(shapes.items())}


def cut(tensor: Tensor, rank: int, count: int) -> Tensor:
    each = tensor[1][0] // count
    return rows_of(tensor, rank * each, rank * each + each)


def columns(tensor: Tensor, rank: int, count: int) -> Tensor:
    each = tensor[1][1] // count
    return columns_of(tensor, rank * each, rank * each + each)


def groups(q: Tensor, k: Tensor, v: Tensor, count: int) -> Tensor:
    """Megatron's: for each group of heads its queries, its key, its value."""
    return below(*(cut(one, group, count) for group in range(count) for one in (q, k, v)))


def projections(tensors: dict[str, Tensor]) -> list[Tensor]:
    return [tensors[f"{ATTENTION}.{letter}_proj.weight"] for letter in "qkv"]


def megatron(folder, tensors: dict[str, Tensor], tp: int, ranks_told: bool) -> None:
    q, k, v = projections(tensors)
    layer = "decoder.layers.3"
    for rank in range(tp):
        parts = [cut(one, rank, tp) for one in (q, k, v)]
        found = {
            "embedding.word_embeddings.weight": (cut(tensors["model.embed_tokens.weight"], rank, tp), 0),
            f"{layer}.self_attention.linear_qkv.weight": (groups(*parts, KV // tp), 0),
            f"{layer}.self_attention.linear_proj.weight": (columns(tensors[f"{ATTENTION}.o_proj.weight"], rank, tp), 1),
            f"{layer}.mlp.linear_fc1.weight": (
                below(*(cut(tensors[f"{MLP}.{name}_proj.weight"], rank, tp) for name in ("gate", "up"))),
                0,
            ),
            f"{layer}.mlp.linear_fc2.weight": (columns(tensors[f"{MLP}.down_proj.weight"], rank, tp), 1),
        }
        shard = {"index": rank, "count": tp} if ranks_told and tp > 1 else None
        lines = [
            (entry(f"module.{name}", tensor, shard=shard and {**shard, "dim": dim}), tensor)
            for name, (tensor, dim) in found.items()
        ]
        inventory(folder, lines, {"world": tp, "rank": rank, "tp": tp, "tp_rank": rank}, CONFIG)


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("ranks_told", [True, False])
def test_megatron_is_the_checkpoint(tmp_path, tp, ranks_told):
    """The pieces are told by the payload, or by the rules."""
    tensors = plain()
    megatron(tmp_path / "train", tensors, tp, ranks_told)
    save(tmp_path / "infer/model.safetensors", tensors)
    found = report(tmp_path / "train", tmp_path / "infer", train_names="megatron")
    assert (set(verdicts(found)), found.verdict) == (set(tensors), "EXACT")
    wrong = with_bytes(tensors[f"{ATTENTION}.k_proj.weight"], 4 * (HIDDEN * 3 + 1), b"\xff")
    save(tmp_path / "infer/model.safetensors", {**tensors, f"{ATTENTION}.k_proj.weight": wrong})
    found = report(tmp_path / "train", tmp_path / "infer", train_names="megatron")
    assert [one.name for one in found.points] == [f"{ATTENTION}.k_proj.weight"]
    assert finding(found, f"{ATTENTION}.k_proj.weight").difference["first_index"] == [3, 1]


def test_the_layout_of_the_groups_matters(tmp_path):
    """Concatenated heads under Megatron's name are another model."""
    tensors = plain()
    fused = below(*projections(tensors))
    name = "decoder.layers.3.self_attention.linear_qkv.weight"
    inventory(tmp_path / "train", [(entry(name, fused), fused)], config=CONFIG)
    save(
        tmp_path / "infer/model.safetensors",
        {one: tensors[one] for one in tensors if ".self_attn." in one and "o_proj" not in one},
    )
    found = report(tmp_path / "train", tmp_path / "infer", train_names="megatron")
    assert set(verdicts(found).values()) == {"DIFF"}


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_an_engine_is_the_checkpoint(tmp_path, tp):
    """Heads of keys and values that are fewer than the ranks are on several of them, and these have to agree."""
    tensors = plain()
    q, k, v = projections(tensors)
    for rank in range(tp):
        own = rank * min(KV, tp) // tp
        fused = below(cut(q, rank, tp), cut(k, own, min(KV, tp)), cut(v, own, min(KV, tp)))
        if tp == 4 and rank == 3:
            fused = with_bytes(fused, len(fused[2]) - 4, b"\xff")
        gate_up = below(*(cut(tensors[f"{MLP}.{name}_proj.weight"], rank, tp) for name in ("gate", "up")))
        lines = [(f"{ATTENTION}.qkv_proj.weight", fused), (f"{MLP}.gate_up_proj.weight", gate_up)]
        shard = {"dim": 0, "index": rank, "count": tp} if tp > 1 else None
        inventory(
            tmp_path / "infer",
            [(entry(name, tensor, shard=shard), tensor) for name, tensor in lines],
            {"world": tp, "rank": rank, "tp": tp, "tp_rank": rank},
            CONFIG,
        )
    wanted = {
        name: tensor
        for name, tensor in tensors.items()
        if name.partition("_proj")[0].endswith((".q", ".k", ".v", ".gate", ".up"))
    }
    save(tmp_path / "train/model.safetensors", wanted)
    found = report(tmp_path / "train", tmp_path / "infer")
    assert set(wanted) <= set(verdicts(found))
    if tp < 4:
        assert found.verdict == "EXACT"
    else:
        assert [one.name for one in found.points] == [f"{ATTENTION}.v_proj.weight (infer: rank 2 and rank 3)"]


def test_experts_in_one_tensor_or_each_by_itself(tmp_path):
    """Stacked as newer modules and engines have them, cut along the inner dimension, and counted anew on each rank."""
    experts = {
        f"{MLP}.experts.{number}.{name}_proj.weight": matrix(
            *((HIDDEN, INNER) if name == "down" else (INNER, HIDDEN)), start=100 * at
        )
        for number in range(EXPERTS)
        for at, name in enumerate(("gate", "up", "down"), 3 * number)
    }
    save(tmp_path / "plain/model.safetensors", experts)

    def stacked(numbers, tp=1, rank=0):
        w13, w2 = [], []
        for number in numbers:
            gate, up, down = (experts[f"{MLP}.experts.{number}.{name}_proj.weight"] for name in ("gate", "up", "down"))
            w13.append(below(cut(gate, rank, tp), cut(up, rank, tp)))
            w2.append(columns(down, rank, tp))
        return [(one[0][0], [len(numbers), *one[0][1]], b"".join(part[2] for part in one)) for one in (w13, w2)]

    for rank in range(2):
        for folder, names, numbers, tp in (
            ("cut", ("experts.routed_experts.w13_weight", "experts.routed_experts.w2_weight"), range(EXPERTS), 2),
            ("ep", ("experts.gate_up_proj", "experts.down_proj"), range(2 * rank, 2 * rank + 2), 1),
        ):
            lines = []
            for name, tensor, dim in zip(names, stacked(numbers, tp, rank if tp > 1 else 0), (1, 2), strict=True):
                shard = {"dim": dim, "index": rank, "count": 2} if tp == 2 else None
                lines.append((entry(f"{MLP}.{name}", tensor, shard=shard), tensor))
            ranks = (
                {"world": 2, "rank": rank, "tp": tp, "tp_rank": rank}
                if tp == 2
                else {"world": 2, "rank": rank, "ep": 2, "ep_rank": rank}
            )
            inventory(tmp_path / folder, lines, ranks, CONFIG)
    for folder in ("cut", "ep"):
        found = report(tmp_path / "plain", tmp_path / folder)
        assert (set(verdicts(found)), found.verdict) == (set(experts), "EXACT"), folder


def test_latent_attention_is_split_by_its_ranks(tmp_path):
    a, b = matrix(6, 4), matrix(5, 4, 100)
    numbers = {"q_lora_rank": 6, "kv_lora_rank": 3, "qk_rope_head_dim": 2}
    save(tmp_path / "infer/model.safetensors", {"l.fused_qkv_a_proj.weight": below(a, b)})
    (tmp_path / "infer/config.json").write_text(json.dumps(numbers))
    save(tmp_path / "train/model.safetensors", {"l.q_a_proj.weight": a, "l.kv_a_proj_with_mqa.weight": b})
    assert report(tmp_path / "train", tmp_path / "infer").verdict == "EXACT"


def test_numbers_that_nobody_knows_are_not_guessed(tmp_path):
    fused = below(*projections(plain()))
    save(tmp_path / "train/model.safetensors", plain())
    save(tmp_path / "infer/model.safetensors", {f"{ATTENTION}.qkv_proj.weight": fused})
    found = report(tmp_path / "train", tmp_path / "infer")
    assert verdicts(found)[f"{ATTENTION}.qkv_proj.weight"] == "MISSING_SIDE"
    assert any("num_attention_heads, num_key_value_heads unknown" in note for note in found.as_json()["notes"])
    numbers = {"num_attention_heads": HEADS, "num_key_value_heads": KV}
    assert (
        verdicts(report(tmp_path / "train", tmp_path / "infer", numbers=numbers))[f"{ATTENTION}.k_proj.weight"]
        == "EXACT"
    )
    odd = {"num_attention_heads": 3, "num_key_value_heads": 1}
    assert any(
        "even" in note for note in report(tmp_path / "train", tmp_path / "infer", numbers=odd).as_json()["notes"]
    )
    same = report(tmp_path / "infer", tmp_path / "infer")
    assert same.verdict == "EXACT"  # fused alike, nothing has to be split


def test_pieces_and_ranks_that_are_missing(tmp_path):
    part = matrix(2, 3)
    inventory(
        tmp_path / "train",
        [(entry("a", part, shard={"dim": 0, "index": 1, "count": 2}), part)],
        {"world": 2, "rank": 1},
    )
    save(tmp_path / "infer/model.safetensors", {"a": matrix(4, 3)})
    found = report(tmp_path / "train", tmp_path / "infer")
    assert finding(found, "a").verdict == "UNSUPPORTED"
    assert "1 of 2 pieces are missing" in finding(found, "a").note
    assert [problem.kind for _side, problem in found.opened.problems] == ["rank-missing"]


def test_two_tensors_that_come_to_one_name(tmp_path):
    save(tmp_path / "train/model.safetensors", {"_orig_mod.a": matrix(1, 1), "a": matrix(1, 1)})
    save(tmp_path / "infer/model.safetensors", {"a": matrix(1, 1)})
    found = report(tmp_path / "train", tmp_path / "infer")
    assert ([problem.kind for _side, problem in found.opened.problems], found.verdict) == (["same-name"], "MISMATCH")


def test_rules_of_ones_own(tmp_path):
    rules = tmp_path / "mine.yaml"
    rules.write_text('names: mine\nrename:\n  - {from: "wrapped.{rest...}", to: "{rest}"}\nignore: ["*.junk"]\n')
    save(tmp_path / "train/model.safetensors", {"wrapped.a.b": matrix(1, 2), "x.junk": matrix(1, 1)})
    save(tmp_path / "infer/model.safetensors", {"a.b": matrix(1, 2)})
    found = report(tmp_path / "train", tmp_path / "infer", train_names=str(rules))
    assert (verdicts(found), found.verdict) == ({"a.b": "EXACT"}, "EXACT")
    assert found.as_json()["ignored"]["train"] == {"x.junk": "by rule"}


@pytest.mark.parametrize(
    "text",
    [
        "names: x\nnothing: 1\n",
        'names: x\nrename:\n  - {from: "{a}", to: "{b}"}\n',
        'names: x\nrename:\n  - {from: "{a}.{a}", to: "{a}"}\n',
        'names: x\nrename:\n  - {from: "{a}{b}{c}{d}X", to: "{a}"}\n',
        'names: x\nrename:\n  - {from: "{a}x{b}", to: "{a}"}\n',
        'names: x\nrename:\n  - {from: "{a...}.{b...}.{c...}.X", to: "{a}"}\n',
        'names: x\nsplit:\n  - {from: "{a}", to: ["{a}1"], layout: woven}\n',
        'names: x\nsplit:\n  - {from: "{a}", to: ["{a}1", "{a}2"], layout: gqa}\n',
        'names: x\nsplit:\n  - {from: "{a}", to: ["{a}1", "{a}2"], layout: concat, sizes: [n]}\n',
    ],
)
def test_bad_rules(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(InvalidError):
        load_rules(str(tmp_path / "mine.yaml"))


def test_the_shipped_rules_are_valid():
    names = sorted(path.stem for path in SHIPPED.glob("*.yaml"))
    assert [load_rules(name).name for name in names] == names
    with pytest.raises(UsageError):
        load_rules("nothing")
