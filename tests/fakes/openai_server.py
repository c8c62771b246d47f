"""An HTTP server on 127.0.0.1 with scripted answers of a provider, valid and invalid ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.fakes.listener import Listener


@dataclass(frozen=True)
class Received:
    """A request as received: header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class OpenAIServer:
    """Returns the answers of `script` in order, whatever the request is, and records the requests.

    An answer has `status` (200), `headers`, and `body` (JSON, text or bytes) or `sse` (text); `delay_seconds` delays
    it, `close_after_bytes` drops the connection after that many bytes of the body (0: before the status line). After
    the end of the script, each request is answered with status 500.
    """

    def __init__(self, script: Sequence[dict[str, Any]]) -> None:
        self.script = list(script)
        self.requests: list[Received] = []
        self._listener = Listener(self._serve)

    async def __aenter__(self) -> Self:
        await self._listener.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.stop()

    @property
    def port(self) -> int:
        """Port chosen by the system."""
        return self._listener.port

    @property
    def base_url(self) -> str:
        """Base URL for the client's settings."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                while await self._answer_one(reader, writer):
                    pass
            finally:
                writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer the next request of a connection; returns False if the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        fields = [line.partition(":") for line in head[1:] if line]
        headers = {name.lower(): value.strip() for name, _, value in fields}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Received(method, path, headers, body))
        exhausted: dict[str, Any] = {"status": 500, "body": "the script has run out"}
        answer = self.script.pop(0) if self.script else exhausted
        await asyncio.sleep(answer.get("delay_seconds", 0))
        whole, cut = _encode(answer), answer.get("close_after_bytes")
        if cut == 0:
            return False
        if cut is not None:
            whole = whole[: whole.index(b"\r\n\r\n") + 4 + cut]
        writer.write(whole)
        await writer.drain()
        return cut is None


def _encode(answer: dict[str, Any]) -> bytes:
    kind, body = _content(answer)
    headers = {"content-type": kind, "content-length": str(len(body)), **answer.get("headers", {})}
    lines = [f"HTTP/1.1 {answer.get('status', 200)} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _content(answer: dict[str, Any]) -> tuple[str, bytes]:
    if "sse" in answer:
        return "text/event-stream", str(answer["sse"]).encode()
    body = answer.get("body", b"")
    if isinstance(body, bytes):
        return "application/octet-stream", body
    if isinstance(body, str):
        return "text/html", body.encode()
    return "application/json", json.dumps(body).encode()
