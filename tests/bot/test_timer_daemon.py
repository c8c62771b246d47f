"""`rollcall run` with functions that create timers: its own ticker fires them, and a kill loses none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.real_daemon import a_real_daemon

FUNCTIONS = '''
from datetime import timedelta

from pydantic import BaseModel

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.clock import Clock
from services.times.recurrence import Once, Rule
from services.timers.timetable import Draft, TimerKind, Timetable


class Plan(BaseModel, frozen=True):
    seconds: int
    text: str


class Said(BaseModel, frozen=True):
    text: str


@tool_function(commands=("later",), effect="idempotent")
async def later(context: MessageContext, args: Plan, *, call: Call, timetable: Timetable, clock: Clock) -> str:
    """Say something later."""
    at = clock.now() + timedelta(seconds=args.seconds)
    rule = Rule(Once(at.replace(tzinfo=None)))
    owner = (context.sender.ref, context.sender.name)
    draft = Draft(
        TimerKind.REMINDER, context.bot, context.chat, context.is_group, None, *owner, (), "planned",
        {"text": args.text},
        args.text, rule, "UTC",
    )
    await timetable.add([draft], call_key=call.key, most_per_owner=10)
    return "later"


@tool_function(offered_to=("timer",), effect="once")
async def planned(context: MessageContext, args: Said) -> str:
    """Say what was planned."""
    return f"now: {args.text}"
'''
NO_MODEL = "http://127.0.0.1:9/v1"


@pytest.mark.requirement("D45")
async def test_what_is_planned_is_said_by_itself_and_after_a_kill_by_the_next_process(tmp_path: Path) -> None:
    (tmp_path / "planning.py").write_text(FUNCTIONS)
    more = f"sources: {{python: [{tmp_path}/planning.py]}}\n"
    async with a_real_daemon(tmp_path, NO_MODEL, more) as daemon:
        await daemon.say("family", "m1", "/later 1 tea")
        assert await daemon.said("family", 2) == ["later", "now: tea"]
        await daemon.say("family", "m2", "/later 2 milk")
        assert (await daemon.said("family", 3))[2] == "later"
        daemon.process.kill()
        await daemon.ended()
    async with a_real_daemon(tmp_path, NO_MODEL, more) as daemon:
        assert await daemon.said("family", 4) == ["later", "now: tea", "later", "now: milk"]
