"""The message that stands for a moment that has come: from its owner, in the chat in which it was asked for."""

from __future__ import annotations

from datetime import datetime

import orjson

from function_calls.context import Kind, MessageContext, MessageKey, Sender, TimerCall
from services.firing import Moment
from services.refs import ChatRef, MemberRef
from services.store.port import Row
from services.timer import at_ms


def timer_context(row: Row, moment: Moment, now: datetime, *, was_away: bool) -> MessageContext:
    """The context of `moment` of the timer in `row`, a row of `services.store.due.row`. Its key is that of the moment:
    the inbox takes it once."""
    chat = ChatRef.parse(row["chat"])
    return MessageContext(
        key=MessageKey(chat, f"timer-{row['id']}-{moment.wall}", Kind.TIMER),
        kind=Kind.TIMER,
        chat=chat,
        is_group=bool(row["is_group"]),
        sender=Sender(MemberRef.parse(row["owner"]), row["owner_name"]),
        text=row["title"],
        sent_at=now,
        private=row["private_to"] is not None,
        bot=row["bot"],
        timer=TimerCall(
            function=row["function"],
            arguments=orjson.loads(row["arguments"]),
            timer_id=row["id"],
            occurrence_id=row["occurrence_id"],
            due_at=at_ms(moment.due_ms),
            title=row["title"],
            number=row["number"],
            was_away=was_away,
        ),
    )
