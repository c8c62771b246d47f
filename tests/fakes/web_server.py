"""An HTTP server on 127.0.0.1 with fixed answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tests.fakes.listener import Listener


@dataclass(frozen=True)
class Asked:
    """A request as received: header names in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Page:
    """An answer. `endless`: repeat the body until the client disconnects. `silent`: send nothing. `cut`: close in the
    middle of the body."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False
    silent: bool = False
    cut: bool = False

    @classmethod
    def json(cls, value: Any, status: int = 200) -> Page:
        """A JSON answer."""
        return cls(json.dumps(value).encode(), status, {"Content-Type": "application/json"})


class WebServer:
    """Answers each path with its page, other paths with 404, and records the requests."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = dict(pages)
        self.asked: list[Asked] = []
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

    def url(self, path: str) -> str:
        """The URL of `path` on this server."""
        return f"http://127.0.0.1:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        self.asked.append(Asked(method, parts.path, dict(parse_qsl(parts.query)), headers, body))
        page = self.pages.get(parts.path, Page(status=404))
        if page.silent:
            await reader.read()
            return
        for piece in _wire(page):
            writer.write(piece)
            await writer.drain()


def _wire(page: Page) -> Iterator[bytes]:
    length = len(page.body) + (1 if page.cut else 0)
    size = {} if page.endless else {"Content-Length": str(length)}
    lines = [f"HTTP/1.1 {page.status} Said", *(f"{name}: {value}" for name, value in {**size, **page.headers}.items())]
    yield ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    yield page.body
    while page.endless:
        yield page.body
