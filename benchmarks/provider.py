"""A routed turn with the openai package and a provider stub on another core: single turns and many at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.functions import functions
from benchmarks.measuring import (
    Driver,
    Effort,
    Figure,
    Load,
    Sample,
    at,
    cpu_seconds,
    median,
    peak_megabytes,
    ratio,
    rounds,
    timed,
)
from benchmarks.routed import MODEL, SYSTEM, openai_chat
from benchmarks.stub import a_stub, expected, question
from benchmarks.world import a_daemon, a_profile, a_turn, an_invoker, ask, chat_of, message
from config.settings import RouterSettings
from function_calls.encodings import openai_tool
from function_calls.llm import FunctionCallLLM
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from services.clock import SystemClock
from services.llm.resilient import ResilientModel
from services.retry import Retry

_CROWD_SECONDS = 1.0


async def create_pair(load: Load) -> Sample:
    """Floor: the usual loop of two `create()` calls."""
    import openai

    specs = {spec.name: spec for spec in functions(load.functions)}
    tools: Any = [openai_tool(spec) for spec in specs.values()]
    client = openai.AsyncOpenAI(base_url=load.url, api_key="sk-stub", max_retries=0)

    async def create(messages: Any) -> Any:
        completion = await client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
        return completion.choices[0].message

    async def once(number: int) -> None:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": question(number)},
        ]
        asked = await create(messages)
        (call,) = asked.tool_calls
        wanted = {"name": call.function.name, "arguments": call.function.arguments}
        calls = [{"id": call.id, "type": "function", "function": wanted}]
        messages.append({"role": "assistant", "content": asked.content, "tool_calls": calls})
        arguments = specs[call.function.name].arguments.parse({"city": call.function.arguments.split('"')[3]})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"weather in {arguments.city}: sunny"})
        assert (await create(messages)).content == expected(number)

    sample = await timed(load.count, int, once)
    await client.close()
    return sample


async def routed(load: Load) -> Sample:
    """Dispatch with the package, without a store."""
    clock, profile, invoker = SystemClock(), a_profile(), an_invoker()
    model = ResilientModel(openai_chat(load.url), Retry(clock), clock, 60.0)
    router = FunctionCallRouter(invoker, FunctionCallLLM(model, invoker, RouterSettings(), clock))
    registered = BotFunctions(functions(load.functions))

    async def once(number: int) -> None:
        turn = a_turn(number, registered, profile)
        turn.deadline = clock.monotonic() + 120
        outcome = await router.dispatch(message(question(number), number), turn)
        assert outcome.messages[0].text == expected(number)

    sample = await timed(load.count, int, once)
    await model.close()
    return sample


async def durable(load: Load) -> Sample:
    """A durable turn, from the network's event to the delivered reply. Each message is in another chat."""
    async with a_daemon(functions(load.functions), settings=_settings(load)) as (daemon, network):

        async def once(number: int) -> None:
            answer = await ask(daemon, network, message(question(number), number, chat_of(number)))
            assert answer == expected(number)

        return await timed(load.count, int, once)


async def remembered(load: Load) -> Sample:
    """Durable turns in one chat, with thirty earlier messages in each request."""
    async with a_daemon(functions(load.functions), settings=_settings(load)) as (daemon, network):

        async def once(number: int) -> None:
            answer = await ask(daemon, network, message(question(number), number))
            assert answer == expected(number)

        for number in range(30):
            await once(number + load.count * 10)
        return await timed(load.count, int, once)


async def crowd(load: Load) -> Sample:
    """`load.count` chats send a message at the same time."""
    settings = {**_settings(load), "limits": {"parallel_turns": load.count}}
    async with a_daemon(functions(load.functions), settings=settings) as (daemon, network):
        assert await ask(daemon, network, message(question(0), 0, chat_of(load.count))) == expected(0)

        async def one(number: int) -> bool:
            answer = await ask(daemon, network, message(question(number), number, chat_of(number)))
            return answer == expected(number)

        before, began = cpu_seconds(), time.perf_counter()
        right = await asyncio.gather(*(one(number) for number in range(load.count)))
        seconds = time.perf_counter() - began
        return {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds() - before,
            "megabytes": peak_megabytes(),
            "errors": right.count(False),
        }


def _settings(load: Load) -> dict[str, Any]:
    return {"models": [{"name": "stub", "base_url": load.url, "api_key": "sk-stub", "model": MODEL}]}


DRIVERS: dict[str, Driver] = {
    "create_pair": create_pair,
    "routed": routed,
    "durable": durable,
    "remembered": remembered,
    "crowd": crowd,
}


def provider_figures(effort: Effort) -> list[Figure]:
    """Cost of a routed turn compared with two bare `create()` calls."""
    with a_stub() as url:
        load = at(Load(count=effort.count(400)), url)
        names = ("create_pair", "routed", "durable", "remembered")
        samples = rounds({name: (f"provider.{name}", load) for name in names}, effort)
    floor = samples["create_pair"]
    what = "a routed turn over the openai package, 2 requests, 20 functions"
    kinds = {
        "routed": ("without storage", 0.30),
        "durable": ("durable, from event to delivered reply", 0.50),
        "remembered": ("durable, with 30 earlier messages in each request", 0.50),
    }
    return [
        Figure("provider_turn", f"{what}, {how}", "ratio", ratio(samples[name], floor), limit, median(floor))
        for name, (how, limit) in kinds.items()
    ]


def many_functions_figures(effort: Effort) -> list[Figure]:
    """Five hundred functions compared with twenty."""
    with a_stub() as url:
        few = at(Load(count=effort.count(400)), url)
        many = replace(few, functions=effort.functions(500))
        samples = rounds(
            {
                "few": ("provider.routed", few),
                "many": ("provider.routed", many),
                "few, durable": ("provider.durable", few),
                "many, durable": ("provider.durable", many),
            },
            effort,
        )
    what = "a routed turn over the openai package with 500 functions registered, against 20"
    return [
        Figure(
            "many_functions",
            f"{what}, {how}",
            "ratio",
            ratio(samples[f"many{kind}"], samples[f"few{kind}"]),
            1.5,
            median(samples[f"few{kind}"]),
        )
        for how, kind in (("without storage", ""), ("durable", ", durable"))
    ]


def crowd_figures(effort: Effort) -> list[Figure]:
    """Two thousand chats at once."""
    count = effort.count(2000)
    with a_stub(_CROWD_SECONDS) as url:
        samples = rounds({"crowd": ("provider.crowd", at(Load(count=count), url))}, effort)["crowd"]
    what = f"{count:,} turns at once, durable, the model answers in 1 s"
    limits = {"seconds": 5.0, "cpu_seconds": 4.0, "megabytes": 230.0, "errors": 0.0}
    return [Figure("crowd", what, unit, median(samples, unit), limit) for unit, limit in limits.items()]


FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {
    "provider_turn": provider_figures,
    "many_functions": many_functions_figures,
    "crowd": crowd_figures,
}
