"""Requests to a provider's server and their connections, with a real server on 127.0.0.1."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from services.clock import SystemClock
from services.llm.model import ModelError, ModelMessage, ModelRequest
from services.llm.profile import Endpoint, ModelProfile
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.reading.answers import MAX_BODY_BYTES
from services.llm.transport import OneServerClient, ProviderTransport
from services.refs import ErrorCode
from tests.conftest import REPOSITORY
from tests.fakes.connection_server import END, ConnectionServer
from tests.fakes.listener import Listener
from tests.harness.irc_servers import a_certificate
from tests.services.llm.wire import a_body

KEY = "sk-very-secret"
HELLO = ModelRequest([ModelMessage("user", "hi")], timeout_seconds=20.0)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def reply(text: str = "Hi", status: str = "200 OK", **headers: str) -> bytes:
    """A complete response."""
    body = json.dumps(a_body(text)).encode()
    return head(status, **{"content_length": str(len(body)), **headers}) + body


def head(status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", "content-type: application/json", *lines, "", ""]).encode()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_certificate(tmp_path_factory.mktemp("tls"), "provider")


@asynccontextmanager
async def a_model(origin: str, key: str = KEY) -> AsyncIterator[OpenAIChat]:
    model = OpenAIChat(ModelProfile("main", "m-1", f"{origin}/v1", SecretStr(key), silence_seconds=5.0), SystemClock())
    try:
        yield model
    finally:
        await model.close()


async def said(model: OpenAIChat) -> str:
    return (await model.complete(HELLO)).text


async def failure(model: OpenAIChat, request: ModelRequest = HELLO) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.complete(request)
    return caught.value


# Requests


@pytest.mark.requirement("D27")
async def test_each_header_is_sent_once_and_says_that_the_openai_package_sends_it() -> None:
    async with ConnectionServer([reply()], [reply()]) as server, a_model(server.origin) as model:
        await model.complete(HELLO)
        await model.complete(ModelRequest([ModelMessage("user", "hi there")], timeout_seconds=20.0))
    for asked in server.asked:
        names = [name for name, _ in asked.headers]
        assert len(names) == len(set(names))
        assert (asked.method, asked.target) == ("POST", "/v1/chat/completions")
        assert asked.header("host") == server.origin.removeprefix("http://")
        assert asked.header("authorization") == f"Bearer {KEY}"
        assert asked.header("content-type") == "application/json"
        assert asked.header("accept") == "application/json"
        assert asked.header("accept-encoding") == "gzip, deflate"
        assert asked.header("content-length") == str(len(asked.body))
        assert (asked.header("user-agent") or "").startswith("AsyncOpenAI/Python ")
        assert asked.header("x-stainless-lang") == "python"
        assert asked.header("x-stainless-retry-count") == "0"
        assert asked.header("cookie") is None
    assert [len(asked.body) for asked in server.asked] == [len(server.asked[0].body), len(server.asked[0].body) + 6]


async def test_two_models_of_one_process_send_their_own_keys_to_their_own_servers() -> None:
    async with (
        ConnectionServer([reply()], [reply()]) as one,
        ConnectionServer([reply()], [reply()]) as other,
        a_model(one.origin, "sk-one") as first,
        a_model(other.origin, "sk-other") as second,
    ):
        for model in (first, second, first, second):
            await said(model)
    assert {asked.header("authorization") for asked in one.asked} == {"Bearer sk-one"}
    assert {asked.header("authorization") for asked in other.asked} == {"Bearer sk-other"}


async def test_a_cookie_is_not_sent_back() -> None:
    answers = ([reply(set_cookie="who=ann; Path=/")], [reply()])
    async with ConnectionServer(*answers) as server, a_model(server.origin.replace("127.0.0.1", "localhost")) as model:
        await said(model)
        await said(model)
    assert [asked.header("cookie") for asked in server.asked] == [None, None]


# Responses


PIECES = [reply()[start : start + 7] for start in range(0, len(reply()), 7)]
BODY = json.dumps(a_body("Hi")).encode()
CHUNKED = [head(transfer_encoding="chunked"), *(b"%x\r\n%b\r\n" % (1, BODY[at : at + 1]) for at in range(len(BODY)))]


@pytest.mark.parametrize(
    "pieces",
    [
        PIECES,
        [*CHUNKED, b"0\r\n\r\n"],
        [*CHUNKED, b"0\r\nx-trailer: 1\r\n\r\n"],
        [b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", reply()],
        [head(connection="close"), BODY, END],
    ],
    ids=["in pieces", "chunked", "chunked with a trailer", "after 1xx", "until the connection ends"],
)
async def test_an_answer_is_read_however_it_is_sent(pieces: list[bytes]) -> None:
    async with ConnectionServer(pieces, [reply("again")]) as server, a_model(server.origin) as model:
        assert await said(model) == "Hi"
        assert await said(model) == "again"


# Connections


async def test_one_connection_is_used_again_and_again() -> None:
    refused = reply("no", "429 Too Many Requests")
    async with ConnectionServer([reply()], [refused], [reply()]) as server, a_model(server.origin) as model:
        await said(model)
        assert (await failure(model)).status == 429
        await said(model)
    assert [asked.connection for asked in server.asked] == [0, 0, 0]


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    async with ConnectionServer([reply("one"), END], [reply("two")]) as server, a_model(server.origin) as model:
        assert await said(model) == "one"
        await server.ended[0].wait()
        assert await said(model) == "two"
    assert [asked.connection for asked in server.asked] == [0, 1]


async def test_what_a_server_may_have_read_is_not_sent_again_by_itself() -> None:
    async with ConnectionServer([reply()], [END], [reply("again")]) as server, a_model(server.origin) as model:
        await said(model)
        error = await failure(model)
        assert (error.code, error.retryable) == (ErrorCode.TRANSIENT, True)
        assert len(server.asked) == 2
        assert await said(model) == "again"


@pytest.mark.parametrize("before", [b"", head(content_length="5000") + b'{"choices": '], ids=["no answer", "half"])
async def test_a_connection_whose_answer_was_not_awaited_is_never_used_again(before: bytes) -> None:
    late = asyncio.Event()
    hurried = ModelRequest(HELLO.messages, timeout_seconds=1.0)
    steps = ([before, late, reply("of another turn")], [reply("mine")])
    async with ConnectionServer(*steps) as server, a_model(server.origin) as model:
        assert (await failure(model, hurried)).code is ErrorCode.TIMEOUT
        late.set()
        assert await said(model) == "mine"
    assert [asked.connection for asked in server.asked] == [0, 1]


async def test_a_turn_that_is_stopped_ends_its_connection_and_no_other() -> None:
    held = asyncio.Event()
    async with ConnectionServer([held], [reply()], [reply()]) as server, a_model(server.origin) as model:
        turn = asyncio.create_task(said(model))
        await server.heard.wait()
        assert await said(model) == "Hi"
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        held.set()
        await server.ended[0].wait()
        assert await said(model) == "Hi"
    assert [asked.connection for asked in server.asked] == [0, 1, 1]


@pytest.mark.parametrize("status", ["200 OK", "500 Oops"])
async def test_what_was_not_read_of_an_answer_is_not_taken_for_the_next_one(status: str) -> None:
    length = MAX_BODY_BYTES + 500_000
    huge = [head(status, content_length=str(length)), *[b" " * 250_000] * (length // 250_000 + 1)]
    async with ConnectionServer(huge, [reply("next")]) as server, a_model(server.origin) as model:
        await failure(model)
        assert await said(model) == "next"
    assert [asked.connection for asked in server.asked] == [0, 1]


async def test_a_model_that_was_closed_opens_its_connections_anew() -> None:
    async with ConnectionServer([reply()], [reply()]) as server, a_model(server.origin) as model:
        await said(model)
        await model.close()
        await server.ended[0].wait()
        assert await said(model) == "Hi"


async def test_what_was_closed_opens_no_connection() -> None:
    async with ConnectionServer([reply()]) as server:
        client = OneServerClient()
        await client.aclose()
        with pytest.raises(httpx2.ConnectError):
            await client.send(httpx2.Request("POST", server.origin, content=b"{}"))
    assert server.ended == []


async def test_a_request_that_was_connecting_when_all_was_closed_is_not_sent(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1))
        writer.close()

    loop, knocked = asyncio.get_running_loop(), asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as door:
        loop.add_reader(door, knocked.set)
        client = OneServerClient()
        url = f"https://127.0.0.1:{door.getsockname()[1]}"
        sending = asyncio.create_task(client.send(httpx2.Request("POST", url, content=b"{}")))
        await asyncio.wait_for(knocked.wait(), 10)
        loop.remove_reader(door)
        await client.aclose()
        async with await asyncio.start_server(serve, sock=door, ssl=context):
            with pytest.raises(httpx2.TransportError):
                await asyncio.wait_for(sending, 10)
    assert asked in ([], [b""])


async def test_a_port_that_is_none_is_an_error_of_the_model_and_not_of_the_turn() -> None:
    async with a_model("http://127.0.0.1:114340") as model:
        error = await failure(model)
    assert error.retryable
    assert "114340" not in str(error)


# Proxies and certificates from the environment


@pytest.mark.parametrize("name", ["http_proxy", "ALL_PROXY"])
async def test_the_proxy_of_the_environment_is_used_and_told_who_asks(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ConnectionServer([reply("by proxy")]) as proxy, a_model("http://provider.test:8000") as model:
        monkeypatch.setenv(name, proxy.origin.replace("//", "//ann:secret@"))
        assert await said(model) == "by proxy"
    (asked,) = proxy.asked
    assert asked.target == "http://provider.test:8000/v1/chat/completions"
    assert asked.header("host") == "provider.test:8000"
    assert asked.header("proxy-authorization") == "Basic YW5uOnNlY3JldA=="
    assert asked.header("authorization") == f"Bearer {KEY}"


async def test_no_proxy_is_used_for_a_server_that_the_environment_excepts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ConnectionServer([reply()]) as server, ConnectionServer() as proxy, a_model(server.origin) as model:
        monkeypatch.setenv("HTTP_PROXY", proxy.origin)
        monkeypatch.setenv("NO_PROXY", "example.org,127.0.0.1")
        assert await said(model) == "Hi"
    assert proxy.asked == []


async def test_a_proxy_that_is_not_there_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ConnectionServer() as proxy:
        gone = proxy.origin
    monkeypatch.setenv("http_proxy", gone.replace("//", "//ann:secret@"))
    async with ConnectionServer([reply()]) as server, a_model(server.origin) as model:
        error = await failure(model)
    assert (error.code, error.retryable) == (ErrorCode.TRANSIENT, True)
    assert "secret" not in str(error)
    assert server.asked == []


async def test_a_certificate_of_the_environment_is_trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    answers = ([reply()], [reply()])
    async with ConnectionServer(*answers, certificate=certificate) as server, a_model(server.origin) as model:
        assert [await said(model), await said(model)] == ["Hi", "Hi"]
    assert [asked.connection for asked in server.asked] == [0, 0]


async def test_a_server_whose_certificate_nobody_trusts_gets_nothing(certificate: Path) -> None:
    async with ConnectionServer([reply()], certificate=certificate) as server, a_model(server.origin) as model:
        error = await failure(model)
    assert (error.code, error.retryable) == (ErrorCode.TRANSIENT, True)
    assert "ertificate" in str(error)
    assert server.asked == []


async def test_a_server_behind_a_proxy_is_reached_by_a_tunnel(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with ConnectionServer([reply()], [reply()], certificate=certificate) as server, ConnectionServer() as proxy:
        monkeypatch.setenv("https_proxy", proxy.origin.replace("//", "//ann:secret@"))
        async with a_model(server.origin) as model:
            assert [await said(model), await said(model)] == ["Hi", "Hi"]
    (tunnel,) = proxy.asked
    assert (tunnel.method, tunnel.target) == ("CONNECT", server.origin.removeprefix("https://"))
    assert tunnel.header("proxy-authorization") == "Basic YW5uOnNlY3JldA=="
    assert tunnel.header("authorization") is None
    assert [asked.target for asked in server.asked] == ["/v1/chat/completions"] * 2
    assert server.asked[0].header("proxy-authorization") is None


# No retries and no retained data


async def test_what_all_requests_share_is_put_together_once() -> None:
    async with ConnectionServer([reply()], [reply()]) as server:
        profile = ModelProfile("main", "m-1", f"{server.origin}/v1", SecretStr(KEY))
        endpoint = Endpoint(profile, "chat/completions", {"x-own": "1"})
        transport = ProviderTransport(endpoint, SystemClock())
        await transport.post(transport.packed(b"{}"))
        first = transport._client._first
        await transport.post(transport.packed(b'{"a":1}'))
        assert first is not None
        assert transport._client._first is first
        await transport.close()
    assert [asked.body for asked in server.asked] == [b"{}", b'{"a":1}']


class Swallowing:
    """Parses requests without storing them; answers after `waiting` of them, on request."""

    def __init__(self, waiting: int) -> None:
        self.all_there = asyncio.Event()
        self.go_on = asyncio.Event()
        self._missing = waiting

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        left = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
        while left:
            left -= len(await reader.read(min(left, 65_536)))
        self._missing -= 1
        if self._missing == 0:
            self.all_there.set()
        await self.go_on.wait()
        writer.write(reply())
        writer.close()


async def test_who_waits_for_an_answer_does_not_hold_the_question() -> None:
    long = ModelRequest([ModelMessage("user", "word " * 200_000)], timeout_seconds=20.0)
    server = Swallowing(waiting=8)
    listener = Listener(server.serve)
    await listener.start()
    async with a_model(f"http://127.0.0.1:{listener.port}") as model:
        tracemalloc.start()
        try:
            turns = [asyncio.create_task(model.complete(long)) for _ in range(8)]
            await server.all_there.wait()
            held_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        server.go_on.set()
        assert [(await turn).text for turn in turns] == ["Hi"] * 8
    await listener.stop()
    assert held_bytes < 2_000_000


async def test_a_server_that_refuses_before_it_has_read_everything_is_heard() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply("too much", "413 Content Too Large"))
        try:
            await asyncio.Event().wait()
        finally:
            writer.transport.abort()

    listener = Listener(refuse)
    await listener.start()
    huge = ModelRequest([ModelMessage("user", "word " * 4_000_000)], timeout_seconds=20.0)
    # The client closes the connection and does not wait for the rest of the request.
    async with asyncio.timeout(10), a_model(f"http://127.0.0.1:{listener.port}") as model:
        assert (await failure(model, huge)).status == 413
    await listener.stop()


def test_a_daemon_starts_without_the_packages_of_models_and_of_networks_that_it_does_not_use() -> None:
    program = (
        "import sys, bot.cli.run, bot.web.wiring\n"
        "from config.sections.networks import BUILT_IN, import_adapter\n"
        "unused = {'aiohttp', 'alembic', 'openai', 'psycopg', 'discord', 'nio', 'slixmpp'} & set(sys.modules)\n"
        "for network in BUILT_IN: import_adapter(network)\n"
        "unused |= {'discord', 'nio', 'slixmpp'} & set(sys.modules)\n"
        "sys.exit(' '.join(unused) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
