"""What an instruction comes to on dumps: entries, arguments, steps, ranks, sources."""

from __future__ import annotations

import pytest

from stages.stub.instruction import read_instruction
from stages.stub.plan import StubPlanError, make_plan
from stages.stub.target import StubDumpError
from tests.stages.stub.made import INFER, LAYER, TRAIN, dump, entry, instruction, module, save, sides, tensor


def plan(root, *modules, **more):
    train, infer = root / "dump/train", root / "dump/infer"
    return make_plan(read_instruction(instruction(root / "i.json", *modules, **more)), infer, train)


def refusal(root, *modules, **more) -> str:
    with pytest.raises((StubPlanError, StubDumpError)) as error:
        plan(root, *modules, **more)
    found = error.value
    return "\n".join(filter(None, [found.what, found.where, found.why, found.todo, *found.details]))


def test_a_file_is_laid_out_as_the_target_looks_it_up(tmp_path):
    sides(tmp_path)
    found = plan(tmp_path)
    (item,), (write,) = found.items, found.items[0].writes
    assert write.path == f"step0/rank0/dump_tensor_data/{TRAIN}.input.0.pt"
    assert (write.shape, write.dtype, write.rank) == ((1, 2, 3), "torch.float32", 0)
    assert write.before is not None
    assert item.sources == ((tmp_path / f"dump/infer/step0/proc77/dump_tensor_data/{INFER}.input.0.pt").resolve(),)
    assert (found.step, found.ranks, found.all_ranks) == (0, (0,), True)
    assert found.left == (f"{TRAIN}.kwargs.position_ids",)


def test_a_target_without_ranks_looks_for_any_process(tmp_path):
    train, _infer = sides(tmp_path)
    back = module(target=INFER, argument=None, source=f"step0/rank0/dump_tensor_data/{TRAIN}.input.0.pt")
    found = make_plan(
        read_instruction(instruction(tmp_path / "i.json", back, target_side="infer", source_side="train")),
        train,
        tmp_path / "dump/infer",
    )
    assert found.items[0].writes[0].path == f"step0/proc0/dump_tensor_data/{INFER}.input.0.pt"
    assert found.ranks is None


def test_every_rank_with_the_entry_is_overridden_unless_one_is_named(tmp_path):
    train, _infer = sides(tmp_path)
    for rank in (1, 2):
        dump(train, {TRAIN: entry(tensor())} if rank == 1 else {}, f"step0/rank{rank}")
    found = plan(tmp_path)
    assert (found.ranks, found.all_ranks) == ((0, 1), False)
    assert [one.rank for one in found.items[0].writes] == [0, 1]
    found = plan(tmp_path, module(rank=1))
    assert (found.ranks, found.all_ranks) == ((1,), False)
    assert "rank 2 of the target has no" in refusal(tmp_path, module(rank=2))
    both = refusal(tmp_path, module(rank=1), module())
    assert "modules[1] and modules[0] override the same" in both


def test_the_step_is_that_of_the_entry(tmp_path):
    train, _infer = sides(tmp_path)
    dump(train, {}, "step1/rank0")
    assert plan(tmp_path).step == 0
    dump(train, {TRAIN: entry(tensor([1, 1, 3]))}, "step2/rank0")
    assert '"step": N' in refusal(tmp_path)
    found = plan(tmp_path, step=2)
    assert found.items[0].writes[0].path.startswith("step2/rank0/")
    assert found.items[0].writes[0].shape == (1, 1, 3)
    assert "it has: 0, 1, 2" in refusal(tmp_path, step=3)


ENTRIES = {
    "another class": (module(target=INFER), f"it has: {TRAIN}"),
    "another number": (module(target=TRAIN[:-1] + "1"), f"it has: {TRAIN}"),
    "another path": (module(target=LAYER.format("X").replace("layers.1", "layers.9")), "nothing stands at that path"),
    "an argument that is none": (module(argument="kwargs.hidden_states"), "it gets: input.0, kwargs.position_ids"),
    "an argument that is no tensor": (module(argument="input.1"), "gets no tensor input.1"),
    "no argument where there are two": (module(argument=None), "say which `argument`"),
}


@pytest.mark.parametrize("what", ENTRIES)
def test_entries_that_the_target_has_not(tmp_path, what):
    sides(tmp_path)
    wrong, word = ENTRIES[what]
    assert word in refusal(tmp_path, wrong)


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    sides(tmp_path)
    text = refusal(tmp_path, module(target=INFER), module(source="gone.pt"), module(target=INFER, argument=None))
    assert "modules[0]: " in text
    assert "modules[1].source: " in text
    assert "modules[2]: " in text


def test_a_name_that_msprobe_does_not_open(tmp_path):
    train, _infer = sides(tmp_path)
    for name in ("Module.lay=er.X.forward.0", f"Module.{'m' * 195}.X.forward.0"):
        dump(train, {name: entry(tensor(), **{"k" * 80: tensor()})})
        argument = "input.0" if "=" in name else f"kwargs.{'k' * 80}"
        assert "msprobe opens no file of this name" in refusal(tmp_path, module(target=name, argument=argument))


# --- the sources ------------------------------------------------------------------------------------------------------


def test_there_is_no_way_out_of_the_dump(tmp_path):
    _train, infer = sides(tmp_path)
    data = infer / "step0/proc77/dump_tensor_data"
    secret = save(tmp_path / "dump_tensor_data/secret.pt")
    (data / "link.pt").symlink_to(secret)
    (data / "folder.pt").mkdir()
    (data / "loop.pt").symlink_to(data / "loop.pt")
    (infer / "out").symlink_to(tmp_path)
    inside = "step0/proc77/dump_tensor_data"
    for source, word in (
        (f"{inside}/../dump_tensor_data/{INFER}.input.0.pt", "leads upwards"),
        (f"../infer/{inside}/{INFER}.input.0.pt", "leads upwards"),
        (str(secret), "not within"),
        (f"{inside}/link.pt", "not within"),
        ("out/dump_tensor_data/secret.pt", "not within"),
        (f"{inside}/folder.pt", "no .pt file"),
        (f"{inside}/loop.pt", "not there"),
        (f"{inside}/gone.pt", "not there"),
        ("/etc/passwd.pt", "not there"),
    ):
        assert word in refusal(tmp_path, module(source=source)), source
    assert plan(tmp_path, module(source=str((data / f"{INFER}.input.0.pt").resolve()))).items


def test_parameters_are_no_inputs(tmp_path):
    _train, infer = sides(tmp_path)
    name = f"{INFER}.parameters.weight.pt"
    save(infer / "step0/proc77/dump_tensor_data" / name)
    assert "it is a parameter" in refusal(tmp_path, module(source=f"step0/proc77/dump_tensor_data/{name}"))


@pytest.mark.parametrize(("task", "level"), [("statistics", "L0"), ("tensor", "L1"), ("statistics", "mix")])
def test_sources_are_of_modules_and_have_tensors(tmp_path, task, level):
    _train, infer = sides(tmp_path)
    dump(infer, {INFER: entry(tensor([2, 3]))}, "step0/proc77", task, level)
    assert f"task {task}, level {level}" in refusal(tmp_path)


def test_dumps_that_are_not_there_or_broken(tmp_path):
    train, infer = sides(tmp_path)
    (infer / "step0/proc77/dump.json").write_text('{"task": "tensor", "data": {"a"')
    assert "cannot be read whole" in refusal(tmp_path)
    (train / "step0/rank0/dump.json").write_text("[]")
    assert "cannot be read whole" in refusal(tmp_path)
    (train / "step0/rank0/dump.json").unlink()
    assert "there is no dump of the target side" in refusal(tmp_path)
