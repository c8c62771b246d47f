"""Programs whose rights change at run time: each request is checked with the current settings, and removed programs are
disconnected."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from mcp.client.subscriptions import SubscriptionLost

from bot.live.settings import Reload
from config.settings import Settings
from services.refs import ChatRef
from tests.bot.test_mcp_server import Waits, call_of, headers_of
from tests.bot.web.test_mcp_http import ACCEPT, HELLO
from tests.fakes.functions import Recorder
from tests.fakes.sources import Written
from tests.harness.mcp_programs import ERAS, LEGACY, TOKEN, Programs, code, programs

OTHER = "the-token-of-another"
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


async def reload(served: Programs, *clients: dict[str, Any], **serve: Any) -> bool:
    """Reload the settings with these programs; returns whether they were valid."""
    now = served.group.daemon.live.now.model_dump()
    entries = [{"token": TOKEN, **client} for client in clients]
    now["mcp"]["serve"] = {**now["mcp"]["serve"], "clients": entries, **serve}
    fresh = Settings.model_validate(now)
    return await Reload(served.group.daemon.live, lambda: fresh).now()


async def begin(http: httpx2.AsyncClient) -> dict[str, str]:
    """Headers of a new session."""
    begun = await http.post("/mcp", json=HELLO, headers=ACCEPT)
    return {**ACCEPT, "mcp-session-id": begun.headers["mcp-session-id"]}


async def test_a_token_opens_nothing_from_the_moment_on_in_which_it_is_withdrawn() -> None:
    async with programs() as served, served.http() as old, served.http(OTHER) as new:
        session = await begin(old)
        assert (await new.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 401
        assert await reload(served, {"name": "editor", "token": OTHER})
        assert (await old.post("/mcp", json=PING, headers=session)).status_code == 401
        assert (await new.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 200
        # It is the same program, but the session of the other token has ended.
        assert (await new.post("/mcp", json=PING, headers=session)).status_code == 404


async def test_sessions_of_others_go_on() -> None:
    both = [{"name": "editor"}, {"name": "other", "token": OTHER}]
    async with programs(clients=both) as served, served.http() as mine, served.http(OTHER) as theirs:
        kept, gone = await begin(mine), await begin(theirs)
        assert await reload(served, both[0])
        assert (await theirs.post("/mcp", json=PING, headers=gone)).status_code == 401
        assert (await mine.post("/mcp", json=PING, headers=kept)).status_code == 200
        assert await reload(served, *both)
        assert (await theirs.post("/mcp", json=PING, headers=gone)).status_code == 404
        assert (await mine.post("/mcp", json=PING, headers=kept)).status_code == 200


async def test_withdrawn_sessions_leave_their_room_to_others() -> None:
    others = [{"name": f"other{number}", "token": f"{OTHER}-{number}"} for number in range(4)]
    mine_alone = {"name": "editor"}
    async with programs(clients=[mine_alone, *others]) as served, served.http() as mine:
        for other in others:
            async with served.http(other["token"]) as theirs:
                for _ in range(16):
                    await begin(theirs)
        assert (await mine.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 503
        assert await reload(served, mine_alone)
        async with asyncio.timeout(10):
            while (await mine.post("/mcp", json=HELLO, headers=ACCEPT)).status_code != 200:
                pass


async def test_a_stream_that_listens_ends_with_its_token() -> None:
    async with asyncio.timeout(20), programs() as served, served.http() as http:
        session = await begin(http)
        async with http.stream("GET", "/mcp", headers=session) as stream:
            assert stream.status_code == 200
            assert await reload(served, {"name": "editor", "token": OTHER})
            async for _ in stream.aiter_bytes():
                pass


async def test_a_listener_of_today_ends_with_its_token() -> None:
    async with (
        asyncio.timeout(20),
        programs() as served,
        served.client() as client,
        client.listen(tools_list_changed=True) as events,
    ):
        assert await reload(served, {"name": "editor", "token": OTHER})
        with pytest.raises(SubscriptionLost):
            await anext(aiter(events))


@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_of_a_withdrawn_program_is_stopped(mode: str) -> None:
    waits = Waits()
    async with asyncio.timeout(20), programs([waits.recorder.spec]) as served, served.http() as http:
        if mode == LEGACY:
            headers = await begin(http)
            body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "act", "arguments": {}}}
        else:
            headers, body = headers_of("act"), call_of("act")
        calling = asyncio.create_task(http.post("/mcp", json=body, headers=headers))
        await waits.began.wait()
        assert await reload(served, {"name": "editor", "token": OTHER})
        await waits.ended.wait()
        answer = await calling
    assert "never" not in answer.text


@pytest.mark.parametrize("mode", ERAS)
async def test_rights_are_those_of_the_next_request(mode: str) -> None:
    pay, look = Recorder("pay", roles="admin"), Recorder("look")
    all_of = [pay.spec, look.spec]
    async with (
        programs(all_of, clients=[{"name": "editor", "role": "admin"}]) as served,
        served.client(mode=mode) as client,
    ):
        assert not (await client.call_tool("pay")).is_error
        assert await reload(served, {"name": "editor"})
        assert code(await client.call_tool("pay")) == "refused"
        assert {"pay", "look"} & await offered(client) == {"look"}
        assert await reload(served, {"name": "editor", "role": "admin", "functions": ["pay"]})
        assert {"pay", "look"} & await offered(client) == {"pay"}
        assert not (await client.call_tool("pay")).is_error
    assert (len(pay.runs), len(look.runs)) == (2, 0)


async def offered(client: Any) -> set[str]:
    """Tools that the program can see now."""
    return {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}


async def test_a_program_is_told_that_other_functions_are_open_to_it() -> None:
    told = asyncio.Event()

    async def hear(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            told.set()

    source = Written("others")
    source.write()
    async with (
        asyncio.timeout(20),
        programs(sources=[source]) as served,
        served.client(mode=LEGACY, message_handler=hear) as client,
    ):
        await client.list_tools()
        # The stream for server notifications is opened concurrently with the session.
        while not told.is_set():
            source.write(Recorder("later").spec)
            await asyncio.sleep(0.02)
        told.clear()
        assert await reload(served, {"name": "editor", "functions": ["calculate"]})
        await told.wait()
        assert await offered(client) == {"calculate"}


async def test_a_program_may_come_in_and_acts_as_its_entry_says() -> None:
    bots = {"default": {"name": "Rollcall"}, "support": {"name": "Sue"}}
    given = {"name": "desk", "token": OTHER, "bot": "support"}
    web = {"platforms": {"web": {"page": False, "port": 0}}}
    serve = {"mcp": {"serve": {"enabled": True, "clients": [{"name": "editor", "token": TOKEN}]}}}
    async with programs(settings={"bots": bots, **web, **serve}) as served:
        assert await reload(served, {"name": "editor"}, given)
        assert not (await served.call("calculate", {"expression": "6*7"}, token=OTHER)).is_error
        chat = served.group.daemon.chats.of(ChatRef.parse("mcp:main:desk"))
    assert chat.settings.bot == "support"


async def test_whether_and_where_programs_are_served_waits_for_the_next_start() -> None:
    async with programs() as served, served.http() as http:
        assert await reload(served, enabled=False, path="/elsewhere")
        assert (await http.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 401
        assert await reload(served, {"name": "editor"}, path="/elsewhere")
        assert (await http.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 200
        serve = served.group.daemon.live.now.mcp.serve
    assert (serve.enabled, serve.path) == (True, "/mcp")
