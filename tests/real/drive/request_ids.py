"""A rollout request's id on its way through a patched verl with stand-ins for servers: what the engine got goes on.

python request_ids.py VERSION
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import types
from types import SimpleNamespace

import cpu

PROMPT, ANSWER = [11, 12, 13], [31, 32]


class Server:
    """Stands for the rollout engine's actor; keeps the ids and parameters it was called with."""

    def __init__(self, *answers) -> None:
        self.ids: list[str] = []
        self.parameters: list[dict] = []
        self.answers = answers
        self.generate = SimpleNamespace(remote=self._generate)

    async def _generate(self, request_id, sampling_params, **_other):
        self.ids.append(request_id)
        self.parameters.append(sampling_params)
        return self.answers[min(len(self.ids), len(self.answers)) - 1]()


def client_of(cls, server, **settings):
    """A client without a cluster behind it."""

    async def acquire(*_arguments, **_fields):
        return "server", server

    client = object.__new__(cls)
    rollout = SimpleNamespace(**{"name": "vllm", "full_determinism": False, **settings})
    client.config = SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(rollout=rollout), async_training=SimpleNamespace(partial_rollout=True)
    )
    client._acquire_server, client._choose_server = acquire, lambda _id: server
    client._release_server = lambda *_arguments, **_fields: None
    return client


def clients() -> list:
    """The client classes of this release."""
    if importlib.util.find_spec("verl.workers.rollout.llm_server") is None:
        from verl.experimental.agent_loop import agent_loop

        return [agent_loop.AsyncLLMServerManager]
    from verl.workers.rollout import llm_server

    if hasattr(llm_server, "FullyAsyncLLMServerClient"):
        return [llm_server.LLMServerClient, llm_server.FullyAsyncLLMServerClient]
    return [llm_server.LLMServerClient]  # 0.8.0 has the other one in a module that imports far more


async def check_client(cls, carried: bool) -> None:
    from verl.workers.rollout.replica import TokenOutput

    server = Server(lambda: TokenOutput(token_ids=list(ANSWER), log_probs=[0.0, 0.0], stop_reason="completed"))
    client = client_of(cls, server)
    for on in (True, False):
        os.environ["DUMP_ON"] = str(int(on))
        output = await client.generate("of-the-loop", prompt_ids=list(PROMPT), sampling_params={})
        if carried:
            assert output.extra_fields.get("request_id") == (server.ids[-1] if on else None), output
        else:
            assert (server.ids[-1] == "of-the-loop") is on, server.ids
    assert len(set(server.ids)) == 2


def answer(fields: dict, tokens=ANSWER, stop_reason: str = "completed"):
    from verl.workers.rollout.replica import TokenOutput

    log_probs = [0.0] * len(tokens)
    return lambda: TokenOutput(
        token_ids=list(tokens), log_probs=log_probs, stop_reason=stop_reason, extra_fields=dict(fields)
    )


KNOWN = {"prompt_logprobs": [[-1.0], [-2.0], [0.0]], "prompt_ids": [[12], [13], [0]]}  # as verl's servers return it


async def check_prefill(cls) -> None:
    """0.8.0 on: the request asks for the prompt's log-probs, and the sample takes them along."""
    from verl import probepatch_verl

    async def entry_of(fields: dict, **settings):
        server = Server(answer(fields))
        client = client_of(cls, server, **settings)
        output = await client.generate("of-the-loop", prompt_ids=list(PROMPT), sampling_params={"logprobs": True})
        assert output.extra_fields["request_id"] == server.ids[-1]
        assert not set(KNOWN) & set(output.extra_fields), output
        return output.extra_fields.get(probepatch_verl.PREFILL), server.parameters[-1]

    os.environ.update(DUMP_ON="0", PREFILL_LOGPROB_DIFF="1")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        entry, asked = await entry_of(KNOWN, logprobs_mode="processed_logprobs")
    lines = said.getvalue().splitlines()
    assert len(lines) <= 1, lines  # the first time only
    for line in lines:
        shape = "prompt_logprobs: list of 3, the first: list of 1, the first: float"
        assert line.startswith("[DUMP_DIAG]") and shape in line and "12" not in line, line
    assert (asked["prompt_logprobs"], asked["logprobs"]) == (0, True)
    expected = {"engine": "vllm", "engine_logprobs_mode": "processed_logprobs", "logprobs": [-1.0, -2.0]}
    assert entry == expected | {"prompt_sha256": probepatch_verl.prompt_hash(PROMPT)}
    entry, _asked = await entry_of(KNOWN, name="sglang")
    assert (entry["engine"], entry["engine_logprobs_mode"], entry["logprobs"]) == ("sglang", None, [-1.0, -2.0])

    others = {**KNOWN, "prompt_ids": [[12], [14], [0]]}
    for fields, settings, why in (
        ({}, {}, "returned no prompt_logprobs"),
        (others, {}, "not the prompt's own"),
        ({**KNOWN, "prompt_logprobs": [{}, {}, {}]}, {}, "unknown shape (KeyError"),
        ({**KNOWN, "prompt_ids": None}, {}, "unknown shape (TypeError"),
        ({**KNOWN, "prompt_logprobs": [[-1.0], [0.0]]}, {}, "not the prompt's own"),
        (KNOWN, {"logprobs_mode": "raw_logits"}, "gives logits"),
    ):
        entry, _asked = await entry_of(fields, **settings)
        assert why in entry["missing"] and "logprobs" not in entry, entry
    entry, asked = await entry_of({}, name="trtllm")
    assert entry is None and "prompt_logprobs" not in asked

    # a teacher asks itself, and reads the fields
    asking = {"prompt_logprobs": 0}
    output = await client_of(cls, Server(answer(KNOWN))).generate("t", prompt_ids=list(PROMPT), sampling_params=asking)
    if cls.__name__ == "LLMServerClient":
        assert {name: output.extra_fields[name] for name in KNOWN} == KNOWN
    assert probepatch_verl.PREFILL not in output.extra_fields

    # SGLang gives the response's log-probs along with the prompt's, which nobody asked for
    client = client_of(cls, Server(answer(KNOWN)), name="sglang")
    output = await client.generate("of-the-loop", prompt_ids=list(PROMPT), sampling_params={})
    assert not output.log_probs

    os.environ.update(DUMP_ON="1", PREFILL_LOGPROB_DIFF="0")
    _entry, asked = await entry_of({})
    assert "prompt_logprobs" not in asked


async def check_resumed(cls) -> None:
    """A rollout that was stopped before it had a token, and once more with one: the middle request had the bare prompt."""
    from verl import probepatch_verl

    os.environ.update(DUMP_ON="0", PREFILL_LOGPROB_DIFF="1")
    longer = {"prompt_logprobs": [[-1.0], [-2.0], [-3.0], [0.0]], "prompt_ids": [[12], [13], [31], [0]]}
    server = Server(answer({}, [], "aborted"), answer(KNOWN, ANSWER[:1], "aborted"), answer(longer, ANSWER[1:]))
    client = client_of(cls, server, response_length=8)
    output = await client.generate("of-the-loop", prompt_ids=list(PROMPT), sampling_params={"logprobs": True})
    assert output.token_ids == ANSWER and len(server.ids) == 3, (output, server.ids)
    assert output.extra_fields["request_id"] == server.ids[1]
    assert output.extra_fields[probepatch_verl.PREFILL]["logprobs"] == [-1.0, -2.0]


async def check_loop() -> None:
    """Releases whose agent loop puts the id into its output."""
    from verl.experimental.agent_loop import single_turn_agent_loop

    seen = []

    async def generate(request_id, **_other):
        seen.append(request_id)
        output = SimpleNamespace(token_ids=list(ANSWER), log_probs=None, routed_experts=None)
        return output if structured else list(ANSWER)

    async def nothing(*_arguments, **_fields):
        return {}

    async def tokens(*_arguments, **_fields):
        return list(PROMPT)

    structured = importlib.util.find_spec("verl.workers.rollout.replica") is not None
    loop = object.__new__(single_turn_agent_loop.SingleTurnAgentLoop)
    loop.loop, loop.processor = asyncio.get_running_loop(), None
    loop.tokenizer = SimpleNamespace(apply_chat_template=lambda *_a, **_k: list(PROMPT))
    loop.apply_chat_template_kwargs, loop.response_length = {}, 4
    loop.process_vision_info, loop.apply_chat_template = nothing, tokens
    loop.server_manager = SimpleNamespace(generate=generate)
    for on in (True, False):
        os.environ["DUMP_ON"] = str(int(on))
        question = {"raw_prompt": [{"role": "user"}]} if structured else {"messages": [{"role": "user"}]}
        output = await loop.run(sampling_params={}, **question)
        found = output.extra_fields.get("request_id") if structured else output.request_id or None
        assert found == (seen[-1] if on else None), output


async def check_scheduler() -> None:
    """0.4.1: chat completions."""
    from verl.workers.rollout.chat_scheduler import ChatCompletionScheduler

    headers = []

    async def complete(_address, extra_headers, **_other):
        headers.append(extra_headers["x-request-id"])

    async def callback(*_arguments):
        return None

    scheduler = object.__new__(ChatCompletionScheduler)
    scheduler.background_tasks, scheduler.request_id_to_address = set(), {}
    scheduler.weighted_addresses = [[0, "address"]]
    scheduler._chat_completions_aiohttp = complete
    scheduler.completion_callback = callback
    callback.tool_schemas = callback.extra_body = None
    found = await scheduler._submit_chat_completions_semaphore([], None, {})
    assert found == headers[0]


def stand_ins(*names: str) -> None:
    """Libraries that verl's rollout modules import and that nothing here calls."""
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = []
        module.__file__ = f"{name}.py"
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__getattr__ = lambda attribute: type(attribute, (), {})
        sys.modules[name] = module


async def main(version: str) -> None:
    if version < "0.5":
        await check_scheduler()
    elif version >= "0.7.1":
        for cls in clients():
            await check_client(cls, carried=True)
            if version >= "0.8":
                await check_prefill(cls)
        if version >= "0.9":
            await check_resumed(clients()[1])
    else:
        await check_loop()
        if version >= "0.7":
            await check_client(clients()[0], carried=False)


if __name__ == "__main__":
    cpu.flash_attention_stub()
    stand_ins("aiohttp", "openai", "openai.types", "openai.types.chat", "openai.types.chat.chat_completion")
    stand_ins("torchdata", "torchdata.stateful_dataloader")
    cpu.platform()
    asyncio.run(main(sys.argv[1]))
