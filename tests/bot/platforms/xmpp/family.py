"""A room of the bot with members on a real server, as the other side of the contract."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from slixmpp import JID

from bot.platforms.adapter import Host
from bot.platforms.contract import Failure, Network, Shown, a_host
from bot.platforms.xmpp.adapter import XmppSettings
from bot.platforms.xmpp.platform import XmppPlatform
from services.refs import Role
from tests.harness.xmpp_client import Person, a_person
from tests.harness.xmpp_servers import MUC, PASSWORD, Proxy, XmppServer

_numbers = itertools.count(1)
_AFFILIATIONS = {Role.OWNER: "owner", Role.ADMIN: "admin", Role.MEMBER: "none"}


class Family:
    """The room, its members and the bot's account. Members are named by their JIDs, and connect when they are used."""

    def __init__(self, server: XmppServer, proxy: Proxy, stack: AsyncExitStack) -> None:
        self.number = next(_numbers)
        self.server, self.proxy = server, proxy
        self.bot = server.add_user(f"bot{self.number}")
        self.room = f"family{self.number}@{MUC}"
        self._stack = stack
        self._persons: dict[str, Person] = {}

    def settings(self, **more: object) -> XmppSettings:
        """The bot's settings."""
        usual = {
            "account": "test",
            "jid": self.bot,
            "password": PASSWORD,
            "host": "127.0.0.1",
            "port": self.proxy.port,
            "tls": "none",
            "rooms": [{"jid": self.room}],
            "answer_seconds": 10.0,
        }
        return XmppSettings.model_validate({**usual, **more})

    def jid(self, name: str) -> str:
        """The JID of a member."""
        return name if "@" in name else f"{name}{self.number}@localhost"

    async def person(self, who: str) -> Person:
        """A member in the room."""
        jid = self.jid(who)
        if jid not in self._persons:
            name = jid.partition("@")[0]
            self._persons[jid] = await self._stack.enter_async_context(a_person(self.server, name, self.room))
        return self._persons[jid]

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
        person = await self.person(who)
        message = person.message(self.bot if chat else self.room, text)
        if mention:
            message["body"] = f"Rollcall: {text}"
            uri = f"xmpp:{self.room}/Rollcall"
            message["reference"].xml.attrib.update({"type": "mention", "uri": uri, "begin": "0", "end": "8"})
        if reply_to:
            message["reply"]["id"] = reply_to
        if file is not None:
            message["oob"]["url"] = await person.upload(*file)
        return await person.send(message)

    async def edit(self, who: str, native_id: str, text: str) -> None:
        person = await self.person(who)
        original = await person.until(lambda one: one["stanza_id"]["id"] == native_id)
        message = person.message(self.room, text)
        message["replace"]["id"] = original["id"]
        await person.send(message)

    async def delete(self, who: str, native_id: str) -> None:
        person = await self.person(who)
        person.client.plugin["xep_0424"].send_retraction(JID(self.room), native_id, mtype="groupchat")

    async def react(self, who: str, native_id: str, emoji: str) -> None:
        person = await self.person(who)
        message = person.message(self.room)
        person.client.plugin["xep_0444"].set_reactions(message, native_id, [emoji])
        await person.send(message)

    async def press(self, who: str, native_id: str, label: str) -> None:
        raise NotImplementedError

    async def enter(self, who: str) -> None:
        await self.person(who)

    async def leave(self, who: str) -> None:
        person = await self.person(who)
        person.client.plugin["xep_0045"].leave_muc(JID(self.room), person.nick)

    async def add_bot(self, who: str) -> str:
        person = await self.person(who)
        other = f"other{self.number}@{MUC}"
        await person.join(other)
        person.client.plugin["xep_0045"].invite(JID(other), JID(self.bot))
        return other

    async def promote(self, who: str, role: Role) -> None:
        await self.person(who)
        muc = (await self.person("ann")).client.plugin["xep_0045"]
        await muc.set_affiliation(JID(self.room), _AFFILIATIONS[role], jid=JID(self.jid(who)))

    async def empower(self) -> None:
        muc = (await self.person("ann")).client.plugin["xep_0045"]
        await muc.set_affiliation(JID(self.room), "admin", jid=JID(self.bot))

    async def repeat(self) -> None:
        raise NotImplementedError

    async def send_garbage(self) -> None:
        person = await self.person("ann")
        message = person.message(self.room, "Rollcall: garbage")
        uri = f"xmpp:{self.room}/Rollcall"
        message["reference"].xml.attrib.update({"type": "mention", "uri": uri, "begin": "first", "end": "-"})
        await person.send(message)

    async def disconnect(self) -> None:
        self.proxy.cut()

    async def fail_next(self, failure: Failure) -> None:
        ann = await self.person("ann")
        muc = ann.client.plugin["xep_0045"]
        match failure:
            case Failure.SERVER_ERROR:
                self.server.fail_next(self.room)
            case Failure.DELIVERED_WITHOUT_ANSWER:
                self.proxy.cuts_at_echo = True
            case Failure.REMOVED:
                await muc.set_role(JID(self.room), "Rollcall", "none")
            case Failure.NO_SUCH_CHAT:
                await muc.destroy(JID(self.room))
            case Failure.REPLY_IS_GONE | Failure.BAD_MARKUP:
                """The server checks neither, so the next send succeeds anyhow."""

    async def open_thread(self, who: str, text: str) -> str:
        raise NotImplementedError

    async def shown(self, chat: str = "") -> list[Shown]:
        ann = await self.person("ann")
        await ann.settled(self.room)
        shown: dict[str, Any] = {}
        for one in ann.seen:
            if one["from"].resource != "Rollcall" or one["from"].bare != self.room:
                continue
            if one.get_plugin("retract", check=True):
                shown = {key: value for key, value in shown.items() if value["stanza_id"]["id"] != one["retract"]["id"]}
            elif one.get_plugin("replace", check=True):
                shown[one["replace"]["id"]]["body"] = one["body"]
            elif one["body"]:
                shown[one["id"]] = one
        return [await self._shown(one) for one in shown.values()]

    async def reactions(self, native_id: str) -> list[str]:
        ann = await self.person("ann")
        await ann.settled(self.room)
        found = [
            one for one in ann.seen if one["from"].resource == "Rollcall" and one.get_plugin("reactions", check=True)
        ]
        return sorted(found[-1]["reactions"]["values"]) if found else []

    async def _shown(self, message: Any) -> Shown:
        files: tuple[bytes, ...] = ()
        if message.get_plugin("oob", check=True):
            async with aiohttp.ClientSession() as session, session.get(message["oob"]["url"]) as response:
                files = (await response.read(),)
        return Shown(message["body"], message["stanza_id"]["id"], reply_to=message["reply"]["id"] or "", files=files)


@asynccontextmanager
async def a_family(
    server: XmppServer, home: Path, *members: str, **settings: object
) -> AsyncIterator[tuple[Family, Network, Host]]:
    """A room with Ann, its owner, and `members`, and the bot's platform, not connected yet."""
    async with AsyncExitStack() as stack, a_host(home) as host:
        proxy = Proxy(server.port)
        await proxy.open()
        family = Family(server, proxy, stack)
        for name in ("ann", *members):
            await family.person(name)
        platforms: list[XmppPlatform] = []

        def a_platform() -> XmppPlatform:
            platforms.append(XmppPlatform(family.settings(**settings), host))
            return platforms[-1]

        network = Network(
            a_platform(),
            family,
            group=family.room,
            ann=family.jid("ann"),
            ben=family.jid("ben"),
            robot=family.jid("robot"),
            reopen=a_platform,
        )
        try:
            yield family, network, host
        finally:
            for platform in platforms:
                await platform.close()
            await proxy.close()
            await asyncio.sleep(0)
