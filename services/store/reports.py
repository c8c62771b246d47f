"""Queries of reports for operators: chats, messages, and everything stored about one turn."""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam, case, func, literal_column, select

from services.store.chats.history import HISTORY
from services.store.port import Query, Statement
from services.store.turns.inbox import INBOX
from services.store.turns.ledger import LEDGER
from services.store.turns.outbox import OUTBOX
from services.store.turns.pending import PENDING
from services.store.turns.turn_state import ANSWERS

_NEWEST = func.max(INBOX.c.id).label("id")
_CHATS = Statement(
    "reports.chats",
    select(
        INBOX.c.chat,
        _NEWEST,
        func.count().label("messages"),
        func.sum(case((INBOX.c.turn_id.is_not(None), 1), else_=0)).label("turns"),
    )
    .where(INBOX.c.id >= bindparam("from_id"))
    .group_by(INBOX.c.chat)
    .order_by(_NEWEST.desc())
    .limit(bindparam("count")),
)
_MESSAGE = select(
    HISTORY.c.id,
    HISTORY.c.from_bot,
    HISTORY.c.sender_name,
    HISTORY.c.text,
    HISTORY.c.at_ms,
    HISTORY.c.change,
    INBOX.c.reason,
    INBOX.c.detail,
    INBOX.c.turn_id,
).join(INBOX, INBOX.c.id == HISTORY.c.id, isouter=True)
_PAGE = (
    _MESSAGE.where(HISTORY.c.chat == bindparam("chat"), HISTORY.c.id < bindparam("before"))
    .order_by(HISTORY.c.id.desc())
    .limit(bindparam("count"))
)
_MESSAGES = Statement("reports.messages", _PAGE)
_WITH_REASON = Statement("reports.messages_with_reason", _PAGE.where(INBOX.c.reason == bindparam("reason")))
_EVENT = Statement(
    "reports.event",
    select(INBOX, HISTORY.c.text)
    .join(HISTORY, HISTORY.c.id == INBOX.c.id, isouter=True)
    .where(INBOX.c.id == bindparam("row_id")),
)
_ANSWERS = Statement(
    "reports.answers", select(ANSWERS).where(ANSWERS.c.turn_id == bindparam("turn")).order_by(ANSWERS.c.round)
)
_CALLS = Statement(
    "reports.calls", select(LEDGER).where(LEDGER.c.turn_id == bindparam("turn")).order_by(LEDGER.c.at_ms, LEDGER.c.key)
)
_SENT = Statement("reports.sent", select(OUTBOX).where(OUTBOX.c.turn_id == bindparam("turn")).order_by(OUTBOX.c.id))
_QUESTIONS = Statement(
    "reports.questions", select(PENDING).where(PENDING.c.turn_id == bindparam("turn")).order_by(PENDING.c.id)
)
_HOUR_MS: ColumnElement[int] = literal_column("3600000")
_HOUR = (INBOX.c.received_ms // _HOUR_MS).label("hour")
_BY_HOUR = Statement(
    "reports.by_hour",
    select(_HOUR, INBOX.c.reason, func.count().label("count"))
    .where(INBOX.c.id >= bindparam("from_id"))
    .group_by(_HOUR, INBOX.c.reason),
)


def chats(from_id: int, count: int) -> Query:
    """The `count` chats with the newest events since `from_id`, newest first: `chat`, `id` of the newest, `messages`
    and `turns` since then."""
    return _CHATS.query(from_id=from_id, count=count)


def messages(chat: str, before: int, count: int, reason: str = "") -> Query:
    """The `count` messages of `chat` before the id `before`, newest first, with any outcome or that `reason`: `id`,
    `from_bot`, `sender_name`, `text`, `at_ms`, `change`, and `reason`, `detail` and `turn_id`, null for messages of the
    bot."""
    if reason:
        return _WITH_REASON.query(chat=chat, before=before, count=count, reason=reason)
    return _MESSAGES.query(chat=chat, before=before, count=count)


def event(id: int) -> Query:
    """The inbox row with that id and its `text`, null if it is not in the history; no row if it is unknown."""
    return _EVENT.query(row_id=id)


def answers(turn: int) -> Query:
    """All columns of the stored model answers of a turn, by round."""
    return _ANSWERS.query(turn=turn)


def calls(turn: int) -> Query:
    """All columns of the runs of functions of a turn, in their order."""
    return _CALLS.query(turn=turn)


def sent(turn: int) -> Query:
    """All columns of the outgoing messages of a turn, in their order."""
    return _SENT.query(turn=turn)


def questions(turn: int) -> Query:
    """All columns of the questions that a turn asked, in their order."""
    return _QUESTIONS.query(turn=turn)


def by_hour(from_id: int) -> Query:
    """Number of events since the id `from_id` by `hour` (hours since 1970 UTC) and `reason`, as `count`."""
    return _BY_HOUR.query(from_id=from_id)
