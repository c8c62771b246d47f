"""Settings of MCP servers that change at run time: a running turn cannot use the old ones any more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.registration.function_sources import ConfiguredSource
from bot.registration.functions import mcp_sources
from bot.testing import a_group
from config.sections.mcp import McpServerSettings
from config.settings import Settings
from function_calls.spec import FunctionResult
from services.clock import VirtualClock
from services.mcp.problems import Unreachable
from services.mcp.tools import Pins
from tests.bot.test_reload import reload
from tests.fakes.functions import Recorder
from tests.fakes.sqlite_store import a_store
from tests.harness.mcp_servers import Script, a_tool, function, is_alive, servers, until, until_true

SAID = "The settings of one have just changed, so I stopped. Please ask again."


@pytest.mark.parametrize("change", ["removed", "denied", "for owners"])
async def test_a_turn_in_flight_cannot_call_by_settings_that_hold_no_more(change: str, tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("go"))
    started, go_on = asyncio.Event(), asyncio.Event()

    async def does(context: Any, arguments: Any, own: Any) -> FunctionResult:
        started.set()
        await go_on.wait()
        result: FunctionResult = await own.invoke("mcp__one__go", {})
        return result

    outer = Recorder("outer", does=does, commands=["outer"], effect="idempotent")
    after = {
        "removed": [],
        "denied": [script.settings(deny=["go"])],
        "for owners": [script.settings(roles="owner")],
    }
    async with a_group([outer.spec], settings=servers(script.settings())) as group:
        await until(group, lambda: function(group, "mcp__one__go"))
        await group.hear("Ann", "/outer")
        await started.wait()
        assert await reload(group, mcp={"servers": after[change]})
        [program] = script.asked("began")
        await until_true(lambda: not is_alive(program))
        go_on.set()
        await until_true(lambda: group.platform.sent)
        await group.settle()
        assert [one.text for one in group.platform.sent] == [SAID]
        assert script.asked("called") == []
        assert script.asked("began") == [program]


async def test_a_call_that_waits_for_a_connection_hears_that_the_server_is_gone(tmp_path: Path) -> None:
    script, home = Script(tmp_path, a_tool("go")), tmp_path / "home"
    tools = {"go": {"commands": ["go"]}}
    async with a_group(settings=servers(script.settings(tools=tools)), home=home) as group:
        await until(group, lambda: function(group, "mcp__one__go"))
    begun = tmp_path / "begun"
    silent = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(60)"
    entry = {**script.settings(tools=tools), "command": [*script.settings()["command"][:1], "-c", silent]}
    async with a_group(settings=servers(entry), home=home) as group:
        await group.hear("Ann", "/go")
        await until_true(begun.exists)
        assert await reload(group, mcp={"servers": []})
        await until_true(lambda: group.platform.sent)
        assert [one.text for one in group.platform.sent] == [SAID]


class CountedPins(Pins):
    """Pins that count their watchers."""

    watchers = 0

    @contextmanager
    def watched(self, server: str, event: asyncio.Event) -> Iterator[None]:
        with super().watched(server, event):
            self.watchers += 1
            try:
                yield
            finally:
                self.watchers -= 1


async def never(settings: McpServerSettings) -> Any:
    """Starts no program."""
    raise Unreachable


async def test_only_servers_that_are_looked_after_watch_the_pins(tmp_path: Path) -> None:
    [settings] = Settings.model_validate(servers(Script(tmp_path).settings())).mcp.servers
    clock = VirtualClock()
    async with a_store(tmp_path, clock) as store:
        pins = CountedPins(store, clock)

        def sources() -> Sequence[ConfiguredSource]:
            return mcp_sources([settings], pins, clock, never, tmp_path, asks_first=False)

        # As at each reload of the settings, in a thread, though most sources are not used.
        [source] = [await asyncio.to_thread(sources) for _ in range(5)][-1]
        assert pins.watchers == 0
        spoken = asyncio.Event()
        running = asyncio.create_task(source.source.run(lambda snapshot: spoken.set()))
        await spoken.wait()
        assert pins.watchers > 0
        running.cancel()
        await asyncio.wait([running])
        assert pins.watchers == 0
