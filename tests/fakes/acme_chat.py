"""The chat server of docs/platforms/writing-one.md, with its members."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from bot.platforms.contract import Failure, Shown
from services.refs import Role

GROUP = "family"


class AcmeServer:
    """The server. Members are `u1` and `u2`; `bot` is a bot."""

    url = ""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._sent: dict[str, dict[str, Any]] = {}
        self._number = 0
        self._changed = asyncio.Condition()
        self._failure: Failure | None = None
        self.asked = asyncio.Event()
        """Set when a client has asked for events."""

    async def events(self, request: web.Request) -> web.Response:
        self.asked.set()
        after = int(request.query.get("after", self._number))
        async with self._changed:
            try:
                async with asyncio.timeout(5):
                    await self._changed.wait_for(lambda: bool(self._after(after)) or "after" not in request.query)
            except TimeoutError:
                pass
            return web.json_response({"events": self._after(after), "latest": self._number})

    async def messages(self, request: web.Request) -> web.Response:
        body = await request.json()
        failure, self._failure = self._failure, None
        match failure:
            case Failure.RATE_LIMITED:
                return web.Response(status=429, headers={"Retry-After": "7"})
            case Failure.SERVER_ERROR:
                return web.Response(status=500)
            case Failure.REMOVED | Failure.NO_SUCH_CHAT:
                return web.Response(status=404)
        if body["key"] not in self._sent:
            async with self._changed:
                self._number += 1
                self._sent[body["key"]] = body | {"id": self._number}
                self._changed.notify_all()
        if failure is Failure.DELIVERED_WITHOUT_ANSWER and request.transport is not None:
            request.transport.abort()
        return web.json_response({"id": self._sent[body["key"]]["id"]})

    def _after(self, number: int) -> list[dict[str, Any]]:
        return [one for one in self._events if one["id"] > number]

    async def say(self, who: str, text: str, *, chat: str = "", mention: bool = False, **_: Any) -> str:
        text = f"@Rollcall {text}" if mention else text
        named = {"from": who, "name": {"u1": "Ann", "u2": "Ben"}.get(who, who), "bot": who == "bot"}
        room = {"room": chat or GROUP, "private": bool(chat) and chat != GROUP}
        return await self._add(named | room | {"at": time.time(), "text": text})

    async def send_garbage(self) -> None:
        await self._add({"text": "nothing else"})

    async def _add(self, event: dict[str, Any]) -> str:
        async with self._changed:
            self._number += 1
            self._events.append(event | {"id": self._number})
            self._changed.notify_all()
        return str(self._number)

    async def fail_next(self, failure: Failure) -> None:
        self._failure = failure

    async def shown(self, chat: str = "") -> list[Shown]:
        return [Shown(one["text"], str(one["id"])) for one in self._sent.values() if one["room"] == (chat or GROUP)]

    async def next_shown(self) -> str:
        """The text of the latest message of the bot, as soon as there is one."""
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._sent))
        return str([*self._sent.values()][-1]["text"])

    async def promote(self, who: str, role: Role) -> None:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


@asynccontextmanager
async def an_acme_server() -> AsyncIterator[AcmeServer]:
    server = AcmeServer()
    app = web.Application()
    app.add_routes([web.get("/events", server.events), web.post("/messages", server.messages)])
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
