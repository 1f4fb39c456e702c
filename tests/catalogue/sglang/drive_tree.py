"""Run a scenario on a patched tree: `python drive_tree.py SCENARIO`; prints what it saw as JSON in its last line."""

import json
import os
import sys
from types import SimpleNamespace

from sglang.srt.managers.scheduler import Req, Scheduler
from sglang.srt.managers.scheduler_output_processor_mixin import SchedulerOutputProcessorMixin
from sglang.srt.managers.tp_worker import TpModelWorker
from sglang.srt.model_executor import model_runner
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.server_args import ServerArgs

FLAG = {"msprobe_dump_config": os.environ["FLAG"]} if "FLAG" in os.environ else {}


def calls():
    """msprobe's calls since the last time; None when it was never imported."""
    module = sys.modules.get("msprobe.pytorch")
    if module is None:
        return None
    made, module.CALLS[:] = list(module.CALLS), []
    return made


def request(rid, tokens):
    return Req(rid, list(range(tokens)))


def batch(mode, reqs, scheduled, computed):
    """What the scheduler sends: without ``scheduled`` a decode step, whose seq_lens count the new token."""
    together = [old + new for old, new in zip(computed, scheduled or [1] * len(reqs), strict=True)]
    ids = list(range(sum(scheduled) if scheduled else len(reqs)))
    return SimpleNamespace(
        mode=mode, reqs=reqs, input_ids=ids, seq_lens=together, extend=scheduled, prefix=scheduled and computed
    )


def worker(**given):
    arguments = ServerArgs(**FLAG, **{key: given.pop(key) for key in ("dp_size",) if key in given})
    return TpModelWorker(model_runner.ModelRunner(arguments, **given))


def steps():
    one = worker()
    seen = {"built": calls()}
    ran = one.forward_batch_generation
    ran(batch("extend", [request("a", 5), request("b", 3)], [5, 3], [0, 0]))
    seen["prefill"] = calls()
    ran(batch("decode", [request("a", 5)], None, [5]))
    seen["decode"] = calls()
    long = request("c", 9)
    ran(batch("extend", [long], [4], [0]))  # a chunk, then the rest of it beside a running request
    ran(batch("mixed", [long, request("a", 5)], [5, 1], [4, 6]))
    seen["chunks"] = calls()
    return seen


def not_steps():
    """Forwards that are no steps, each with msprobe's calls."""
    one = worker()
    calls()
    run, seen = one.model_runner, {}
    run._dummy_run(8)
    seen["dummy"] = calls()
    one.forward_batch_generation(batch("idle", [], [], []))
    seen["idle"] = calls()
    one.forward_batch_generation(batch("extend", [request("HEALTH_CHECK_17.5", 1)], [1], [0]))
    seen["health"] = calls()
    profiled = batch("extend", [request("0", 64)], [64], [0])
    run.forward(ForwardBatch.init_new(profiled, run))
    seen["profiling"] = calls()
    one.forward_batch_generation(None, forward_batch=ForwardBatch("target_verify", [1, 2], [6]), is_verify=True)
    seen["verify"] = calls()
    one.forward_batch_split_prefill(batch("split", [request("s", 4)], [4], [0]))
    seen["split"] = calls()
    return {**seen, "ran": run.forwards}


def draft():
    worker(is_draft_worker=True, draft_model_idx=0)
    return {"built": calls()}


def error():
    one = worker()
    calls()
    try:
        one.forward_batch_generation(batch("broken", [request("a", 5)], [5], [0]))
    except ValueError as problem:
        raised = str(problem)
    seen = {"raised": raised, "broken": calls()}
    model_runner.FAULTS.append(True)
    one.forward_batch_generation(batch("extend", [request("b", 2)], [2], [0]))
    return {**seen, "twice": calls(), "ran": one.model_runner.forwards}


def data_parallel():
    one = worker(dp_size=2, gpu_id=3)
    calls()
    one.forward_batch_generation(batch("extend", [request("a", 5)], [5], [0]))
    return {"step": calls()}


def native():
    """SGLang's own integration: every forward is a step."""
    one, guess = worker(), worker(is_draft_worker=True)
    one.forward_batch_generation(batch("extend", [request("a", 5)], [5], [0]))
    guess.forward_batch_split_prefill(batch("extend", [request("a", 5)], [5], [0]))
    one.forward_batch_generation(None, forward_batch=ForwardBatch("target_verify", [1, 2], [6]), is_verify=True)
    one.forward_batch_generation(batch("idle", [], [], []))
    one.forward_batch_generation(batch("extend", [request("HEALTH_CHECK_17.5", 1)], [1], [0]))
    return {"calls": calls(), "piecewise": one.model_runner.server_args.disable_piecewise_cuda_graph}


def logprobs():
    scheduler, output, one = Scheduler(), SchedulerOutputProcessorMixin(), worker()
    calls()
    asked = {"quiet": (False, -1), "response": (True, -1), "late": (True, 2), "odd": (True, 0)}
    for rid, (wanted, start) in asked.items():
        recv = SimpleNamespace(rid=rid, input_ids=[1, 2, 3, 4], return_logprob=wanted, logprob_start_len=start)
        scheduler.handle_generate_request(recv)
    reqs = scheduler.waiting
    one.forward_batch_generation(batch("extend", reqs, [4] * 4, [0] * 4))
    for req in reqs:
        values = [-0.5 - place for place in range(4)][max(req.logprob_start_len, 0) :]
        output._process_input_token_logprobs(req, values if req.rid != "odd" else values[:2])
    return {req.rid: [req.return_logprob, req.logprob_start_len, req.output_token_logprobs_val] for req in reqs}


def arguments():
    one = ServerArgs(enable_piecewise_cuda_graph=True)
    return {name: getattr(one, name, None) for name in ("disable_cuda_graph", "skip_server_warmup")} | {
        name: value for name, value in vars(one).items() if "piecewise" in name
    }


if __name__ == "__main__":
    answer = globals()[sys.argv[1]]()
    print(json.dumps({**answer, "msprobe": "msprobe" in sys.modules}))
