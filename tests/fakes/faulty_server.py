"""A real HTTP server on 127.0.0.1 that answers each request with bytes of the test's choice, whatever they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

RESET = b"\0reset\0"
"""In place of a piece: the connection is torn down."""
Answer = Callable[[], AsyncIterator[bytes]]


class FaultyServer:
    """Writes what the next of `answers` yields, the last one for ever, then closes the connection. Reads on whether or
    not anybody listens; `requests` counts."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[bytes] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        """What a client is configured with."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
