"""An HTTP server on 127.0.0.1 that answers each request with arbitrary bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.fakes.listener import Listener

RESET = b"\0reset\0"
"""A piece that resets the connection."""
Answer = Callable[[], AsyncIterator[bytes]]


class FaultyServer:
    """Writes the pieces of the next of `answers` (the last one repeatedly), then closes the connection. Continues if
    the client has disconnected. `requests`: number of requests."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[bytes] = []
        self._listener = Listener(self._serve)

    async def __aenter__(self) -> Self:
        await self._listener.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.stop()

    @property
    def base_url(self) -> str:
        """Base URL for the client's settings."""
        return f"http://127.0.0.1:{self._listener.port}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                self.requests.append(await reader.readexactly(length))
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                async for piece in answer():
                    if piece == RESET:
                        writer.transport.abort()
                        return
                    writer.write(piece)
                    await writer.drain()
            finally:
                writer.close()
