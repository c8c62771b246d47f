"""Failures between the daemon and an MCP server, and the messages about them in a chat."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from starlette.responses import PlainTextResponse, RedirectResponse

from bot.testing import Group, a_group, call
from tests.harness.mcp_sdk import Played, over_http
from tests.harness.mcp_servers import RAW, Script, a_tool, faults, function, servers, until, until_true

UNKNOWN = "can't tell whether it took effect"
LOST = "I lost the connection to one halfway through. Please try again."


def over(url: str, **more: Any) -> dict[str, Any]:
    """A server at `url`."""
    return {"name": "one", "url": url, "roles": "member", **more}


async def begun(group: Group, script: Script, text: str) -> None:
    """Deliver `text`, and wait until the server works on it."""
    before = len(script.asked("called"))
    await group.hear("Ann", text)
    await until_true(lambda: len(script.asked("called")) > before)


async def test_an_effect_whose_server_dies_is_not_repeated_and_said_to_be_unknown(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("pay", "crash once"))
    async with a_group(settings=servers(script.settings(tools={"pay": {"commands": ["pay"]}}))) as group:
        await until(group, lambda: function(group, "mcp__one__pay"))
        [said] = await group.say("Ann", "/pay")
    assert UNKNOWN in said
    assert script.asked("called") == ["pay"]


async def test_a_read_whose_server_dies_is_asked_once_more_of_a_new_one(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("look", "crash once"), a_tool("die", "crash"))
    tools = {"look": {"commands": ["look"]}, "die": {"commands": ["die"]}}
    async with a_group(settings=servers(script.settings(effect="read", tools=tools))) as group:
        await until(group, lambda: function(group, "mcp__one__look"))
        assert await group.say("Ann", "/look") == ["up again"]
        assert await group.say("Ann", "/die") == [LOST]
    assert script.asked("called") == ["look", "look", "die", "die"]


async def test_a_server_that_ended_is_started_again_with_patience(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("pay", "crash"))
    async with a_group(settings=servers(script.settings(tools={"pay": {"commands": ["pay"]}}))) as group:
        await until(group, lambda: function(group, "mcp__one__pay"))
        await group.say("Ann", "/pay")
        await until(group, lambda: "ended soon after it began" in faults(group))
        assert len(script.asked("began")) == 1
        assert function(group, "mcp__one__pay")
        await group.clock.advance(3)
        await until(group, lambda: faults(group) == "")
    assert len(script.asked("began")) == 2


async def test_a_call_of_a_server_that_has_died_does_not_wait_for_its_next_turn(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("pay", "crash"), a_tool("look", given="here"))
    tools = {"pay": {"commands": ["pay"]}, "look": {"commands": ["look"]}}
    async with a_group(settings=servers(script.settings(tools=tools))) as group:
        await until(group, lambda: function(group, "mcp__one__pay"))
        for number in (1, 2, 3):
            [said] = await group.say("Ann", "/pay")
            assert UNKNOWN in said
            # The clock has not advanced, so nothing has waited.
            assert await group.say("Ann", "/look") == ["here"]
            assert len(script.asked("began")) == number + 1


async def test_a_server_that_has_died_is_there_again_within_a_second(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("pay", "crash"))
    async with a_group(settings=servers(script.settings(tools={"pay": {"commands": ["pay"]}}))) as group:
        await until(group, lambda: function(group, "mcp__one__pay"))
        await group.say("Ann", "/pay")
        await until(group, lambda: "ended soon after it began" in faults(group))
        await group.clock.advance(1)
        await until(group, lambda: faults(group) == "")
    assert len(script.asked("began")) == 2


@pytest.mark.parametrize(("effect", "said"), [("once", UNKNOWN), ("read", "took too long")])
async def test_a_call_that_takes_too_long_is_ended_and_the_server_told(effect: str, said: str, tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("wait", "hang"))
    tools = {"wait": {"commands": ["wait"], "timeout_seconds": 5}}
    async with a_group(settings=servers(script.settings(effect=effect, tools=tools))) as group:
        await until(group, lambda: function(group, "mcp__one__wait"))
        await begun(group, script, "/wait")
        await group.clock.advance(6)
        group.deadlines.expire()
        await group.settle()
        await until_true(lambda: script.asked("cancelled"))
    assert said in group.platform.sent[-1].text


async def test_stop_tells_the_server(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("wait", "hang"))
    async with a_group(settings=servers(script.settings(tools={"wait": {"commands": ["wait"]}}))) as group:
        await until(group, lambda: function(group, "mcp__one__wait"))
        await begun(group, script, "/wait")
        await group.say("Ann", "/stop")
        await until_true(lambda: script.asked("cancelled"))


async def test_a_connection_that_does_not_come_in_time_is_no_unknown_outcome(tmp_path: Path) -> None:
    script, home = Script(tmp_path, a_tool("pay")), tmp_path / "home"
    tools = {"pay": {"commands": ["pay"], "timeout_seconds": 5}}
    async with a_group(settings=servers(script.settings(tools=tools)), home=home) as group:
        await until(group, lambda: function(group, "mcp__one__pay"))
    begun = tmp_path / "begun"
    silent = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(60)"
    entry = {**script.settings(tools=tools), "command": [sys.executable, "-c", silent]}
    async with a_group(settings=servers(entry), home=home) as group:
        await group.hear("Ann", "/pay")
        await until_true(begun.exists)
        await group.clock.advance(4.5)
        await group.settle()
    assert [one.text for one in group.platform.sent] == ["I can't reach one right now. Please try again later."]


async def test_a_connection_that_nobody_uses_is_closed_and_opened_by_the_next_call(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("go"))
    entry = script.settings(idle_seconds=60, tools={"go": {"commands": ["go"]}})
    async with a_group(settings=servers(entry)) as group:
        await until(group, lambda: function(group, "mcp__one__go"))
        await group.clock.advance(61)
        [first] = script.asked("began")
        await until_true(lambda: not _is_there(first))
        assert faults(group) == ""
        assert await group.say("Ann", "/go") == ["{}"]
    assert len(script.asked("began")) == 2


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_noise_and_messages_that_are_too_long_are_the_server_s_own_trouble(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("huge", "huge", 9_000_000), noise="no JSON at all " * 100)
    entry = script.settings(effect="read", tools={"huge": {"commands": ["huge"]}})
    async with a_group(settings=servers(entry)) as group:
        await until(group, lambda: function(group, "mcp__one__huge"))
        assert await group.say("Ann", "/huge") == [LOST]


async def test_a_server_that_needs_a_sandbox_is_not_started_without_one(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("x"))
    settings = servers(script.settings(sandbox="required"), sandbox={"isolation": "off"})
    async with a_group(settings=settings) as group:
        await until(group, lambda: "`sandbox.isolation: off`" in faults(group))
    assert script.asked("began") == []


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
async def test_a_server_in_the_sandbox_sees_its_folder_and_what_it_may_read_and_no_more(tmp_path: Path) -> None:
    home, tools = tmp_path / "home", {"where": {"commands": ["where"]}}
    for folder in ("its", "readable", "other"):
        (tmp_path / folder).mkdir()
    script = Script(tmp_path / "its", a_tool("where", "look", [str(tmp_path / "readable"), str(tmp_path / "other")]))
    entry = script.settings(
        sandbox="required",
        folder=str(tmp_path / "its"),
        readable=[str(tmp_path / "readable"), str(RAW), sys.prefix, sys.base_prefix],
        env={"TOKEN": "canary"},
        tools=tools,
    )
    settings = servers(entry, sandbox={"memory_megabytes": 4096})
    async with a_group(settings=settings, home=home) as group:
        await until(group, lambda: function(group, "mcp__one__where"))
        [said] = await group.say("Ann", "/where")
    assert json.loads(said) == {"there": [True, False], "writes": False, "home": "/tmp", "token": "***"}


async def test_over_http_a_server_counts_asks_for_nothing_and_is_heard_when_it_changes() -> None:
    played = Played()
    tools = {"count": {"commands": ["count"]}, "ask": {"commands": ["wish"]}}
    async with over_http(played) as (url, _), a_group(settings=servers(over(url, tools=tools))) as group:
        await until(group, lambda: function(group, "mcp__one__count"))
        await group.say("Ann", "/count")
        assert [text for _, text in group.platform.statuses if "one" in text] == ["one: count: 25%"]
        assert await group.say("Ann", "/wish") == ["“one: ask” didn't work."]
        played.tools[0] = mcp_types.Tool(name="echo", description="Says it twice.", input_schema={"type": "object"})
        await until_true(lambda: played.listeners)
        await played.changed()
        await until(group, lambda: function(group, "mcp__one__echo") is None)
        assert "'echo' has changed since it was accepted" in faults(group)


async def test_over_http_a_call_that_is_stopped_ends_at_the_server() -> None:
    played = Played()
    entry_tools = {"sleep": {"commands": ["rest"]}}
    async with over_http(played) as (url, _), a_group(settings=servers(over(url, tools=entry_tools))) as group:
        await until(group, lambda: function(group, "mcp__one__sleep"))
        await group.hear("Ann", "/rest")
        await asyncio.wait_for(played.begun.wait(), 10)
        await group.say("Ann", "/stop")
        await asyncio.wait_for(played.cancelled.wait(), 10)


async def test_headers_go_to_the_server_alone() -> None:
    elsewhere, tools = Played(), {"echo": {"commands": ["say"]}}
    secret = {"headers": {"Authorization": "Bearer t0ken-canary"}, "tools": tools}
    async with AsyncExitStack() as stack:
        url, app = await stack.enter_async_context(over_http(Played()))
        other, seen = await stack.enter_async_context(over_http(elsewhere))
        async with a_group(settings=servers(over(url, **secret))) as group:
            await until(group, lambda: function(group, "mcp__one__echo"))
            assert all(one["authorization"] == "Bearer t0ken-canary" for one in app.headers)
            assert all(one["accept-encoding"] == "identity" for one in app.headers)
            app.instead = RedirectResponse(other, status_code=307)
            await group.say("Ann", "/say")
    assert seen.headers == []
    assert elsewhere.calls == []


async def test_a_server_that_refuses_the_token_is_told_of() -> None:
    async with over_http(Played()) as (url, app):
        app.instead = PlainTextResponse("who are you?", status_code=401)
        async with a_group(settings=servers(over(url))) as group:
            await until(group, lambda: "HTTP 401" in faults(group))


async def test_an_effect_is_tried_again_where_the_server_has_not_heard_of_it() -> None:
    played, first = Played(), AsyncExitStack()
    url, _ = await first.enter_async_context(over_http(played))
    async with first, a_group(settings=servers(over(url, tools={"echo": {"commands": ["say"]}}))) as group:
        await until(group, lambda: function(group, "mcp__one__echo"))
        await first.aclose()
        assert await group.say("Ann", "/say") == ["I can't reach one right now. Please try again later."]
        async with over_http(played, port=int(url.split(":")[2].split("/")[0])):
            assert await group.say("Ann", "/say") == ["{}"]
    assert played.calls == ["echo"]


async def test_an_answer_that_breaks_off_leaves_an_effect_unknown() -> None:
    played = Played()
    tools = {"echo": {"commands": ["say"]}}

    async def breaks(scope: Any, receive: Any, send: Any) -> None:
        body = json.loads((await receive())["body"])
        if body["method"] != "tools/call":
            raise AssertionError(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b": nothing yet\n\n", "more_body": False})

    async with over_http(played) as (url, app), a_group(settings=servers(over(url, tools=tools))) as group:
        await until(group, lambda: function(group, "mcp__one__echo"))
        app.instead = breaks
        [said] = await group.say("Ann", "/say")
    assert UNKNOWN in said


async def test_a_program_made_with_the_sdk_is_spoken_with_as_well() -> None:
    entry = {"name": "one", "command": [sys.executable, "-m", "tests.harness.mcp_sdk"], "folder": str(Path.cwd())}
    entry |= {"roles": "member", "tools": {"echo": {"commands": ["say"]}}}
    async with a_group(settings=servers(entry)) as group:
        await until(group, lambda: function(group, "mcp__one__echo"))
        group.model.says(call("mcp__one__echo"), "Said.")
        assert await group.say("Ann", "/say") == ["{}"]
