"""Pending questions to members: table, and statements for their states (open, answered, replaced, withdrawn,
expired)."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import Index, bindparam, exists, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import insert_new, integer, table, text
from services.store.turns.inbox import INBOX
from services.store.turns.outbox import OUTBOX

PENDING = table(
    "pending",
    integer("id", primary_key=True),
    text("chat"),
    text("member"),
    integer("turn_id"),
    text("body"),
    text("state"),
    integer("asked_ms"),
    integer("expires_ms"),
    integer("answered_by", nullable=True),
)
_THIS = PENDING.c.id == bindparam("row_id")
IS_OPEN = PENDING.c.state == "open"
Index("pending_open", PENDING.c.chat, PENDING.c.member, sqlite_where=IS_OPEN, postgresql_where=IS_OPEN)

_ASK = Statement("pending.ask", insert_new(PENDING, "id"))
_CLOSE_OTHERS = Statement(
    "pending.close_others",
    update(PENDING)
    .where(PENDING.c.chat == bindparam("in_chat"), PENDING.c.member == bindparam("of_member"), IS_OPEN)
    .values(state="replaced"),
)
_ANSWER = Statement(
    "pending.answer",
    update(PENDING)
    .where(_THIS, IS_OPEN, exists().where(INBOX.c.id == bindparam("turn_id")))
    .values(state=bindparam("how"), answered_by=bindparam("turn_id")),
)
_REOPEN = Statement(
    "pending.reopen",
    update(PENDING)
    .where(_THIS, PENDING.c.state == "answered", PENDING.c.answered_by == bindparam("turn_id"))
    .values(state="open", answered_by=None),
)
_WHILE_OPEN = update(PENDING).where(_THIS, IS_OPEN)
_WITHDRAW = Statement("pending.withdraw", _WHILE_OPEN.values(state="withdrawn"))
_EXPIRE = Statement("pending.expire", _WHILE_OPEN.values(state="expired"))
_EXPIRE_NOW = Statement("pending.expire_now", _WHILE_OPEN.values(expires_ms=bindparam("now_ms")))
_END_UNANSWERED = Statement(
    "pending.end_unanswered", _WHILE_OPEN.values(state="expired", answered_by=bindparam("turn_id"))
)
OPEN_QUESTIONS = Statement("pending.open", select(PENDING).where(IS_OPEN).order_by(PENDING.c.id)).query()
"""All columns of all open questions, oldest first."""
_OPEN_IN = Statement(
    "pending.open_in", select(PENDING).where(PENDING.c.chat == bindparam("in_chat"), IS_OPEN).order_by(PENDING.c.id)
)
_FIND = Statement("pending.find", select(PENDING).where(_THIS))
# Ids increase: a turn's messages have ids between its message and its question, which limits the rows of the join.
_SENT_BY_TURN = (
    (OUTBOX.c.turn_id == PENDING.c.turn_id) & (OUTBOX.c.id > PENDING.c.turn_id) & (OUTBOX.c.id < PENDING.c.id)
)
_ASKED_BY = Statement(
    "pending.asked_by_message",
    select(PENDING)
    .join(OUTBOX, _SENT_BY_TURN)
    .where(PENDING.c.chat == bindparam("in_chat"), OUTBOX.c.native_id == bindparam("with_id")),
)
_MESSAGES = Statement(
    "pending.messages",
    select(OUTBOX.c.native_id)
    .join(PENDING, _SENT_BY_TURN)
    .where(_THIS, OUTBOX.c.native_id.is_not(None))
    .order_by(OUTBOX.c.id),
)
_CLOSED = select(PENDING.c.id, PENDING.c.body, PENDING.c.state, INBOX.c.sender_name).join(
    INBOX, INBOX.c.id == PENDING.c.answered_by, isouter=True
)
_ALLOWED = Statement(
    "pending.allowed",
    select(PENDING.c.id, PENDING.c.body)
    .where(PENDING.c.id >= bindparam("since_id"), PENDING.c.chat == bindparam("in_chat"), PENDING.c.state == "allowed")
    .order_by(PENDING.c.id),
)
_HOW_CLOSED = Statement("pending.how_closed", _CLOSED.where(_THIS))
_HOW_CLOSED_WITH = Statement(
    "pending.how_closed_with",
    _CLOSED.where(PENDING.c.chat == bindparam("in_chat"), PENDING.c.body.like(bindparam("holding")))
    .order_by(PENDING.c.id.desc())
    .limit(20),
)


def ask(*, replaces: str, **values: str | int) -> list[Write]:
    """Add a question to `member`, a value for each column but those of its end, and replace the open ones to the member
    `replaces` in the chat."""
    closed = _CLOSE_OTHERS.write(in_chat=values["chat"], of_member=replaces)
    return [closed, _ASK.write(**values, state="open", answered_by=None)]


def answer(id: int, turn_id: int, how: Literal["answered", "allowed", "refused"] = "answered") -> Write:
    """Close the question as answered by that turn, whose message is accepted in the same unit; so only one message can
    answer it, and no duplicate. `how`: the decision, if it was an approval question. Touches no row if it is closed."""
    return _ANSWER.write(row_id=id, turn_id=turn_id, how=how)


def reopen(id: int, turn_id: int) -> Write:
    """Open the question again, because the answer of that turn was not used. Touches no row if another turn answered it
    or its state has changed."""
    return _REOPEN.write(row_id=id, turn_id=turn_id)


def withdraw(id: int) -> Write:
    """Close an open question as withdrawn by the bot; touches no row if it is closed."""
    return _WITHDRAW.write(row_id=id)


def shared_placeholder(id: int) -> str:
    """Placeholder for the member of a question that a newer question does not replace: several members may answer it,
    or its asker has to be notified when it expires."""
    return f"*{id}"


def asked_by_message(chat: str, native_id: str) -> Query:
    """The question of the turn that sent the message `native_id`, in any state; no row if it sent no question."""
    return _ASKED_BY.query(in_chat=chat, with_id=native_id)


def messages(id: int) -> Query:
    """The network's ids (`native_id`) of the sent messages of the turn that asked the question, in order."""
    return _MESSAGES.query(row_id=id)


def expire(id: int) -> Write:
    """Close an open question as expired; touches no row if it is closed."""
    return _EXPIRE.write(row_id=id)


def expire_now(id: int, now_ms: int) -> Write:
    """Set the expiry of an open question to now, because nobody can answer it any more."""
    return _EXPIRE_NOW.write(row_id=id, now_ms=now_ms)


def end_unanswered(id: int, turn_id: int) -> Write:
    """Expire the question and record the turn that ends its run; the unit is undone if it is no longer open."""
    return _END_UNANSWERED.write_expecting(1, row_id=id, turn_id=turn_id)


def open_in(chat: str) -> Query:
    """All columns of the open questions of the chat, oldest first."""
    return _OPEN_IN.query(in_chat=chat)


def find(id: int) -> Query:
    """All columns of one question, in any state; no row if it was deleted."""
    return _FIND.query(row_id=id)


def allowed(chat: str, since_id: int) -> Query:
    """`id` and `body` of the chat's approval questions with ids from `since_id` on that were answered with yes, oldest
    first."""
    return _ALLOWED.query(in_chat=chat, since_id=since_id)


def how_closed(id: int) -> Query:
    """How the question was closed: `id`, `body`, `state`, and `sender_name` of the member who answered (null without
    one)."""
    return _HOW_CLOSED.query(row_id=id)


def how_closed_with(chat: str, text: str) -> Query:
    """The same for the newest 20 questions of the chat whose body contains `text`; `text` has no wildcards."""
    return _HOW_CLOSED_WITH.query(in_chat=chat, holding=f"%{text}%")
