"""The chat page with a real server, store and identities, and a fake daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import orjson
from pydantic import SecretStr
from sqlalchemy import create_engine
from starlette.routing import BaseRoute

from bot.platforms.base import Accepted, CommandHint, Outgoing
from bot.platforms.http.platform import HttpPlatform, Programs, StreamLimits
from bot.platforms.mentions import mention_parser
from bot.web.app import Health, Probes, WebServer, web_app
from bot.web.page import ChatPage, OwnerLink, Owners, PageMembers, PageSettings, Room, Signer, page_key
from function_calls.context import Kind, MessageContext
from function_calls.spec import Choice
from services.chats.members import MemberZones
from services.clock import Clock, SystemClock
from services.refs import MemberRef, Role
from services.store.chats import member_links
from services.store.chats import members as page_owners
from services.store.ids import Ids
from services.store.port import Store, StoreError, Write
from services.store.sqlite.store import SqliteStore
from services.store.turns import http_events, http_files

NAMES = ("Rollcall", "小助手")
TOKEN = "a-token-for-tests"
BEARER = {"authorization": f"Bearer {TOKEN}"}
TABLES = [
    http_events.EVENTS,
    http_files.FILES,
    member_links.LINKS,
    page_owners.OWNERS,
    page_owners.LINKS,
    page_owners.MEMBERS,
]
QUICK = StreamLimits(poll_seconds=0.05, heartbeat_seconds=0.1)


class FakeDaemon:
    """Accepts each message once and gives configured answers."""

    def __init__(self, store: Store, seen: set[str]) -> None:
        self._store = store
        self._seen = seen
        self.received: list[MessageContext] = []
        self.keep_received = True
        self.fails_with: StoreError | None = None
        self.answer: Callable[[HttpPlatform, MessageContext], Any] | None = None
        self.platforms: dict[str, HttpPlatform] = {}

    async def deliver(self, context: MessageContext, writes: Sequence[Write]) -> Accepted:
        if self.fails_with is not None:
            raise self.fails_with
        new = context.key.text not in self._seen
        await self._store.commit(list(writes))
        if not self.keep_received:
            return Accepted.NEW
        self._seen.add(context.key.text)
        if not new:
            return Accepted.DUPLICATE
        self.received.append(context)
        if self.answer is not None:
            await self.answer(self.platforms[context.chat.platform], context)
        return Accepted.NEW


async def talks_back(platform: HttpPlatform, context: MessageContext) -> None:
    """Answers direct messages, offers a choice on request, and confirms a choice."""
    key = f"answer:{context.key.native_id}"
    if context.kind is Kind.CHOICE:
        await platform.send(Outgoing(context.chat, key, f"{context.sender.name} chose {context.text}."))
    elif "choose" in context.text:
        choices = (Choice("Tea", "tea"), Choice("Coffee", "coffee"))
        await platform.send(
            Outgoing(context.chat, key, "Tea or coffee?", reply_to=context.key.native_id, choices=choices)
        )
    elif "secret" in context.text:
        await platform.send(Outgoing(context.chat, key, "Only for you.", private_to=context.sender.ref))
    elif context.mentions_bot or (context.reply_to and context.reply_to.from_bot):
        text = f"You said: {context.text}"
        mentions = (context.sender.ref,)
        await platform.send(Outgoing(context.chat, key, text, reply_to=context.key.native_id, mentions=mentions))


@dataclass
class World:
    """A running server and its parts."""

    store: SqliteStore
    daemon: FakeDaemon
    http: HttpPlatform
    web: HttpPlatform
    server: WebServer
    owner_link: OwnerLink
    base: str
    health: dict[str, Health] = field(default_factory=dict)
    routes: Sequence[BaseRoute] = ()

    def client(self, **options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.base, timeout=10, trust_env=False, verify=False, **options)


@asynccontextmanager
async def a_world(
    home: Path,
    *,
    port: int = 0,
    limits: StreamLimits = QUICK,
    max_role: Role = Role.MEMBER,
    keep_events: int = 1000,
    seen: set[str] | None = None,
    page_clock: Clock | None = None,
    hosts: Sequence[str] = (),
    public_urls: Sequence[str] = (),
    exposed: bool = False,
    answer: Callable[[HttpPlatform, MessageContext], Any] | None = talks_back,
    upload_bytes: int = 0,
) -> AsyncIterator[World]:
    """A server on the loopback interface with its state in `home`, stopped at the end. `seen` is shared between
    restarts."""
    clock = SystemClock()
    store = await SqliteStore.open(home / "rollcall.db", clock=clock, prepare=_create_tables)
    ids = Ids(clock)
    owners = Owners(store, clock)
    await owners.load()
    members = PageMembers(Signer(page_key(home / "keys")), owners, bot_names=NAMES)
    hear = mention_parser(NAMES)
    shared: dict[str, Any] = {
        "store": store, "ids": ids, "clock": clock, "hear": hear, "stream_limits": limits, "keep_events": keep_events,
        "upload_bytes": upload_bytes,
    }  # fmt: skip
    http = HttpPlatform("http", "main", callers=Programs(SecretStr(TOKEN), max_role), **shared)
    web = HttpPlatform("web", "main", callers=members, shows_members=True, **shared)
    daemon = FakeDaemon(store, set() if seen is None else seen)
    daemon.answer = answer
    daemon.platforms = {"http": http, "web": web}
    settings = PageSettings(NAMES[0], NAMES[1:], (Room("lobby", "Lobby"), Room("kitchen", "Kitchen")))
    zones = MemberZones(store, clock)

    async def suggest_zone(member: str, zone: str) -> None:
        await zones.suggest(MemberRef("web", "main", member), zone)

    page = ChatPage(settings, members, owners, _commands, page_clock or clock, suggest_zone, lambda: web.upload_bytes)
    health = {"alive": Health(ok=True), "ready": Health(ok=True, details={"store": "open"})}
    probes = Probes(lambda: health["alive"], lambda: health["ready"], lambda: b"rollcall_turns_total 3\n")

    def end_streams() -> None:
        http.feed.end()
        web.feed.end()

    app = web_app(
        platforms=(http, web), page=page, probes=probes, hosts=hosts, public_urls=public_urls, exposed=exposed
    )
    server = WebServer(app, port=port, before_stop=end_streams)
    running = [asyncio.create_task(platform.run(daemon.deliver)) for platform in (http, web)]
    address = await server.start()
    link = await OwnerLink.make(store, clock)
    try:
        yield World(store, daemon, http, web, server, link, address.url, health, app.routes)
    finally:
        await server.stop()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await store.close()


async def events_of(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    """Events of a stream, each with its `cursor` (None for a status)."""
    cursor: str | None = None
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            cursor = line[4:]
        elif line.startswith("data: "):
            yield {"cursor": None, **orjson.loads(line[6:])} | ({"stream_id": cursor} if cursor else {})
            cursor = None


def a_post(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A message as posted by a program."""
    return {"id": "m1", "sender": {"id": "u1", "name": "Ann"}, "text": text} | fields


def _commands(language: str, role: Role) -> Sequence[CommandHint]:
    if language.startswith("zh"):
        return (
            CommandHint("/help", "说明我会做什么", "/help [命令]"),
            CommandHint("/weather", "查天气", "/weather 城市"),
        )
    return (
        CommandHint("/help", "What I can do", "/help [command]"),
        CommandHint("/weather", "The weather in a city", "/weather <city>"),
        CommandHint("/remind", "Set a reminder", "/remind <when> <text>"),
    )


def _create_tables(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    for table in TABLES:
        table.create(engine, checkfirst=True)
    engine.dispose()
