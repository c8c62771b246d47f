"""Direct commands: parsing, a run with all checks, and a whole durable turn."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from benchmarks.functions import Number, commands
from benchmarks.measuring import Driver, Effort, Figure, Load, Sample, cpu_seconds, median, rounds, timed
from benchmarks.world import a_daemon, a_profile, a_turn, an_invoker, ask, chat_of, message
from function_calls.call import CallRequest
from function_calls.call import Path as Way
from function_calls.context import MessageContext
from function_calls.registry import BotFunctions
from function_calls.schema.commands import arguments_of
from services.store.sqlite.writer import connect_writer

_BATCHES = 21
_COMMITS = 2
"""The message is committed before the network gets its acknowledgement, and the reply before it is sent."""


class Typed(NamedTuple):
    """A command as typed by a member, and the number in it."""

    text: str
    number: int


def _typed(load: Load) -> Callable[[int], Typed]:
    return lambda number: Typed(f"/cmd{abs(number) * 37 % load.functions} {number}", number)


async def floor(load: Load) -> Sample:
    """Floor: a dictionary lookup and a validator."""
    validate = TypeAdapter(int).validate_python
    table = {f"/cmd{number}": validate for number in range(load.functions)}

    async def once(typed: Typed) -> None:
        word, _, rest = typed.text.partition(" ")
        assert table[word](rest) == typed.number

    return await timed(load.count, _typed(load), once, batches=_BATCHES)


async def lookup(load: Load) -> Sample:
    """Find the command, split its line and parse the arguments."""
    functions = BotFunctions(commands(load.functions))

    async def once(typed: Typed) -> None:
        line = functions.command_line(typed.text, bare=False)
        assert line is not None
        arguments: Number = line.spec.arguments.parse(arguments_of(line.plan, line.rest))
        assert arguments.n == typed.number

    return await timed(load.count, _typed(load), once, batches=_BATCHES)


async def invoke(load: Load) -> Sample:
    """`lookup`, then all checks, two filters, the deadline, the handler and the call log."""
    functions, profile, context = BotFunctions(commands(load.functions)), a_profile(), message("", 0)
    with tempfile.TemporaryDirectory() as folder:
        invoker = an_invoker(Path(folder))

        async def once(typed: Typed) -> None:
            line = functions.command_line(typed.text, bare=False)
            assert line is not None
            raw = arguments_of(line.plan, line.rest)
            turn = a_turn(typed.number, functions, profile)
            result = await invoker.invoke(CallRequest(context, line.spec.name, raw, turn, Way.COMMAND))
            assert result.messages

        return await timed(load.count, _typed(load), once, batches=_BATCHES)


async def turn(load: Load) -> Sample:
    """A durable turn, from the network's event to the delivered reply, with `load.chats` chats at a time."""
    return await _turns(load, "read")


async def turn_once(load: Load) -> Sample:
    """`turn` for a function with effect `once`: its intent is committed before it runs."""
    return await _turns(load, "once")


async def _turns(load: Load, effect: str) -> Sample:
    async with a_daemon(commands(load.functions, effect=effect)) as (daemon, network):
        typed, numbers = _typed(load), itertools.count()

        def messages(place: int, count: int) -> list[MessageContext]:
            return [message(typed(number).text, number, chat_of(place)) for number in itertools.islice(numbers, count)]

        async def chat(contexts: list[MessageContext]) -> None:
            for context in contexts:
                reply = await ask(daemon, network, context)
                assert reply.endswith(f":{context.text.split()[1]}")

        async def all_chats(count: int) -> float:
            """CPU time in seconds."""
            chats = [messages(place, count) for place in range(load.chats)]
            before = cpu_seconds()
            await asyncio.gather(*map(chat, chats))
            await daemon.settle()
            return cpu_seconds() - before

        each = max(1, load.count // load.chats)
        await all_chats(max(1, each // 10))
        return {"cpu_us": await all_chats(each) / (each * load.chats) * 1e6}


async def commits(load: Load) -> Sample:
    """Floor of durability: one table and the smallest number of commits for a turn, in the same thread."""
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as home:
        database = connect_writer(Path(home) / "floor.sqlite")
        database.execute("CREATE TABLE said (id INTEGER PRIMARY KEY, text TEXT)")

        async def once(number: int) -> None:
            for step in range(_COMMITS):
                database.execute("BEGIN IMMEDIATE")
                database.execute("INSERT INTO said VALUES (NULL, ?)", (f"step {step} of message {number}",))
                database.execute("COMMIT")

        sample = await timed(load.count, int, once)
        database.close()
        return sample


DRIVERS: dict[str, Driver] = {
    "floor": floor,
    "lookup": lookup,
    "invoke": invoke,
    "turn": turn,
    "turn_once": turn_once,
    "commits": commits,
}


def lookup_figures(effort: Effort) -> list[Figure]:
    """Cost of finding a command and parsing its arguments, among few and among many functions."""
    load = Load(count=effort.count(3_000), functions=100)
    samples = rounds(
        {
            "floor": ("commands.floor", load),
            "100": ("commands.lookup", load),
            "10,000": ("commands.lookup", replace(load, functions=effort.functions(10_000))),
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
    """Cost of `invoke`."""
    load = Load(count=effort.count(3_000), functions=100)
    samples = rounds({"floor": ("commands.floor", load), "invoke": ("commands.invoke", load)}, effort)
    what = "a command found, parsed and run through every check, two filters and the call log, no storage"
    return [Figure("command_invoke", what, "us", median(samples["invoke"]), 18.0, median(samples["floor"]))]


def turn_figures(effort: Effort) -> list[Figure]:
    """Cost of a durable turn."""
    alone = Load(count=effort.count(1500), functions=100)
    busy = replace(alone, count=effort.count(10_000), chats=50)
    drivers = {"read": "commands.turn", "once": "commands.turn_once"}
    loads = {"one at a time": (alone, 750.0), "50 chats at once": (busy, 200.0)}
    measured = {
        f"{effect}, {how}": (driver, load) for effect, driver in drivers.items() for how, (load, _) in loads.items()
    }
    samples = rounds({"floor": ("commands.commits", alone), **measured}, effort)
    floor_us = median(samples["floor"])
    return [
        Figure(
            "command_turn",
            f"a command turn from event to delivered reply, durable, function of effect `{effect}`, {how}",
            "us",
            median(samples[f"{effect}, {how}"]),
            limit,
            floor_us,
        )
        for effect in drivers
        for how, (_, limit) in loads.items()
    ]


FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {
    "command_lookup": lookup_figures,
    "command_invoke": invoke_figures,
    "command_turn": turn_figures,
}
