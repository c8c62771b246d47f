"""All sources together: what is good serves, what is not is told, and nothing waits for what is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from bot.testing import a_group
from config.diagnostics import Diagnostic
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.source import Publish, Snapshot
from function_calls.spec import FunctionResult, FunctionSpec
from tests.fakes.functions import Recorder


class Written:
    """A source that publishes what the test puts there."""

    def __init__(self, name: str, *first: FunctionSpec) -> None:
        self.name = name
        self._snapshots: asyncio.Queue[Snapshot | Exception] = asyncio.Queue()
        if first:
            self.write(*first)

    def write(self, *specs: FunctionSpec, faults: Sequence[Diagnostic] = ()) -> None:
        self._snapshots.put_nowait(Snapshot(specs, faults=tuple(faults)))

    def break_down(self) -> None:
        self._snapshots.put_nowait(RuntimeError("broken"))

    async def run(self, publish: Publish) -> None:
        while True:
            snapshot = await self._snapshots.get()
            if isinstance(snapshot, Exception):
                raise snapshot
            publish(snapshot)
            self._snapshots.task_done()

    async def read(self) -> None:
        """Return when everything that was written is published."""
        await self._snapshots.join()


async def test_what_a_source_publishes_later_serves_from_then_on() -> None:
    old, new = Recorder("act", commands=["act"]), Recorder("act", commands=["act", "do"])
    source = Written("files", old.spec)
    async with a_group(sources=[source]) as group:
        await group.say("Ann", "/act")
        source.write(new.spec)
        await source.read()
        await group.say("Ann", "/do")
        source.write(Recorder("other").spec)
        await source.read()
        await group.say("Ann", "/act")
    assert (len(old.runs), len(new.runs)) == (1, 1)


async def test_what_cannot_be_used_is_held_until_it_is_mended() -> None:
    fault = Diagnostic("tools.yaml", 3, 1, "functions.unusable", "it is broken")
    source = Written("files")
    source.write(Recorder("good").spec, faults=[fault])
    async with a_group(sources=[source]) as group:
        assert group.daemon.functions.faults == (fault,)
        changes: list[int] = []
        group.daemon.functions.on_change(lambda: changes.append(len(group.daemon.functions.faults)))
        source.write(Recorder("good").spec)
        await source.read()
        assert changes == [0]


async def test_a_source_that_breaks_down_leaves_what_it_had_and_says_so() -> None:
    act = Recorder("act", commands=["act"])
    source = Written("files", act.spec)
    async with a_group(sources=[source]) as group:
        broken = asyncio.Event()
        group.daemon.functions.on_change(broken.set)
        source.break_down()
        await broken.wait()
        [found] = group.daemon.functions.faults
        assert "'files' broke down" in found.message
        await group.say("Ann", "/act")
    assert len(act.runs) == 1


async def test_a_turn_in_flight_keeps_the_functions_it_began_with() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    inner_old, inner_new = Recorder("inner"), Recorder("inner")

    async def waits(context: MessageContext, arguments: dict[str, Any], call: Call) -> FunctionResult:
        began.set()
        await go_on.wait()
        return await call.invoke("inner", {})

    outer = Recorder("outer", commands=["outer"], does=waits)
    source = Written("files", outer.spec, inner_old.spec)
    async with a_group(sources=[source]) as group:
        await group.hear("Ann", "/outer")
        await began.wait()
        source.write(inner_new.spec)
        await source.read()
        go_on.set()
        await group.settle()
    assert (len(inner_old.runs), len(inner_new.runs)) == (1, 0)
