"""The web server with clients that open connections and send nothing, or send slowly."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bot.web.app import Address, Health, Probes, WebServer, web_app
from bot.web.connections import ConnectionLimits, ConnectionTable
from tests.harness.real_daemon import TOKEN, a_real_daemon

HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CHUNK, CHUNKS = b"x" * 65536, 1000
BODY = b"POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"


@asynccontextmanager
async def a_connection(
    address: Address, sent: bytes = b"", *, limit: int = 65536
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that has sent these bytes, with a receive buffer of about `limit` bytes."""
    reader, writer = await asyncio.open_connection(address.host, address.port, limit=limit)
    try:
        writer.write(sent)
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def silent_connections(address: str, count: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """`count` connections that send nothing."""
    host, port = address.removeprefix("http://").split(":")
    opened = [await asyncio.open_connection(host, int(port)) for _ in range(count)]
    try:
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.close()
        for _, writer in opened:
            with suppress(OSError):
                await writer.wait_closed()


async def test_more_silent_connections_than_are_served_leave_room_for_everybody_else(tmp_path: Path) -> None:
    async with a_real_daemon(tmp_path, "http://127.0.0.1:9") as daemon, silent_connections(daemon.address, 1005):
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(base_url=daemon.address, trust_env=False, verify=False, timeout=10) as client:
            paths = ("/healthz", "/readyz", "/api/v1/chats/family/events?wait=0")
            answers = [(await client.get(path, headers=headers)).status_code for path in paths]
        assert answers == [200, 200, 200]
        await daemon.say("family", "m1", "hello")


LIMITS = ConnectionLimits(connections=4, per_address=2, head_seconds=0.3, body_seconds=0.3, stalled_seconds=0.3)
UNFINISHED = {
    "nothing": b"",
    "half a head": b"GET /healthz HTTP/1.1\r\nX-Slow: ",
    "blank lines": b"\r\n",
    "half of a second head": HEAD + b"GET /healthz",
    "half a body that is read": BODY.replace(b"/nothing", b"/body") + b"{",
    "half a body that nobody reads": BODY + b"{",
}


@asynccontextmanager
async def a_server(limits: ConnectionLimits = LIMITS) -> AsyncIterator[tuple[Address, asyncio.Event]]:
    """A server with a page that waits for the event, a long one that sets it at its end, and one that reads a body."""
    go_on = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        try:
            for _ in range(CHUNKS):
                yield CHUNK
        finally:
            go_on.set()

    async def long(_request: Request) -> Response:
        return StreamingResponse(chunks())

    async def body(request: Request) -> Response:
        return Response(await request.body())

    async def slow(_request: Request) -> Response:
        await go_on.wait()
        return Response(b"done")

    routes = [Route("/long", long), Route("/body", body, methods=["POST"]), Route("/slow", slow)]
    probes = Probes(lambda: Health(ok=True), lambda: Health(ok=True), lambda: b"")
    server = WebServer(web_app(probes=probes, more_routes=routes), port=0, limits=limits)
    address = await server.start()
    try:
        yield address, go_on
    finally:
        go_on.set()
        await server.stop()


@pytest.mark.parametrize("begun", UNFINISHED.values(), ids=UNFINISHED)
async def test_a_request_that_does_not_end_in_time_is_closed_however_it_trickles(begun: bytes) -> None:
    async with a_server() as (address, _), asyncio.timeout(10), a_connection(address, begun) as (reader, writer):
        reading = asyncio.create_task(reader.read())
        while not (await asyncio.wait([reading], timeout=0.05))[0]:
            if begun:
                writer.write(b"\r\n" if begun == b"\r\n" else b"x")


async def test_a_head_without_an_end_is_refused() -> None:
    async with (
        a_server(replace(LIMITS, head_seconds=60)) as (address, _),
        asyncio.timeout(10),
        a_connection(address, b"GET /healthz HTTP/1.1\r\n") as (reader, writer),
    ):
        reading = asyncio.create_task(reader.read())
        sent = 0
        while not reading.done() and sent < 1_000_000:
            writer.write(b"X-%d: %s\r\n" % (sent, b"x" * 4000))
            sent += 4000
            with suppress(ConnectionError):
                await writer.drain()
            await asyncio.wait([reading], timeout=0.01)
        with suppress(ConnectionError):
            assert (await reading).startswith(b"HTTP/1.1 400")
        assert sent < 1_000_000


async def test_a_stream_ends_when_its_client_closes_with_a_request_in_advance() -> None:
    asked = HEAD.replace(b"/healthz", b"/long")
    async with a_server() as (address, is_over), asyncio.timeout(10):
        async with a_connection(address, asked) as (reader, writer):
            await reader.readline()
            writer.write(HEAD)
        await is_over.wait()


async def test_a_body_after_an_offer_to_upgrade_is_no_request_of_its_own() -> None:
    body = HEAD
    head = (
        b"POST /body HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    async with a_server() as (address, _), asyncio.timeout(10), a_connection(address, head) as (reader, writer):
        writer.write(body)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert await reader.readexactly(len(body)) == body


@pytest.mark.parametrize(
    "target", ["OPTIONS *", "CONNECT example.org:443", "GET //", "GET http://[", "GET \xff", "GET /%zz"]
)
async def test_a_request_with_an_unusual_target_gets_an_answer_and_harms_nothing(target: str) -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
    asked = target.encode("latin-1") + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    async with a_server() as (address, _), asyncio.timeout(10):
        async with a_connection(address, asked) as (reader, _):
            assert (await reader.read()).startswith(b"HTTP/1.1 4")
        async with a_connection(address, HEAD) as (reader, _):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    assert not problems


async def test_spaces_around_the_value_of_a_header_are_no_part_of_it() -> None:
    body = b"POST /body HTTP/1.1\r\nHost: 127.0.0.1 \t\r\nContent-Length:  5 \t \r\nX-Told: \t a  b \t\r\n\r\nhello"
    async with a_server() as (address, _), asyncio.timeout(10), a_connection(address, body) as (reader, _):
        assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")


async def test_a_second_request_during_an_answer_is_answered_after_it() -> None:
    first = HEAD.replace(b"/healthz", b"/slow")
    second = b"POST /body HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsec"
    async with (
        a_server() as (address, go_on),
        asyncio.timeout(10),
        a_connection(address, first + second) as (reader, writer),
    ):
        asyncio.get_running_loop().call_later(4 * LIMITS.head_seconds, go_on.set)
        assert await reader.readuntil(b"done")
        writer.write(b"ond")
        assert (await reader.read()).endswith(b"second")


async def test_a_client_that_reads_nothing_is_closed() -> None:
    asked = HEAD.replace(b"/healthz", b"/long")
    async with (
        a_server() as (address, is_over),
        asyncio.timeout(10),
        a_connection(address, asked, limit=1024) as (reader, _),
    ):
        await is_over.wait()
        with suppress(ConnectionError):
            assert len(await reader.read()) < CHUNKS * len(CHUNK)


async def test_an_answer_may_take_longer_than_a_request() -> None:
    asked = HEAD.replace(b"/healthz", b"/slow")
    async with a_server() as (address, go_on), asyncio.timeout(10), a_connection(address, asked) as (reader, _):
        asyncio.get_running_loop().call_later(4 * LIMITS.head_seconds, go_on.set)
        assert await reader.readuntil(b"done")


async def test_the_oldest_silent_connection_makes_room_for_a_new_one() -> None:
    async with (
        a_server(replace(LIMITS, head_seconds=60)) as (address, _),
        silent_connections(address.url, LIMITS.connections) as readers,
        silent_connections(address.url, 1),
        asyncio.timeout(10),
    ):
        assert await readers[0].read() == b""
        assert not any(reader.at_eof() for reader in readers[1:])


async def test_probes_are_answered_when_every_connection_is_being_answered() -> None:
    asked = HEAD.replace(b"/healthz", b"/slow")
    async with a_server() as (address, go_on), asyncio.timeout(10), AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(a_connection(address, asked)) for _ in range(LIMITS.connections)]
        async with httpx2.AsyncClient(base_url=address.url, trust_env=False, verify=False, timeout=10) as client:
            while (busy := await client.get("/body")).status_code != 503:
                pass
            assert (busy.headers["retry-after"], busy.json()["error"]["code"]) == ("5", "busy")
            assert [(await client.get(path)).status_code for path in ("/healthz", "/readyz")] == [200, 200]
        go_on.set()
        for reader, _ in opened:
            assert await reader.readuntil(b"done")


def test_where_few_files_may_be_open_half_of_them_are_for_connections() -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, files[1]))
    try:
        table = ConnectionTable(ConnectionLimits())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
    served = [table.add(_Client("127.0.0.1")) for _ in range(101)]
    assert served == [True] * 100 + [False]


class _Client:
    def __init__(self, address: str) -> None:
        self.client: tuple[str, int] | None = (address, 1)
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


ADDRESSES = st.sampled_from(["127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.1", "2001:db8::1", "2001:db8::2"])
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


class Crowd(RuleBasedStateMachine):
    """Connections are opened, wait, are answered and closed, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.table = ConnectionTable(LIMITS)
        self.waiting: list[_Client] = []
        self.answered: list[_Client] = []

    def source(self, client: _Client) -> str:
        address, _ = client.client or ("", 0)
        return "" if address in LOOPBACK else address.rpartition(":")[0] or address

    @rule(address=ADDRESSES)
    def come(self, address: str) -> None:
        new, opened = _Client(address), [*self.waiting, *self.answered]
        same = [one for one in opened if self.source(one) == self.source(new)]
        is_full = bool(self.source(new)) and len(same) >= LIMITS.per_address
        among = [one for one in self.waiting if not is_full or one in same]
        is_over = is_full or len(opened) >= LIMITS.connections
        assert self.table.add(new) is (not is_over or bool(among))
        if is_over and among:
            assert not among[0].is_open
            self.waiting.remove(among[0])
        self.table.waits(new)
        self.waiting.append(new)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.waiting))
        self.table.is_answered(client)
        self.waiting.remove(client)
        self.answered.append(client)

    @precondition(lambda self: self.answered)
    @rule(data=st.data())
    def is_told(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.answered))
        self.table.waits(client)
        self.answered.remove(client)
        self.waiting.append(client)

    @precondition(lambda self: self.waiting or self.answered)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from([*self.waiting, *self.answered]))
        self.table.remove(client)
        (self.waiting if client in self.waiting else self.answered).remove(client)

    @invariant()
    def only_who_waits_is_closed_for_others(self) -> None:
        assert all(one.is_open for one in [*self.waiting, *self.answered])


TestCrowd = Crowd.TestCase
