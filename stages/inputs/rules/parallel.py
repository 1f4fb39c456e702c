"""The same TP, PP, CP and DP on both sides, so that rank n of one side is rank n of the other."""

from __future__ import annotations

from locales import _
from stages.inputs.rules.numbers import ONE, Number, data_parallel, world
from stages.inputs.rules.rule import Rule, Verdict, failed, open_, passed
from stages.inputs.run import Run


def _train(run: Run, name: str) -> Number | None:
    if not run.trains:
        return None
    if name == "dp":
        return data_parallel(run)
    if run.framework == "verl" and run.backend == "fsdp":
        return Number.of(run.get("train.cp"), "SP") if name == "cp" else ONE
    if run.framework == "verl" and run.backend != "megatron":
        return Number(
            None, "", _("how {backend} divides the devices is not known here").format(backend=run.backend or "?")
        )
    return Number.of(run.get(f"train.{name}"), name.upper())


def _infer(run: Run, name: str) -> Number | None:
    """None where no engine is to be seen."""
    if run.framework in ("slime", "vime") and name in ("tp", "dp"):
        return _managed(run, name)
    if name == "cp":
        return ONE
    if name == "dp" and run.framework == "verl":
        sizes = [Number.of(run.get(f"infer.{one}"), one.upper()) for one in ("tp", "pp")]
        return _devices(run).over(sizes[0].times(sizes[1]))
    found = run.get(f"infer.{name}")
    return Number.of(found, name.upper()) if found is not None else None


def _devices(run: Run) -> Number:
    """verl's engines have the training's devices, or their own (fully asynchronous training)."""
    nodes, each = run.facts.entry("rollout.nnodes"), run.facts.entry("rollout.n_gpus_per_node")
    if nodes is None and each is None:
        return world(run)
    own = Number.of(run.get("infer.nodes"), _("rollout nodes"))
    return own.times(Number.of(run.get("infer.per_node"), _("devices per rollout node")))


def _managed(run: Run, name: str) -> Number:
    """slime and vime deal the devices out: TP = devices per engine / PP, DP = all devices / devices per engine."""
    if run.facts.entry("--sglang-enable-dp-attention") is not None:
        why = _(
            "with DP attention, attention and experts of the engine are divided differently: there is no one TP or DP"
        )
        return Number(None, "", why)
    per_engine = Number.of(run.get("infer.per_engine"), _("devices per engine"))
    if name == "tp":
        return per_engine.over(Number.of(run.get("infer.pp"), "PP"))
    together, given = run.get("colocate"), run.get("infer.devices")
    if together is not None and together.known and together.value:
        return world(run).over(per_engine)
    return Number.of(given, _("rollout devices")).over(per_engine)


def _same(name: str) -> Rule:
    def judge(run: Run) -> Verdict | None:
        train, infer = _train(run, name), _infer(run, name)
        if train is None or infer is None:
            return None
        found = (*train.found, *infer.found)
        if train.value is None or infer.value is None:
            return open_(train.why or infer.why, *found)
        reason = _("{name}: training {train}, engine {infer}").format(name=name.upper(), train=train, infer=infer)
        return passed(reason, *found) if train.value == infer.value else failed(reason, *found)

    what = {
        "tp": _("the same tensor parallelism on both sides"),
        "pp": _("the same pipeline parallelism on both sides"),
        "cp": _("the same context or sequence parallelism on both sides (engines have none)"),
        "dp": _("the same data parallelism on both sides"),
    }
    why = _("dumps are compared rank by rank; which size to change is for the user to say, so `fix` leaves it")
    return Rule(f"same-{name}", "both", what[name], why, judge)


RULES = tuple(_same(name) for name in ("tp", "pp", "cp", "dp"))
