"""logs/function_calls.jsonl: one line for each run of a function."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from bot.testing import a_group, call
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.clock import VirtualClock
from services.refs import Role


class Door(BaseModel, frozen=True):
    """Which door."""

    name: str
    pin: str = Field(default="0000", description="Its code")
    notes: dict[str, list[str]] = Field(default_factory=dict)


@tool_function(commands=("unlock",), effect="idempotent", touches="stays_here", sensitive=("pin",))
async def unlock(context: MessageContext, args: Door, *, call: Call) -> str:
    """Unlock a door."""
    return f"{args.name} is open"


@tool_function(commands=("twice",), effect="idempotent")
async def unlock_both(context: MessageContext, *, call: Call) -> str:
    """Unlock two doors."""
    await call.invoke("unlock", {"name": "inner"})
    return "both"


@tool_function(commands=("guarded",), roles=Role.OWNER)
async def guarded(context: MessageContext) -> str:
    """For owners."""
    return "yes"


def records(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "logs" / "function_calls.jsonl").read_text().splitlines()]


@pytest.mark.requirement("D31", "D47", "D48", "D50")
async def test_a_run_leaves_a_line_with_everything_about_it(tmp_path: Path) -> None:
    async with a_group([unlock], home=tmp_path) as group:
        group.model.says(call("unlock", name="front", pin="4711", notes={"for": ["token: abcdef123"]}), "Done.")
        await group.say("Ann", "@Rollcall unlock the front door")
    (line,) = records(tmp_path)
    turn = line.pop("turn")
    assert turn.isdecimal()
    assert line == {
        "at": "2026-01-05T09:00:00+00:00",
        "key": f"{turn}:0",
        "chat": "test:bot:family",
        "member": "test:bot:ann",
        "function": "unlock",
        "arguments": {"name": "front", "pin": "***", "notes": {"for": ["token: ***"]}},
        "path": "model",
        "round": 0,
        "duration_ms": 0.0,
        "outcome": "ok",
        "request_id": "request-1",
    }


async def test_each_run_of_a_turn_has_its_path_its_round_and_its_request(tmp_path: Path) -> None:
    async with a_group([unlock, unlock_both], home=tmp_path) as group:
        group.model.says(call("unlock", name="a"), call("unlock", name="b"), "Done.")
        await group.say("Ann", "@Rollcall unlock everything")
        await group.say("Ann", "/twice")
    facts = [
        (one["function"], one["path"], one["round"], one["request_id"], one["key"].partition(":")[2])
        for one in records(tmp_path)
    ]
    assert facts == [
        ("unlock", "model", 0, "request-1", "0"),
        ("unlock", "model", 1, "request-2", "1"),
        ("unlock", "nested", 0, "", "0.0"),
        ("unlock_both", "command", 0, "", "0"),
    ]


async def test_how_long_a_run_took_is_measured(tmp_path: Path) -> None:
    clock = VirtualClock()

    @tool_function(commands=("rest",))
    async def rest(context: MessageContext) -> str:
        """Rest."""
        await clock.advance(1.25)
        return "rested"

    async with a_group([rest], home=tmp_path, clock=clock) as group:
        await group.say("Ann", "/rest")
    assert records(tmp_path)[0]["duration_ms"] == 1250.0


async def test_what_was_refused_or_wrong_leaves_a_line_with_why_and_what_was_given(tmp_path: Path) -> None:
    async with a_group([unlock, guarded], home=tmp_path) as group:
        await group.say("Ann", "/guarded")
        await group.say("Ann", "/unlock")
        await group.say("Ann", "front")
    assert [(line["function"], line["outcome"], line["arguments"]) for line in records(tmp_path)] == [
        ("guarded", "refused", {}),
        ("unlock", "missing_arguments", {}),
        ("unlock", "ok", {"name": "front", "pin": "***", "notes": {}}),
    ]


async def test_a_run_that_is_stopped_leaves_a_line(tmp_path: Path) -> None:
    @tool_function(commands=("rest",))
    async def rest(context: MessageContext) -> None:
        """Rest."""
        await asyncio.Event().wait()

    async with a_group([rest], home=tmp_path) as group:
        await group.hear("Ann", "/rest")
        await group.clock.settle()
        await group.say("Ann", "/stop")
    assert ("rest", "cancelled") in [(line["function"], line["outcome"]) for line in records(tmp_path)]
