"""Calls of one answer of a model: reads at the same time, all other calls one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.testing import a_group
from config.texts import Texts
from function_calls.call import Call
from function_calls.spec import FunctionResult
from function_calls.turn import NoTurnLog, Run
from services.clock import VirtualClock
from services.llm.model import ToolCall
from services.refs import ErrorCode
from services.store.port import StoreFull, Write
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held, until
from tests.fakes.model import call, calls, says, unreadable_call
from tests.function_calls.routing import Routing, said
from tests.function_calls.test_rounds import is_paired, told

CITIES = ("Oslo", "Rome", "Bern")


def asked_for(name: str, cities: Sequence[str] = CITIES) -> tuple[ToolCall, ...]:
    """A call for each city, with the city as id."""
    return tuple(call(name, city, city=city) for city in cities)


class Slow:
    """Takes a second on the clock of `routing`; a city in `seconds` takes another time."""

    def __init__(self, name: str = "weather", *, seconds: dict[str, float] | None = None, **options: Any) -> None:
        self.function = Recorder(name, CITY, does=self._wait, **options)
        self.routing: Routing
        self.ended: list[str] = []
        self._seconds = seconds or {}

    async def _wait(self, context: Any, arguments: dict[str, Any], run: Call) -> Any:
        city = arguments["city"]
        await self.routing.clock.sleep(self._seconds.get(city, 1))
        self.ended.append(city)
        return f"cold in {city}", {"last": city}


def slow(*script: Any, **options: Any) -> tuple[Slow, Routing]:
    """A slow function in a chat with this script."""
    function = Slow(**options)
    function.routing = Routing(function.function, script=script)
    return function, function.routing


async def seconds_of(clock: VirtualClock, turn: asyncio.Task[Any]) -> float:
    """Seconds on `clock` until `turn` is done."""
    began = clock.monotonic()
    await clock.settle()
    while not turn.done() and clock.monotonic() < began + 10:
        await clock.advance(0.5)
    return clock.monotonic() - began


async def test_three_reads_of_a_second_take_a_second_and_are_answered_in_their_order() -> None:
    seconds = {"Oslo": 1.0, "Rome": 0.5}
    weather, routing = slow(calls(*asked_for("weather")), says("Cold."), seconds=seconds)
    turn = asyncio.create_task(routing.hears("cold anywhere?"))
    assert await seconds_of(routing.clock, turn) == 1
    assert weather.ended == ["Rome", "Oslo", "Bern"]
    assert [call_id for call_id, _ in told(routing.model.requests[1])] == list(CITIES)
    assert [run.key for run, _ in routing.recorded] == ["turn-2:1", "turn-2:0", "turn-2:2"]
    assert routing.turn.memory.state == {"last": "Bern"}
    assert said(await turn) == ["Cold."]


@pytest.mark.parametrize("options", [{"serial": True}, {"effect": "idempotent"}, {"effect": "once"}])
async def test_serial_functions_and_effects_run_one_after_another(options: dict[str, Any]) -> None:
    weather, routing = slow(calls(*asked_for("weather")), says("Cold."), seconds={"Rome": 0.5}, **options)
    turn = asyncio.create_task(routing.hears("cold anywhere?"))
    assert await seconds_of(routing.clock, turn) == 2.5
    assert weather.ended == list(CITIES)
    await turn


@pytest.mark.parametrize("options", [{"serial": True}, {"effect": "once"}])
async def test_a_single_serial_function_or_effect_keeps_all_calls_of_the_answer_in_order(options: Any) -> None:
    hold, act = Held("hold"), Recorder("act", **options)
    asked = calls(call("hold", "a", text="one"), call("act", "b"), call("hold", "c", text="two"))
    routing = Routing(hold.spec, act, script=[asked, says("Done.")])
    turn = asyncio.create_task(routing.hears("act"))
    await hold.has_begun("one")
    assert (hold.begun, act.runs) == (["one"], [])
    hold.let_go()
    await turn
    assert (hold.begun, hold.most_at_once, len(act.runs)) == (["one", "two"], 1, 1)


async def test_a_read_that_fails_and_a_call_that_cannot_be_read_do_not_affect_the_others() -> None:
    hold, broken = Held("hold"), Recorder("broken", gives=RuntimeError("secret"))
    asked = calls(
        call("hold", "a", text="one"),
        call("broken", "b"),
        unreadable_call("hold", ErrorCode.INVALID_JSON, "c"),
        call("nothing_like_it", "d"),
        call("hold", "e", text="two"),
    )
    routing = Routing(hold.spec, broken, script=[asked, says("Done.")])
    turn = asyncio.create_task(routing.hears("go"))
    await hold.has_begun("one", "two")
    hold.let_go()
    unknown = Texts().of("en").say("refusals.unknown_function", name="nothing_like_it").rstrip(".")
    assert said(await turn) == ["Done.", Texts().of("en").say("claims.not_done", names=unknown)]
    assert is_paired(list(routing.model.requests[1].messages))
    results = {call_id: one.get("error") for call_id, one in told(routing.model.requests[1])}
    assert results == {"a": None, "b": "failed", "c": "invalid_json", "d": "unknown_function", "e": None}


async def test_a_question_of_one_read_keeps_the_results_of_the_others() -> None:
    hold, weather = Held("hold"), Recorder("weather", CITY, gives=("ok", "cold"))
    asked = calls(call("hold", "a", text="one"), call("weather", "b"), call("hold", "c", text="two"))
    routing = Routing(hold.spec, weather, script=[asked, says("Done.")])
    hold.let_go()
    outcome = await routing.hears("go")
    assert (hold.begun, weather.runs, outcome.question is not None) == (["one", "two"], [], True)
    assert said(await routing.hears_answer(outcome, "Oslo"))[-1] == "Done."
    assert (hold.begun, weather.runs) == (["one", "two"], [{"city": "Oslo"}])
    assert is_paired(list(routing.model.requests[1].messages))
    assert [one.get("error") for _, one in told(routing.model.requests[1])] == [None, None, None]


async def test_of_two_reads_that_ask_the_second_cleans_up_and_asks_after_the_first_is_answered() -> None:
    ended: list[str] = []

    async def ask(context: Any, arguments: dict[str, Any], run: Call) -> Any:
        if run.resumed is None:
            return FunctionResult.ask(f"Which {arguments['city']}?")
        if run.resumed.kind != "answered":
            ended.append(arguments["city"])
            return None
        return f"{arguments['city']} in {run.resumed.answer}"

    where = Recorder("where", CITY, does=ask)
    routing = Routing(where, script=[calls(*asked_for("where", ["Oslo", "Rome"])), says("Done.")])
    first = await routing.hears("where?")
    assert (said(first), ended) == (["Which Oslo?"], ["Rome"])
    second = await routing.hears_answer(first, "Norway")
    assert said(second)[-1] == "Which Rome?"
    assert said(await routing.hears_answer(second, "Italy"))[-1] == "Done."
    [oslo, rome] = [one["text"] for _, one in told(routing.model.requests[1])]
    assert (oslo, rome) == (["Oslo in Norway"], ["Rome in Italy"])
    assert ended == ["Rome"]


async def test_the_cap_on_calls_counts_reads_that_run_at_the_same_time() -> None:
    weather = Recorder("weather", CITY, gives=("ok", "cold"))
    first, second = asked_for("weather", ["Oslo", "Rome"]), asked_for("weather", ["Bern", "Lima"])
    routing = Routing(weather, script=[calls(*first), calls(*second), says("Done.")], settings={"max_calls": 3})
    await routing.hears("go")
    assert [one["city"] for one in weather.runs] == ["Oslo", "Rome", "Bern"]
    assert told(routing.model.requests[2])[-1][1]["error"] == "too_many_calls"


async def test_identical_reads_of_one_answer_share_a_result_once_there_are_too_many() -> None:
    weather = Recorder("weather", CITY, gives=("ok", "cold"))
    asked = calls(*(call("weather", str(number), city="Oslo") for number in range(5)))
    routing = Routing(weather, script=[asked, says("Done.")])
    await routing.hears("go")
    assert len(weather.runs) == 3
    assert [one["result"] for _, one in told(routing.model.requests[1])] == ["cold"] * 5


class FullDisk(NoTurnLog):
    """There is no disk space for the second intent."""

    def __init__(self) -> None:
        super().__init__()
        self._intents = 0

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        self._intents += 1
        if self._intents == 2:
            raise StoreFull


async def test_an_error_that_ends_the_turn_ends_the_other_reads_and_reaches_the_turn_as_it_is() -> None:
    hold = Held("hold")
    asked = calls(call("hold", "a", text="one"), call("hold", "b", text="two"))
    routing = Routing(hold.spec, script=[asked])
    with pytest.raises(StoreFull):
        await routing.hears("go", log=FullDisk())
    assert (hold.begun, hold.running) == (["one"], [])


async def test_stop_ends_all_reads_of_the_answer() -> None:
    hold = Held("hold")
    async with a_group(functions=[hold.spec]) as group:
        group.model.says([ToolCall("a", "hold", {"text": "one"}), ToolCall("b", "hold", {"text": "two"})])
        await group.hear("Ann", "@Rollcall go")
        await hold.has_begun("one", "two")
        await group.say("Ann", "/stop")
        assert hold.running == []
        assert len(group.model.requests) == 1


async def test_reads_after_a_crash_have_the_keys_that_they_had_before_it(tmp_path: Path) -> None:
    keys: list[dict[str, str]] = []
    for is_free in (False, True):
        hold, seen = Held("hold"), {}

        async def note(context: Any, arguments: dict[str, Any], run: Call, seen: dict[str, str] = seen) -> str:
            seen[arguments["city"]] = run.key
            return "noted"

        if is_free:
            hold.let_go()
        async with a_group(functions=[hold.spec, Recorder("note", CITY, does=note).spec], home=tmp_path) as group:
            if not is_free:
                notes = [ToolCall(city, "note", {"city": city}) for city in CITIES]
                group.model.says([notes[0], ToolCall("h", "hold", {"text": "one"}), *notes[1:]])
                await group.hear("Ann", "@Rollcall go")
                await hold.has_begun("one")
                await until(lambda seen=seen: len(seen) == 3)  # type: ignore[misc]
                await group.crash()
            else:
                group.model.says("Done.")
                await group.settle()
                assert group.platform.sent[-1].text == "Done."
                assert len(group.model.requests) == 1
        keys.append(seen)
    assert keys[0] == keys[1]
    assert [key.rpartition(":")[2] for key in (keys[0][city] for city in CITIES)] == ["0", "2", "3"]
