"""What the runners of these trees have in common: contexts, a model, a prompt's log-probs."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

from torch import Tensor


class Broken(Exception):
    """The forward failed because it was told to."""


class LogprobsTensors(NamedTuple):
    logprob_token_ids: Tensor
    logprobs: Tensor


@contextmanager
def context(*_arguments, **_named):
    yield "context"


class Model:
    def __init__(self, fails=False):
        self.fails = fails

    def __call__(self):
        debugger = sys.modules.get("msprobe.pytorch")
        if debugger is not None:
            debugger.EVENTS.append("forward")
        if self.fails:
            raise Broken
        return "hidden states"


class Base:
    """``role`` is the way that execute_model goes: last, middle (of a pipeline), pooling, encoder, kv."""

    def __init__(self, settings):
        self.role = settings.role
        self.model = Model(settings.fails)
        self.model_config = SimpleNamespace(enforce_eager=settings.eager, logprobs_mode="raw_logprobs")
        self.input_batch = SimpleNamespace(req_ids=[])
        self.nested = settings.nested
        self.prompts = {}
        self.execute_model_state = None

    def get_model(self):
        return self.model

    def update_states(self, scheduler_output):
        """Requests that decode stand in front, as attention backends want them."""
        self.prompts |= {new.req_id: new.prompt_token_ids for new in scheduler_output.scheduled_new_reqs}
        decoding = scheduler_output.scheduled_cached_reqs.req_ids
        self.input_batch.req_ids = sorted(scheduler_output.num_scheduled_tokens, key=lambda name: name not in decoding)

    def prompt_logprobs(self, new=()):
        """For each request: ids in the first column, as the prompt has them; or another shape, as ``nested`` says."""
        prompts = {name: ids for name, ids in self.prompts.items() if ids}
        if self.nested:
            return {name: [None, *({token: -0.5} for token in ids[1:])] for name, ids in prompts.items()}
        return {
            name: LogprobsTensors(Tensor([[token] for token in ids[1:]]), Tensor([[-0.5] for _ in ids[1:]]))
            for name, ids in prompts.items()
        }
