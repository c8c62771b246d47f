import asyncio
import signal
import time
from pathlib import Path

import pytest

from bot.web.app import Address, WebServer, web_app
from tests.bot.web_world import BEARER, a_world


async def test_port_zero_takes_a_free_one_and_says_which(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        assert not world.base.endswith(":0")
        assert (await client.get("/healthz")).status_code == 200


async def test_a_taken_address_is_an_error_at_the_start(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        port = int(world.base.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            await WebServer(web_app(), port=port).start()


async def test_the_signal_handlers_stay_the_daemons() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    server = WebServer(web_app(), port=0)
    await server.start()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    await server.stop()


async def test_an_answer_does_not_wait_for_the_clients_delayed_acknowledgement() -> None:
    server = WebServer(web_app(), port=0)
    address = await server.start()
    reader, writer = await asyncio.open_connection(address.host, address.port)
    started = time.monotonic()
    for _ in range(50):
        writer.write(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"}}")
    writer.close()
    assert time.monotonic() - started < 1.0
    await server.stop()


async def test_stopping_ends_open_streams_at_once(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        async with client.stream("GET", "/api/v1/chats/a/events", headers=BEARER) as response:
            lines = response.aiter_lines()
            await anext(lines)
            started = time.monotonic()
            await world.server.stop()
            async for _ in lines:
                pass
        assert time.monotonic() - started < 3


async def test_a_server_that_was_not_started_stops_quietly() -> None:
    await WebServer(web_app(), port=0).stop()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"),
    ],
)
def test_an_address_is_told_as_a_browser_on_this_machine_opens_it(host: str, url: str) -> None:
    assert Address(host, 80).url == url
