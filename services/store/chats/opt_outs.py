"""Members whose messages are not recorded, by chat."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, or_, select, union_all

from services.store.port import Query, Statement, Write
from services.store.schema import TEXT, insert_new, integer, table, text
from services.store.turns.inbox import INBOX
from services.store.turns.outbox import OUTBOX

EVERYWHERE = ""
"""The chat of a mark that applies to all chats."""
OPT_OUTS = table("opt_outs", text("member", primary_key=True), text("chat", primary_key=True), integer("at_ms"))

_CHAT = bindparam("in_chat", type_=TEXT)
_ADD = Statement("opt_outs.add", insert_new(OPT_OUTS))
_IS_MEANT = and_(OPT_OUTS.c.member == bindparam("of_member"), or_(_CHAT == EVERYWHERE, OPT_OUTS.c.chat == _CHAT))
_REMOVE = Statement("opt_outs.remove", delete(OPT_OUTS).where(_IS_MEANT))
EVERYTHING = Statement("opt_outs.all", select(OPT_OUTS.c.member, OPT_OUTS.c.chat)).query()
"""All marks: `member`, `chat`."""
_SENDERS = Statement(
    "opt_outs.senders",
    union_all(
        select(INBOX.c.sender).where(INBOX.c.key == bindparam("message_key")),
        select(INBOX.c.sender)
        .join(OUTBOX, OUTBOX.c.turn_id == INBOX.c.id)
        .where(OUTBOX.c.chat == _CHAT, OUTBOX.c.native_id == bindparam("native_id")),
    ),
)


def add(member: str, chat: str, at_ms: int) -> Write:
    """Mark the member in `chat` or EVERYWHERE. Touches no row if the mark exists."""
    return _ADD.write(member=member, chat=chat, at_ms=at_ms)


def remove(member: str, chat: str) -> Write:
    """Delete the member's mark of `chat`, or with EVERYWHERE all marks of the member."""
    return _REMOVE.write(of_member=member, in_chat=chat)


def senders_of(chat: str, native_id: str, message_key: str) -> Query:
    """The `sender` of a message of a member (by its inbox key), or of the messages that a message of the bot answers;
    no row if it is unknown."""
    return _SENDERS.query(in_chat=chat, native_id=native_id, message_key=message_key)
