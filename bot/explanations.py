"""What became of messages, read from the inbox: behind `/why` and `rollcall why`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from function_calls.context import MessageKey
from function_calls.ports import Explanation
from services.refs import ChatRef, ReasonCode
from services.store import outcomes
from services.store.port import Row, Store

_SHOWN_CHARS = 60


class StoredExplanations:
    """Reads explanations from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def last(self, chat: ChatRef, before_native_id: str, count: int) -> Sequence[Explanation]:
        """The outcomes of the last `count` messages of `chat`, newest first, without the one asking."""
        rows = await self._store.read(outcomes.last(chat.key, before_native_id, count))
        return [_explained(row) for row in rows]

    async def of(self, chat: ChatRef, native_id: str) -> Explanation | None:
        """The outcome of one message of `chat`."""
        rows = await self._store.read(outcomes.find(MessageKey(chat, native_id).text))
        return _explained(rows[0]) if rows else None


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
