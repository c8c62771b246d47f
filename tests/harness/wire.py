"""Lines of JSON between the daemon's process and the test: requests with answers, and news without."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress

import orjson

from services.refs import JsonObject

Handle = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""What to do with a request or with news: its name and its fields; what it returns is the answer to a request."""


class Peer:
    """One end of the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[JsonObject]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, name: str, **fields: object) -> None:
        """Send news. It arrives even when this process is killed right after."""
        self._write({"name": name, "fields": fields})

    def begin(self, name: str, **fields: object) -> asyncio.Future[JsonObject]:
        """Send a request; the future is its answer, or ConnectionError when the other end is gone."""
        number = next(self._numbers)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._open[number] = answer
        self._write({"name": name, "fields": fields, "number": number})
        return answer

    async def run(self, handle: Handle) -> None:
        """Take what the other end sends until it is gone."""
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
        """Say goodbye, and drop what is still being handled."""
        self._writer.close()
        for task in self._tasks:
            task.cancel()

    async def _handled(self, handle: Handle, message: JsonObject) -> None:
        fields = await handle(message["name"], message["fields"])
        if "number" in message:
            self._write({"answers": message["number"], "fields": fields})

    def _write(self, message: JsonObject) -> None:
        # The stream writes at once as long as its buffer is empty, which on the loopback it is.
        self._writer.write(orjson.dumps(message) + b"\n")
