"""Receiving from Discord: events of the gateway, in order, and messages missed while disconnected."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import aiohttp
import discord
import structlog

from bot.platforms.adapter import Host
from bot.platforms.base import Deliver
from bot.platforms.connection import Acceptance, Connection, Cursor
from bot.platforms.mentions import mention_parser
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.refs import ChatRef, MemberRef, Role
from services.store.port import StoreError

_log = structlog.get_logger("discord")
NETWORK = "discord"
_UNKNOWN = "unknown"
"""Native id of a sender whom Discord does not name."""
_MOST_EVENTS = 10_000
_MOST_MISSED = 200
"""Maximum number of missed messages per channel; the oldest are left out."""
_MOST_PRIVATE = 50
"""Maximum number of private chats that are searched for missed messages."""
_OVERLAP = 5_000 << 22
"""Five seconds as a difference of ids. Channels are not ordered among each other, so slightly older messages than the
last one may be missing; duplicates are dropped by their key."""
_INTENTS = ("guilds", "members", "guild_messages", "dm_messages", "guild_reactions", "dm_reactions", "message_content")
_MESSAGES = frozenset({discord.MessageType.default, discord.MessageType.reply, discord.MessageType.chat_input_command})
_MENTION = re.compile(r"<(@[!&]?|#)(\d{1,20})>|<a?(:\w+:)\d{1,20}>")
ERRORS = (discord.DiscordException, aiohttp.ClientError, OSError)
"""Errors of requests; OSError includes timeouts."""

_GONE = (discord.Forbidden, discord.NotFound)


@dataclass(slots=True)
class Received:
    """Events to deliver, and what survives a new client of discord.py."""

    events: asyncio.Queue[Callable[[Deliver], Awaitable[None]]] = field(
        default_factory=lambda: asyncio.Queue(_MOST_EVENTS)
    )
    global_limit_until: float = 0.0
    """Monotonic time until which the whole account is rate limited."""

    async def deliver(self, deliver: Deliver, host: Host) -> None:
        """Deliver events until cancelled, each again until it is accepted."""
        while True:
            event = await self.events.get()
            while True:
                try:
                    await event(deliver)
                except (StoreError, *ERRORS) as problem:
                    _log.warning("event_not_accepted", problem=type(problem).__name__)
                    await host.clock.sleep(problem.retry_after if isinstance(problem, discord.RateLimited) else 1)
                    continue
                except Exception as problem:  # noqa: BLE001 - one event must not hold up the others
                    _log.error("event_lost", exc_info=problem)
                break


class Gateway(discord.Client):
    """A client of discord.py that puts its events into `Received`. discord.py calls each `on_` method in a task of its
    own; the tasks start in the order of the events."""

    def __init__(
        self,
        account: str,
        host: Host,
        received: Received,
        connection: Connection,
        value_of: Callable[[MessageContext], Awaitable[str]],
        connector: aiohttp.BaseConnector | None,
    ) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._answered)
        super().__init__(
            intents=discord.Intents(**dict.fromkeys(_INTENTS, True)),
            connector=connector,
            http_trace=trace,
            max_messages=None,
            chunk_guilds_at_startup=False,
            guild_ready_timeout=0,  # `on_ready` is not used
            member_cache_flags=discord.MemberCacheFlags.none(),
            enable_debug_events=True,
        )
        # Longer waits are the outbox's. The constructor accepts no value below 30.
        self.http.max_ratelimit_timeout = 5.0
        self._account = account
        self._host = host
        self._received = received
        self._link = connection
        self._value_of = value_of
        self._hear = mention_parser(host.names)
        network = f"{NETWORK}:{account}"
        self._cursor = Cursor(network, host.store, host.clock)
        self._floor = 0
        self._private_chats = Cursor(f"{network}:private", host.store, host.clock)
        self._private: list[str] = []
        self._missed_authors: dict[int, discord.abc.User] = {}
        self._acceptance = Acceptance(network, host.store, host.ids, host.clock, connection)

    async def _answered(self, _: Any, __: Any, params: aiohttp.TraceRequestEndParams) -> None:
        response = params.response
        if response.status == 429 and response.headers.get("X-RateLimit-Scope") == "global":
            seconds = float(response.headers.get("Retry-After", 1))
            self._received.global_limit_until = self._host.clock.monotonic() + seconds
        if response.status >= 500 and params.method != "GET":
            # discord.py would repeat the request for 25 seconds.
            response.close()
            raise aiohttp.ClientConnectionError

    def _put(self, event: Callable[[Deliver], Awaitable[None]]) -> None:
        """Queue `event`. A full queue is emptied, and messages are fetched again from the cursor."""
        events = self._received.events
        if events.full():
            _log.error("too_many_events", account=self._account)
            while not events.empty():
                events.get_nowait()
            events.put_nowait(self._catching_up())
        events.put_nowait(event)

    def _catching_up(self) -> Callable[[Deliver], Awaitable[None]]:
        # The id of a message of this millisecond is at least one higher.
        return partial(self._catch_up, discord.utils.time_snowflake(self._host.clock.now()) - 1)

    async def on_socket_raw_receive(self, message: str) -> None:
        self._link.heard()

    async def on_connect(self) -> None:
        """A new session began, without the events since the last one."""
        self._link.up()
        self._put(self._catching_up())

    async def on_resumed(self) -> None:
        self._link.up()

    async def on_disconnect(self) -> None:
        self._link.down("Discord closed the connection; resuming it")

    async def on_message(self, message: discord.Message) -> None:
        self._put(partial(self._take, message, Kind.MESSAGE))

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        # Discord also reports the previews that it adds.
        if payload.message.edited_at is not None:
            self._put(partial(self._take, payload.message, Kind.EDIT))

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        self._put_event(Kind.DELETE, payload.channel_id, payload.guild_id, payload.message_id)

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        for message_id in payload.message_ids:
            self._put_event(Kind.DELETE, payload.channel_id, payload.guild_id, message_id)

    async def on_raw_reaction_add(self, payload: discord.RawReactionActionEvent) -> None:
        text = payload.emoji.name if payload.emoji.is_unicode_emoji() else f":{payload.emoji.name}:"
        user = payload.member or discord.Object(payload.user_id)
        about = (payload.channel_id, payload.guild_id, payload.message_id)
        self._put_event(Kind.REACTION, *about, user=user, text=text, revision=f"{user.id} {text}")

    async def on_member_join(self, member: discord.Member) -> None:
        self._put_server_event(Kind.JOIN, member.guild, member, str(member.joined_at))

    async def on_raw_member_remove(self, payload: discord.RawMemberRemoveEvent) -> None:
        guild = self.get_guild(payload.guild_id)
        if guild is not None:
            self._put_server_event(Kind.LEAVE, guild, payload.user, str(self._host.clock.now_ms()))

    async def on_guild_join(self, guild: discord.Guild) -> None:
        """The bot was added to a server. Only the audit log names by whom."""
        user = None
        with suppress(*ERRORS):
            async for entry in guild.audit_logs(limit=5, action=discord.AuditLogAction.bot_add):
                if user is None and self._is_me(entry.target):
                    user = entry.user
        self._put_server_event(Kind.ADDED, guild, user, str(guild.me.joined_at))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """A button was pressed, or a command of the menu called. Without a response within three seconds Discord shows
        an error."""
        data: Any = interaction.data or {}
        put = partial(
            self._put_event,
            channel_id=interaction.channel_id or 0,
            guild_id=interaction.guild_id,
            language=str(interaction.locale),
        )
        if interaction.type is discord.InteractionType.component and interaction.message is not None:
            quoted = Quoted(str(interaction.message.id), from_bot=True)
            value = data["custom_id"].partition(":")[2]
            put(Kind.CHOICE, native=interaction.id, user=interaction.user, text=value, quoted=quoted)
            with suppress(*ERRORS):
                await interaction.response.defer()
        elif interaction.type is discord.InteractionType.application_command:
            text = " ".join([f"/{data['name']}", *(str(one.get("value", "")) for one in data.get("options", ()))])
            native = interaction.id
            # Members see the command as a message of the bot, to which the bot then replies.
            with suppress(*ERRORS):
                shown = await interaction.response.send_message(
                    discord.utils.escape_markdown(text)[:2000],
                    allowed_mentions=discord.AllowedMentions.none(),
                    suppress_embeds=True,
                )
                native = shown.message_id or native
            put(Kind.MESSAGE, native=native, user=interaction.user, text=text)

    async def _catch_up(self, now: int, deliver: Deliver) -> None:
        """Deliver messages since the cursor, in order. At the first start, set the cursor to the id `now`."""
        position = await self._cursor.read()
        if position is None:
            self._floor = now
            await self._host.store.commit([self._cursor.at(f"{now} {now}")])
            return
        last, self._floor = map(int, position.split())
        self._private = (await self._private_chats.read() or "").split()
        for _ in range(200):
            if not any(guild.unavailable for guild in self.guilds):
                break
            await self._host.clock.sleep(0.05)
        after = max(last - _OVERLAP, self._floor)
        missed: list[discord.Message] = []
        for channel in self._channels_since(after):
            history = channel.history(limit=_MOST_MISSED, after=discord.Object(after), oldest_first=False)
            with suppress(*_GONE):
                missed += [message async for message in history]
        self._missed_authors.clear()
        for message in sorted(missed, key=lambda one: one.id):
            await self._take(message, Kind.MESSAGE, deliver)

    def _channels_since(self, after: int) -> Iterator[discord.abc.Messageable]:
        """Allowed channels and threads with messages after the id `after`, and private chats."""
        for guild in self.guilds:
            for channel in (*guild.channels, *guild.threads):
                if isinstance(channel, discord.abc.Messageable) and (channel.last_message_id or 0) > after:
                    yield from [channel] if self._host.allows(self._ref(channel)) else []
        yield from (self.get_partial_messageable(int(native)) for native in self._private)

    async def _take(self, message: discord.Message, kind: Kind, deliver: Deliver) -> None:
        chat = await self._chat(message.channel.id, message.guild)
        author = await self._author(message)
        if message.guild is None and chat.native not in self._private and self._host.allows(chat):
            self._private = [*self._private, chat.native][-_MOST_PRIVATE:]
            await self._host.store.commit([self._private_chats.at(" ".join(self._private))])
        cursor = None
        if kind is Kind.MESSAGE:
            # Discord's clock may be behind.
            self._floor = min(self._floor, message.id)
            cursor = self._cursor.at(f"{message.id} {self._floor}")
        await self._acceptance.take(deliver, partial(self._read, message, kind, chat, author), repr(message), cursor)

    async def _author(self, message: discord.Message) -> discord.abc.User:
        """The author, as a member if possible: a message of the history lacks the roles of its author."""
        author = message.author
        if message.guild is None or isinstance(author, discord.Member) or message.webhook_id is not None:
            return author
        if author.id not in self._missed_authors:
            self._missed_authors[author.id] = author
            with suppress(*_GONE):
                self._missed_authors[author.id] = await message.guild.fetch_member(author.id)
        return self._missed_authors[author.id]

    def _read(
        self, message: discord.Message, kind: Kind, chat: ChatRef, author: discord.abc.User
    ) -> list[MessageContext]:
        """The message as a context; empty for messages of the bot and of the system."""
        if self._is_me(author) or message.type not in _MESSAGES:
            return []
        # Each bot has a role with its name, and clients suggest both for a mention.
        role = message.guild.self_role if message.guild is not None else None
        own = rf"<@!?{self.user.id if self.user else 0}>|<@&{role.id if role else 0}>"
        text, count = re.subn(own, f"@{self._host.names[0]}", message.content)
        heard = self._hear(text)
        mentioned = [found[2] for found in _MENTION.finditer(heard.text) if found[1] in ("@", "@!")]
        sender = self._sender(author, is_webhook=message.webhook_id is not None)
        edited_at, words = message.edited_at if kind is Kind.EDIT else None, _with_names(heard.text, message)
        key, at = MessageKey(chat, str(message.id), kind, str(edited_at or "")), edited_at or message.created_at
        context = MessageContext(
            *(key, kind, chat, message.guild is not None, sender, words, at),
            mentions=tuple(MemberRef(NETWORK, self._account, one) for one in dict.fromkeys(mentioned)),
            mentions_bot=heard.mentions_bot or count > 0,
            reply_to=self._quoted(message),
            attachments=_files(message),
            chat_title=f"{message.guild.name} #{getattr(message.channel, 'name', '')}" if message.guild else "",
        )
        return [context]

    def _quoted(self, message: discord.Message) -> Quoted | None:
        reference = message.reference
        if message.type is not discord.MessageType.reply or reference is None:
            return None
        quoted = reference.resolved
        if not isinstance(quoted, discord.Message):
            return Quoted(str(reference.message_id))
        text = _with_names(quoted.content, quoted)
        is_own, files = self._is_me(quoted.author), _files(quoted)
        return Quoted(str(quoted.id), quoted.author.display_name, text, from_bot=is_own, attachments=files)

    def _put_server_event(self, kind: Kind, guild: discord.Guild, user: Any, revision: str) -> None:
        """Queue an event of a server: in its system channel, or the first that the bot can read; allowed ones first."""
        channels = [one for one in guild.text_channels if one.permissions_for(guild.me).read_messages]
        channels.sort(key=lambda one: (not self._host.allows(self._ref(one)), one != guild.system_channel))
        if channels:
            native = user.id if user is not None else guild.id
            self._put_event(kind, channels[0].id, guild.id, native, user=user, revision=revision)

    def _put_event(
        self,
        kind: Kind,
        channel_id: int,
        guild_id: int | None,
        native: int,
        *,
        user: Any = None,
        text: str = "",
        revision: str = "",
        quoted: Quoted | None = None,
        language: str = "",
    ) -> None:
        """Queue an event by `user`, None if unknown; those of the bot are ignored. `text`: of a button its data."""
        at = self._host.clock.now()

        async def take(deliver: Deliver) -> None:
            chat = await self._chat(channel_id, self.get_guild(guild_id or 0))
            key = MessageKey(chat, str(native), kind, revision)
            calls = kind in (Kind.CHOICE, Kind.MESSAGE)
            facts = (key, kind, chat, guild_id is not None, self._sender(user, language=language), text, at)
            context = MessageContext(*facts, mentions_bot=calls, reply_to=quoted)
            if kind is Kind.CHOICE:
                context = replace(context, text=await self._value_of(context))
            await self._acceptance.take(deliver, lambda: [context], repr(context))

        if not self._is_me(user):
            self._put(take)

    async def _chat(self, channel_id: int, guild: discord.Guild | None) -> ChatRef:
        channel: Any = guild.get_channel_or_thread(channel_id) if guild is not None else None
        if guild is not None and channel is None:
            # A thread that was archived when the session began.
            with suppress(*_GONE):
                channel = await self.fetch_channel(channel_id)
        return self._ref(channel or discord.Object(channel_id))

    def _ref(self, channel: Any) -> ChatRef:
        """The chat of a channel, or of a thread as `<channel>,<thread>`."""
        parent = f"{channel.parent_id}," if isinstance(channel, discord.Thread) else ""
        return ChatRef(NETWORK, self._account, f"{parent}{channel.id}")

    def _sender(self, user: Any, *, is_webhook: bool = False, language: str = "") -> Sender:
        ref = MemberRef(NETWORK, self._account, str(user.id) if user is not None else _UNKNOWN)
        role = role_of(user) if isinstance(user, discord.Member) else Role.MEMBER
        is_bot = is_webhook or getattr(user, "bot", False)
        return Sender(ref, getattr(user, "display_name", ""), role, is_bot, language=language)

    def _is_me(self, user: Any) -> bool:
        return user is not None and self.user is not None and user.id == self.user.id


def role_of(member: discord.Member) -> Role:
    """The role of a member, by its permissions in the whole server."""
    rights = member.guild_permissions
    if member.guild.owner_id == member.id:
        return Role.OWNER
    if rights.administrator or rights.manage_guild:
        return Role.ADMIN
    return Role.MODERATOR if rights.manage_messages or rights.moderate_members else Role.MEMBER


def _files(message: discord.Message) -> tuple[Attachment, ...]:
    files = ((one, one.content_type or "application/octet-stream") for one in message.attachments)
    return tuple(Attachment(one.filename, media_type, one.url, one.size) for one, media_type in files)


def _with_names(text: str, message: discord.Message) -> str:
    """`text` of `message` with names instead of ids of members, roles, channels and emojis."""
    lists: dict[str, list[Any]] = {"#": message.channel_mentions, "@&": message.role_mentions}

    def name(found: re.Match[str]) -> str:
        kind, native, emoji = found.groups()
        named = [one for one in lists.get(kind, message.mentions) if str(one.id) == native]
        return emoji or (f"{kind[0]}{getattr(named[0], 'display_name', named[0].name)}" if named else found[0])

    return _MENTION.sub(name, text)
