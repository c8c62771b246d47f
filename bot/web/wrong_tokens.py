"""A limit on wrong bearer tokens."""

from __future__ import annotations

from collections import OrderedDict

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.web.connections import source_of
from bot.web.page import Allowance
from services.clock import Clock

_BURST = 10
_SECONDS_EACH = 6
_SOURCES_KEPT = 10_000


class WrongTokens:
    """ASGI middleware: a request with an `Authorization` header that would be answered with 401 gets 429 after ten from
    its address, and one more is allowed every six seconds. Right tokens are not affected, since a reverse proxy makes
    one address of all its clients."""

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._allowances: OrderedDict[str, Allowance] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "authorization" not in Headers(scope=scope):
            await self._app(scope, receive, send)
            return
        is_refused = False

        async def send_or_refuse(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start" and message["status"] == 401:
                is_refused = not self._allowance(source_of(scope["client"])).take()
                if is_refused:
                    body = {"error": {"code": "too_many", "message": "too many wrong tokens"}}
                    await JSONResponse(body, 429, {"retry-after": str(_SECONDS_EACH)})(scope, receive, send)
            if not is_refused:
                await send(message)

        await self._app(scope, receive, send_or_refuse)

    def _allowance(self, source: str) -> Allowance:
        allowance = self._allowances.pop(source, None)
        if allowance is None:
            allowance = Allowance(self._clock, burst=_BURST, seconds_each=_SECONDS_EACH)
        self._allowances[source] = allowance
        if len(self._allowances) > _SOURCES_KEPT:
            self._allowances.popitem(last=False)
        return allowance
