"""A rollout request's id on its way through a patched verl with stand-ins for servers: what the engine got goes on.

    python request_ids.py VERSION
"""

from __future__ import annotations

import asyncio
import importlib.machinery
import importlib.util
import os
import sys
import types
from types import SimpleNamespace

import cpu

PROMPT, ANSWER = [11, 12, 13], [31, 32]


class Server:
    """Stands for the rollout engine's actor; keeps the ids it was called with."""

    def __init__(self, answer) -> None:
        self.ids: list[str] = []
        self.answer = answer
        self.generate = SimpleNamespace(remote=self._generate)

    async def _generate(self, request_id, **_other):
        self.ids.append(request_id)
        return self.answer()


def client_of(cls, server):
    """A client without a cluster behind it."""

    async def acquire(*_arguments, **_fields):
        return "server", server

    client = object.__new__(cls)
    rollout = SimpleNamespace(name="vllm", full_determinism=False)
    client.config = SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(rollout=rollout), async_training=SimpleNamespace(partial_rollout=False)
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
