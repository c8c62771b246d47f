"""The OneBot v11 platform: one account per instance."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import parse_qs

import orjson
import structlog

from bot.platforms.adapter import Adapter, CannotOpen, Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, Outgoing, Receipt, SendFailed
from bot.platforms.connection import CannotConnect, ConnectedPlatform, alongside
from bot.platforms.onebot.events import FILE, GROUP, NAME, PRIVATE, ROLES, Reader, replied_id, seconds_of
from bot.platforms.onebot.session import CALL_SECONDS, CallFailed, Dialling, Listening, OneBotSettings, Session
from bot.platforms.web_api import FileGone, WebApi, check_host, check_size, object_in
from function_calls.context import Attachment, Quoted
from function_calls.ports import Measure, ModerationRequest
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, JsonObject, MemberRef, Role
from services.web.content import data_in

_log = structlog.get_logger("onebot")
_SILENCE_SECONDS = 90.0
_POLL_SECONDS = 30.0
_LOGIN_SECONDS = 10.0
_LOOKUP_SECONDS = 5.0
_RECONNECT_SECONDS = 10.0
"""How long a call waits for a connection."""
_PROBE_SECONDS = 15.0
_HISTORY = 100
"""Messages per group that are read after a gap."""
_PARALLEL = 5
_MOST_REMEMBERED = 1000
_QUEUED = "queued-"
_UNSUPPORTED = frozenset({404, 1404, 10002})


class OneBotPlatform(ConnectedPlatform):
    """One account."""

    name = NAME
    limits = Limits(
        text_chars=4500,
        sends_per_minute=30,
        attachments=True,
        bots_are_marked=False,
        catches_up=True,  # until the implementation turns out to have no history
        file_bytes=20_000_000,
    )

    def __init__(self, settings: OneBotSettings, host: Host) -> None:
        super().__init__(settings, host, silence_seconds=_SILENCE_SECONDS)
        self._settings = settings
        self._web = WebApi("the server of files", "https://")
        self._position: int | None = None
        """Unix time of the last event that was received."""
        self._opener = (Dialling if settings.url else Listening)(settings, self._connection.heard)
        self._reader = Reader(settings.account, self._hear)
        self._session: Session | None = None
        self._ready = asyncio.Event()
        self._self_id = ""
        self._reactions = Recent[str, str](_MOST_REMEMBERED)
        """The bot's own, by message."""
        self._groups = Recent[str, Any](_MOST_REMEMBERED)
        """The group through which a member that is no friend wrote in private."""

    async def run(self, deliver: Deliver) -> None:
        """The connection stays open for calls afterwards."""
        try:
            await super().run(deliver)
        finally:
            if self._session is not None:
                self._session.drop_events()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        await self._opener.close()
        await self._web.close()

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        action, target = _target(outgoing)
        if outgoing.chat.native.startswith(PRIVATE) and str(target["user_id"]) in self._groups:
            target["group_id"] = self._groups[str(target["user_id"])]
        native_id = ""
        for number, message in enumerate(_messages(outgoing)):
            try:
                native_id = await self._send(action, target, message)
            except SendFailed as failed:
                if number == 0:
                    raise
                # Another part was sent.
                raise SendFailed(str(failed), retryable=failed.retryable, unknown_outcome=True) from failed
        # Implementations that only queue a message give no id.
        return Receipt(native_id or f"{_QUEUED}{outgoing.key}")

    async def _send(self, action: str, target: JsonObject, message: Sequence[JsonObject]) -> str:
        try:
            sent = await self._call(action, **target, message=message)
        except CallFailed as failed:
            if message[0]["type"] == "reply":
                return await self._send(action, target, message[1:])
            why = await self._why(target)
            raise (SendFailed(f"{failed}: {why}", retryable=False) if why else failed) from failed
        return str(sent.get("message_id") or "") if isinstance(sent, dict) else ""

    async def _why(self, target: JsonObject) -> str:
        """Permanent reason of a rejection; empty if there is none. Implementations have one code for most reasons."""
        with suppress(SendFailed, TypeError, KeyError, AttributeError):
            if "user_id" in target:
                friends = await self._call("get_friend_list", _LOOKUP_SECONDS)
                is_friend = str(target["user_id"]) in {str(friend["user_id"]) for friend in friends}
                return "" if is_friend else "the member is no friend of the account"
            if not await self._is_in(target["group_id"]):
                return "the bot is not in the group"
            me = await self._member_info(target["group_id"], self._self_id)
            if (me.get("shut_up_timestamp") or 0) > self._clock.now().timestamp():
                return "the bot is muted in the group"
        return ""

    async def typing(self, chat: ChatRef, status: str) -> None:
        """In private chats only."""
        kind, _, native = chat.native.partition("-")
        if kind == PRIVATE and status and self._ready.is_set():
            with suppress(SendFailed):
                await self._call("set_input_status", _LOOKUP_SECONDS, user_id=_id(native), event_type=1)

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        """Only a reaction that was added since the start can be removed."""
        before = self._reactions.pop(native_id, "")
        emoji_id = str(ord(emoji[0])) if emoji else before
        if not emoji_id:
            return
        await self._call("set_msg_emoji_like", message_id=_id(native_id), emoji_id=emoji_id, set=bool(emoji))
        if emoji:
            self._reactions[native_id] = emoji_id

    # Members

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The current role in the group; None outside of groups."""
        group = _group(chat)
        if group is not None:
            with suppress(SendFailed, TypeError, KeyError):
                found = await self._member_info(group, member.native)
                return ROLES.get(found["role"]) if str(found["user_id"]) == member.native else None
        return None

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        group = _group(chat)
        found = await self._call("get_group_member_list", group_id=group) if group is not None else None
        ids = [str(member["user_id"]) for member in found or ()]
        return [self._reader.member(native) for native in ids if native != self._self_id]

    async def leave(self, chat: ChatRef) -> None:
        group = _group(chat)
        if group is not None and await self._is_in(group):
            await self._call("set_group_leave", group_id=group)

    measures = frozenset({Measure.KICK, Measure.BAN, Measure.SILENCE})

    async def moderate(self, request: ModerationRequest) -> str:
        who: JsonObject = {"group_id": _group(request.chat), "user_id": _id(request.who)}
        try:
            if request.measure is Measure.SILENCE:
                await self._call("set_group_ban", **who, duration=request.seconds)
            else:
                # A member who may not come back is one whose requests to join are rejected.
                await self._call("set_group_kick", **who, reject_add_request=request.measure is Measure.BAN)
        except CallFailed as failed:
            raise SendFailed(str(failed), retryable=False) from None
        return ""

    async def _is_in(self, group: int | str) -> bool:
        groups = await self._call("get_group_list", _LOOKUP_SECONDS, no_cache=True)
        return any(str(one["group_id"]) == str(group) for one in groups or ())

    async def _member_info(self, group: int | str, member: str) -> JsonObject:
        found: JsonObject = await self._call(
            "get_group_member_info", group_id=group, user_id=_id(member), no_cache=True
        )
        return found

    # Files

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        """Read a file from the address in its message, or a new one from the implementation."""
        check_size(attachment.size_bytes, max_bytes)
        facts = {key: values[0] for key, values in parse_qs(attachment.url.removeprefix(FILE)).items()}
        if "url" in facts:
            with suppress(FileGone):
                return await self._download(facts["url"], max_bytes)
        # The address is missing or has expired.
        action = {"image": "get_image", "record": "get_record"}.get(facts.get("kind", ""), "get_file")
        file = facts.get("file", "")
        try:
            found = await self._call(action, file=file, file_id=file, out_format="mp3")
            encoded = found.get("base64")
            content = b64decode(encoded) if encoded else await self._download(found["url"], max_bytes)
        except (SendFailed, FileGone, ValueError, LookupError, TypeError, AttributeError) as error:
            raise FileUnavailable(f"{action} of the implementation does not provide the file") from error
        check_size(len(content), max_bytes)
        return content

    async def _download(self, url: str, max_bytes: int) -> bytes:
        """The content of a file on a host in `file_hosts`. Raises FileUnavailable."""
        check_host(url, self._settings.file_hosts)
        return await self._web.download(url, max_bytes)

    # Receiving

    async def _connected(self, deliver: Deliver) -> None:
        if self._session is not None:
            await self._session.close()
        session = self._session = await self._opener.open()
        session.on_end = self._ready.clear
        self._self_id, _ = await _login(session, self._settings)
        self._ready.set()
        self._connection.up()
        # Heartbeats of the implementation may be switched off.
        async with alongside(self._repeat(partial(self._poll, session), _POLL_SECONDS)):
            await self._catch_up(session, deliver)
            while (raw := await session.event()) is not None:
                await self._take(session, deliver, raw)

    async def _poll(self, session: Session) -> None:
        self._show(await session.call("get_status", _POLL_SECONDS))

    def _show(self, status: Any) -> None:
        if isinstance(status, dict) and status.get("online") is False:
            self._connection.down("the implementation is not logged in to its network")
        else:
            self._connection.up()

    async def _take(self, session: Session, deliver: Deliver, raw: str) -> None:
        event = object_in(raw)
        at, cursor = seconds_of(event), None
        if at is not None:
            if self._position is None:
                await self._cursor.keep(str(at))
            # A time in the future must not hide later messages.
            self._position = max(self._position or 0, min(at, int(self._clock.now().timestamp())))
            cursor = self._cursor.at(str(self._position))
        if event.get("post_type") == "meta_event":
            if event.get("meta_event_type") == "heartbeat":
                self._show(event.get("status"))
            return
        quoted = await self._prepare(session, event)
        read = partial(self._reader.contexts, event, self._self_id, quoted)
        await self._acceptance.until_stored(lambda: self._acceptance.take(deliver, read, raw, cursor))

    async def _prepare(self, session: Session, event: JsonObject) -> Quoted | None:
        """Accept an invitation, remember the group of a temporary chat, and look up the message that `event` replies
        to; None if it is no reply."""
        if event.get("request_type") == GROUP and event.get("sub_type") == "invite":
            accepts = self._settings.accept_invitations
            _log.info("onebot_invitation", account=self.account, group=event.get("group_id"), accepted=accepts)
            if accepts:
                with suppress(SendFailed):
                    await session.call("set_group_add_request", flag=event.get("flag"), sub_type="invite", approve=True)
        native_id = ""
        with suppress(SendFailed, ValueError, TypeError, AttributeError, KeyError):
            if event.get("message_type") == PRIVATE and event.get("sub_type") == GROUP:
                group = event.get("group_id") or event["sender"].get("group_id")
                self._groups[str(event["user_id"])] = group
            native_id = replied_id(event)
            if native_id and not session.is_full:
                found = await session.call("get_msg", _LOOKUP_SECONDS, message_id=_id(native_id))
                return self._reader.quoted(native_id, found, self._self_id)
        return Quoted(native_id) if native_id else None

    async def _catch_up(self, session: Session, deliver: Deliver) -> None:
        """Accept messages of groups since the last accepted event."""
        stored = await self._cursor.read() if self._position is None else None
        if stored is not None:
            self._position = int(stored)
        if self._position is None or not self.limits.catches_up:
            return
        since, few = self._position, asyncio.Semaphore(_PARALLEL)
        try:
            groups = await session.call("get_group_list")
        except SendFailed:
            _log.warning("onebot_gap", account=self.account, because="get_group_list failed")
            return
        pages = await asyncio.gather(*(self._page(session, one["group_id"], since, few) for one in groups))
        for message in sorted(chain(*pages), key=lambda message: seconds_of(message) or 0):
            await self._take(session, deliver, orjson.dumps(message).decode())

    async def _page(self, session: Session, group: Any, since: int, few: asyncio.Semaphore) -> list[JsonObject]:
        """Messages of `group` from the time `since`, oldest first, of the last _HISTORY."""
        try:
            async with few:
                found = await session.call("get_group_msg_history", CALL_SECONDS, group_id=group, count=_HISTORY)
        except SendFailed as failed:
            if isinstance(failed, CallFailed) and failed.retcode in _UNSUPPORTED:
                self.limits = replace(self.limits, catches_up=False)
            _log.warning("onebot_gap", account=self.account, group=group, because=str(failed))
            return []
        page = [one for one in (found or {}).get("messages") or () if isinstance(one, dict)]
        if page and (seconds_of(page[0]) or 0) > (seconds_of(page[-1]) or 0):
            page.reverse()
        recent = [one for one in page if (seconds_of(one) or 0) >= since]
        if len(recent) >= _HISTORY:
            _log.warning("onebot_gap", account=self.account, group=group, because=f"only {_HISTORY} messages are read")
        return [{"post_type": "message", "message_type": GROUP, "group_id": group} | one for one in recent]

    # Calls

    async def _call(self, action: str, seconds: float = CALL_SECONDS, /, **params: Any) -> Any:
        """Call the implementation, after a reconnect if there is no connection. Raises SendFailed."""
        try:
            async with asyncio.timeout(_RECONNECT_SECONDS):
                await self._ready.wait()
        except TimeoutError:
            raise SendFailed("the implementation is not connected", retryable=True) from None
        assert self._session is not None
        return await self._session.call(action, seconds, **params)


async def probe(settings: OneBotSettings, _clock: Clock) -> str:
    """Connect, and describe the account. Raises CannotOpen."""
    opener = (Dialling if settings.url else Listening)(settings, lambda: None)
    session = None
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            session = await opener.open()
        self_id, name = await _login(session, settings)
        version = await session.call("get_version_info", _LOOKUP_SECONDS)
        state = await session.call("get_status", _LOOKUP_SECONDS)
        offline = "" if state.get("online", True) else "; it is offline"
        return f"connected as @{name} ({self_id}) by {version.get('app_name')} {version.get('app_version')}{offline}"
    except TimeoutError:
        place = f"ws://{settings.host}:{settings.port}"
        raise CannotOpen(f"nothing connects to {place}; configure it in the implementation, as Universal") from None
    except (CannotConnect, SendFailed) as problem:
        raise CannotOpen(str(problem)) from problem
    finally:
        if session is not None:
            await session.close()
        await opener.close()


async def _login(session: Session, settings: OneBotSettings) -> tuple[str, str]:
    """Id and name of the account. Raises CannotConnect."""
    try:
        login = await session.call("get_login_info", _LOGIN_SECONDS)
    except SendFailed as failed:
        why = "it rejects access_token" if session.is_rejected else failed
        raise CannotConnect(f"the implementation does not name its account: {why}") from failed
    self_id = str(login["user_id"])
    if settings.self_id not in ("", self_id):
        raise CannotConnect(f"the implementation is logged in as {self_id}, and self_id is {settings.self_id}")
    return self_id, str(login.get("nickname") or self_id)


def _target(outgoing: Outgoing) -> tuple[str, JsonObject]:
    """Action and target of a message. Raises SendFailed for a chat that is none of this network."""
    kind, _, native = outgoing.chat.native.partition("-")
    target: JsonObject = {} if (group := _group(outgoing.chat)) is None else {"group_id": group}
    if outgoing.private_to is not None:
        # Through the group, the member need not be a friend.
        return "send_private_msg", target | {"user_id": _id(outgoing.private_to.native)}
    if target:
        return "send_group_msg", target
    if kind == PRIVATE:
        return "send_private_msg", {"user_id": _id(native)}
    raise SendFailed(f"{outgoing.chat.native} is neither a group nor a private chat", retryable=False)


def _messages(outgoing: Outgoing) -> list[list[JsonObject]]:
    """The messages to send, as segments: each file that is no image is a message of its own, before the text. A text
    segment is never read as CQ codes."""
    text = f"{outgoing.plain}{outgoing.links}".strip()
    files: list[list[JsonObject]] = []
    images: list[JsonObject] = []
    for one in outgoing.uploads:
        data = {"file": f"base64://{b64encode(data_in(one.url) or b'').decode()}", "name": one.name}
        if one.media_type.startswith("image/"):
            images.append({"type": "image", "data": data})
        else:
            files.append([{"type": "file", "data": data}])
    if files and not text and not images:
        return files
    main: list[JsonObject] = []
    if outgoing.private_to is None:
        if outgoing.reply_to and not outgoing.reply_to.startswith(_QUEUED):
            main.append({"type": "reply", "data": {"id": outgoing.reply_to}})
        if outgoing.chat.native.startswith(GROUP):
            for member in outgoing.mentions:
                main += [{"type": "at", "data": {"qq": member.native}}, {"type": "text", "data": {"text": " "}}]
    return [*files, [*main, {"type": "text", "data": {"text": text}}, *images]]


def _group(chat: ChatRef) -> int | str | None:
    kind, _, native = chat.native.partition("-")
    return _id(native) if kind == GROUP else None


def _id(native: str) -> int | str:
    """An id as the standard has it: a number. Bridges of other networks have other ids, too."""
    return int(native) if native.isascii() and native.isdecimal() else native


ADAPTER = Adapter(OneBotSettings, OneBotPlatform, probe, asks=("url", "port", "access_token"))
