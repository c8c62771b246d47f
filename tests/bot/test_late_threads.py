"""Runs that cannot be stopped at their timeout: the thread continues, and its effect may still happen."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from bot.testing import Group, a_group, call
from config.texts import Texts
from function_calls.schema.mappings import new_spec
from services.store.turns.ledger import LEDGER
from tests.fakes.functions import Recorder
from tests.fakes.held import until
from tests.fakes.kept import kept, reasons

EN = Texts().of("en")
STILL_RUNNING = EN.say("failures.still_running", name="/block")


class Blocking:
    """A synchronous function, which runs in a thread; it counts its effects."""

    def __init__(self, effect: str, *, fails: bool = False) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.effects = 0
        self._fails = fails
        self.spec = new_spec(
            "block", self._run, effect=effect, touches="stays_here", commands=["block"], timeout_seconds=10
        )

    def _run(self, arguments: dict[str, Any]) -> str:
        self.begun.set()
        self.let_go.wait(30)
        if self._fails:
            raise LookupError("no ink")
        self.effects += 1
        return "done"


async def given_up(group: Group, block: Blocking, text: str = "/block") -> list[str]:
    """The bot's messages after the timeout of the run, while its thread continues."""
    before = len(group.platform.sent)
    await group.hear("Ann", text)
    await until(block.begun.is_set)
    await group.clock.advance(11)
    group.deadlines.expire()
    await group.settle()
    return [one.text for one in group.platform.sent[before:]]


@pytest.mark.requirement("E6")
@pytest.mark.parametrize(
    ("effect", "said", "code"),
    [
        ("read", EN.say("failures.timeout", name="/block"), "timeout"),
        ("idempotent", STILL_RUNNING, "unknown_outcome"),
        ("once", STILL_RUNNING, "unknown_outcome"),
    ],
)
async def test_an_effect_in_a_thread_that_outlives_its_time_is_an_unknown_outcome(
    tmp_path: Path, effect: str, said: str, code: str
) -> None:
    block = Blocking(effect)
    async with a_group([block.spec], home=tmp_path) as group:
        with capture_logs() as logs:
            assert await given_up(group, block) == [said]
            assert await kept(group, LEDGER.c.code) == [(code,)]
            block.let_go.set()
            await until(lambda: any(entry["event"] == "function_ended_late" for entry in logs))
    (late,) = [entry for entry in logs if entry["event"] == "function_ended_late"]
    assert (late["function"], late["outcome"]) == ("block", "returned")
    async with a_group([block.spec], home=tmp_path) as group:
        await group.settle()
        assert group.platform.sent == []
    assert block.effects == 1


async def test_the_log_tells_how_a_thread_failed_that_outlived_its_time() -> None:
    block = Blocking("once", fails=True)
    async with a_group([block.spec]) as group:
        with capture_logs() as logs:
            await given_up(group, block)
            block.let_go.set()
            await until(lambda: any(entry["event"] == "function_ended_late" for entry in logs))
    (late,) = [entry for entry in logs if entry["event"] == "function_ended_late"]
    assert (late["outcome"], type(late["exc_info"])) == ("failed", LookupError)


async def test_a_model_is_told_that_an_effect_in_a_thread_may_still_complete() -> None:
    block = Blocking("idempotent")
    async with a_group([block.spec]) as group:
        group.model.says(call("block"), "It may still come.")
        await given_up(group, block, "@Rollcall block it please")
        block.let_go.set()
        told = orjson.loads(group.model.requests[-1].messages[-1].content)
    assert told == {"error": "unknown_outcome", "message": STILL_RUNNING}


@pytest.mark.parametrize("effect", ["idempotent", "once"])
async def test_an_effect_in_a_thread_is_not_said_to_be_stopped(effect: str) -> None:
    block = Blocking(effect)
    async with a_group([block.spec]) as group:
        await group.hear("Ann", "/block")
        await until(block.begun.is_set)
        await group.say("Ann", "/stop")
        assert [one.text for one in group.platform.sent] == [EN.say("stop.stopped"), STILL_RUNNING]
        assert (await reasons(group))[0] == ("unknown_outcome", "block")
        assert (await kept(group, LEDGER.c.code))[0] == ("unknown_outcome",)
        block.let_go.set()


async def test_a_function_that_ignores_its_cancellation_is_cancelled_again() -> None:
    begun, ignored = asyncio.Event(), asyncio.Event()

    async def ignore(*_: Any) -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        ignored.set()
        await asyncio.Event().wait()

    slow = Recorder("slow", does=ignore, commands=["slow"], timeout_seconds=10)
    async with a_group([slow.spec]) as group:
        await group.hear("Ann", "/slow")
        await begun.wait()
        await group.clock.advance(11)
        group.deadlines.expire()
        await ignored.wait()
        group.deadlines.expire()
        await group.clock.advance(5)
        group.deadlines.expire()
        await group.settle()
        assert [one.text for one in group.platform.sent] == [EN.say("failures.timeout", name="/slow")]
