"""What became of messages, read from the inbox: behind `/why` and `rollcall why`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from function_calls.ports import Explanation
from services.refs import ChatRef, MemberRef, ReasonCode
from services.store.chats import outcomes
from services.store.port import Row, Store
from services.store.turns import outbox

_SHOWN_CHARS = 60


class StoredExplanations:
    """Reads explanations from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def last(self, chat: ChatRef, before_native_id: str, count: int) -> Sequence[Explanation]:
        """The outcomes of the last `count` messages of `chat`, newest first, without the one asking."""
        return [_explained(row) for row in await self._last(chat, before_native_id, count)]

    async def back(self, chat: ChatRef, before_native_id: str, number: int) -> Explanation | None:
        """The outcome of the message that is `number` back, counted without the one asking; 1 is the last."""
        rows = await self._last(chat, before_native_id, number)
        return _explained(rows[-1]) if len(rows) == number else None

    async def of(self, chat: ChatRef, native_id: str, alone: MemberRef | None = None) -> Sequence[Explanation]:
        """The outcome of one message of `chat` and of its changes, oldest first; of the bot's own messages, of those
        that they answered. What is private to `alone` is told to nobody else."""
        rows: Sequence[Row] = await self._store.read(outcomes.of_native(chat.key, native_id))
        if not rows:
            sent = await self._store.read(outbox.turn_of(chat.key, native_id))
            # A turn of another chat may have sent it here: what was said there is not told.
            rows = await self._in_chat(chat, sent[0]["turn_id"], alone) if sent else []
        return [_explained(row) for row in rows]

    async def _last(self, chat: ChatRef, before_native_id: str, count: int) -> list[Row]:
        """Messages and what was to run by the clock, newest first."""
        said = await self._store.read(outcomes.last(chat.key, before_native_id, count))
        by_clock = await self._store.read(outcomes.last_timers(chat.key, count))
        return sorted([*said, *by_clock], key=lambda row: int(row["id"]), reverse=True)[:count]

    async def _in_chat(self, chat: ChatRef, turn_id: int, alone: MemberRef | None) -> Sequence[Row]:
        by_clock = await self._store.read(outcomes.timer_in_chat(chat.key, turn_id))
        if by_clock:
            may_know = (None, alone.key) if alone is not None else (None,)
            return [row for row in by_clock if row["private_to"] in may_know]
        return await self._store.read(outcomes.in_chat(chat.key, turn_id))


def _explained(row: Row) -> Explanation:
    text = row["text"] or ""
    reason = ReasonCode(row["reason"])
    # The detail of an unknown command is a word of the message: shown no longer, and to nobody else, than that.
    is_shown = bool(text) or reason is not ReasonCode.UNKNOWN_COMMAND
    return Explanation(
        text=text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…",
        sender_name=row["sender_name"],
        at=datetime.fromtimestamp(row["received_ms"] / 1000, UTC),
        reason=reason,
        detail=row["detail"] if is_shown else "",
        short_id=str(row["id"]),
    )
