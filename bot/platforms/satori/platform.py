"""The platform of Satori."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson
import structlog

from bot.platforms.adapter import Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, Outgoing, Receipt, SendFailed
from bot.platforms.connection import ConnectedPlatform, Cursor
from bot.platforms.satori.adapter import SatoriSettings
from bot.platforms.satori.elements import buttons, element, parse, without_buttons, written
from bot.platforms.satori.gateway import CallFailed, Gateway, Json
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from function_calls.spec import Choice
from services.refs import ChatRef, MemberRef, Role
from services.store.port import StoreError
from services.web.content import data_in

_log = structlog.get_logger("platforms")
_KINDS = {
    "message-created": Kind.MESSAGE,
    "message-updated": Kind.EDIT,
    "message-deleted": Kind.DELETE,
    "reaction-added": Kind.REACTION,
    "interaction/button": Kind.CHOICE,
    "guild-added": Kind.ADDED,
    "guild-member-added": Kind.JOIN,
    "guild-member-removed": Kind.LEAVE,
}
_ROLES = {"owner": Role.OWNER, "creator": Role.OWNER, "moderator": Role.MODERATOR}
_ADMINS = ("admin", "administrator")
_DIRECT = 1
_PING_SECONDS = 9.0
_SILENCE_SECONDS = 30.0
_STORE_SECONDS = 1.0
_LOOKUP_SECONDS = 5.0
_BUTTON_BYTES = 60
"""Telegram, which a gateway may connect to, has 64."""
_MOST_REMEMBERED = 10_000
_MOST_PAGES = 50
_QUOTED_CHARS = 500
_FIRST_EMOJI = 1000
_ELEMENTS = {"image": "img", "audio": "audio", "video": "video"}


class SatoriPlatform(ConnectedPlatform):
    """One account at a gateway."""

    name = "satori"

    def __init__(self, settings: SatoriSettings, host: Host) -> None:
        super().__init__(settings, host, silence_seconds=_SILENCE_SECONDS)
        self.limits = Limits(
            text_chars=2000,
            sends_are_idempotent=False,
            sends_per_minute=30,
            choices=settings.buttons,
            attachments=True,
            bots_are_marked=False,
            markdown=True,
            catches_up=True,
            file_bytes=10 * 1024 * 1024,
        )
        self._settings = settings
        self._host = host
        self._gateway = Gateway(settings)
        self._guilds: OrderedDict[str, str] = OrderedDict()
        """Guilds by channel; empty for private channels."""
        self._sent: OrderedDict[str, str] = OrderedDict()
        """Texts of the bot's messages by id."""
        self._reacted: OrderedDict[str, str] = OrderedDict()

    # Receiving

    async def _connected(self, deliver: Deliver) -> None:
        stored = await self._cursor.read()
        after = None if stored is None else int(stored)
        socket = await self._gateway.open(after)
        pinging = asyncio.create_task(self._ping(socket))
        try:
            self._connection.up()
            async for event in self._gateway.events(socket, after):
                self._connection.heard()
                if event:
                    await self._take(deliver, event)
        finally:
            pinging.cancel()
            await socket.close()

    async def _ping(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        with suppress(aiohttp.ClientError, ConnectionError):
            while True:
                await socket.send_str('{"op":1}')
                await self._host.clock.sleep(_PING_SECONDS)

    async def _take(self, deliver: Deliver, event: str | Json) -> None:
        """Accept an event. While the store fails, it is offered again: not all gateways repeat events."""
        raw = event if isinstance(event, str) else orjson.dumps(event).decode()
        number = None if isinstance(event, str) else event.get("sn", event.get("id"))
        cursor = self._cursor.at(str(number)) if isinstance(number, int) else None
        while True:
            try:
                if isinstance(number, int) and await self._cursor.read() is None:
                    await self._cursor.keep(str(number - 1))
                if isinstance(event, dict):
                    await self._complete(event)
                await self._acceptance.take(deliver, lambda: self._contexts(event), raw, cursor)
            except StoreError as problem:
                _log.error("event_not_accepted", network=self.name, problem=str(problem))
                self._connection.heard()
                await self._host.clock.sleep(_STORE_SECONDS)
            else:
                return

    async def _complete(self, event: Json) -> None:
        """Look up what the event does not contain, as far as possible. Raises StoreError, and CannotConnect if the
        account is offline."""
        # The acceptance reports events that cannot be read.
        with suppress(SendFailed, LookupError, TypeError, AttributeError, ValueError):
            if not self._gateway.is_for_account(event):
                event["type"] = "of another account"
            kind, channel, guild = event["type"], event.get("channel"), event.get("guild")
            if kind in ("login-updated", "login-removed"):
                self._gateway.check_online({"status": 0} if kind == "login-removed" else event["login"])
            if kind in _KINDS and guild and not channel:
                event["channel"] = {"id": await self._first_channel(str(guild["id"]))}
            elif kind in _KINDS and channel:
                is_direct = channel.get("type") == _DIRECT
                _remember(self._guilds, str(channel["id"]), "" if is_direct else str((guild or channel)["id"]))
            if kind == "interaction/button" and str(event["button"]["id"]).startswith("#"):
                event["button"]["id"] = await self._stored(event["button"]["id"]).read()
            if kind in ("message-created", "message-updated") and "quote" not in event["message"]:
                content = parse(event["message"].get("content") or "", self._gateway.user_id)
                if content.quote and content.quote not in self._sent and not content.quoted_author[0]:
                    found = {"channel_id": str(event["channel"]["id"]), "message_id": content.quote}
                    event["message"]["quote"] = await self._gateway.call(
                        "message.get", seconds=_LOOKUP_SECONDS, **found
                    )

    def _contexts(self, event: str | Json) -> list[MessageContext]:
        """The event, unless it concerns nobody. Raises ValueError, LookupError, TypeError or AttributeError if it is
        malformed."""
        if isinstance(event, str):
            raise ValueError("no Satori message")
        kind = _KINDS.get(event["type"])
        message, member, channel = event.get("message") or {}, event.get("member") or {}, event.get("channel") or {}
        user = event.get("user") or message.get("user") or member.get("user") or {}
        who, bot = str(user.get("id") or ""), self._gateway.user_id
        if kind is Kind.JOIN and who == bot:
            kind = Kind.ADDED
        if kind in (Kind.ADDED, Kind.DELETE):
            user = event.get("operator") or (user if who != bot else {})
            who = str(user.get("id") or "unknown")
        # Channels may post without a user.
        if kind is None or who in ("", bot):
            return []
        chat = ChatRef(self.name, self.account, str(channel["id"]))
        at = int(event.get("timestamp") or message["created_at"])
        native, text, facts = str(message.get("id") or who), "", {}
        match kind:
            case Kind.MESSAGE | Kind.EDIT:
                native, revision = str(message["id"]), str(message.get("updated_at") or at) if kind is Kind.EDIT else ""
                text, facts = self._content(message)
            case Kind.DELETE:
                native, revision = str(message["id"]), ""
            case Kind.REACTION:
                native, text = str(message["id"]), _emoji(event.get("emoji") or {})
                revision = f"{who} {text} {at}"
            case Kind.CHOICE:
                text = str(event["button"]["id"])
                facts = {"mentions_bot": True, "reply_to": Quoted(native, from_bot=True)}
                revision = f"{who} {hashlib.sha256(text.encode()).hexdigest()[:16]} {at}"
            case _:
                revision = f"{who} {at}"
        is_group = channel.get("type") != _DIRECT
        role = (
            self._role(member) if is_group and who not in (chat.native, self._guilds.get(chat.native)) else Role.MEMBER
        )
        name = " ".join(str(member.get("nick") or user.get("nick") or user.get("name") or who).split())
        return [
            MessageContext(
                key=MessageKey(chat, native, kind, revision),
                kind=kind,
                chat=chat,
                is_group=is_group,
                sender=Sender(MemberRef(self.name, self.account, who), name, role, is_bot=bool(user.get("is_bot"))),
                text=text,
                sent_at=datetime.fromtimestamp(int(message.get("created_at") or at) / 1000, UTC),
                chat_title=str(channel.get("name") or (event.get("guild") or {}).get("name") or ""),
                **facts,
            )
        ]

    def _content(self, message: Json) -> tuple[str, Json]:
        """Text of a message, and other facts for its context."""
        bot = self._gateway.user_id
        content, reply = parse(message.get("content") or "", bot), None
        heard, found = self._hear(content.text), message.get("quote") or {}
        if quote := str(found.get("id") or content.quote or ""):
            author = found.get("user") or {}
            who = str(author.get("id") or content.quoted_author[0])
            before = parse(found.get("content") or "", bot).text or content.quoted or self._sent.get(quote, "")
            name = str(author.get("name") or content.quoted_author[1])
            reply = Quoted(quote, name, before[:_QUOTED_CHARS], who == bot if who else quote in self._sent)
        return heard.text, {
            "mentions_bot": heard.mentions_bot or content.mentions_bot,
            "mentions": tuple(MemberRef(self.name, self.account, one) for one in content.mentions),
            "attachments": content.attachments,
            "reply_to": reply,
        }

    # Members

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        with suppress(SendFailed, LookupError, TypeError, AttributeError):
            guild = await self._guild_of(chat.native)
            if not guild:
                return Role.MEMBER
            if member.native not in (chat.native, guild):
                found = await self._gateway.call("guild.member.get", guild_id=guild, user_id=member.native)
                is_same = str((found.get("user") or {}).get("id") or member.native) == member.native
                return self._role(found) if is_same else None
        return None

    def _role(self, member: Json) -> Role:
        """The highest role of a guild member. Ids count, because members of some networks name roles."""
        ids = {str(one["id"] if isinstance(one, dict) else one) for one in member.get("roles") or ()}
        roles = [_ROLES[one] for one in ids & _ROLES.keys()]
        roles += [Role.ADMIN] if ids & {*_ADMINS, *self._settings.admin_roles} else []
        return max(roles, key=lambda role: role.rank, default=Role.MEMBER)

    async def _guild_of(self, channel: str) -> str:
        """Guild of a channel; empty for a private one. Raises LookupError if there is none, and SendFailed."""
        if channel not in self._guilds:
            found = await self._gateway.call("channel.get", channel_id=channel)
            if found.get("type") == _DIRECT:
                _remember(self._guilds, channel, "")
                return ""
            async for guild in self._pages("guild.list"):
                async for one in self._pages("channel.list", guild_id=guild["id"]):
                    _remember(self._guilds, str(one["id"]), str(guild["id"]))
        return self._guilds[channel]

    async def _first_channel(self, guild: str) -> str:
        """Channel for events of a guild; the guild itself if it has no others."""
        with suppress(SendFailed):
            async for one in self._pages("channel.list", guild_id=guild):
                if one.get("type", 0) == 0:
                    return str(one["id"])
        return guild

    async def _pages(self, method: str, **given: str) -> AsyncIterator[Json]:
        for _ in range(_MOST_PAGES):
            page = await self._gateway.call(method, seconds=_LOOKUP_SECONDS, **given)
            for one in page["data"]:
                yield one
            if not page.get("next"):
                return
            given["next"] = page["next"]

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        sent = await self._written("message.create", outgoing)
        for closed in outgoing.closes:
            with suppress(SendFailed, LookupError, TypeError):
                message = {"channel_id": outgoing.chat.native, "message_id": closed}
                content = without_buttons((await self._gateway.call("message.get", **message))["content"])
                await self._gateway.call("message.update", **message, content=content)
        try:
            native = str(sent[0]["id"])
        except (LookupError, TypeError):
            # Some networks name no message.
            native = f"sent-{outgoing.key}"
        _remember(self._sent, native, outgoing.text[:_QUOTED_CHARS])
        return Receipt(native)

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        await self._written("message.update", outgoing, message_id=native_id)

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        try:
            await self._gateway.call("message.delete", channel_id=chat.native, message_id=native_id)
        except CallFailed as problem:
            if problem.status != 404:
                raise

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        key, about = f"{chat.native} {native_id}", {"channel_id": chat.native, "message_id": native_id}
        if emoji:
            await self._gateway.call("reaction.create", **about, emoji=emoji, emoji_id=emoji)
            _remember(self._reacted, key, emoji)
        elif before := self._reacted.pop(key, ""):
            given = {"emoji": before, "emoji_id": before, "user_id": self._gateway.user_id}
            await self._gateway.call("reaction.delete", **about, **given)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        if not attachment.url.startswith("data:"):
            return await self._gateway.download(attachment.url.removeprefix("network:"), max_bytes)
        content = data_in(attachment.url)
        if content is None or len(content) > max_bytes:
            raise FileUnavailable(f"the file is damaged or larger than {max_bytes:,} bytes")
        return content

    async def close(self) -> None:
        await self._gateway.close()

    async def _written(self, method: str, outgoing: Outgoing, **given: str) -> Any:
        """Send or change a message, again without details that the network rejects. Raises SendFailed."""
        channel = outgoing.chat.native
        if outgoing.private_to is not None:
            found = await self._gateway.call("user.channel.create", user_id=outgoing.private_to.native)
            channel = str(found["id"])
        is_public = outgoing.private_to is None and self._guilds.get(channel) != ""
        reply = element("quote", id=outgoing.reply_to) if outgoing.reply_to and outgoing.private_to is None else ""
        before = "".join(f"{element('at', id=one.native)} " for one in outgoing.mentions if is_public)
        after = [await self._file(one) for one in outgoing.attachments]
        after.append(buttons(outgoing.choices, [await self._button_id(one) for one in outgoing.choices]))
        text, plain = (written(outgoing.text, markdown=outgoing.markdown, is_plain=one) for one in (False, True))
        for quote, words in dict.fromkeys([(reply, text), ("", text), ("", plain)]):
            content = f"{quote if method == 'message.create' else ''}{before}{words}{''.join(after)}"
            try:
                return await self._gateway.call(method, channel_id=channel, content=content, **given)
            except CallFailed as problem:
                if problem.status != 400 or (quote, words) == ("", plain):
                    raise

    async def _file(self, file: Attachment) -> str:
        """An element with a file, or with a link to it."""
        if not file.url.startswith("data:"):
            return f"<br/>{element('a', file.name or file.url, href=file.url)}"
        form = aiohttp.FormData()
        form.add_field("file", data_in(file.url) or b"", filename=file.name, content_type=file.media_type)
        source = file.url
        with suppress(CallFailed, LookupError):
            source = str((await self._gateway.call("upload.create", form))["file"])
        return element(_ELEMENTS.get(file.media_type.partition("/")[0], "file"), src=source, title=file.name)

    async def _button_id(self, choice: Choice) -> str:
        """Id of a button, which gives its value: the value itself, or a key of a stored one."""
        if len(choice.value.encode()) <= _BUTTON_BYTES and not choice.value.startswith("#"):
            return choice.value
        key = f"#{hashlib.sha256(choice.value.encode()).hexdigest()[:40]}"
        await self._stored(key).keep(choice.value)
        return key

    def _stored(self, key: str) -> Cursor:
        return Cursor(f"{self.name}:{self.account}:{key}", self._host.store, self._host.clock)


def _emoji(emoji: Json) -> str:
    """A reaction; some gateways name the code point of an emoji."""
    native, name = str(emoji.get("id") or ""), str(emoji.get("name") or "")
    if native.isascii() and native.isdecimal() and _FIRST_EMOJI <= int(native[:8]) <= 0x10FFFF:
        return chr(int(native))
    return native if not native.isascii() else name or native


def _remember(known: OrderedDict[str, str], key: str, value: str) -> None:
    known[key] = value
    if len(known) > _MOST_REMEMBERED:
        known.popitem(last=False)
