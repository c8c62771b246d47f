"""Telegram as a network, over the Bot API (https://core.telegram.org/bots/api)."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from pydantic import SecretStr

from bot.platforms.adapter import Adapter, CannotOpen, Host
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
from bot.platforms.connection import CannotConnect, ConnectedPlatform, probing
from bot.platforms.markdown import html_of
from bot.platforms.telegram.messages import FILE_URL, Json, Updates, migration, name_of, role_of
from bot.platforms.web_api import FILE_SECONDS, Answer, Refused, WebApi, check_size, form_with, read_body, unless
from config.sections.networks import NetworkSettings
from config.terms import SecureUrl, matching
from function_calls.context import Attachment
from function_calls.ports import Measure, ModerationRequest
from services.clock import Clock
from services.refs import ChatRef, MemberRef, Role
from services.store.port import StoreError, Write

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

_POLL_SECONDS = 50
_LATE_SECONDS = 20.0
"""Time after which a poll counts as lost."""
_UPDATES = ("message", "edited_message", "callback_query", "message_reaction", "my_chat_member", "chat_member")
_UPDATE_BYTES = 1_000_000
_CAPTION_UNITS = 1024
_DATA_BYTES = 64
_NAME_CHARS = 32
_MENTION_UNITS = 250
_PHOTO_CHARS = 13_000_000
_PHOTOS = frozenset({"image/jpeg", "image/png", "image/webp"})
_SECONDS_PER_SEND = 1 / 30
_TYPING_SECONDS = 4.0
"""Minimum interval of typing indicators in a chat; clients remove one after five seconds."""
_ROLES_SECONDS = 60.0
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_TOKEN = matching(r"[0-9]+:[A-Za-z0-9_-]+", "has to be a token of @BotFather, such as 123456:ABC-DEF")


class TelegramSettings(NetworkSettings):
    """One account of the bot on Telegram."""

    token: Annotated[SecretStr, _TOKEN]
    """Token of @BotFather; preferably a reference to the environment."""
    webhook: bool = False
    """True: Telegram sends events to `platforms.web.public_url`, which has to be an https URL and reachable from the
    internet. False: the bot fetches them."""
    api_url: SecureUrl = "https://api.telegram.org"
    """URL of the Bot API server, without the token."""


class ApiError(Refused):
    """Telegram rejected a call, with a description."""

    def __init__(self, answer: Answer) -> None:
        # A proxy in front of the server answers without JSON.
        content = answer.content if isinstance(answer.content, dict) else {}
        advice = content.get("parameters") or {}
        status, words = int(content.get("error_code", answer.status)), str(content.get("description", ""))
        line, seconds = f"Telegram answers {status}: {words}".rstrip(": "), advice.get("retry_after", "")
        super().__init__(line, status, code=words, retry_after=seconds)
        self.moved_to = str(advice.get("migrate_to_chat_id", ""))
        """Id of the supergroup that the group has become; empty if it has not."""

    def says(self, *words: str) -> bool:
        """Whether the description contains one of `words`."""
        return any(word in self.code for word in words)


class BotApi:
    """Calls methods of the Bot API."""

    def __init__(self, url: str, token: str) -> None:
        self._web = WebApi("Telegram", url)
        self._token = token
        self.webhook_secret = hmac.digest(token.encode(), b"webhook", "sha256").hex()
        """Part of the requests that Telegram sends to the bot."""
        self.close = self._web.close

    async def call(
        self, method: str, *, seconds: float = 30.0, upload: tuple[str, Attachment] | None = None, **given: Any
    ) -> Any:
        """The result of `method` with the parameters `given`, without those that are None, and with the file `upload`
        as a parameter of that name. Raises SendFailed, mostly ApiError."""
        given = {name: value for name, value in given.items() if value is not None}
        body: dict[str, Any] = {"json": given}
        if upload is not None:
            texts = {name: one if isinstance(one, str) else orjson.dumps(one).decode() for name, one in given.items()}
            seconds, body = FILE_SECONDS, {"data": form_with(texts, *upload)}
        answer = await self._web.call("POST", f"/bot{self._token}/{method}", seconds=seconds, **body)
        if isinstance(answer.content, dict) and answer.content.get("ok"):
            return answer.content["result"]
        raise ApiError(answer)

    async def download(self, path: str, max_bytes: int) -> bytes:
        """The file with the `file_path` that `getFile` returned. Raises FileUnavailable."""
        return await self._web.download(f"{self._web.url}/file/bot{self._token}/{path}", max_bytes)


class TelegramPlatform(ConnectedPlatform):
    """One account of the bot on Telegram."""

    name = "telegram"
    limits = Limits(
        # Telegram counts 4096 UTF-16 units, two for some characters, and mentions need room.
        text_chars=1900,
        sends_per_minute=20,
        choices=True,
        attachments=True,
        markdown=True,
        catches_up=True,
        file_bytes=50_000_000,
    )

    def __init__(self, settings: TelegramSettings, host: Host) -> None:
        """Raises CannotOpen."""
        super().__init__(settings, host, silence_seconds=_POLL_SECONDS + 2 * _LATE_SECONDS)
        if settings.webhook and not host.public_url.startswith("https://"):
            raise CannotOpen("webhook: true needs platforms.web.public_url with https://")
        self._url = f"{host.public_url}/platforms/{self.name}/{self.account}/update" if settings.webhook else ""
        self._api = BotApi(settings.api_url, settings.token.get_secret_value())
        self._moved = self._stored("moved")
        self._updates = Updates(settings.account, host.names, host.clock)
        self._deliver: Deliver | None = None
        self._admins_until: dict[str, float] = {}
        self._next_send_at = 0.0
        self._typing_at: dict[str, float] = {}

    async def close(self) -> None:
        # A webhook stays, so that Telegram keeps events for the next start.
        await self._background.close()
        await self._api.close()

    # Receiving

    async def _connected(self, deliver: Deliver) -> None:
        try:
            self._updates.connected(await self._api.call("getMe"))
            self._updates.old_ids = orjson.loads(await self._moved.read() or "{}")
            position = await self._cursor.read()
            method, facts = "deleteWebhook", Json()
            if self._url:
                method = "setWebhook"
                facts = {"url": self._url, "secret_token": self._api.webhook_secret, "allowed_updates": _UPDATES}
            # At the first start, earlier events are dropped.
            await self._api.call(method, drop_pending_updates=position is None, **facts)
            if position is None:
                await self._cursor.keep("0")
            self._deliver = deliver
            self._connection.up()
            await (self._watch_webhook() if self._url else self._poll(deliver, int(position or 0)))
        finally:
            self._deliver = None

    async def _poll(self, deliver: Deliver, offset: int) -> None:
        facts: Json = {"timeout": _POLL_SECONDS, "allowed_updates": _UPDATES}
        while True:
            updates = await self._api.call("getUpdates", seconds=_POLL_SECONDS + _LATE_SECONDS, offset=offset, **facts)
            self._connection.heard()
            # A chat that has moved is known under its old id before any other event of the supergroup.
            for update in updates:
                await self._follow(migration(update))
            for update in updates:
                offset = int(update["update_id"]) + 1
                await self._take(deliver, update, self._cursor.at(str(offset)))

    async def _watch_webhook(self) -> None:
        while (await self._api.call("getWebhookInfo"))["url"] == self._url:
            self._connection.heard()
            await self._clock.sleep(_POLL_SECONDS)
        raise CannotConnect("another program has changed the webhook of the bot")

    def routes(self) -> Sequence[BaseRoute]:
        from starlette.routing import Route

        return [Route("/update", self._receive, methods=["POST"])] if self._url else []

    async def _receive(self, request: Request) -> Response:
        from starlette.responses import Response

        offered = request.headers.get("x-telegram-bot-api-secret-token", "")
        if not hmac.compare_digest(offered.encode(), self._api.webhook_secret.encode()):
            return Response(status_code=401)
        body = await read_body(request, _UPDATE_BYTES)
        if body is None:
            return Response(status_code=413)
        if self._deliver is None:
            return Response(status_code=503)
        try:
            update = orjson.loads(body)
            await self._follow(migration(update))
            await self._take(self._deliver, update)
        except orjson.JSONDecodeError:
            return Response(status_code=400)
        except StoreError:
            # Telegram sends it again.
            return Response(status_code=503)
        return Response()

    async def _take(self, deliver: Deliver, update: Json, cursor: Write | None = None) -> None:
        query: Json | None = None
        # The acceptance reports updates that cannot be read.
        with suppress(LookupError, TypeError, AttributeError, ValueError):
            query = update.get("callback_query")
            if query is not None:
                for press in self._updates.contexts(update):
                    query["data"] = await self._pressed(press)
            await self._learn_roles(update)
        raw = orjson.dumps(update).decode()
        await self._acceptance.take(deliver, lambda: self._updates.contexts(update), raw, cursor)
        if query is not None:
            self._background.start(self._answer(query))

    async def _answer(self, query: Json) -> None:
        """End the progress indicator of a pressed button."""
        with suppress(SendFailed, LookupError, TypeError):
            await self._api.call("answerCallbackQuery", callback_query_id=query["id"])

    async def _follow(self, moved: tuple[str, str] | None) -> None:
        """Note the old and new id of a group that has become a supergroup, durably. Raises StoreError."""
        if moved is not None and moved[1] not in self._updates.old_ids:
            old_ids = {**self._updates.old_ids, moved[1]: moved[0]}
            await self._host.store.commit([self._moved.at(orjson.dumps(old_ids).decode())])
            self._updates.old_ids = old_ids

    # Members

    async def _learn_roles(self, update: Json) -> None:
        """Fetch the administrators of the group if the update is addressed to the bot; messages do not name roles."""
        for context in self._updates.contexts(update):
            chat, now = thread_of(context.chat.native)[0], self._clock.monotonic()
            is_relevant = context.is_group and (context.calls_bot or context.text.startswith("/"))
            if is_relevant and self._admins_until.get(chat, now) <= now:
                self._admins_until[chat] = now + _ROLES_SECONDS
                self._updates.admins[chat] = {}
                with suppress(SendFailed):
                    admins = await self._call("getChatAdministrators", chat, seconds=5)
                    self._updates.admins[chat] = {str(one["user"]["id"]): role_of(one) for one in admins}

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        if not member.native.isdecimal():
            # Groups and channels that send messages.
            return None
        if member.native == thread_of(chat.native)[0]:
            return Role.MEMBER
        with suppress(SendFailed, LookupError):
            return role_of(await self._call("getChatMember", chat.native, user_id=int(member.native)))
        return None

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        """The administrators: Telegram lists nobody else."""
        native = thread_of(chat.native)[0]
        admins = await self._call("getChatAdministrators", native) if native.startswith("-") else []
        users = [str(one["user"]["id"]) for one in admins] or [native]
        return [self._member(one) for one in users if one != self._updates.bot]

    async def leave(self, chat: ChatRef) -> None:
        with unless("chat not found", "not a member"):
            await self._call("leaveChat", chat.native)

    measures = frozenset({Measure.KICK, Measure.BAN, Measure.SILENCE, Measure.PIN, Measure.LINK})

    async def moderate(self, request: ModerationRequest) -> str:
        chat, user = thread_of(request.chat.native)[0], int(request.who) if request.who.isdecimal() else 0
        match request.measure:
            case Measure.KICK if chat.startswith("-100"):
                # Removes the user without banning them.
                await self._call("unbanChatMember", chat, user_id=user)
            case Measure.KICK | Measure.BAN:
                await self._call("banChatMember", chat, user_id=user)
            case Measure.SILENCE:
                until = self._clock.now_ms() // 1000 + request.seconds
                await self._call(
                    "restrictChatMember", chat, user_id=user, permissions={"can_send_messages": False}, until_date=until
                )
            case Measure.PIN:
                number = self._number(chat, request.message_id)
                await self._call("pinChatMessage", chat, message_id=number, disable_notification=True)
            case _:
                return str((await self._call("createChatInviteLink", chat, member_limit=1))["invite_link"])
        return ""

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        chat = (outgoing.private_to or outgoing.chat).native
        text = await self._text(outgoing, chat)
        uploads = outgoing.uploads
        first = uploads.pop(0) if uploads and _units(text["plain"]) <= _CAPTION_UNITS else None
        number = 0 if outgoing.private_to else self._number(chat, outgoing.reply_to or "")
        reply = {"message_id": number, "allow_sending_without_reply": True} if number else None
        keyboard = self._keyboard(outgoing)
        native_id = await self._send_part(chat, first, **text, reply_parameters=reply, reply_markup=keyboard)
        try:
            for file in uploads:
                await self._send_part(chat, file)
        except SendFailed as error:
            error.unknown_outcome = True
            raise
        for closed in outgoing.closes:
            with suppress(SendFailed):
                number = self._number(outgoing.chat.native, closed)
                await self._call("editMessageReplyMarkup", outgoing.chat.native, message_id=number)
        return Receipt(native_id)

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        chat = (outgoing.private_to or outgoing.chat).native
        facts = {**await self._text(outgoing, chat), "reply_markup": self._keyboard(outgoing)}
        with unless("message is not modified"):
            await self._adapted("editMessageText", chat, message_id=self._number(chat, native_id), **facts)

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        with unless("message to delete not found"):
            await self._call("deleteMessage", chat.native, message_id=self._number(chat.native, native_id))

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        # Telegram's emoji have no variation selector.
        reaction = [{"type": "emoji", "emoji": emoji.replace("\ufe0f", "")}] if emoji else []
        number = self._number(chat.native, native_id)
        await self._call("setMessageReaction", chat.native, message_id=number, reaction=reaction)

    async def typing(self, chat: ChatRef, status: str) -> None:
        now = self._clock.monotonic()
        if status and now - self._typing_at.get(chat.native, float("-inf")) >= _TYPING_SECONDS:
            self._typing_at[chat.native] = now
            with suppress(SendFailed):
                await self._call("sendChatAction", chat.native, action="typing")

    async def show_commands(self, menus: Mapping[str, Sequence[CommandHint]]) -> None:
        for number, (language, hints) in enumerate(menus.items()):
            words = {hint.word.removeprefix("/"): hint.about for hint in hints}
            valid = [(word, about) for word, about in words.items() if _COMMAND.fullmatch(word)][:100]
            commands = [{"command": word, "description": about[:256] or word} for word, about in valid]
            await self._api.call("setMyCommands", commands=commands, language_code=language if number else None)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        try:
            file = await self._api.call("getFile", file_id=attachment.url.removeprefix(FILE_URL))
        except SendFailed as error:
            raise FileUnavailable(str(error)) from None
        path = str(file.get("file_path") or "/")
        check_size(max(file.get("file_size") or 0, attachment.size_bytes or 0), max_bytes)
        if path.startswith("/") or ".." in path:
            raise FileUnavailable("Telegram offers no download")
        return await self._api.download(path, max_bytes)

    async def _text(self, outgoing: Outgoing, chat: str) -> Json:
        """Parameters for the text, behind the mentioned members and before the URLs of files that are not uploaded;
        `plain` is the text without markup."""
        names: list[str] = []
        links: list[str] = []
        for member in outgoing.mentions if chat.startswith("-") else ():
            name = await self._name(chat, member)
            if name and _units(", ".join([*names, name])) < _MENTION_UNITS:
                names.append(name)
                links.append(f'<a href="tg://user?id={member.native}">{escape(name)}</a>')
        before = (f"{', '.join(names)}: ", f"{', '.join(links)}: ") if names else ("", "")
        after = outgoing.links
        plain = f"{before[0]}{outgoing.plain}{after}"
        facts: Json = {"text": plain, "plain": plain, "link_preview_options": {"is_disabled": True}}
        if names or outgoing.markdown:
            html = html_of(outgoing.text) if outgoing.markdown else escape(outgoing.text, quote=False)
            facts |= {"text": f"{before[1]}{html}{escape(after, quote=False)}", "parse_mode": "HTML"}
        return facts

    async def _name(self, chat: str, member: MemberRef) -> str:
        """The member's display name, shortened; empty if they are not in the chat."""
        name = self._updates.names.get(member.native, "")
        with suppress(SendFailed, ValueError, LookupError):
            name = name or name_of((await self._call("getChatMember", chat, user_id=int(member.native)))["user"])
        return " ".join(name.split())[:_NAME_CHARS]

    def _keyboard(self, outgoing: Outgoing) -> Json | None:
        buttons = [
            [{"text": one.label, "callback_data": self._button(outgoing, number, _DATA_BYTES)}]
            for number, one in enumerate(outgoing.choices)
        ]
        return {"inline_keyboard": buttons} if buttons else None

    async def _send_part(self, chat: str, file: Attachment | None, **facts: Any) -> str:
        """Send a text, or a file with the text as its caption; returns the native id. Raises ApiError."""
        # The rate limit of the account.
        now = self._clock.monotonic()
        at, self._next_send_at = self._next_send_at, max(now, self._next_send_at) + _SECONDS_PER_SEND
        await self._clock.sleep(max(at - now, 0))
        if file is None:
            message = await self._adapted("sendMessage", chat, **facts)
        else:
            is_photo = file.media_type in _PHOTOS and len(file.url) < _PHOTO_CHARS
            method, field = ("sendPhoto", "photo") if is_photo else ("sendDocument", "document")
            facts["caption"] = facts.pop("text", None)
            message = await self._adapted(method, chat, upload=(field, file), **facts)
        native_id = self._updates.message_id(message)
        if thread := thread_of(chat)[1]:
            self._updates.threads[f"{message['chat']['id']} {native_id}"] = thread
        return native_id

    async def _adapted(self, method: str, chat: str, plain: str = "", **facts: Any) -> Any:
        """Call `method` in a chat, again without details that Telegram rejects; `plain` replaces a text with markup.
        Raises ApiError."""
        while True:
            try:
                return await self._call(method, chat, **facts)
            except ApiError as error:
                if error.says("can't parse entities") and facts.pop("parse_mode", None):
                    facts["text" if "text" in facts else "caption"] = plain
                elif error.says("no text in the message") and "text" in facts:
                    method, facts["caption"] = "editMessageCaption", facts.pop("text")
                elif error.says("PHOTO_", "IMAGE_PROCESS") and method == "sendPhoto":
                    method, facts["upload"] = "sendDocument", ("document", facts["upload"][1])
                elif not (error.says("repl") and facts.pop("reply_parameters", None)):
                    raise

    def _number(self, chat: str, native_id: str) -> int:
        """Telegram's number of a message; 0, which no message has, if it was lost when the group became a
        supergroup."""
        digits, is_new = native_id.removesuffix("s"), native_id.endswith("s")
        has_moved = thread_of(chat)[0] in self._updates.old_ids.values()
        return int(digits) if digits.isdecimal() and is_new == has_moved else 0

    async def _call(self, method: str, chat: str, **facts: Any) -> Any:
        """Call `method` in a chat, or in the supergroup that it has become. Raises ApiError."""
        native, thread = thread_of(chat)
        if thread.isdecimal():
            facts["message_thread_id"] = int(thread)
        new_ids = {old: new for new, old in self._updates.old_ids.items()}
        try:
            return await self._api.call(method, chat_id=new_ids.get(native, native), **facts)
        except ApiError as error:
            if not error.moved_to or native in new_ids:
                raise
            await self._follow((native, error.moved_to))
            facts.pop("reply_parameters", None)
            return await self._api.call(method, chat_id=error.moved_to, **facts)


def _units(text: str) -> int:
    """Length as counted by Telegram, in UTF-16 units."""
    return len(text.encode("utf-16-le", "replace")) // 2


async def probe(settings: TelegramSettings, _clock: Clock) -> str:
    """See `Adapter.probe`."""
    api = BotApi(settings.api_url, settings.token.get_secret_value())
    async with probing(api.close, "Check token and api_url"):
        bot = await api.call("getMe")
    line = f"connected as @{bot['username']}"
    if not bot.get("can_join_groups"):
        line += "; it cannot be added to groups: /setjoingroups at @BotFather changes that"
    if not bot.get("can_read_all_group_messages"):
        line += "; privacy mode is on, so it sees only commands, mentions and replies in groups"
        line += " where it is no administrator: /setprivacy at @BotFather changes that"
    return line


ADAPTER = Adapter(TelegramSettings, TelegramPlatform, probe, asks=("token",))
