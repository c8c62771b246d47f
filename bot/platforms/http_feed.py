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

    def __init__(self) -> None:
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


class ChatFeed:
    """The events of one platform and account."""

    def __init__(self, platform: str, account: str, store: Store, ids: Ids, *, keep: int = 1000) -> None:
        self._platform = platform
        self._account = account
        self._store = store
        self._ids = ids
        self._keep = keep
        self._listeners: dict[str, set[Listener]] = {}
        self._in_flight: dict[str, set[int]] = {}
        self._statuses: dict[str, str] = {}
        self._added: dict[str, int] = {}
        self.ended = False
        self.listening = 0
        """How many readers wait at this moment."""

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
            self.wake(chat)

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

    @contextmanager
    def listen(self, chat: str) -> Iterator[Listener]:
        """A listener that is woken by everything in `chat`, and by the end."""
        listener = Listener()
        self._listeners.setdefault(chat, set()).add(listener)
        self.listening += 1
        try:
            yield listener
        finally:
            self.listening -= 1
            waiting = self._listeners[chat]
            waiting.discard(listener)
            if not waiting:
                del self._listeners[chat]

    def wake(self, chat: str) -> None:
        """Let everybody who listens to `chat` look."""
        for listener in self._listeners.get(chat, ()):
            listener.wake()

    def status(self, chat: str) -> str:
        """What the bot is doing in `chat`; empty when nothing."""
        return self._statuses.get(chat, "")

    def set_status(self, chat: str, text: str) -> None:
        """Tell everybody in `chat` what the bot is doing; never stored."""
        if text:
            self._statuses[chat] = text
        else:
            self._statuses.pop(chat, None)
        self.wake(chat)

    def dismiss(self) -> None:
        """End the streams that are open: what let them in may not hold any more."""
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.dismiss()

    def end(self) -> None:
        """End all streams: the server is about to stop."""
        self.ended = True
        for chat in list(self._listeners):
            self.wake(chat)

    def _horizon(self, chat: str) -> int:
        return min(self._in_flight.get(chat, ()), default=self._ids.next())

    def _key(self, chat: str) -> str:
        return ChatRef(self._platform, self._account, chat).key


def is_bots(native_id: str) -> bool:
    """Whether an event of this native id is something that the bot sent."""
    return native_id.startswith(bot_id(""))
