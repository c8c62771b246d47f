from __future__ import annotations

import asyncio
import socket

import pytest

from tests.conftest import OutsideThisMachine


def test_a_test_cannot_connect_to_another_machine() -> None:
    with socket.socket() as client, pytest.raises(OutsideThisMachine, match=r"192\.0\.2\.1"):
        client.connect(("192.0.2.1", 80))


def test_a_test_cannot_send_datagrams_to_another_machine() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sender, pytest.raises(OutsideThisMachine, match=r"192\.0\.2\.1"):
        sender.sendto(b"hello", ("192.0.2.1", 53))


def test_a_test_cannot_listen_for_other_machines() -> None:
    with socket.socket() as server, pytest.raises(OutsideThisMachine, match="127"):
        server.bind(("0.0.0.0", 0))


async def test_a_test_cannot_look_up_a_name() -> None:
    with pytest.raises(OutsideThisMachine, match=r"example\.org"):
        await asyncio.get_running_loop().getaddrinfo("example.org", 443)


async def test_a_test_may_talk_to_a_server_on_this_machine() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
        assert await reader.readline() == b"hello\n"
        writer.close()
        await writer.wait_closed()
