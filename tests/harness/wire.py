"""Lines of JSON between the daemon process and the test: requests with answers, and notifications without."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress

import orjson

from services.refs import JsonObject

Handle = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Handles a request or a notification, given its name and fields; the result is the answer to a request."""


class Peer:
    """One end of the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[JsonObject]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, name: str, **fields: object) -> None:
        """Send a notification. It arrives even if this process is killed immediately afterwards."""
        self._write({"name": name, "fields": fields})

    def begin(self, name: str, **fields: object) -> asyncio.Future[JsonObject]:
        """Send a request. The future is its answer, or ConnectionError if the connection is lost."""
        number = next(self._numbers)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._open[number] = answer
        self._write({"name": name, "fields": fields, "number": number})
        return answer

    async def run(self, handle: Handle) -> None:
        """Process messages until the other end closes the connection."""
        with suppress(ConnectionError):
            while line := await self._reader.readline():
                message = orjson.loads(line)
                if "answers" in message:
                    waiting = self._open.pop(message["answers"])
                    if not waiting.done():
                        waiting.set_result(message["fields"])
                    continue
                task = asyncio.create_task(self._handled(handle, message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the other end is gone"))

    def close(self) -> None:
        """Close the connection and cancel the handlers."""
        self._writer.close()
        for task in self._tasks:
            task.cancel()

    async def _handled(self, handle: Handle, message: JsonObject) -> None:
        fields = await handle(message["name"], message["fields"])
        if "number" in message:
            self._write({"answers": message["number"], "fields": fields})

    def _write(self, message: JsonObject) -> None:
        # The stream writes immediately while its buffer is empty, which is always the case on the loopback interface.
        self._writer.write(orjson.dumps(message) + b"\n")
