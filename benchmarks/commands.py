"""Direct commands: found and read, run through every check, and as a whole durable turn."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.functions import Number, commands
from benchmarks.measuring import Driver, Effort, Figure, Load, Sample, cpu_seconds, median, rounds, timed
from benchmarks.world import a_daemon, a_profile, a_turn, an_invoker, ask, chat_of, message
from function_calls.commands import arguments_of
from function_calls.registry import BotFunctions, CommandLine
from function_calls.turn import Path as Way

_BATCHES = 7


def _text(number: int, registered: int) -> str:
    return f"/cmd{number * 37 % registered} {number}"


async def floor(load: Load) -> Sample:
    """The least that can be done: a dictionary and a validator."""
    validate = TypeAdapter(int).validate_python
    table = {f"/cmd{number}": validate for number in range(load.functions)}

    async def once(number: int) -> None:
        word, _, rest = _text(number, load.functions).partition(" ")
        assert table[word](rest) == number

    return await timed(load.count, once, batches=_BATCHES)


async def lookup(load: Load) -> Sample:
    """The command found, its line split, its arguments typed."""
    functions = BotFunctions(commands(load.functions))

    async def once(number: int) -> None:
        line = functions.command_line(_text(number, load.functions), bare=False)
        assert line is not None
        arguments: Number = line.spec.arguments.parse(arguments_of(line.plan, line.rest))
        assert arguments.n == number

    return await timed(load.count, once, batches=_BATCHES)


async def invoke(load: Load) -> Sample:
    """The same, then every check, two filters, the deadline, the handler and the call log."""
    functions, profile = BotFunctions(commands(load.functions)), a_profile()
    with tempfile.TemporaryDirectory() as folder:
        invoker = an_invoker(Path(folder))
        context = message("", 0)

        async def once(number: int) -> None:
            line = functions.command_line(_text(number, load.functions), bare=False)
            assert isinstance(line, CommandLine)
            raw = arguments_of(line.plan, line.rest)
            turn = a_turn(number, functions, profile)
            result = await invoker.invoke(context, line.spec.name, raw, turn, Way.COMMAND)
            assert result.reply.endswith(f":{number}")

        return await timed(load.count, once, batches=_BATCHES)


async def turn(load: Load) -> Sample:
    """From a network's event to the delivered reply, every step on disk: `load.chats` chats at a time."""
    async with a_daemon(commands(load.functions, effect="once")) as (daemon, network):
        numbers = itertools.count()

        async def chat(place: int, messages: int) -> None:
            for number in itertools.islice(numbers, messages):
                text = _text(number, load.functions)
                reply = await ask(daemon, network, message(text, number, chat_of(place)))
                assert reply.endswith(f":{number}")

        async def all_chats(messages: int) -> None:
            await asyncio.gather(*(chat(place, messages) for place in range(load.chats)))
            await daemon.settle()

        each = max(1, load.count // load.chats)
        await all_chats(max(1, each // 10))
        before = cpu_seconds()
        await all_chats(each)
        return {"cpu_us": (cpu_seconds() - before) / (each * load.chats) * 1e6}


DRIVERS: dict[str, Driver] = {"floor": floor, "lookup": lookup, "invoke": invoke, "turn": turn}


def lookup_figures(effort: Effort) -> list[Figure]:
    """A command found and its arguments parsed, among few and among many."""
    load = Load(count=effort.count(20_000), functions=100)
    samples = rounds(
        {
            "floor": ("commands.floor", load),
            "100": ("commands.lookup", load),
            "10,000": ("commands.lookup", replace(load, functions=10_000)),
        },
        effort,
    )
    return [
        Figure(
            "command_lookup",
            f"a command found and its arguments parsed, among {many}",
            "us",
            median(samples[many]),
            5.0,
            median(samples["floor"]),
        )
        for many in ("100", "10,000")
    ]


def invoke_figures(effort: Effort) -> list[Figure]:
    """The same through `invoke`."""
    load = Load(count=effort.count(20_000), functions=100)
    samples = rounds({"floor": ("commands.floor", load), "invoke": ("commands.invoke", load)}, effort)
    what = "a command found, parsed and run through every check, two filters and the call log, no storage"
    return [Figure("command_invoke", what, "us", median(samples["invoke"]), 12.0, median(samples["floor"]))]


def turn_figures(effort: Effort) -> list[Figure]:
    """The durable turn."""
    alone = Load(count=effort.count(1500), functions=100)
    busy = replace(alone, count=effort.count(10_000), chats=50)
    samples = rounds(
        {"floor": ("commands.floor", alone), "alone": ("commands.turn", alone), "busy": ("commands.turn", busy)},
        effort,
    )
    floor_us = median(samples["floor"])
    what = "a command turn from event to delivered reply, durable, function of effect `once`"
    return [
        Figure("command_turn", f"{what}, one at a time", "us", median(samples["alone"]), 700.0, floor_us),
        Figure("command_turn", f"{what}, 50 chats at once", "us", median(samples["busy"]), 150.0, floor_us),
    ]


FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {
    "command_lookup": lookup_figures,
    "command_invoke": invoke_figures,
    "command_turn": turn_figures,
}
