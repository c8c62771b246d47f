"""The HTTP platform: messages arrive as POST requests, output is a stored event feed per chat."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import WeakValueDictionary

import orjson
from pydantic import SecretStr
from starlette.requests import Request

from bot.platforms.base import Accepted, Deliver, FileUnavailable, Limits, Outgoing, QueueFull, Receipt, SendFailed
from bot.platforms.http.wire import (
    FILE_PREFIX,
    MAX_TEXT_CHARS,
    Posted,
    PostedSender,
    RequestError,
    bot_id,
    deleted_body,
    edited_body,
    member_message_body,
    message_body,
)
from bot.platforms.mentions import ParseText
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, JsonObject, MemberRef, Role
from services.store.ids import Ids, first_id_at, generated_ms
from services.store.port import BadUnit, Store, StoreBroken, StoreClosed, StoreError, Write
from services.store.turns import http_events, http_files
from services.store.turns.http_events import Event, Viewer
from services.web.content import data_in

_MOST_ROLES = 5000
PRIVATE_PREFIX = "dm-"
"""Prefix of private chats: `dm-` and the member's id."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Authenticated author of a request."""

    member: str | None
    """The member's id; None for a program, which speaks for any member."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The sender of one message."""

    id: str
    name: str
    role: Role


def bears(request: Request, token: SecretStr | None) -> bool:
    """Whether `token` is the request's bearer token; never if it is empty. Compared in constant time."""
    scheme, _, offered = request.headers.get("authorization", "").partition(" ")
    expected = "" if token is None else token.get_secret_value()
    is_same = hmac.compare_digest(offered.strip().encode(), expected.encode())
    return is_same and bool(expected) and scheme.lower() == "bearer"


class Callers(Protocol):
    """A kind of callers: programs, or people on the page."""

    def claims(self, request: Request) -> bool:
        """Whether the request has this kind of credentials, valid or not."""

    def identify(self, request: Request) -> Caller:
        """The caller of the request. Raises RequestError (401)."""

    def enter(self, caller: Caller, chat: str, /) -> None:
        """Return if the caller may read and write in `chat`. Raises RequestError (403)."""

    def speaker(self, caller: Caller, chat: str, posted: PostedSender, /) -> Speaker:
        """The sender of the message. Raises RequestError (400, 403)."""

    def role(self, chat: str, member: str, /) -> Role | None:
        """The member's current role; None if unknown."""


class Programs:
    """Programs with the bearer token of the settings. They vouch for their senders, up to a role."""

    def __init__(self, token: SecretStr, max_role: Role = Role.MEMBER) -> None:
        if not token.get_secret_value():
            raise ValueError("platforms.http.token: an empty token would let everybody in")
        self._token: SecretStr | None = token
        self._max_role = max_role
        self._roles = Recent[tuple[str, str], Role](_MOST_ROLES)

    def use(self, token: SecretStr | None, max_role: Role) -> bool:
        """Apply the token and the maximum role from the next request on; without a token everybody is rejected. Returns
        whether the token has changed, so that open streams have to authenticate again."""
        is_other, self._token = token != self._token, token
        self._max_role = max_role
        for key, role in list(self._roles.items()):
            self._roles[key] = role.capped(max_role)
        return is_other

    def claims(self, request: Request) -> bool:
        return "authorization" in request.headers

    def identify(self, request: Request) -> Caller:
        if not bears(request, self._token):
            raise RequestError(
                401, "unauthorized", "this needs the header `Authorization: Bearer <platforms.http.token>`"
            )
        return Caller(member=None)

    def enter(self, _caller: Caller, _chat: str) -> None:
        return None

    def speaker(self, _caller: Caller, chat: str, posted: PostedSender) -> Speaker:
        if posted.id is None:
            raise RequestError(400, "bad_request", "sender.id: is required", field="sender.id")
        role = posted.role.capped(self._max_role)
        self._roles[chat, posted.id] = role
        return Speaker(posted.id, posted.name or posted.id, role)

    def role(self, chat: str, member: str) -> Role | None:
        return self._roles.get((chat, member))


_PRUNE_EVERY = 64
_COUNTED_CHATS = 10_000


class Listener:
    """A reader that waits for events in a chat."""

    def __init__(self, chat: str, member: str) -> None:
        """`member`: the reader; empty for a program."""
        self.chat = chat
        self.member = member
        self.is_superseded = False
        """Another listener took its place: the client must not reconnect at once."""
        self._happened = asyncio.Event()
        self._is_over = False

    def wake(self) -> None:
        """Wake the reader, who waits for events."""
        self._happened.set()

    def dismiss(self) -> None:
        """End the listener: the client has to authenticate again."""
        self._is_over = True
        self.wake()

    def is_dismissed(self) -> bool:
        """Whether the listener has ended."""
        return self._is_over

    def forget(self) -> None:
        """Reset the wake-up before reading."""
        self._happened.clear()

    async def wait(self, seconds: float) -> bool:
        """Return True as soon as it is woken, or False after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._happened.wait()
        except TimeoutError:
            return False
        return True


class Listeners:
    """Open listeners of a feed, limited in total and per member."""

    def __init__(self) -> None:
        self.count = 0
        """Number of listeners, without superseded ones."""
        self._by_chat: dict[str, set[Listener]] = {}
        self._by_member: dict[str, dict[Listener, None]] = {}
        """Oldest first."""

    def of(self, member: str) -> int:
        """Number of listeners of a member."""
        return len(self._by_member.get(member, ()))

    def make_room(self, member: str, most: int) -> bool:
        """Whether one more listener of `member` is within `most`. At the limit, the member with the most listeners
        loses the oldest, if they have at least two more than `member`."""
        if self.count < most:
            return True
        greediest = max(self._by_member.values(), key=len, default={})
        if len(greediest) <= self.of(member) + 1:
            return False
        self._supersede(next(iter(greediest)))
        return True

    def add(self, chat: str, member: str, most_of_member: int = 0) -> Listener:
        """Register and return a new listener. If the member already has `most_of_member` (0: no limit), the oldest is
        superseded."""
        if 0 < most_of_member <= self.of(member):
            self._supersede(next(iter(self._by_member[member])))
        listener = Listener(chat, member)
        self._by_chat.setdefault(chat, set()).add(listener)
        self._by_member.setdefault(member, {})[listener] = None
        self.count += 1
        return listener

    def remove(self, listener: Listener) -> None:
        """Remove a listener; it must have been added."""
        if not listener.is_superseded:
            self._forget(listener)
        in_chat = self._by_chat[listener.chat]
        in_chat.discard(listener)
        if not in_chat:
            del self._by_chat[listener.chat]

    def wake(self, chat: str) -> None:
        """Wake the listeners of `chat`."""
        for listener in self._by_chat.get(chat, ()):
            listener.wake()

    def wake_all(self) -> None:
        """Wake all listeners of all chats."""
        for chat in list(self._by_chat):
            self.wake(chat)

    def dismiss_all(self) -> None:
        """End all listeners, because their credentials may be withdrawn."""
        for listeners in self._by_chat.values():
            for listener in listeners:
                listener.dismiss()

    def _supersede(self, listener: Listener) -> None:
        self._forget(listener)
        listener.is_superseded = True
        listener.dismiss()

    def _forget(self, listener: Listener) -> None:
        of_member = self._by_member[listener.member]
        del of_member[listener]
        if not of_member:
            del self._by_member[listener.member]
        self.count -= 1


_COMMIT_MS = 2000
"""Events of another process are read after this time: one with a lower id may still be committed before."""


class ChatFeed:
    """The stored events of one platform and account."""

    def __init__(self, platform: str, account: str, store: Store, ids: Ids, *, keep: int = 1000) -> None:
        self._platform = platform
        self._account = account
        self._store = store
        self._ids = ids
        self._keep = keep
        self.listeners = Listeners()
        self.is_written_here = False
        """Whether this process writes the events: in a cluster, the one that holds the account."""
        self._in_flight: dict[str, set[int]] = {}
        self._statuses: dict[str, str] = {}
        self._added = Recent[str, int](_COUNTED_CHATS)
        self.ended = False

    @contextmanager
    def taking(self, chat: str) -> Iterator[int]:
        """The id of an event during its commit. No reader passes it until then, so that a cursor never skips an event
        that becomes visible later."""
        event_id = self._ids.next()
        in_flight = self._in_flight.setdefault(chat, set())
        in_flight.add(event_id)
        try:
            yield event_id
        finally:
            in_flight.discard(event_id)
            if not in_flight:
                del self._in_flight[chat]
            self.listeners.wake(chat)

    def writes(self, chat: str, native_id: str, event: Event, private_to: str | None = None) -> list[Write]:
        """Writes that store `event` once, and limit the number of the chat's events."""
        key = self._key(chat)
        writes = [http_events.add(event, key, native_id, private_to)]
        added = self._added.get(chat, 0)
        if added % _PRUNE_EVERY == 0:
            writes.append(http_events.prune(key, self._keep))
        self._added[chat] = added + 1
        return writes

    async def after(self, chat: str, cursor: int, count: int, viewer: Viewer) -> list[Event]:
        """Up to `count` events after `cursor`, oldest first. Raises StoreError."""
        query = http_events.after(self._key(chat), cursor, self._horizon(chat), count, viewer)
        return [http_events.event_of(row) for row in await self._store.read(query)]

    async def newest(self, chat: str, count: int, viewer: Viewer) -> list[Event]:
        """The last `count` events, oldest first. Raises StoreError."""
        query = http_events.newest(self._key(chat), self._horizon(chat), count, viewer)
        return [http_events.event_of(row) for row in reversed(await self._store.read(query))]

    async def find(self, chat: str, native_id: str, viewer: Viewer) -> Event | None:
        """The event with this native id; None if it is not stored or not visible to `viewer`. Raises StoreError."""
        rows = await self._store.read(http_events.find(self._key(chat), native_id, viewer))
        return http_events.event_of(rows[0]) if rows else None

    @property
    def listening(self) -> int:
        """Number of open listeners."""
        return self.listeners.count

    @contextmanager
    def listen(self, chat: str, member: str, most_of_member: int = 0) -> Iterator[Listener]:
        """A listener woken by every event in `chat` and at shutdown; see `Listeners.add`."""
        listener = self.listeners.add(chat, member, most_of_member)
        try:
            yield listener
        finally:
            self.listeners.remove(listener)

    def status(self, chat: str) -> str:
        """The bot's progress text in `chat`, or empty."""
        return self._statuses.get(chat, "")

    def set_status(self, chat: str, text: str) -> None:
        """Set the progress text in `chat`; never stored."""
        if text:
            self._statuses[chat] = text
        else:
            self._statuses.pop(chat, None)
        self.listeners.wake(chat)

    def end(self) -> None:
        """End all streams at shutdown."""
        self.ended = True
        self.listeners.wake_all()

    def _horizon(self, chat: str) -> int:
        if not self.is_written_here:
            return first_id_at(generated_ms(self._ids.next()) - _COMMIT_MS)
        return min(self._in_flight.get(chat, ()), default=self._ids.next())

    def _key(self, chat: str) -> str:
        return ChatRef(self._platform, self._account, chat).key


def is_bots(native_id: str) -> bool:
    """Whether an event with this native id is a message of the bot."""
    return native_id.startswith(bot_id(""))


_EVENTS_READ = 1000
_CACHED_CHATS = 500
_NAMES_PER_CHAT = 2000

_LOOK_LIKE = {
    "a": "АаΑαɑᴀᎪ",
    "b": "ВвЬьΒβʙᏴ",
    "c": "СсϹϲᴄᏟ",
    "d": "ԁđᴅᎠ",
    "e": "ЕеҽΕεᴇᎬ",
    "f": "Ϝꜰք",
    "g": "ԌɡɢցᏀ",
    "h": "НнҺһΗħʜհᎻ",
    "i": "ІіΙιıɩɪᎥ",
    "j": "ЈјͿϳᴊᎫ",
    "k": "КкΚκᴋᏦ",
    "l": "ӀӏłƚƖǀʟᏞ",
    "m": "МмΜϺᴍᎷ",
    "n": "пΝηɴո",
    "o": "ОоΟοσøᴏՕօ",
    "p": "РрΡρϱᴘᏢ",
    "q": "Ԛԛզ",
    "r": "гᴦʀᎡᏒ",
    "s": "ЅѕꜱՏᏕᏚ",
    "t": "ТтΤτŧᴛᎢ",
    "u": "υʋᴜՍս",
    "v": "ѴѵνᴠᏙ",
    "w": "ԜԝѡωᴡᎳ",
    "x": "ХхΧχ",
    "y": "УуҮүΥγʏᎩ",
    "z": "ΖᴢᏃ",
}
"""Letters of other alphabets, and rare Latin ones, that look like a Latin letter and do not decompose to it. A
selection from the confusable characters of Unicode Technical Standard 39."""
_LATIN = {ord(char): letter for letter, chars in _LOOK_LIKE.items() for char in chars}
_DRAWN_ALIKE = str.maketrans("I1|0", "lllo")
_BLANK = frozenset(
    itertools.chain(
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0),
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xFFF0, 0xFFF9),
        range(0xE0000, 0xE1000),
    )
)
"""Invisible characters whose category does not say so."""


def is_visible(name: str) -> bool:
    """Whether `name` has a visible character."""
    return any(_is_drawn(char) for char in name)


def skeleton(name: str) -> str:
    """`name` reduced so that similar-looking names are equal: without case, accents, spaces, punctuation and invisible
    characters, and with confusable letters replaced by Latin ones."""
    text = unicodedata.normalize("NFKD", name.translate(_LATIN)).translate(_LATIN).casefold()
    chars = [char for char in text if ord(char) not in _BLANK and _counts(char)]
    return "".join(chars) or "".join(filter(_is_drawn, text))


def skeletons(name: str) -> set[str]:
    """The skeletons of `name` as it is written, and with `I`, `1` and `|` read as `l` and `0` as `o`."""
    return {skeleton(name), skeleton(unicodedata.normalize("NFKC", name).translate(_DRAWN_ALIKE))}


def _is_drawn(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] not in "ZM" and category not in ("Cc", "Cf", "Cs") and ord(char) not in _BLANK


def _counts(char: str) -> bool:
    # Vowel signs of Indic scripts have combining class 0: unlike accents, they distinguish names.
    category = unicodedata.category(char)
    is_sign = category in ("Mn", "Mc") and not unicodedata.combining(char)
    return is_sign or (category[0] != "P" and _is_drawn(char))


class ChatNames:
    """Display names of the members of each chat. The first member with a name keeps it; the second Ann is shown as `Ann
    (2)`. The chat's stored events preserve this across restarts."""

    def __init__(self, feed: ChatFeed) -> None:
        self._feed = feed
        self._holders: dict[str, dict[str, str]] = {}

    async def shown(self, chat: str, member: str, name: str) -> str:
        """`name`, with a number if another member has it in `chat`. Raises StoreError."""
        holders = await self._holders_of(chat)
        key = skeleton(name)
        if holders.setdefault(key, member) == member:
            return name
        number = next(n for n in itertools.count(2) if holders.setdefault(f"{key}{n}", member) == member)
        return f"{name} ({number})"

    async def _holders_of(self, chat: str) -> dict[str, str]:
        """Member ids by the skeleton of their names; cached, and read from the chat's newest events if necessary."""
        holders = self._holders.get(chat)
        if holders is not None and len(holders) <= _NAMES_PER_CHAT:
            return holders
        read: dict[str, str] = {}
        for event in await self._feed.newest(chat, _EVENTS_READ, Viewer("", sees_all=True)):
            sender = orjson.loads(event.body).get("sender")
            if sender is not None:
                read.setdefault(skeleton(sender["name"]), sender["id"])
        if self._holders.get(chat) is not holders:
            return self._holders[chat]  # another message of the chat has read them in the meantime
        while len(self._holders) >= _CACHED_CHATS:
            del self._holders[next(iter(self._holders))]
        self._holders[chat] = read
        return read


_QUOTED_CHARS = 500
_FILES_KEPT = 200
"""Files kept per chat."""
_LARGEST_SENT_FILE = 20_000_000
_QUEUE_FULL_SECONDS = 5


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a message."""

    name: str
    media_type: str
    """As declared by the sender."""
    content: bytes


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Limits of the event streams."""

    streams: int = 200
    """Open at once. At the limit, the member with the most streams loses the oldest, if they have at least two more
    than the new one's; else the new one is rejected."""
    streams_per_member: int = 8
    """Open at once for one member of the page; the oldest ends for the next one. The programs of the HTTP API share one
    token and have all `streams`."""
    poll_seconds: float = 5.0
    """Interval for events of other processes; those of this process are sent at once."""
    heartbeat_seconds: float = 15.0
    """Interval of comments during silence, so that both ends notice a dead connection."""
    stalled_seconds: float = 30.0
    """A client that reads nothing for this long is disconnected; it reconnects with its cursor."""


_ALL = Viewer("", sees_all=True)


class MessageGone(SendFailed):
    """The message to change was deleted, or is no longer stored."""


def _deletion_id(native_id: str) -> str:
    """Native id of the event that deletes the message `native_id`."""
    return bot_id(f"delete:{native_id}")


class HttpPlatform:
    """A ChatPlatform over HTTP."""

    def __init__(
        self,
        name: str,
        account: str,
        *,
        store: Store,
        ids: Ids,
        clock: Clock,
        hear: ParseText,
        callers: Callers,
        shows_members: bool = False,
        keep_events: int = 1000,
        stream_limits: StreamLimits = StreamLimits(),
        upload_bytes: int = 0,
    ) -> None:
        """`shows_members`: the streams include members' messages, with names that are unique in a chat.
        `upload_bytes`: maximum size of the files of a member's message; 0: none are accepted."""
        self.name = name
        self.account = account
        self.limits = Limits(
            text_chars=MAX_TEXT_CHARS,
            sends_are_idempotent=True,
            sends_per_minute=600,
            choices=True,
            senders_retry=True,
            markdown=True,
            # Programs may connect chats that have other bots.
            only_bot=shows_members,
            shows_status=True,
            attachments=True,
            file_bytes=_LARGEST_SENT_FILE,
        )
        self.upload_bytes = upload_bytes
        self.callers = callers
        self.feed = ChatFeed(name, account, store, ids, keep=keep_events)
        self.stream_limits = stream_limits
        self._store = store
        self._ids = ids
        self._clock = clock
        self._hear = hear
        self._shows_members = shows_members
        self._names = ChatNames(self.feed)
        self._deliver: Deliver | None = None
        self._receiving: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, deliver: Deliver) -> None:
        """Accept messages until cancelled; before and after, requests are rejected with a retry time."""
        self._deliver, self.feed.is_written_here = deliver, True
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._deliver, self.feed.is_written_here = None, False

    async def receive(self, caller: Caller, chat: str, posted: Posted) -> Accepted:
        """Deliver a posted message, in order within its chat; durable on return. Raises RequestError if the queue is
        full, or the message cannot be stored."""
        self.callers.enter(caller, chat)
        speaker = self.callers.speaker(caller, chat, posted.sender)
        lock = self._receiving.get(chat)
        if lock is None:
            lock = self._receiving[chat] = asyncio.Lock()
        try:
            # One at a time: a flood in one chat adds only one message to each commit.
            async with lock:
                if self._shows_members:
                    speaker = replace(speaker, name=await self._names.shown(chat, speaker.id, speaker.name))
                quoted = await self._quoted(chat, speaker, posted)
                context = self._context(chat, speaker, posted, quoted)
                private_to = quoted.private_to if quoted else None
                files = [(one.name, one.type, one.data, one.size) for one in posted.attachments]
                stored, writes = self._stored(context.chat, posted.id, private_to, files)
                context = replace(context, attachments=stored)
                return await self._hand_over(context, _shown(posted, quoted), private_to, writes)
        except QueueFull as error:
            status = 503 if error.limit == "limits.queue_total" else 429
            event = f"nothing was accepted, because {error}; send it again"
            raise RequestError(status, "queue_full", event, retry_after_seconds=_QUEUE_FULL_SECONDS) from error
        except BadUnit as error:
            raise RequestError(400, "bad_request", "the message cannot be stored") from error
        except StoreError as error:
            raise _unavailable() from error

    async def send(self, outgoing: Outgoing) -> Receipt:
        chat = outgoing.chat.native
        native_id = bot_id(outgoing.key)
        private_to = outgoing.private_to.native if outgoing.private_to else None
        try:
            uploads = [(one, data_in(one.url) or b"") for one in outgoing.uploads]
            files = [(one.name, one.media_type, b64encode(data).decode(), len(data)) for one, data in uploads]
            stored, writes = self._stored(outgoing.chat, native_id, private_to, files)
            body = message_body(outgoing, self._clock.now().isoformat(timespec="milliseconds"), stored)
            with self.feed.taking(chat) as event_id:
                await self._store.commit(
                    [*self.feed.writes(chat, native_id, Event(event_id, body), private_to), *writes]
                )
        except (orjson.JSONEncodeError, BadUnit, StoreBroken, StoreClosed) as error:
            raise SendFailed(f"the event of {native_id!r} was not stored: {error}", retryable=False) from error
        except StoreError as error:
            raise SendFailed(f"the event of {native_id!r} was not stored: {error}", retryable=True) from error
        return Receipt(native_id)

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        body = edited_body(native_id, outgoing, self._clock.now().isoformat(timespec="milliseconds"))
        await self._change(outgoing.chat.native, native_id, bot_id(f"edit:{outgoing.key}"), body)

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        with suppress(MessageGone):
            await self._change(chat.native, native_id, _deletion_id(native_id), deleted_body(native_id))

    async def _change(self, chat: str, changed: str, native_id: str, body: str) -> None:
        """Store an event that changes the message `changed`, for those who saw it. Raises SendFailed."""
        try:
            original = await self.feed.find(chat, changed, _ALL)
            if original is None or await self.feed.find(chat, _deletion_id(changed), _ALL) is not None:
                raise MessageGone(f"there is no message {changed!r} to change", retryable=False)
            private_to = orjson.loads(original.body).get("private_to")
            with self.feed.taking(chat) as event_id:
                await self._store.commit(self.feed.writes(chat, native_id, Event(event_id, body), private_to))
        except StoreError as error:
            raise SendFailed(f"the change of {changed!r} was not stored: {error}", retryable=True) from error

    async def typing(self, chat: ChatRef, status: str) -> None:
        self.feed.set_status(chat.native, status)

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        return self.callers.role(chat.native, member.native)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        file_id = attachment.url.removeprefix(FILE_PREFIX)
        try:
            rows = await self._store.read(http_files.data(int(file_id))) if file_id.isdecimal() else []
        except StoreError as error:
            raise FileUnavailable(f"the file {attachment.name!r} cannot be read: {error}") from error
        if not rows:
            raise FileUnavailable(f"the file {attachment.name!r} is not stored any more")
        content = b64decode(rows[0]["data"])
        if len(content) > max_bytes:
            raise FileUnavailable(f"the file {attachment.name!r} is larger than {max_bytes} bytes")
        return content

    async def file(self, chat: str, file_id: int, viewer: Viewer) -> StoredFile | None:
        """The file of `chat` with this id; None if it is not stored or not visible to `viewer`. Raises StoreError."""
        rows = await self._store.read(http_files.find(ChatRef(self.name, self.account, chat).key, file_id, viewer))
        found = ((row["name"], row["media_type"], b64decode(row["data"])) for row in rows)
        return next((StoredFile(*one) for one in found), None)

    async def close(self) -> None:
        self.feed.end()

    def viewer(self, caller: Caller) -> Viewer:
        """The visibility of events for the caller."""
        return Viewer(caller.member or "", sees_all=caller.member is None)

    def _stored(
        self, chat: ChatRef, native_id: str, private_to: str | None, files: Sequence[tuple[str, str, str, int]]
    ) -> tuple[tuple[Attachment, ...], list[Write]]:
        """Attachments and writes for the files of a message: name, type, content in base64, and size of each."""
        stored: list[Attachment] = []
        writes: list[Write] = []
        for place, (name, media_type, data, size) in enumerate(files):
            file_id = self._ids.next()
            stored.append(Attachment(name, media_type, f"{FILE_PREFIX}{file_id}", size))
            writes.append(http_files.add(file_id, chat.key, native_id, place, private_to, name, media_type, data))
        if writes:
            writes.append(http_files.prune(chat.key, _FILES_KEPT))
        return tuple(stored), writes

    async def _hand_over(
        self, context: MessageContext, shown: str, private_to: str | None, writes: Sequence[Write]
    ) -> Accepted:
        if self._deliver is None:
            raise _unavailable()
        chat = context.chat.native
        if not self._shows_members:
            return await self._deliver(context, writes)
        with self.feed.taking(chat) as event_id:
            event = Event(event_id, member_message_body(context, shown))
            events = self.feed.writes(chat, context.key.native_id, event, private_to)
            return await self._deliver(context, [*events, *writes])

    def _context(self, chat: str, speaker: Speaker, posted: Posted, quoted: _Quotation | None) -> MessageContext:
        ref = ChatRef(self.name, self.account, chat)
        kind = Kind(posted.kind)
        parsed = self._hear(posted.text)
        is_choice = kind is Kind.CHOICE
        return MessageContext(
            key=MessageKey(ref, posted.id, kind),
            kind=kind,
            chat=ref,
            is_group=not chat.startswith(PRIVATE_PREFIX),
            sender=Sender(MemberRef(self.name, self.account, speaker.id), speaker.name, speaker.role),
            text=posted.text if is_choice else parsed.text,
            sent_at=self._clock.now(),
            mentions=tuple(MemberRef(self.name, self.account, member) for member in dict.fromkeys(posted.mentions)),
            mentions_bot=posted.mentions_bot or parsed.mentions_bot or is_choice,
            reply_to=quoted.quoted if quoted else None,
            private=quoted is not None and quoted.private_to is not None,
            chat_title=chat,
        )

    async def _quoted(self, chat: str, speaker: Speaker, posted: Posted) -> _Quotation | None:
        if posted.reply_to is None:
            return None
        found = await self.feed.find(chat, posted.reply_to, Viewer(speaker.id))
        if found is None:
            if posted.kind == "choice":
                raise RequestError(400, "bad_request", "reply_to: no such message here", field="reply_to")
            return _Quotation(Quoted(posted.reply_to, from_bot=is_bots(posted.reply_to)), {}, None)
        event: JsonObject = orjson.loads(found.body)
        sender = event.get("sender", {})
        text = str(event["text"])[:_QUOTED_CHARS]
        files = tuple(
            Attachment(one["name"], one["type"], f"{FILE_PREFIX}{one['id']}", one["size"])
            for one in event.get("attachments", ())
        )
        quoted = Quoted(posted.reply_to, str(sender.get("name", "")), text, is_bots(posted.reply_to), files)
        labels = {str(each["value"]): str(each["label"]) for each in event.get("choices", ())}
        return _Quotation(quoted, labels, event.get("private_to"))


@dataclass(frozen=True, slots=True)
class _Quotation:
    quoted: Quoted
    labels: dict[str, str]
    """The labels of its choices, by value."""
    private_to: str | None
    """The only member who could read it and who sees the answer; None if it was public."""


def _shown(posted: Posted, quoted: _Quotation | None) -> str:
    if posted.kind == "message":
        return posted.text
    label = quoted.labels.get(posted.text) if quoted else None
    if label is None:
        raise RequestError(400, "bad_request", "text: is not one of the choices of that message", field="text")
    return label


def _unavailable() -> RequestError:
    return RequestError(503, "unavailable", "nothing was accepted; send it again", retry_after_seconds=2)
