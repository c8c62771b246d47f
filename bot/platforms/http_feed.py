"""The events of the HTTP platform's chats: stored in order, read by cursor, and who is waiting for the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from bot.platforms.http_wire import bot_id
from services.refs import ChatRef
from services.store import http_events
from services.store.http_events import Event, Viewer
from services.store.ids import Ids
from services.store.port import Store, Write

_PRUNE_EVERY = 64
_COUNTED_CHATS = 10_000


class Listener:
    """One reader that waits for something to happen in a chat."""

    def __init__(self, chat: str, member: str) -> None:
        """`member`: whose it is; empty: a program's."""
        self.chat = chat
        self.member = member
        self.is_superseded = False
        """Others of its member, or of somebody who had none, took its place: it must not come back at once."""
        self._happened = asyncio.Event()
        self._is_over = False

    def wake(self) -> None:
        """Something happened."""
        self._happened.set()

    def dismiss(self) -> None:
        """Whoever reads has to come again and show who they are."""
        self._is_over = True
        self.wake()

    def is_dismissed(self) -> bool:
        """Whether it is to read no further."""
        return self._is_over

    def forget(self) -> None:
        """What happened so far is about to be read."""
        self._happened.clear()

    async def wait(self, seconds: float) -> bool:
        """Return True as soon as something happens, or False after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._happened.wait()
        except TimeoutError:
            return False
        return True


class Listeners:
    """The open listeners of one feed, bounded in all and for each member."""

    def __init__(self) -> None:
        self.count = 0
        """How many there are, without those that were superseded."""
        self._by_chat: dict[str, set[Listener]] = {}
        self._by_member: dict[str, dict[Listener, None]] = {}
        """Oldest first."""

    def of(self, member: str) -> int:
        """How many a member has."""
        return len(self._by_member.get(member, ()))

    def make_room(self, member: str, most: int) -> bool:
        """Whether one more of `member` is within `most`. Where there are as many, whoever has two more than `member`
        or most of all loses the oldest."""
        if self.count < most:
            return True
        greediest = max(self._by_member.values(), key=len, default={})
        if len(greediest) <= self.of(member) + 1:
            return False
        self._supersede(next(iter(greediest)))
        return True

    def add(self, chat: str, member: str, most_of_member: int = 0) -> Listener:
        """A new one. The oldest of a member who has `most_of_member` already (0: no limit) is superseded."""
        if 0 < most_of_member <= self.of(member):
            self._supersede(next(iter(self._by_member[member])))
        listener = Listener(chat, member)
        self._by_chat.setdefault(chat, set()).add(listener)
        self._by_member.setdefault(member, {})[listener] = None
        self.count += 1
        return listener

    def remove(self, listener: Listener) -> None:
        """It reads no more."""
        if not listener.is_superseded:
            self._forget(listener)
        in_chat = self._by_chat[listener.chat]
        in_chat.discard(listener)
        if not in_chat:
            del self._by_chat[listener.chat]

    def wake(self, chat: str) -> None:
        """Let everybody who listens to `chat` look."""
        for listener in self._by_chat.get(chat, ()):
            listener.wake()

    def wake_all(self) -> None:
        """Let everybody look."""
        for chat in list(self._by_chat):
            self.wake(chat)

    def dismiss_all(self) -> None:
        """End all: what let them in may not hold any more."""
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


class ChatFeed:
    """The events of one platform and account."""

    def __init__(self, platform: str, account: str, store: Store, ids: Ids, *, keep: int = 1000) -> None:
        self._platform = platform
        self._account = account
        self._store = store
        self._ids = ids
        self._keep = keep
        self.listeners = Listeners()
        self._in_flight: dict[str, set[int]] = {}
        self._statuses: dict[str, str] = {}
        self._added: dict[str, int] = {}
        self.ended = False

    @contextmanager
    def taking(self, chat: str) -> Iterator[int]:
        """The id of an event that is being committed. Until that has ended nobody reads past it, so that a cursor
        never jumps over an event that becomes visible later."""
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
        """What keeps `event` once, and the chat's events bounded."""
        key = self._key(chat)
        writes = [http_events.add(event, key, native_id, private_to)]
        added = self._added.get(chat, 0)
        if added % _PRUNE_EVERY == 0:
            writes.append(http_events.prune(key, self._keep))
        if len(self._added) >= _COUNTED_CHATS:
            self._added.clear()
        self._added[chat] = added + 1
        return writes

    async def after(self, chat: str, cursor: int, count: int, viewer: Viewer) -> list[Event]:
        """Up to `count` events that came after `cursor`, oldest first. Raises StoreError."""
        query = http_events.after(self._key(chat), cursor, self._horizon(chat), count, viewer)
        return [http_events.event_of(row) for row in await self._store.read(query)]

    async def newest(self, chat: str, count: int, viewer: Viewer) -> list[Event]:
        """The last `count` events, oldest first. Raises StoreError."""
        query = http_events.newest(self._key(chat), self._horizon(chat), count, viewer)
        return [http_events.event_of(row) for row in reversed(await self._store.read(query))]

    async def find(self, chat: str, native_id: str, viewer: Viewer) -> Event | None:
        """The event with this native id, when it is still kept and `viewer` may see it. Raises StoreError."""
        rows = await self._store.read(http_events.find(self._key(chat), native_id, viewer))
        return http_events.event_of(rows[0]) if rows else None

    @property
    def listening(self) -> int:
        """How many readers wait at this moment."""
        return self.listeners.count

    @contextmanager
    def listen(self, chat: str, member: str, most_of_member: int = 0) -> Iterator[Listener]:
        """A listener that is woken by everything in `chat`, and by the end; see `Listeners.add`."""
        listener = self.listeners.add(chat, member, most_of_member)
        try:
            yield listener
        finally:
            self.listeners.remove(listener)

    def status(self, chat: str) -> str:
        """What the bot is doing in `chat`; empty when nothing."""
        return self._statuses.get(chat, "")

    def set_status(self, chat: str, text: str) -> None:
        """Tell everybody in `chat` what the bot is doing; never stored."""
        if text:
            self._statuses[chat] = text
        else:
            self._statuses.pop(chat, None)
        self.listeners.wake(chat)

    def end(self) -> None:
        """End all streams: the server is about to stop."""
        self.ended = True
        self.listeners.wake_all()

    def _horizon(self, chat: str) -> int:
        return min(self._in_flight.get(chat, ()), default=self._ids.next())

    def _key(self, chat: str) -> str:
        return ChatRef(self._platform, self._account, chat).key


def is_bots(native_id: str) -> bool:
    """Whether an event of this native id is something that the bot sent."""
    return native_id.startswith(bot_id(""))
