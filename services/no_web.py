"""A way to the web that leads nowhere, for what is tried without touching anything."""

from __future__ import annotations

from collections.abc import Sequence

import httpx2

from services.http import WebClient
from services.refs import ErrorCode
from services.web_addresses import WebError


def no_web(why: str) -> WebClient:
    """A client every request of which is refused with WebError; `why` is said behind the host's name."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        raise WebError(ErrorCode.REFUSED, f"{host} {why}")

    return WebClient(resolve=resolve, transport=lambda: _Refusing(why))


class _Refusing(httpx2.AsyncBaseTransport):
    """Answers nothing."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise WebError(ErrorCode.REFUSED, f"{request.url.host} {self._why}")
