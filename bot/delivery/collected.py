"""Messages of schedules that were held back in quiet hours, sent together afterwards."""

from __future__ import annotations

import itertools
from dataclasses import replace

import orjson

from bot.chats.chats import Chats
from bot.delivery.delivery import Delivery
from bot.delivery.outgoing import OutboundMessage, message_of_row, outgoing_to_json
from bot.platforms.base import Outgoing
from services.clock import Clock
from services.refs import ChatRef
from services.store.port import Row, Store, Write
from services.store.turns import outbox


class Collected:
    """Sends the held messages of chats whose quiet hours are over."""

    def __init__(self, store: Store, delivery: Delivery, chats: Chats, clock: Clock) -> None:
        self._store = store
        self._delivery = delivery
        self._chats = chats
        self._clock = clock
        # An earlier process may have left some.
        self._may_hold = True

    def note(self) -> None:
        """Record that messages are being held."""
        self._may_hold = True

    async def send(self) -> None:
        """Send what is due: the plain texts of a chat as one message, as far as its network permits. Raises
        StoreError."""
        if not self._may_hold:
            return
        self._may_hold = False
        rows = sorted(await self._store.read(outbox.HELD), key=_chat_of)
        for key, of_chat in itertools.groupby(rows, key=_chat_of):
            chat, platform = ChatRef.parse(key), self._delivery.platform(ChatRef.parse(key))
            if (
                platform is None
                or not self._delivery.is_here(chat)
                or self._chats.quiet_until(chat, self._clock.now()) is not None
            ):
                self._may_hold = True
                continue
            writes: list[Write] = []
            messages: list[OutboundMessage] = []
            for row in of_chat:
                message = message_of_row(row)._replace(due=None)
                joined = _joined(messages[-1].outgoing, message.outgoing) if messages else None
                if joined is None or len(joined.text) > platform.limits.text_chars:
                    messages.append(message)
                else:
                    messages[-1] = messages[-1]._replace(outgoing=joined)
                    writes.append(outbox.end_held(message.row_id, "merged", ""))
            writes += [
                outbox.end_held(one.row_id, "pending", orjson.dumps(outgoing_to_json(one.outgoing)).decode())
                for one in messages
            ]
            await self._store.commit(writes)
            self._delivery.hand_over(messages)


def _chat_of(row: Row) -> str:
    return str(row["chat"])


def _joined(first: Outgoing, second: Outgoing) -> Outgoing | None:
    """Both texts in one message; None if they are formatted differently, or one has more than text."""
    if first.markdown != second.markdown or any(
        one.attachments or one.choices or one.closes or one.replaces or one.reply_to for one in (first, second)
    ):
        return None
    mentions = tuple(dict.fromkeys((*first.mentions, *second.mentions)))
    return replace(first, text=f"{first.text}\n\n{second.text}", mentions=mentions)
