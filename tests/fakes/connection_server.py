"""An HTTP server on 127.0.0.1 that distinguishes its connections, uses TLS if it has a certificate, and is also a
proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.fakes.listener import Listener

END = b"\0end\0"
"""A piece that closes the connection."""
Step = Sequence[bytes | asyncio.Event]
"""Response to a request: pieces that are written one by one, and events that are waited for."""


@dataclass(frozen=True)
class Asked:
    """A request as received: header names in lower case, with all their values."""

    connection: int
    """Number of its connection, from 0."""
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The only value of a header, or None."""
        values = [value for key, value in self.headers if key == name]
        assert len(values) < 2, values
        return values[0] if values else None


class ConnectionServer:
    """Answers each request, on any connection, with the next of `steps`; `CONNECT` with a tunnel to its target.
    `asked`: the requests. `ended`: an event for each connection, set when it is closed."""

    def __init__(self, *steps: Step, certificate: Path | None = None) -> None:
        self._steps = list(steps)
        self.asked: list[Asked] = []
        self.ended: list[asyncio.Event] = []
        self.heard = asyncio.Event()
        """Set when a request was received."""
        self.origin = ""
        """Scheme, host and port, after the context was entered."""
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._listener = Listener(self._serve)

    async def __aenter__(self) -> Self:
        await self._listener.start()
        self.origin = f"{'https' if self._context else 'http'}://127.0.0.1:{self._listener.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, ended = len(self.ended), asyncio.Event()
        self.ended.append(ended)
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            try:
                if self._context is not None:
                    await writer.start_tls(self._context)
                while await self._answer_one(number, reader, writer):
                    pass
            finally:
                writer.close()
                ended.set()

    async def _answer_one(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        fields = [line.partition(":") for line in lines if line]
        headers = [(name.lower(), value.strip()) for name, _, value in fields]
        length = next((int(value) for name, value in headers if name == "content-length"), 0)
        self.asked.append(Asked(number, method, target, headers, await reader.readexactly(length)))
        self.heard.set()
        if method == "CONNECT":
            await _tunnel(target, reader, writer)
            return False
        for piece in self._steps.pop(0):
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            elif piece == END:
                return False
            else:
                writer.write(piece)
                await writer.drain()
        return True


async def _tunnel(target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    host, _, port = target.rpartition(":")
    far_reader, far_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    try:
        await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))
    finally:
        far_writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
