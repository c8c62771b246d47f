"""The platform of Satori."""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import Any

import orjson

from bot.platforms.adapter import Adapter, Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, Outgoing, Receipt, SendFailed
from bot.platforms.connection import ConnectedPlatform, alongside
from bot.platforms.satori.elements import element, file_element, parse, written
from bot.platforms.satori.gateway import Gateway, Json, SatoriSettings, number_of, probe
from bot.platforms.web_api import Refused, check_size, unless
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.recent import Recent
from services.refs import ChatRef, MemberRef, Role
from services.web.content import data_in

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
_ABOUT_MESSAGES = (Kind.MESSAGE, Kind.EDIT, Kind.DELETE, Kind.REACTION)
_ROLES = {"owner": Role.OWNER, "creator": Role.OWNER, "admin": Role.ADMIN, "administrator": Role.ADMIN}
_DIRECT = "direct"
"""Stands for the guild in the native id of a private chat."""
_DIRECT_TYPE = 1
_UNNAMED = "event-"
"""Begins the native id of an event that has no message."""
_PING_SECONDS = 9.0
_SILENCE_SECONDS = 30.0
_LOOKUP_SECONDS = 5.0
_BUTTON_BYTES = 60
"""Telegram, which a gateway may connect to, has 64."""
_BUTTONS = re.compile(r"<button\s[^<>]*>[^<>]*</button>")
_MOST_REMEMBERED = 10_000
_QUOTED_CHARS = 500
_FIRST_EMOJI = 1000


class SatoriPlatform(ConnectedPlatform):
    """One account at a gateway. Native ids of chats: `guild/channel`, `direct/channel` for private chats, and `channel`
    if its guild has the same id."""

    name = "satori"

    def __init__(self, settings: SatoriSettings, host: Host) -> None:
        super().__init__(settings, host, silence_seconds=_SILENCE_SECONDS)
        self.limits = Limits(
            text_chars=2000,
            sends_per_minute=30,
            choices=settings.buttons,
            attachments=True,
            bots_are_marked=False,
            markdown=True,
            catches_up=True,
            file_bytes=10 * 1024 * 1024,
        )
        self._gateway = Gateway(settings)
        self.close = self._gateway.close
        self._has_cursor = False
        self._roles = _ROLES | dict.fromkeys(settings.admin_roles, Role.ADMIN)
        self._done = Recent[str, str](_MOST_REMEMBERED)
        """Ids of the bot's messages, and its reactions by message."""

    # Receiving

    async def _connected(self, deliver: Deliver) -> None:
        stored = await self._cursor.read()
        after, self._has_cursor = None if stored is None else int(stored), stored is not None
        async with (
            await self._gateway.open(after) as socket,
            alongside(self._repeat(lambda: socket.send_str('{"op":1}'), _PING_SECONDS)),
        ):
            self._connection.up()
            async for event in self._gateway.events(socket, after):
                self._connection.heard()
                if event:
                    await self._acceptance.until_stored(partial(self._take, deliver, event))
                    self._gateway.check_online(event)

    async def _take(self, deliver: Deliver, event: Json) -> None:
        """Accept an event. Raises StoreError."""
        number, raw = number_of(event), orjson.dumps(event).decode()
        cursor = None if number is None else self._cursor.at(str(number))
        if number is not None and not self._has_cursor:
            await self._cursor.keep(str(number - 1))
            self._has_cursor = True
        # Without an answer, the event is taken as it is; the acceptance reports those that cannot be read.
        with suppress(SendFailed, TimeoutError, LookupError, TypeError, AttributeError, ValueError):
            async with asyncio.timeout(_LOOKUP_SECONDS):
                await self._complete(event)
        await self._acceptance.take(deliver, lambda: self._contexts(event), raw, cursor)

    async def _complete(self, event: Json) -> None:
        """Look up what the event lacks. Raises StoreError."""
        kind = event["type"] if self._gateway.is_for_account(event) else ""
        if kind == "interaction/button":
            for press in self._contexts(event):
                event["button"]["id"] = await self._pressed(press)
        elif kind in ("message-created", "message-updated") and "quote" not in event["message"]:
            content = parse(event["message"].get("content") or "", self._gateway.who[1])
            if content.quote and content.quote not in self._done and not content.author:
                place = {"channel_id": event["channel"]["id"], "message_id": content.quote}
                event["message"]["quote"] = await self._gateway.call("message.get", **place)
        elif kind in _KINDS and not event.get("channel"):
            # A guild's own events belong to its first text channel, preferably one that the settings allow.
            guild = event["channel"] = {"id": event["guild"]["id"]}
            found = (await self._gateway.call("channel.list", guild_id=guild["id"]))["data"]
            texts = [one for one in found if one.get("type", 0) == 0]
            event["channel"] = min(texts, key=lambda one: not self._host.allows(self._chat(guild, one)))

    def _contexts(self, event: Json) -> list[MessageContext]:
        """The event, unless it concerns nobody. Raises LookupError, ValueError, TypeError or AttributeError if it is
        malformed."""
        kind, bot = _KINDS.get(event["type"]), self._gateway.who[1]
        if kind is None or not self._gateway.is_for_account(event):
            return []
        message, member, channel = (event.get(name) or {} for name in ("message", "member", "channel"))
        user = event.get("user") or message.get("user") or member.get("user") or {}
        if kind is Kind.JOIN and user.get("id") == bot:
            kind = Kind.ADDED
        if kind in (Kind.ADDED, Kind.DELETE):
            user = event.get("operator") or (user if kind is Kind.DELETE else {}) or {"id": "unknown"}
        who = str(user.get("id") or "")
        # Posts of channels have no user.
        if who in ("", bot):
            return []
        guild, at = event.get("guild") or {}, int(event["timestamp"])
        is_direct = channel.get("type") == _DIRECT_TYPE
        chat = self._chat(guild, channel)
        id_ = str(message["id"] if kind in _ABOUT_MESSAGES else message.get("id") or f"{_UNNAMED}{who}")
        text, facts = "", dict[str, Any]()
        if kind in (Kind.MESSAGE, Kind.EDIT):
            text, facts = self._content(message)
        elif kind is Kind.REACTION:
            text = _emoji(event.get("emoji") or {})
        elif kind is Kind.CHOICE:
            text, facts = str(event["button"]["id"]), {"mentions_bot": True}
            facts["reply_to"] = Quoted(id_, from_bot=True) if message else None
        changes = {Kind.MESSAGE: "", Kind.DELETE: "", Kind.EDIT: str(message.get("updated_at") or at)}
        revision = changes.get(kind, f"{who} {hashlib.sha256(text.encode()).hexdigest()[:16]} {at}")
        role = self._role(member) if not is_direct and who not in chat.native.split("/") else None
        name = str(member.get("nick") or user.get("nick") or user.get("name") or who)
        sender = Sender(self._member(who), name, role or Role.MEMBER, bool(user.get("is_bot")))
        sent_at = datetime.fromtimestamp(int(message.get("created_at") or at) / 1000, UTC)
        title = str(channel.get("name") or guild.get("name") or "")
        key = MessageKey(chat, id_, kind, revision)
        return [MessageContext(key, kind, chat, not is_direct, sender, text, sent_at, chat_title=title, **facts)]

    def _chat(self, guild: Json, channel: Json) -> ChatRef:
        place, native = str(guild.get("id") or channel["id"]), str(channel["id"])
        place = _DIRECT if channel.get("type") == _DIRECT_TYPE else place
        return ChatRef(self.name, self.account, native if place == native else f"{place}/{native}")

    def _content(self, message: Json) -> tuple[str, Json]:
        """Text of a message, and its other facts."""
        bot, found = self._gateway.who[1], message.get("quote") or {}
        content, reply = parse(message.get("content") or "", bot), None
        heard = self._hear(content.text)
        if quote := str(found.get("id") or content.quote):
            author = found.get("user") or {}
            who = str(author.get("id") or content.author)
            before = content.quoted or parse(found.get("content") or "", bot).text
            from_bot = who == bot or quote in self._done
            reply = Quoted(quote, str(author.get("name") or ""), before[:_QUOTED_CHARS], from_bot)
        return heard.text, {
            "mentions_bot": heard.mentions_bot or content.mentions_bot,
            "mentions": tuple(map(self._member, content.mentions)),
            "attachments": content.attachments,
            "reply_to": reply,
        }

    # Members

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        guild, _, channel = chat.native.partition("/")
        if guild == _DIRECT and channel:
            return Role.MEMBER
        with suppress(SendFailed, LookupError, TypeError, AttributeError):
            found = await self._gateway.call("guild.member.get", guild_id=guild, user_id=member.native)
            if (found.get("user") or {}).get("id", member.native) == member.native not in (guild, channel):
                return self._role(found)
        return None

    def _role(self, member: Json) -> Role:
        """The highest role of a guild member, by the ids of roles: members choose names on some networks."""
        ids = [str(one["id"] if isinstance(one, dict) else one) for one in member.get("roles") or ()]
        roles = [self._roles[one] for one in ids if one in self._roles]
        return max(roles, key=lambda role: role.rank, default=Role.MEMBER)

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        sent = await self._write("message.create", outgoing)
        for closed in outgoing.closes:
            with suppress(SendFailed, LookupError, TypeError):
                place = {"channel_id": _channel(outgoing.chat), "message_id": closed}
                content = (await self._gateway.call("message.get", **place))["content"]
                await self._gateway.call("message.update", **place, content=_BUTTONS.sub("", content))
        # Some networks do not name the message.
        native = str(sent[0]["id"]) if sent else f"sent-{outgoing.key}"
        self._done[native] = ""
        return Receipt(native)

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        await self._write("message.update", outgoing, message_id=native_id)

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        with unless(404):
            await self._gateway.call("message.delete", channel_id=_channel(chat), message_id=native_id)

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        place = {"channel_id": _channel(chat), "message_id": native_id}
        key = f"{chat.native} {native_id}"
        if emoji:
            await self._gateway.call("reaction.create", **place, emoji=emoji, emoji_id=emoji)
            self._done[key] = emoji
        elif before := self._done.pop(key, ""):
            user = self._gateway.who[1]
            await self._gateway.call("reaction.delete", **place, emoji=before, emoji_id=before, user_id=user)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        if not attachment.url.startswith("data:"):
            return await self._gateway.download(attachment.url.removeprefix("network:"), max_bytes)
        content = data_in(attachment.url)
        if content is None:
            raise FileUnavailable("the file is damaged")
        check_size(len(content), max_bytes)
        return content

    async def _write(self, method: str, outgoing: Outgoing, **given: str) -> Any:
        """Send or change a message, again without details that the network rejects. Raises SendFailed."""
        given["channel_id"], is_private = _channel(outgoing.chat), outgoing.private_to is not None
        if outgoing.private_to is not None:
            found = await self._gateway.call("user.channel.create", user_id=outgoing.private_to.native)
            given["channel_id"] = str(found["id"])
        quote = outgoing.reply_to if method == "message.create" and not is_private else None
        reply = element("quote", id=quote) if quote and not quote.startswith(_UNNAMED) else ""
        is_group = not is_private and not outgoing.chat.native.startswith(f"{_DIRECT}/")
        before = "".join(f"{element('at', id=one.native)} " for one in outgoing.mentions if is_group)
        after = "".join([await self._file(one) for one in outgoing.uploads])
        after += escape(outgoing.links, quote=False).replace("\n", "<br/>")
        for number, choice in enumerate(outgoing.choices):
            data = self._button(outgoing, number, _BUTTON_BYTES)
            after += element("button", choice.label, id=data, type="action")
        text, plain = (written(outgoing.text, is_markdown=outgoing.markdown, is_plain=one) for one in (False, True))
        attempts = list(
            dict.fromkeys(
                f"{start}{words}{after}" for start, words in ((reply + before, text), (before, text), (before, plain))
            )
        )
        while True:
            try:
                return await self._gateway.call(method, content=attempts.pop(0), **given)
            except Refused as problem:
                if problem.status != 400 or not attempts:
                    raise

    async def _file(self, file: Attachment) -> str:
        """An element with a file."""
        source = file.url
        # A gateway without uploads takes the content itself.
        with suppress(Refused):
            source = await self._gateway.upload(file)
        return file_element(file, source)


def _channel(chat: ChatRef) -> str:
    """Id of the channel."""
    return chat.native.partition("/")[2] or chat.native


def _emoji(emoji: Json) -> str:
    """A reaction. Some gateways have code points of emoji."""
    native, name = str(emoji.get("id") or ""), str(emoji.get("name") or "")
    if re.fullmatch(r"[0-9]{4,6}", native) and int(native) >= _FIRST_EMOJI:
        return chr(int(native))
    return native if not native.isascii() else name or native


ADAPTER = Adapter(SatoriSettings, SatoriPlatform, probe, asks=("account", "url", "token", "platform", "user_id"))
