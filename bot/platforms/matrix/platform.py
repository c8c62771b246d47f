"""The Matrix platform: one account of the bot on a home server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from html import escape
from urllib.parse import quote
from uuid import uuid4

import orjson
import structlog

from bot.platforms.adapter import Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, Outgoing, Receipt, SendFailed, thread_of
from bot.platforms.connection import CannotConnect, ConnectedPlatform, probing
from bot.platforms.markdown import html_of, plain_lines
from bot.platforms.matrix.adapter import MatrixSettings
from bot.platforms.matrix.client import MatrixClient
from bot.platforms.matrix.inbound import NETWORK, Inbound, RoomView, membership_change, relation_of
from bot.platforms.web_api import Refused, check_size, unless
from function_calls.context import Attachment, MessageContext
from function_calls.ports import Measure, ModerationRequest
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, JsonObject, MemberRef, Role
from services.web.content import data_in

_RoomEvent = tuple[str, JsonObject, bool]
"""Room, event, and whether it is from before the bot joined."""
_SYNC_SECONDS = 30
_SILENCE_SECONDS = 90.0
_TIMELINE = 50
_GAP_PAGES = 50
_PAGE = 100
_TYPING_MS = 30_000
_RECENT_EVENTS = 300
_UNDECRYPTED_EVENTS = 500
_JOIN_ATTEMPTS = 20
_JOIN_AGAIN_SECONDS = 30.0
_NEW_ROOM_SECONDS = 20.0
_EDIT_FALLBACK_CHARS = 200
_ADMIN_LEVEL = 100
_MODERATOR_LEVEL = 50
_FORMATTED_BYTES = 45_000
"""Size of a content above which its HTML is left out. An event has at most 65,536 bytes, encrypted in base64."""
_PRE = re.compile("(<pre>.*?</pre>)", re.DOTALL)
_MEMBERS = {"lazy_load_members": True}


def _fail(error: Exception) -> Sequence[MessageContext]:
    raise error


def _at(chat: str, *parts: str) -> str:
    """Path of a room's resource; of the room of a thread for a thread."""
    return "/".join(["v3/rooms", *(quote(part, safe="") for part in (thread_of(chat)[0], *parts))])


def _creators(room_id: str, event: JsonObject) -> frozenset[str]:
    """Creators in the first event of a room."""
    more = event.get("content", {}).get("additional_creators", ()) if ":" not in room_id else ()
    return frozenset({event.get("sender", ""), *more})


def _role_in(room_id: str, creators: frozenset[str], levels: JsonObject, user: str) -> Role:
    """The role of a user by the power levels of the room."""
    users = levels.get("users")
    level = users.get(user) if isinstance(users, dict) else None
    level = levels.get("users_default", 0) if level is None else level
    level = level if isinstance(level, int) else 0
    if user in creators and (":" not in room_id or level >= _ADMIN_LEVEL):
        return Role.OWNER
    return Role.ADMIN if level >= _ADMIN_LEVEL else Role.MODERATOR if level >= _MODERATOR_LEVEL else Role.MEMBER


class MatrixPlatform(ConnectedPlatform):
    """One account."""

    name = "matrix"
    limits = Limits(
        text_chars=4_000,
        sends_are_idempotent=True,
        sends_per_minute=60,
        attachments=True,
        bots_are_marked=False,  # programs should send notices, but many do not
        clients_keep_slashes=True,
        markdown=True,
        catches_up=True,
        file_bytes=20_000_000,
    )

    def __init__(self, settings: MatrixSettings, host: Host) -> None:
        super().__init__(settings, host, silence_seconds=_SILENCE_SECONDS)
        self._user = settings.user
        self._encrypts = settings.encryption
        self._log = structlog.get_logger("platforms").bind(network=f"{self.name}:{self.account}")
        self._client = MatrixClient(settings, host.folder)
        self._call = self._client.call
        self._inbound = Inbound(self.account, settings.user, self._hear)
        self._knows_rooms = False
        self._encrypted_rooms: set[str] = set()
        self._creators: dict[str, frozenset[str]] = {}
        self._levels: dict[str, JsonObject] = {}
        """Power levels of rooms, as of the last sync."""
        self._inviters: dict[str, str] = {}
        self._direct_rooms: dict[str, str] = {}
        self._opening = asyncio.Lock()
        self._synced = asyncio.Event()
        self._recent = Recent[tuple[str, str], JsonObject](_RECENT_EVENTS)
        self._undecrypted = Recent[str, _RoomEvent](_UNDECRYPTED_EVENTS)

    # Receiving

    async def _connected(self, deliver: Deliver) -> None:
        try:
            await self._client.log_in()
            since = await self._cursor.read()
            if since is None:
                sync = await self._sync(None, 0)
                await self._follow(sync)
                since = str(sync["next_batch"])
                await self._cursor.keep(since)
            wait_seconds = 0  # the first answer shows that the server can be reached
            while True:
                with suppress(SendFailed):  # the next round tries again
                    await self._client.exchange_keys()
                sync = await self._sync(since, wait_seconds)
                await self._accept(sync, since, deliver)
                since = sync["next_batch"]
                # Now all rooms are known. Before, a message might be sent in clear text to an encrypted room.
                self._connection.up()
                wait_seconds = _SYNC_SECONDS
        except Refused as problem:
            if problem.code == "M_UNKNOWN_TOKEN":
                self._client.log_in_again()
            raise

    async def _sync(self, since: str | None, wait_seconds: int) -> JsonObject:
        """Answer to a sync request from `since` on. The first one after the start has the full state of all rooms."""
        timeline = {"limit": _TIMELINE if since else 1} | _MEMBERS
        room = {"state": _MEMBERS, "timeline": timeline, "ephemeral": {"types": []}}
        query: JsonObject = {"filter": orjson.dumps({"presence": {"types": []}, "room": room}).decode()}
        query |= {"timeout": wait_seconds * 1000} | ({"since": since} if since else {})
        query |= {} if self._knows_rooms else {"full_state": "true"}
        return await self._call("GET", "v3/sync", None, query, seconds=wait_seconds + _SYNC_SECONDS)

    async def _follow(self, sync: JsonObject) -> None:
        """Update what is known of rooms, and join those that the bot is invited to."""
        rooms = sync.get("rooms", {})
        for room_id, room in rooms.get("join", {}).items():
            events = [*room.get("state", {}).get("events", ()), *room.get("timeline", {}).get("events", ())]
            for event in events:
                match event.get("type"):
                    case "m.room.encryption":
                        self._encrypted_rooms.add(room_id)
                    case "m.room.create":
                        self._creators[room_id] = _creators(room_id, event)
                    case "m.room.power_levels" if "state_key" in event and isinstance(event.get("content"), dict):
                        self._levels[room_id] = event["content"]
        for room_id, room in rooms.get("invite", {}).items():
            for event in room.get("invite_state", {}).get("events", ()):
                if event.get("type") == "m.room.member" and event.get("state_key") == self._user:
                    self._inviters[room_id] = str(event.get("sender"))
            self._background.start(self._join(room_id))
        try:
            await self._client.follow(sync)
        except Exception as error:  # noqa: BLE001 - the SDK may fail on events of other servers
            self._log.error("state_unreadable", exc_info=error)
        self._knows_rooms = True
        self._synced.set()
        self._synced = asyncio.Event()

    async def _join(self, room_id: str) -> None:
        for _ in range(_JOIN_ATTEMPTS):
            try:
                await self._call("POST", _at(room_id, "join"), {})
            except SendFailed as problem:
                self._log.warning("invitation_not_accepted", room=room_id, problem=str(problem))
                if not problem.retryable:
                    return
                await self._clock.sleep(problem.retry_after_seconds or _JOIN_AGAIN_SECONDS)
            else:
                return

    async def _accept(self, sync: JsonObject, since: str, deliver: Deliver) -> None:
        """Hand over the events of a sync, and its position with the last one."""
        await self._follow(sync)
        events = [*self._undecrypted.values()] if sync.get("to_device", {}).get("events") else []
        for room_id, room in sync.get("rooms", {}).get("join", {}).items():
            events += await self._timeline(room_id, room.get("timeline", {}), since)
        cursor = self._cursor.at(sync["next_batch"]) if sync["next_batch"] != since else None
        for number, (room_id, event, is_old) in enumerate(events, start=1):
            read = await self._reader(room_id, event, is_old)
            raw = orjson.dumps({"room_id": room_id, **event}).decode()
            await self._acceptance.take(deliver, read, raw, cursor if number == len(events) else None)
        if not events:
            await self._acceptance.take(deliver, tuple, "", cursor)
        for room_id, event_id in {room_id: event["event_id"] for room_id, event, _ in events}.items():
            self._background.start(self._mark_read(room_id, event_id))

    async def _timeline(self, room_id: str, timeline: JsonObject, since: str) -> list[_RoomEvent]:
        """New events of a room."""
        events: list[JsonObject] = timeline.get("events", [])
        if timeline.get("limited") and not any(self._is_own_join(event) for event in events):
            events = await self._gap(room_id, timeline.get("prev_batch"), since) + events
            self._client.members_changed(room_id)
        joined = max((number for number, event in enumerate(events) if self._is_own_join(event)), default=0)
        return [(room_id, event, number < joined) for number, event in enumerate(events)]

    async def _gap(self, room_id: str, start: object, since: str) -> list[JsonObject]:
        """The events between `since` and `start`, in order; no earlier than the bot's joining. Raises SendFailed."""
        found: list[JsonObject] = []
        for _ in range(_GAP_PAGES):
            query = {"dir": "b", "from": start, "to": since, "limit": _PAGE, "filter": orjson.dumps(_MEMBERS).decode()}
            page = await self._call("GET", _at(room_id, "messages"), None, query)
            for member in page.get("state", ()):
                self._client.add_member(room_id, member["state_key"], member["content"])
            for event in page["chunk"]:
                found.append(event)
                if self._is_own_join(event):
                    return found[::-1]
            start = page.get("end")
            if not page["chunk"] or start is None:
                return found[::-1]
        self._log.warning("gap_too_long", room=room_id, read=len(found))
        return found[::-1]

    def _is_own_join(self, event: JsonObject) -> bool:
        if event.get("type") != "m.room.member" or event.get("state_key") != self._user:
            return False
        before, now = membership_change(event)
        return now == "join" and before != "join"

    async def _reader(self, room_id: str, raw: JsonObject, is_old: bool) -> Callable[[], Sequence[MessageContext]]:
        """A function that reads the event, with all that has to be fetched for it."""
        try:
            event = self._client.decrypted(room_id, raw)
            if event is None:
                self._undecrypted[raw["event_id"]] = room_id, raw, is_old
                return tuple
            self._undecrypted.pop(raw["event_id"], None)
            self._recent[room_id, event["event_id"]] = event
            if self._is_own_join(event):
                return partial(self._joined, room_id, event)
            _, target = relation_of(event)
            related = await self._event(room_id, target) if target else None
        except Exception as error:  # noqa: BLE001 - the SDK may raise anything; `take` sets the event aside
            return partial(_fail, error)
        return lambda: self._inbound.contexts(event, self._view(room_id), related, backfilled=is_old)

    def _joined(self, room_id: str, event: JsonObject) -> list[MessageContext]:
        unsigned = event.get("unsigned", {})
        was_invited = unsigned.get("prev_content", {}).get("membership") == "invite"
        inviter = self._inviters.pop(room_id, "") or (unsigned.get("prev_sender", "") if was_invited else "")
        return [self._inbound.added(event, self._view(room_id), inviter)] if inviter else []

    def _view(self, room_id: str) -> RoomView:
        room = self._client.nio.rooms.get(room_id)
        creators, levels = self._creators.get(room_id, frozenset()), self._levels.get(room_id, {})
        of_members = partial(self._name_in, room_id), partial(_role_in, room_id, creators, levels)
        if room is None:
            return RoomView(room_id, "", True, *of_members)
        # Not nio's `is_group`, which is about names.
        return RoomView(room_id, room.display_name, room.member_count > 2, *of_members)

    def _name_in(self, room_id: str, user: str) -> str:
        room = self._client.nio.rooms.get(room_id)
        name: str | None = room.user_name(user) if room is not None else None
        return name or user[1:].partition(":")[0]

    async def _member_name(self, room_id: str, user: str) -> str:
        """Display name, also of a member who has not written yet."""
        room = self._client.nio.rooms.get(room_id)
        if room is not None and user not in room.users:
            with suppress(SendFailed):
                member = await self._call("GET", _at(room_id, "state", "m.room.member", user))
                self._client.add_member(room_id, user, member)
        return " ".join(self._name_in(room_id, user).split())

    async def _event(self, room_id: str, event_id: str) -> JsonObject | None:
        """An event of the room, in clear text; None if it is unknown or unreadable."""
        # By room, so that nobody can quote messages of other rooms.
        if (room_id, event_id) not in self._recent:
            try:
                event = self._client.decrypted(room_id, await self._call("GET", _at(room_id, "event", event_id)))
            except SendFailed:
                return None
            if event is None or not isinstance(event.get("content"), dict):
                return None
            self._recent[room_id, event["event_id"]] = event
        return self._recent.get((room_id, event_id))

    async def _mark_read(self, room_id: str, event_id: str) -> None:
        with suppress(SendFailed):
            read = {"m.fully_read": event_id, "m.read": event_id}
            await self._call("POST", _at(room_id, "read_markers"), read)

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        room_id, thread = thread_of(outgoing.chat.native)
        mentions = outgoing.mentions
        if outgoing.private_to is not None:
            room_id, thread, mentions = await self._direct_room(outgoing.private_to.native), "", ()
        is_encrypted = room_id in self._encrypted_rooms
        files = [await self._uploaded(one, is_encrypted) for one in outgoing.uploads]
        text = f"{outgoing.text}{outgoing.links}".lstrip("\n")
        contents = [await self._content(room_id, text, outgoing.markdown, mentions)] if text or not files else []
        ids = []
        for number, content in enumerate([*contents, *files]):
            relation: JsonObject = {}
            if thread:
                relation = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": outgoing.reply_to is None}
            if thread or (outgoing.reply_to is not None and number == 0):
                relation["m.in_reply_to"] = {"event_id": outgoing.reply_to or thread}
            content |= {"m.relates_to": relation} if relation else {}
            key = sha256(f"{outgoing.key}\n{number}".encode()).hexdigest()[:32]
            ids.append(await self._put(room_id, "m.room.message", content, key))
        return Receipt(ids[0])

    async def _content(self, room_id: str, text: str, markdown: bool, mentions: Sequence[MemberRef]) -> JsonObject:
        """The content of a text message. With `m.mentions`, nothing in the text notifies anybody."""
        body = "\n".join(plain_lines(text)) if markdown else text
        content: JsonObject = {"msgtype": "m.text", "body": body, "m.mentions": {}}
        names = [(one.native, await self._member_name(room_id, one.native)) for one in mentions]
        if names:
            content["m.mentions"] = {"user_ids": [user for user, _ in names]}
            content["body"] = f"{', '.join(name for _, name in names)}: {body}"
        if markdown or names:
            pills = [f'<a href="https://matrix.to/#/{quote(user)}">{escape(name)}</a>' for user, name in names]
            markup = html_of(text) if markdown else escape(text)
            markup = "".join(
                part if part.startswith("<pre>") else part.replace("\n", "<br>") for part in _PRE.split(markup)
            )
            formatted = (", ".join(pills) + ": " if pills else "") + markup
            if len(orjson.dumps([body, formatted])) <= _FORMATTED_BYTES and (pills or formatted != escape(body)):
                content |= {"format": "org.matrix.custom.html", "formatted_body": formatted}
        return content

    async def _uploaded(self, attachment: Attachment, is_encrypted: bool) -> JsonObject:
        content = data_in(attachment.url)
        if content is None:
            raise SendFailed("the file has no valid data URL", retryable=False)
        kind = attachment.media_type.partition("/")[0]
        return {
            "msgtype": f"m.{kind}" if kind in ("image", "audio", "video") else "m.file",
            "body": attachment.name,
            "filename": attachment.name,
            "m.mentions": {},
            **await self._client.upload(content, attachment.media_type, is_encrypted),
        }

    async def _put(self, room_id: str, kind: str, content: JsonObject, key: str) -> str:
        """Send an event; returns its id."""
        if not self._knows_rooms:
            raise SendFailed("the rooms are not known yet", retryable=True)
        if room_id in self._encrypted_rooms and kind != "m.reaction":
            kind, content = await self._client.encrypted(room_id, kind, content)
        sent = await self._call("PUT", _at(room_id, "send", kind, key), content)
        return str(sent["event_id"])

    async def _direct_room(self, user: str) -> str:
        """The private chat with a member, created if there is none."""
        async with self._opening:
            for room_id, room in self._client.nio.rooms.items():
                is_private = not room.is_named and room.member_count == 2 and room.join_rule == "invite"
                if is_private and user in room.users:
                    return str(room_id)
            known = self._direct_rooms.get(user, "")
            if known and known not in self._client.nio.rooms:
                return known
            body: JsonObject = {"preset": "private_chat", "is_direct": True, "invite": [user]}
            if self._encrypts:
                encryption = {"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
                body["initial_state"] = [encryption]
            room_id = str((await self._call("POST", "v3/createRoom", body))["room_id"])
            self._direct_rooms[user] = room_id
            if self._encrypts:
                self._encrypted_rooms.add(room_id)
            with suppress(TimeoutError):
                async with asyncio.timeout(_NEW_ROOM_SECONDS):
                    while self._encrypts and room_id not in self._client.nio.rooms:
                        await self._synced.wait()
            return room_id

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        room_id, _ = thread_of(outgoing.chat.native)
        if "redacted_because" in (await self._call("GET", _at(room_id, "event", native_id))).get("unsigned", {}):
            raise SendFailed("the message was deleted", retryable=False)
        new = await self._content(room_id, outgoing.text, outgoing.markdown, outgoing.mentions)
        content = {
            "msgtype": "m.text",
            "body": f"* {new['body'][:_EDIT_FALLBACK_CHARS]}",
            "m.mentions": {},
            "m.new_content": new,
            "m.relates_to": {"rel_type": "m.replace", "event_id": native_id},
        }
        # No key of the delivery: the same message may be edited back to an earlier text.
        await self._put(room_id, "m.room.message", content, str(uuid4()))

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        with unless("M_NOT_FOUND"):
            await self._call("PUT", _at(chat.native, "redact", native_id, str(uuid4())), {})

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        room_id, _ = thread_of(chat.native)
        if emoji:
            relation = {"rel_type": "m.annotation", "event_id": native_id, "key": emoji}
            with unless("M_DUPLICATE_ANNOTATION"):
                await self._put(room_id, "m.reaction", {"m.relates_to": relation}, str(uuid4()))
            return
        path = _at(room_id, "relations", native_id, "m.annotation", "m.reaction").replace("v3", "v1", 1)
        for event in (await self._call("GET", path, None, {"limit": _PAGE}))["chunk"]:
            if event["sender"] == self._user:
                await self.delete(chat, event["event_id"])

    async def typing(self, chat: ChatRef, status: str) -> None:
        shows = {"typing": True, "timeout": _TYPING_MS} if status else {"typing": False}
        with suppress(SendFailed):
            await self._call("PUT", _at(chat.native, "typing", self._user), shows)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        check_size(attachment.size_bytes, max_bytes)
        try:
            file = orjson.loads(attachment.url.removeprefix(NETWORK))
        except orjson.JSONDecodeError:
            raise FileUnavailable("the file is not on a Matrix server") from None
        return await self._client.download(file, max_bytes)

    # Members

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """Creators of rooms whose ids name no server have all rights, without a power level."""
        room_id, _ = thread_of(chat.native)
        try:
            membership = await self._call("GET", _at(room_id, "state", "m.room.member", member.native))
            if membership.get("membership") != "join":
                return None
            creators = await self._creators_of(room_id)
            levels = await self._call("GET", _at(room_id, "state", "m.room.power_levels", ""))
        except SendFailed:
            return None
        return _role_in(room_id, creators, levels, member.native)

    async def _creators_of(self, room_id: str) -> frozenset[str]:
        """Creators of a room, which never change. Empty if the server does not name the sender of the first event."""
        if room_id not in self._creators:
            path = _at(room_id, "state", "m.room.create", "")
            event = await self._call("GET", path, None, {"format": "event"})
            self._creators[room_id] = _creators(room_id, event)
        return self._creators[room_id]

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        joined = (await self._call("GET", _at(chat.native, "joined_members")))["joined"]
        return [self._member(user) for user in joined if user != self._user]

    async def leave(self, chat: ChatRef) -> None:
        for step in ("leave", "forget"):
            try:
                await self._call("POST", _at(chat.native, step), {})
            except Refused as problem:
                if problem.retryable:
                    raise

    measures = frozenset({Measure.KICK, Measure.BAN, Measure.PIN, Measure.INVITE})

    async def moderate(self, request: ModerationRequest) -> str:
        chat = request.chat.native
        if request.measure is not Measure.PIN:
            await self._call("POST", _at(chat, request.measure.value), {"user_id": request.who})
            return ""
        path, pinned = _at(chat, "state", "m.room.pinned_events", ""), JsonObject()
        with unless("M_NOT_FOUND"):
            pinned = await self._call("GET", path)
        events = [one for one in pinned.get("pinned", ()) if one != request.message_id]
        await self._call("PUT", path, {"pinned": [*events, request.message_id]})
        return ""

    async def close(self) -> None:
        await self._background.close()
        await self._client.close()


async def probe(settings: MatrixSettings, _clock: Clock) -> str:
    """See `Adapter.probe`."""
    client = MatrixClient(settings, None)
    async with probing(client.close):
        try:
            await client.log_in()
            rooms = await client.call("GET", "v3/joined_rooms")
            if not settings.access_token.get_secret_value():
                await client.call("POST", "v3/logout", {})
        except SendFailed as problem:
            raise CannotConnect(f"{problem}: check homeserver") from problem
    rooms_line = f"rooms: {len(rooms['joined_rooms'])}"
    reads = "reads encrypted rooms" if settings.encryption else "encryption is off: cannot read encrypted rooms"
    return f"connected as {settings.user}; {rooms_line}; {reads}"
