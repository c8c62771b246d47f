"""Members of a Matrix server, and a group that all tests share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import aiohttp

from bot.platforms.adapter import Host
from bot.platforms.contract import Failure, Network, Shown, a_host
from bot.platforms.matrix.adapter import ADAPTER, MatrixSettings
from services.refs import Role
from tests.harness.matrix_servers import Account, Api, MatrixServer, Proxy

_LEVELS = {Role.OWNER: 100, Role.ADMIN: 100, Role.MODERATOR: 50, Role.MEMBER: 0}


@dataclass(slots=True)
class World:
    """What the tests share."""

    server: MatrixServer
    ann: Account
    ben: Account
    robot: Account
    group: str

    @classmethod
    def made_on(cls, server: MatrixServer) -> World:
        """The accounts and the group, on a new server."""
        ann, ben, robot = (server.register(name, display_name=name.title()) for name in ("ann", "ben", "robot"))

        async def create() -> str:
            async with aiohttp.ClientSession() as session:
                group = await Api(session, server.url, ann).create_room(name="Family", preset="public_chat")
                for one in (ben, robot):
                    await Api(session, server.url, one)("POST", f"join/{quote(group)}", {})
                return group

        return cls(server, ann, ben, robot, asyncio.run(create()))


@dataclass(slots=True)
class Side:
    """Implements OtherSide."""

    world: World
    session: aiohttp.ClientSession
    proxy: Proxy
    bot: Account
    group: str
    direct: str = ""
    _others: dict[str, Api] = field(default_factory=dict)

    def api(self, who: str) -> Api:
        """The API as a member; a new user if `who` is none."""
        known = {one.user: one for one in (self.world.ann, self.world.ben, self.world.robot, self.bot)}
        if who not in self._others:
            account = known.get(who) or self.world.server.register(f"{who}-{self.bot.user[1:].partition(':')[0]}")
            self._others[who] = Api(self.session, self.world.server.url, account)
        return self._others[who]

    @property
    def ann(self) -> Api:
        return self.api(self.world.ann.user)

    async def say(
        self,
        who: str,
        text: str,
        *,
        chat: str = "",
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
    ) -> str:
        api, room = self.api(who), chat or self.group
        if room.startswith("@"):
            room = await self.direct_room()
        content: dict[str, Any] = {"msgtype": "m.text", "body": text}
        if who == self.world.robot.user:
            content["msgtype"] = "m.notice"
        if mention:
            pill = f'<a href="https://matrix.to/#/{self.bot.user}">Robbie</a>: {text}'
            content |= {"body": f"Robbie: {text}", "format": "org.matrix.custom.html", "formatted_body": pill}
            content["m.mentions"] = {"user_ids": [self.bot.user]}
        if reply_to:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply_to}}
        if file is not None:
            url = await api.upload(file[1], "image/png")
            info = {"mimetype": "image/png", "size": len(file[1])}
            content |= {"msgtype": "m.image", "filename": file[0], "url": url, "info": info}
        return await api.send(room, content)

    async def direct_room(self) -> str:
        """The private chat of Ann with the bot, which joins by itself."""
        if not self.direct:
            self.direct = await self.ann.create_room(self.bot.user, is_direct=True)
            await self.joined(self.direct)
        return self.direct

    async def joined(self, room: str, *, is_in: bool = True) -> None:
        """Return when the bot has joined the room; with `is_in` false, when it has left."""
        async with asyncio.timeout(20):
            answer = await self.ann("GET", "sync")
            while (self.bot.user in (await self.ann("GET", f"rooms/{quote(room)}/joined_members"))["joined"]) != is_in:
                answer = await self.ann("GET", "sync", since=answer["next_batch"], timeout="1000")

    async def edit(self, who: str, native_id: str, text: str) -> None:
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": native_id}
        await self.api(who).text(self.group, f"* {text}", **{"m.new_content": new, "m.relates_to": relation})

    async def delete(self, who: str, native_id: str) -> None:
        path = f"rooms/{quote(self.group)}/redact/{quote(native_id)}/{uuid4()}"
        await self.api(who)("PUT", path, {})

    async def react(self, who: str, native_id: str, emoji: str) -> None:
        relation = {"rel_type": "m.annotation", "event_id": native_id, "key": emoji}
        await self.api(who).send(self.group, {"m.relates_to": relation}, "m.reaction")

    async def press(self, who: str, native_id: str, label: str) -> None:
        raise NotImplementedError

    async def enter(self, who: str) -> None:
        await self.api(who)("POST", f"join/{quote(self.group)}", {})

    async def leave(self, who: str) -> None:
        await self.api(who)("POST", f"rooms/{quote(self.group)}/leave", {})

    async def add_bot(self, who: str) -> str:
        return await self.api(who).create_room(self.bot.user, name="Work")

    async def promote(self, who: str, role: Role) -> None:
        path = f"rooms/{quote(self.group)}/state/m.room.power_levels/"
        levels = await self.ann("GET", path)
        levels["users"] = levels.get("users", {}) | {who: _LEVELS[role]}
        await self.ann("PUT", path, levels)

    async def repeat(self) -> None:
        self.proxy.repeat_last_events()

    async def send_garbage(self) -> None:
        await self.ann.text(
            self.group, "?", **{"msgtype": "m.image", "filename": 7, "m.relates_to": {"rel_type": "m.replace"}}
        )
        await self.ann.text(self.group, "?", **{"m.relates_to": {"m.in_reply_to": 7}})

    async def disconnect(self) -> None:
        self.proxy.break_sync()

    async def fail_next(self, failure: Failure) -> None:
        match failure:
            case Failure.RATE_LIMITED:
                limited = {"errcode": "M_LIMIT_EXCEEDED", "error": "slow down", "retry_after_ms": 7000}
                self.proxy.refusals.append((429, limited))
            case Failure.SERVER_ERROR:
                self.proxy.refusals.append((500, {"errcode": "M_UNKNOWN", "error": "oops"}))
            case Failure.DELIVERED_WITHOUT_ANSWER:
                self.proxy.loses_next_answer = True
            case Failure.REMOVED:
                path = f"rooms/{quote(self.group)}/kick"
                await self.ann("POST", path, {"user_id": self.bot.user})
            case Failure.NO_SUCH_CHAT:
                self.proxy.refusals.append((404, {"errcode": "M_NOT_FOUND", "error": "no room"}))
            case Failure.REPLY_IS_GONE | Failure.BAD_MARKUP:
                """Servers check neither."""

    async def open_thread(self, who: str, text: str) -> str:
        root = await self.ann.text(self.group, "A new subject")
        await self.api(who).text(self.group, text, **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
        return f"{self.group},{root}"

    async def shown(self, chat: str = "") -> list[Shown]:
        room, _, thread = (chat or self.group).partition(",")
        shown: dict[str, Shown] = {}
        for event in await self.ann.events(room):
            content = event["content"]
            if event["sender"] != self.bot.user or event["type"] != "m.room.message" or not content:
                continue
            relation = content.get("m.relates_to", {})
            if relation.get("rel_type") == "m.replace":
                if relation["event_id"] in shown:
                    shown[relation["event_id"]] = Shown(content["m.new_content"]["body"], relation["event_id"])
                continue
            if thread and relation.get("event_id") != thread:
                continue
            files = (await self.ann.download(content["url"]),) if "url" in content else ()
            reply = relation.get("m.in_reply_to", {}).get("event_id", "")
            shown[event["event_id"]] = Shown(content["body"], event["event_id"], reply_to=reply, files=files)
        return list(shown.values())

    async def reactions(self, native_id: str) -> list[str]:
        return [
            event["content"]["m.relates_to"]["key"]
            for event in await self.ann.events(self.group)
            if event["type"] == "m.reaction" and event["sender"] == self.bot.user and event["content"]
        ]


@asynccontextmanager
async def a_network(world: World, home: Path, **settings: object) -> AsyncIterator[tuple[Network, Host, Side]]:
    """A platform with a new account, which is in the group, and its other side. `settings`: more than the usual."""
    bot = world.server.register_bot()
    proxy = Proxy(world.server.url)
    async with proxy.running(), aiohttp.ClientSession() as session, a_host(home) as host:
        side = Side(world, session, proxy, bot, world.group)
        await side.api(bot.user)("POST", f"join/{quote(world.group)}", {})
        credential = {} if "password" in settings else {"access_token": bot.token}
        given = MatrixSettings(homeserver=proxy.url, user=bot.user, **{**credential, **settings})  # type: ignore[arg-type]
        platform = ADAPTER.open(given, host)
        ids = {name: getattr(world, name).user for name in ("ann", "ben", "robot")}
        network = Network(
            platform,
            side,
            group=world.group,
            **ids,
            reopen=lambda: ADAPTER.open(given, host),
        )
        try:
            yield network, host, side
        finally:
            await platform.close()
