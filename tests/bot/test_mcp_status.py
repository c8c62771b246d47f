"""Status of long runs in MCP: progress notifications and log messages."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import LoggingMessageNotificationParams

from function_calls.call import Call
from function_calls.context import MessageContext
from tests.fakes.functions import Recorder
from tests.harness.mcp_programs import LEGACY, MODERN, programs


async def works(context: MessageContext, arguments: Any, call: Call) -> str:
    await call.status("looking")
    await call.status("almost there")
    return "done"


class Heard:
    """Notifications received by a client."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str | None, Any]] = []
        self.progress: list[str | None] = []

    async def line(self, params: LoggingMessageNotificationParams) -> None:
        self.log.append((params.level, params.logger, params.data))

    async def step(self, done: float, total: float | None, message: str | None) -> None:
        self.progress.append(message)


BOTH = [("info", "act", "looking"), ("info", "act", "almost there")]


async def set_level(client: Client, level: Any) -> None:
    with pytest.warns(MCPDeprecationWarning):
        await client.set_logging_level(level)


@pytest.mark.requirement("B9", "B10")
@pytest.mark.parametrize(
    ("level", "told"),
    [(None, BOTH), ("debug", BOTH), ("info", BOTH), ("notice", []), ("error", [])],
)
async def test_a_session_is_told_what_it_wants(level: Any, told: list[Any]) -> None:
    heard, act = Heard(), Recorder("act", does=works)
    async with (
        asyncio.timeout(20),
        programs([act.spec]) as served,
        served.client(mode=LEGACY, logging_callback=heard.line) as client,
        served.client(mode=LEGACY) as other,
    ):
        if level is not None:
            await set_level(client, level)
        # The level of another client does not matter.
        await set_level(other, "error" if told else "debug")
        await client.call_tool("act", progress_callback=heard.step)
    assert (heard.log, heard.progress) == (told, ["looking", "almost there"])


@pytest.mark.requirement("B9", "B10")
@pytest.mark.parametrize(("level", "told"), [(None, []), ("debug", BOTH), ("info", BOTH), ("warning", [])])
async def test_as_the_protocol_is_now_each_request_says_what_it_wants(level: Any, told: list[Any]) -> None:
    heard, act = Heard(), Recorder("act", does=works)
    async with (
        asyncio.timeout(20),
        programs([act.spec]) as served,
        served.client(mode=MODERN, logging_callback=heard.line, log_level=level) as client,
    ):
        await client.call_tool("act")
    assert heard.log == told


async def test_who_did_not_ask_for_progress_is_given_none() -> None:
    heard, act = Heard(), Recorder("act", does=works)
    async with (
        asyncio.timeout(20),
        programs([act.spec]) as served,
        served.client(mode=LEGACY, logging_callback=heard.line) as client,
    ):
        await client.call_tool("act")
    assert (heard.log, heard.progress) == (BOTH, [])
