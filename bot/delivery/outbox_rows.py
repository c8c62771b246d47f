"""What is written for one message that the bot says: its line of history, and a row of the outbox for each piece that
the network takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from bot.delivery.delivery import Parcel
from bot.delivery.outgoing import ROOM_FOR_LATENESS, Due, outgoing_to_json, pieces
from bot.platforms.base import ChatPlatform
from config.texts import Phrases
from function_calls.spec import Message
from services.refs import ChatRef, MemberRef
from services.store.chats import history
from services.store.ids import Ids
from services.store.port import Write
from services.store.turns import outbox


@dataclass(frozen=True, slots=True)
class Address:
    """Where one message goes."""

    chat: ChatRef
    private_to: MemberRef | None
    """The member of that chat whom alone it is for."""
    platform: ChatPlatform


@dataclass(frozen=True, slots=True)
class Origin:
    """What led to a message."""

    turn_id: int
    """Also the row of history that it answers, where the turn has one."""
    number: int
    """Which message of the turn it is: with the turn it makes the key, the same on every attempt."""
    asked_by: MemberRef
    bot_name: str
    texts: Phrases
    outside: bool
    """It may hold words of others."""
    due: Due | None = None
    """Set where it is said by the clock."""
    closes: tuple[str, ...] = ()
    """The native ids of earlier messages whose choices lead nowhere any more."""


class OutboxRows:
    """Makes the rows of one process, which has its `epoch`."""

    def __init__(self, ids: Ids, epoch: int) -> None:
        self._ids = ids
        self._epoch = epoch

    def of(self, message: Message, to: Address, origin: Origin, now_ms: int) -> tuple[list[Write], list[Parcel]]:
        """What is to be committed, and then handed to the delivery."""
        writes: list[Write] = []
        parcels: list[Parcel] = []
        chat, due, history_id = to.chat, origin.due, None
        limits = to.platform.limits
        if message.brief and limits.max_lines:
            message = replace(message, text=message.brief)
        if to.private_to is None:
            history_id = self._ids.next()
            writes.append(
                history.said(
                    id=history_id,
                    chat=chat.key,
                    sender_name=origin.bot_name,
                    text=message.text,
                    at_ms=now_ms,
                    reply_to=message.reply_to,
                    asked_by=origin.asked_by.key,
                    answers=origin.turn_id,
                    outside=origin.outside,
                )
            )
        claimed = limits.sends_are_idempotent
        key, room = f"{origin.turn_id}:{origin.number}", ROOM_FOR_LATENESS if due is not None else 0
        closes, asked_by = origin.closes, origin.asked_by.key if limits.is_paced and due is None else ""
        for piece in pieces(message, chat, to.private_to, key, limits, origin.texts, origin.bot_name, room):
            if closes:
                piece, closes = replace(piece, closes=closes), ()
            row_id = self._ids.next()
            writes.append(
                outbox.put(
                    id=row_id,
                    key=piece.key,
                    turn_id=origin.turn_id,
                    history_id=history_id,
                    chat=chat.key,
                    body=orjson.dumps(outgoing_to_json(piece, due, asked_by)).decode(),
                    state="sending" if claimed else "pending",
                    epoch=self._epoch,
                    at_ms=now_ms,
                )
            )
            parcels.append(Parcel(row_id, piece, history_id, claimed, now_ms, due, origin.turn_id, asked_by))
            history_id = due = None
        return writes, parcels
