"""The MCP endpoint of the web app: authentication and invalid requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.live.settings import secrets_of
from bot.mcp.http import MOST_BODY_BYTES
from tests.fakes.functions import Recorder
from tests.harness.mcp_programs import LEGACY, TOKEN, programs

ACCEPT = {"accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.parametrize(
    "given_headers",
    [
        {},
        {"authorization": "Bearer not-the-token-at-all"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer ключ".encode()},
    ],
    ids=["none", "another", "another way", "longer", "shorter", "empty", "no ascii"],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_who_is_not_known_is_told_so_before_anything_is_read(method: str, given_headers: Any) -> None:
    async with programs() as served, served.http() as http:
        del http.headers["authorization"]
        answer = await http.request(method, "/mcp", content=b"{" * 10, headers={**ACCEPT, **given_headers})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="rollcall"'
    assert answer.json()["error"]["code"] == "unauthorized"


async def test_the_body_of_a_stranger_is_not_waited_for() -> None:
    async with programs() as served:
        host, port = served.address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{")
        async with asyncio.timeout(10):
            assert b"401" in await reader.readline()
        writer.close()


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}])
async def test_the_guard_of_the_web_app_stands_in_front(headers: dict[str, str]) -> None:
    async with programs() as served, served.http() as http:
        answer = await http.post("/mcp", json=HELLO, headers={**ACCEPT, **headers})
    assert answer.status_code == 403


async def test_nothing_is_there_while_it_is_not_enabled() -> None:
    off = {"mcp": {"serve": {"enabled": False, "clients": [{"name": "editor", "token": TOKEN}]}}}
    async with programs(settings=off) as served, served.http() as http:
        assert (await http.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 404


async def test_a_body_that_is_too_large_is_refused() -> None:
    async with programs() as served, served.http() as http:
        large = b" " * (MOST_BODY_BYTES + 1)
        answers = [
            await http.post("/mcp", content=content, headers={**ACCEPT, "content-type": "application/json"})
            for content in (large, _in_pieces(large))
        ]
    assert [answer.status_code for answer in answers] == [413, 413]


async def _in_pieces(body: bytes) -> Any:
    for begin in range(0, len(body), 100_000):
        yield body[begin : begin + 100_000]


async def test_a_session_belongs_to_who_began_it() -> None:
    clients = [{"name": "editor"}, {"name": "other", "token": "the-token-of-another"}]
    async with (
        programs(clients=clients) as served,
        served.http() as mine,
        served.http("the-token-of-another") as theirs,
    ):
        begun = await mine.post("/mcp", json=HELLO, headers=ACCEPT)
        session = {**ACCEPT, "mcp-session-id": begun.headers["mcp-session-id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        answers = [await one.post("/mcp", json=ping, headers=session) for one in (mine, theirs)]
        gone = await mine.delete("/mcp", headers=session)
        after = await mine.post("/mcp", json=ping, headers=session)
    assert [answer.status_code for answer in answers] == [200, 404]
    assert (gone.status_code, after.status_code) == (200, 404)


async def test_sessions_are_bounded() -> None:
    clients = [{"name": f"editor{number}", "token": f"the-token-of-editor-{number}"} for number in range(5)]
    statuses = []
    async with programs(clients=clients) as served:
        for client in clients:
            async with served.http(client["token"]) as http:
                statuses += [(await http.post("/mcp", json=HELLO, headers=ACCEPT)).status_code for _ in range(16)]
    assert statuses == [200] * 64 + [503] * 16


async def test_a_call_beyond_the_bound_is_asked_to_come_again() -> None:
    go, full = asyncio.Event(), asyncio.Event()
    runs: list[None] = []

    async def wait(*_: Any) -> str:
        runs.append(None)
        if len(runs) == 64:
            full.set()
        await go.wait()
        return "done"

    act = Recorder("act", does=wait)
    async with asyncio.timeout(30), programs([act.spec]) as served, served.client(mode=LEGACY) as client:
        calls = [asyncio.create_task(client.call_tool("act")) for _ in range(64)]
        await full.wait()
        beyond = await client.call_tool("act")
        go.set()
        results = [await call for call in calls]
    assert beyond.is_error
    assert "[transient]" in str(beyond.content[0])
    assert not any(result.is_error for result in results)


async def test_tokens_stay_out_of_the_logs() -> None:
    async with programs() as served:
        assert TOKEN in secrets_of(served.settings)
        assert TOKEN not in repr(served.settings)


_KEYS = "jsonrpc 2.0 id method params name arguments _meta cursor requestId progressToken"
_METHODS = "tools/call tools/list initialize ping notifications/cancelled subscriptions/listen calculate"
WORDS = st.sampled_from([*_KEYS.split(), *_METHODS.split(), "io.modelcontextprotocol/protocolVersion"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5),
    max_leaves=12,
)
ENVELOPES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": st.sampled_from(_METHODS.split()[:4])},
    optional={"id": st.integers() | st.text(max_size=3) | VALUES, "params": VALUES},
)
BODIES = (
    st.binary(max_size=60)
    | st.one_of(VALUES, ENVELOPES).map(lambda value: json.dumps(value).encode())
    | st.just(b"[" * 5000)
)


class Sending(NamedTuple):
    """A connection with a session."""

    http: httpx2.AsyncClient
    session: str


@pytest.fixture
async def sending() -> AsyncIterator[Sending]:
    async with programs() as served, served.http() as http:
        begun = await http.post("/mcp", json=HELLO, headers=ACCEPT)
        yield Sending(http, begun.headers["mcp-session-id"])


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", "nonsense"])
@given(body=BODIES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_sent_is_answered_without_a_traceback(sending: Sending, version: str, body: bytes) -> None:
    session = {"mcp-session-id": sending.session} if version == "2025-11-25" else {}
    headers = {**ACCEPT, "content-type": "application/json", "mcp-protocol-version": version, **session}
    answer = await sending.http.post("/mcp", content=body, headers=headers)
    assert answer.status_code < 500
    assert "Traceback" not in answer.text
    assert 'File "' not in answer.text
