"""What was said in one chat, for its own members: a part of it to read, and all of it to forget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from services.clock import Clock
from services.periods import Period
from services.refs import ChatRef, MemberRef
from services.store import audit, history, summaries
from services.store.ids import Ids
from services.store.port import Store

_FOREVER = 2**62


class ChatLine(NamedTuple):
    """One message that nobody took back, as it is now."""

    sender: str
    name: str
    text: str
    at_ms: int
    from_bot: bool
    reply_to_name: str


class Excerpt(NamedTuple):
    """A part of the past."""

    lines: Sequence[ChatLine]
    """Oldest first."""
    is_cut: bool
    """There are more, from before these."""


class ChatPast:
    """The history of each chat. Every question is about one chat alone."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, *, most_lines: int) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self.most_lines = most_lines
        """Of a longer period the latest are given."""

    async def read(self, chat: ChatRef, period: Period, before_native_id: str) -> Excerpt:
        """What was said in `chat` in `period`, before the message with that id."""
        wanted = self.most_lines if period.count is None else min(period.count, self.most_lines)
        rows = await self._store.read(
            history.period(
                chat.key,
                period.since_ms if period.since_ms is not None else 0,
                period.until_ms if period.until_ms is not None else _FOREVER,
                before_native_id,
                wanted + 1,
            )
        )
        # Who asks for the last hundred knows that there are more.
        is_cut = len(rows) > wanted and wanted == self.most_lines and period != Period(count=wanted)
        lines = [
            ChatLine(
                row["sender"],
                row["sender_name"],
                row["text"],
                row["at_ms"],
                bool(row["from_bot"]),
                row["reply_to_name"],
            )
            for row in reversed(rows[:wanted])
            if row["text"].strip()
        ]
        return Excerpt(lines, is_cut)

    async def forget(self, chat: ChatRef, until: datetime, by: MemberRef) -> int:
        """Forget what was sent in `chat` up to the instant `until`, that included, and every summary of the chat. How
        many messages that were; a second time there are none, and no second mark in the audit."""
        until_ms = round(until.timestamp() * 1000)
        count = int((await self._store.read(history.count_until(chat.key, until_ms)))[0]["count"])
        writes = [history.forget_until(chat.key, until_ms), summaries.forget_chat(chat.key)]
        if count:
            writes.append(
                audit.note(
                    id=self._ids.next(),
                    at_ms=self._clock.now_ms(),
                    actor=by.key,
                    chat=chat.key,
                    action="history.forget",
                    detail=f"{count} messages",
                )
            )
        await self._store.commit(writes)
        return count
