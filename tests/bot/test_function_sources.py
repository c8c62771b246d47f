"""All sources together: valid functions are available, invalid ones are reported, and slow sources delay nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from bot.registration.function_sources import ConfiguredSource, FunctionSources
from bot.testing import a_group
from config.diagnostics import Diagnostic
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.loading.source import Snapshot
from function_calls.registry import FunctionRegistry
from function_calls.spec import FunctionResult
from tests.fakes.functions import Recorder
from tests.fakes.sources import Written


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


def wanted(*sources: Written) -> list[ConfiguredSource]:
    """Each source's settings are derived from its name."""
    return [ConfiguredSource(one, one.made_of) for one in sources]


async def running(*sources: Written) -> tuple[FunctionSources, FunctionRegistry]:
    registry = FunctionRegistry()
    functions = FunctionSources(wanted(*sources), registry, lambda spec: [])
    await functions.start()
    return functions, registry


def names(registry: FunctionRegistry) -> list[str]:
    return [spec.name for spec in registry.of("default").specs]


async def test_a_source_that_is_made_of_the_same_goes_on_and_another_one_takes_its_place() -> None:
    one, two = Written("one", Recorder("a").spec), Written("two", Recorder("b").spec)
    functions, registry = await running(one, two)
    same, other = Written("one", Recorder("c").spec), Written("two", Recorder("d").spec, made_of="something else")
    functions.use(wanted(same, other))
    # The old source's functions stay until the new one has published.
    assert names(registry) == ["a", "b"]
    await other.read()
    assert names(registry) == ["a", "d"]
    assert (same.runs, other.runs, two.is_over) == (0, 1, True)
    one.write(Recorder("e").spec)
    await one.read()
    assert names(registry) == ["e", "d"]
    await functions.close()
    assert one.is_over
    assert other.is_over


async def test_sources_come_go_and_change_places() -> None:
    one, two, three = (Written(name, Recorder("same", commands=[name]).spec) for name in ("one", "two", "three"))
    functions, registry = await running(one, two)
    assert [*registry.of("default").near_commands("one")] == ["one"]
    assert len(functions.faults) == 1
    functions.use(wanted(two, three, one))
    await three.read()
    assert [*registry.of("default").near_commands("two")] == ["two"]
    assert len(functions.faults) == 2
    functions.use(wanted(one))
    assert [*registry.of("default").near_commands("one")] == ["one"]
    assert functions.faults == ()
    await functions.close()
    assert two.is_over
    assert three.is_over


async def test_what_a_source_had_read_when_its_place_was_taken_is_not_used() -> None:
    one = Written("one", Recorder("a").spec)
    functions, registry = await running(one)
    late = one.publish
    functions.use(wanted(Written("one", Recorder("b").spec, made_of="new")))
    assert late is not None
    late(Snapshot((Recorder("stale").spec,)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert names(registry) == ["b"]
    await functions.close()


async def test_a_source_that_broke_down_begins_anew_when_it_is_told_to() -> None:
    one = Written("one", Recorder("a").spec)
    functions, registry = await running(one)
    broken, mended = asyncio.Event(), asyncio.Event()
    functions.on_change(lambda: (broken if functions.faults else mended).set())
    one.break_down()
    await broken.wait()
    one.write(Recorder("b").spec)
    functions.revive()
    await mended.wait()
    assert names(registry) == ["b"]
    assert one.runs == 2
    await functions.close()


async def test_what_can_run_here_is_judged_again_when_that_has_changed() -> None:
    one, registry, problems = Written("one", Recorder("a").spec), FunctionRegistry(), ["not here"]
    functions = FunctionSources(wanted(one), registry, lambda spec: list(problems))
    await functions.start()
    assert names(registry) == []
    [found] = functions.faults
    assert "not here" in found.message
    problems.clear()
    functions.recheck()
    assert (names(registry), functions.faults) == (["a"], ())
    await functions.close()
