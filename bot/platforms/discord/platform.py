"""The platform of Discord: sending, and the account's connection."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import aiohttp
import discord
import yarl

from bot.platforms.adapter import CannotOpen, Host
from bot.platforms.base import (
    CommandHint,
    Deliver,
    FileUnavailable,
    Limits,
    Outgoing,
    Receipt,
    SendFailed,
    thread_of,
)
from bot.platforms.connection import CannotConnect, ConnectedPlatform, alongside
from bot.platforms.discord.adapter import DiscordSettings
from bot.platforms.discord.gateway import ERRORS, NETWORK, Gateway, Received, role_of
from bot.platforms.web_api import FILE_SECONDS, Refused, check_size, content_of
from function_calls.context import Attachment
from function_calls.ports import Measure, ModerationRequest
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, MemberRef, Role
from services.web.content import data_in

Connector = Callable[[], aiohttp.BaseConnector]
_LONGEST = 2000
_SEND_SECONDS = 60.0
_CLOSE_SECONDS = 2.0
_INVITE_SECONDS = 86_400
_TYPING_SECONDS = 8.0
_MOST_CHATS = 1000
_FILE = aiohttp.ClientTimeout(FILE_SECONDS)
_FILE_HOSTS = ("cdn.discordapp.com", "media.discordapp.net")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\(\s*<?(https?://[^\s)>]+)>?[^)\n]*\)")
_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_PERMISSIONS = "view_channel send_messages send_messages_in_threads read_message_history attach_files add_reactions"
_INTENTS = "enable Server Members Intent and Message Content Intent on the bot's page in the developer portal"
_TOKEN = "Discord rejects the token: reset it on the bot's page in the developer portal"  # noqa: S105 - a message


class DiscordPlatform(ConnectedPlatform):
    """One bot of Discord."""

    name = NETWORK
    limits = Limits(
        # Mentions are put in front of the text.
        text_chars=_LONGEST - 100,
        sends_are_idempotent=True,
        sends_per_minute=60,
        choices=True,
        attachments=True,
        markdown=True,
        catches_up=True,
        file_bytes=10_000_000,
    )

    def __init__(self, settings: DiscordSettings, host: Host, connector: Connector | None = None) -> None:
        """`connector`: opens the network connections; None for the default."""
        # A bot that begins more than 1,000 sessions in a day loses its token.
        super().__init__(settings, host, silence_seconds=150, longest_delay_seconds=300)
        self._token = settings.token.get_secret_value()
        self._connector = connector
        self._received = Received()
        self._gateway: Gateway | None = None
        self._typed_at = Recent[ChatRef, float](_MOST_CHATS)

    async def run(self, deliver: Deliver) -> None:
        async with alongside(self._received.deliver(deliver, self._host)):
            await super().run(deliver)

    async def _connected(self, deliver: Deliver) -> None:
        if self._gateway is None or self._gateway.is_closed():
            connector = self._connector() if self._connector is not None else None
            self._gateway = Gateway(
                self.account, self._host, self._received, self._connection, self._pressed, connector
            )
        gateway = self._gateway
        try:
            if gateway.user is None:
                await gateway.login(self._token)
            await gateway.connect()
        except discord.LoginFailure:
            raise CannotConnect(_TOKEN) from None
        except discord.PrivilegedIntentsRequired:
            raise CannotConnect(_INTENTS) from None
        except discord.ConnectionClosed as closed:
            why = _TOKEN if closed.code == 4004 else f"Discord closed the connection with code {closed.code}"
            raise CannotConnect(why) from None
        except ERRORS as error:
            raise CannotConnect(f"Discord cannot be reached: {type(error).__name__}") from error
        finally:
            if gateway.user is None:
                await gateway.close()
            elif gateway.ws is not None and gateway.ws.open:
                # The session of HTTP stays, for replies. A dead peer does not confirm the end.
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await gateway.ws.close()

    async def close(self) -> None:
        if self._gateway is not None:
            await self._gateway.close()

    async def send(self, outgoing: Outgoing) -> Receipt:
        async with self._requests() as gateway:
            target = await self._target(gateway, outgoing)
            nonce = hashlib.blake2b(outgoing.key.encode(), digest_size=12).hexdigest()
            reference = None
            if outgoing.reply_to and outgoing.reply_to.isdecimal() and outgoing.private_to is None:
                channel_id: Any = getattr(target, "id", 0)
                reference = discord.MessageReference(
                    message_id=int(outgoing.reply_to), channel_id=channel_id, fail_if_not_exists=False
                )
            try:
                sent = await target.send(**self._message(outgoing), nonce=nonce, reference=reference)
            except discord.HTTPException as error:
                if reference is None or error.status != 400:
                    raise
                sent = await target.send(**self._message(outgoing), nonce=nonce)
            for native in outgoing.closes:
                with suppress(*ERRORS, ValueError):
                    await target.get_partial_message(int(native)).edit(view=None)
            return Receipt(str(sent.id))

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        """Replace text, buttons and, if there are new ones, files."""
        async with self._requests() as gateway:
            target = await self._target(gateway, outgoing)
            message = self._message(outgoing)
            shown = {name: message.get(name) for name in ("content", "view", "allowed_mentions")}
            if "files" in message:
                shown["attachments"] = message["files"]
            await target.get_partial_message(int(native_id)).edit(**shown)

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        async with self._requests() as gateway:
            with suppress(discord.NotFound):
                await _channel(gateway, chat).get_partial_message(int(native_id)).delete()

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        async with self._requests() as gateway:
            channel = _channel(gateway, chat)
            if emoji:
                await channel.get_partial_message(int(native_id)).add_reaction(emoji)
                return
            message = await channel.fetch_message(int(native_id))
            for reaction in message.reactions:
                if reaction.me and gateway.user is not None:
                    await message.remove_reaction(reaction.emoji, gateway.user)

    async def typing(self, chat: ChatRef, status: str) -> None:
        """Show the indicator. It disappears with the next message, or after ten seconds."""
        now = self._clock.monotonic()
        if not status or now - self._typed_at.get(chat, -_TYPING_SECONDS) < _TYPING_SECONDS:
            return
        self._typed_at[chat] = now
        with suppress(SendFailed):
            async with self._requests() as gateway:
                await _channel(gateway, chat).typing()

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        if not self.link().is_up:
            # The permissions of the server's roles are known by events.
            return None
        with suppress(SendFailed):
            async with self._requests() as gateway:
                channel = await _full_channel(gateway, chat)
                if isinstance(channel, discord.DMChannel):
                    return Role.MEMBER if member.native in map(str, (one.id for one in channel.recipients)) else None
                return role_of(await channel.guild.fetch_member(int(member.native)))
        return None

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        """At most 1,000 members who can read the channel."""
        async with self._requests() as gateway:
            channel = await _full_channel(gateway, chat)
            if isinstance(channel, discord.DMChannel):
                found: list[Any] = list(channel.recipients)
            else:
                all_members = [one async for one in channel.guild.fetch_members(limit=1000)]
                found = [one for one in all_members if channel.permissions_for(one).read_messages]
            return [self._member(str(one.id)) for one in found if one.id != gateway.user.id]

    async def leave(self, chat: ChatRef) -> None:
        """Leave the server, with all its channels."""
        async with self._requests() as gateway:
            with suppress(discord.NotFound, discord.Forbidden):
                channel = await _full_channel(gateway, chat)
                if not isinstance(channel, discord.DMChannel):
                    await channel.guild.leave()

    measures = frozenset({Measure.KICK, Measure.BAN, Measure.SILENCE, Measure.PIN, Measure.LINK})

    async def moderate(self, request: ModerationRequest) -> str:
        async with self._requests() as gateway:
            if request.measure is Measure.PIN:
                await _channel(gateway, request.chat).get_partial_message(int(request.message_id)).pin()
                return ""
            channel = await _full_channel(gateway, request.chat)
            if isinstance(channel, discord.DMChannel):
                raise SendFailed("a private chat has no members to moderate", retryable=False)
            match request.measure:
                case Measure.KICK:
                    await channel.guild.kick(discord.Object(int(request.who)))
                case Measure.BAN:
                    await channel.guild.ban(discord.Object(int(request.who)), delete_message_seconds=0)
                case Measure.SILENCE:
                    member = await channel.guild.fetch_member(int(request.who))
                    await member.timeout(timedelta(seconds=request.seconds))
                case _:
                    return str((await channel.create_invite(max_age=_INVITE_SECONDS, max_uses=1)).url)
        return ""

    async def show_commands(self, menus: Mapping[str, Sequence[CommandHint]]) -> None:
        """Show at most 100 commands, all languages in one menu, once the bot is connected; words that Discord does not
        permit are left out."""
        await self._connection.until_up()
        async with self._requests() as gateway:
            about: dict[str, dict[str, str]] = {}
            for language, hints in menus.items():
                for hint in hints:
                    word = hint.word.removeprefix("/")
                    if re.fullmatch(r"[-\w]{1,32}", word) and word == word.lower():
                        about.setdefault(word, {})[language] = hint.about[:100] or "…"
            commands: list[Any] = [
                {
                    "name": word,
                    "description": next(iter(words.values())),
                    "description_localizations": {"zh-CN": words["zh"]} if "zh" in words else {},
                    "options": [{"type": 3, "name": "text", "description": "…", "required": False}],
                    "contexts": [0, 1],
                    "integration_types": [0],
                }
                for word, words in list(about.items())[:100]
            ]
            await gateway.http.bulk_upsert_global_commands(gateway.application_id or 0, commands)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        url = yarl.URL(attachment.url)
        if url.scheme != "https" or url.host not in _FILE_HOSTS:
            raise FileUnavailable("it is not a file of Discord")
        gateway = self._logged_in()
        if gateway is None:
            raise FileUnavailable("not connected yet")
        check_size(attachment.size_bytes, max_bytes)
        async with aiohttp.ClientSession(connector=gateway.http.connector, connector_owner=False) as session:
            return await content_of(session.get(url, timeout=_FILE, allow_redirects=False), max_bytes)

    def _logged_in(self) -> Gateway | None:
        gateway = self._gateway
        return None if gateway is None or gateway.user is None or gateway.is_closed() else gateway

    @asynccontextmanager
    async def _requests(self) -> AsyncIterator[Any]:
        """The client for requests. Raises SendFailed for their errors."""
        gateway = self._logged_in()
        if gateway is None:
            raise SendFailed("not connected yet", retryable=True)
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                yield gateway
        except (*ERRORS, ValueError) as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> SendFailed:
        is_global = self._clock.monotonic() < self._received.global_limit_until
        match error:
            case discord.RateLimited():
                seconds = error.retry_after
                return SendFailed("rate limited", retryable=True, retry_after_seconds=seconds, for_account=is_global)
            case discord.HTTPException():
                words = f"Discord rejects the request: status {error.status}, code {error.code}"
                # With 429, an answer without JSON: the whole address is blocked for a while.
                wait, is_limited = error.response.headers.get("Retry-After", 60), error.status == 429
                return Refused(words, error.status, retry_after=wait, for_account=is_limited)
            case aiohttp.ClientConnectorError():
                return SendFailed("Discord cannot be reached", retryable=True)
            case aiohttp.ClientError() | OSError():
                return SendFailed(
                    f"Discord did not answer: {type(error).__name__}", retryable=True, unknown_outcome=True
                )
        return SendFailed("an id is not one of Discord's", retryable=False)

    async def _target(self, gateway: Gateway, outgoing: Outgoing) -> Any:
        """The channel, thread or private chat that `outgoing` goes to."""
        if outgoing.private_to is not None:
            return await gateway.create_dm(discord.Object(int(outgoing.private_to.native)))
        return _channel(gateway, outgoing.chat)

    def _message(self, outgoing: Outgoing) -> dict[str, Any]:
        """The arguments of discord.py for `outgoing`."""
        mentions = dict.fromkeys(outgoing.mentions) if outgoing.private_to is None else ()
        members = [one for one in mentions if one.native.isdecimal()]
        files = [(one.name, data_in(one.url)) for one in outgoing.uploads]
        mentioned = "".join(f"<@{one.native}> " for one in members[:4])
        texts = [_shown(outgoing.text), outgoing.plain] if outgoing.markdown else []
        texts += [_escaped(outgoing.text), outgoing.text]
        content = next((one for one in (mentioned + text for text in texts) if len(one) <= _LONGEST), outgoing.text)
        message: dict[str, Any] = {
            "content": (content + outgoing.links)[:_LONGEST],
            "allowed_mentions": discord.AllowedMentions(
                everyone=False,
                roles=False,
                users=[discord.Object(int(one.native)) for one in members],
                replied_user=False,
            ),
            "suppress_embeds": True,
        }
        if files:
            message["files"] = [discord.File(io.BytesIO(content or b""), name) for name, content in files[:10]]
        if outgoing.choices:
            message["view"] = self._buttons(outgoing)
        return message

    def _buttons(self, outgoing: Outgoing) -> discord.ui.View:
        """A row for each five choices."""
        view = discord.ui.View(timeout=None)
        for number, choice in enumerate(outgoing.choices[:25]):
            custom_id = f"{number}:{self._button(outgoing, number, 97)}"
            view.add_item(discord.ui.Button(label=choice.label[:80], custom_id=custom_id, row=number // 5))
        # discord.py would keep an active view for its own callbacks.
        view.stop()
        return view


async def probe(settings: DiscordSettings, _clock: Clock, connector: Connector | None = None) -> str:
    """See `Adapter.probe`. `connector`: see `DiscordPlatform`."""
    client = discord.Client(intents=discord.Intents.none(), connector=connector() if connector else None)
    try:
        await client.login(settings.token.get_secret_value())
        flags = client.application_flags
        if not (flags.gateway_message_content or flags.gateway_message_content_limited) or not (
            flags.gateway_guild_members or flags.gateway_guild_members_limited
        ):
            raise CannotOpen(_INTENTS)
        guilds = [one async for one in client.fetch_guilds(limit=200, with_counts=False)]
        invite = discord.utils.oauth_url(
            client.application_id or 0, permissions=discord.Permissions(**dict.fromkeys(_PERMISSIONS.split(), True))
        )
        return f"connected as @{client.user}; servers: {len(guilds)}" + ("" if guilds else f"; invite it: {invite}")
    except discord.LoginFailure:
        raise CannotOpen(_TOKEN) from None
    except ERRORS as error:
        raise CannotOpen(f"Discord cannot be reached: {type(error).__name__}") from error
    finally:
        await client.close()


def _channel(gateway: Gateway, chat: ChatRef) -> discord.PartialMessageable:
    channel, thread = thread_of(chat.native)
    return gateway.get_partial_messageable(int(thread or channel))


async def _full_channel(gateway: Gateway, chat: ChatRef) -> Any:
    """The channel, or the one of a thread, with its server or recipients."""
    native = int(thread_of(chat.native)[0])
    return gateway.get_channel(native) or await gateway.fetch_channel(native)


def _escaped(text: str) -> str:
    return re.sub(r"<(?=[@#:/]|(?:a|t|id):)", r"\\<", discord.utils.escape_markdown(text))


def _shown(text: str) -> str:
    """Markdown for Discord: links show their address."""
    parts = _CODE.split(text)
    parts[::2] = [_LINK.sub(r"\1 (<\2>)", part) for part in parts[::2]]
    return "".join(parts)
