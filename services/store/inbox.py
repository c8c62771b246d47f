"""Everything that arrived, once: the row that makes a message accepted, and how it ended."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Index, and_, bindparam, delete, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

INBOX = table(
    "inbox",
    integer("id", primary_key=True),
    text("key"),
    text("chat"),
    text("native_id"),
    text("sender"),
    text("sender_name"),
    text("kind"),
    text("body"),
    integer("received_ms"),
    text("reason"),
    text("detail"),
    integer("turn_id", nullable=True),
    integer("question_id", nullable=True),
    integer("ended_ms", nullable=True),
)
_WAITING: ColumnElement[str] = literal_column("'waiting'")
Index("inbox_once", INBOX.c.key, unique=True)
Index("inbox_by_chat", INBOX.c.chat, INBOX.c.id)
Index(
    "inbox_waiting",
    INBOX.c.id,
    sqlite_where=INBOX.c.reason == _WAITING,
    postgresql_where=INBOX.c.reason == _WAITING,
)

_ACCEPT = Statement(
    "inbox.accept",
    insert(INBOX)
    .values({column.name: bindparam(column.name, type_=column.type) for column in INBOX.columns})
    .on_conflict_do_nothing(index_elements=["key"]),
)
_END = Statement(
    "inbox.end",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"))
    .values(
        reason=bindparam("new_reason"),
        detail=bindparam("new_detail"),
        ended_ms=bindparam("at_ms"),
        body=literal_column("''"),
    ),
)
_REPLACE = Statement(
    "inbox.replace",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"), INBOX.c.reason == _WAITING)
    .values(body=bindparam("new_body")),
)
_ROWS = select(
    INBOX.c.id,
    INBOX.c.native_id,
    INBOX.c.sender_name,
    INBOX.c.body,
    INBOX.c.received_ms,
    INBOX.c.reason,
    INBOX.c.detail,
    INBOX.c.turn_id,
    INBOX.c.question_id,
    INBOX.c.key,
)
_WAITING_ROWS = Statement("inbox.waiting", _ROWS.where(INBOX.c.reason == _WAITING).order_by(INBOX.c.id))
_LAST = Statement(
    "inbox.last",
    _ROWS.where(
        and_(
            INBOX.c.chat == bindparam("chat"),
            INBOX.c.native_id != bindparam("but"),
            INBOX.c.kind == literal_column("'message'"),
        )
    )
    .order_by(INBOX.c.id.desc())
    .limit(bindparam("count"))
    .offset(bindparam("skip")),
)
_OF_NATIVE = Statement(
    "inbox.of_native",
    _ROWS.where(INBOX.c.chat == bindparam("chat"), INBOX.c.native_id == bindparam("native_id")).order_by(INBOX.c.id),
)
_IN_CHAT = Statement("inbox.in_chat", _ROWS.where(INBOX.c.chat == bindparam("chat"), INBOX.c.id == bindparam("row_id")))
_FIND = Statement("inbox.find", _ROWS.where(INBOX.c.key == bindparam("key")))
_KNOWN = Statement("inbox.known", select(INBOX.c.id).where(INBOX.c.key == bindparam("key")))
_NEWEST_RECEIVED = Statement(
    "inbox.newest_received",
    select(func.max(INBOX.c.id).label("id")).where(
        INBOX.c.id >= bindparam("from_id"), INBOX.c.received_ms < bindparam("before_ms")
    ),
)
_FORGET = Statement(
    "inbox.forget",
    delete(INBOX).where(INBOX.c.id < bindparam("before_id"), INBOX.c.reason != _WAITING),
)


def accept(
    *,
    id: int,
    key: str,
    chat: str,
    native_id: str,
    sender: str,
    sender_name: str,
    kind: str,
    body: str,
    received_ms: int,
    reason: str,
    detail: str = "",
    turn_id: int | None = None,
    question_id: int | None = None,
    ended_ms: int | None = None,
) -> Write:
    """Take an event in; touches no row when one with this key was taken before."""
    return _ACCEPT.write(
        id=id,
        key=key,
        chat=chat,
        native_id=native_id,
        sender=sender,
        sender_name=sender_name,
        kind=kind,
        body=body,
        received_ms=received_ms,
        reason=reason,
        detail=detail,
        turn_id=turn_id,
        question_id=question_id,
        ended_ms=ended_ms,
    )


def end(id: int, reason: str, detail: str, at_ms: int) -> Write:
    """How the event ended. What was said is forgotten here: nothing needs it any more, and where it may be read, edited
    and deleted is history."""
    return _END.write(row_id=id, new_reason=reason, new_detail=detail, at_ms=at_ms)


def replace(id: int, body: str) -> Write:
    """Another text for a message that still waits; touches no row when it was answered meanwhile."""
    return _REPLACE.write(row_id=id, new_body=body)


def waiting() -> Query:
    """All that is accepted and has not ended, oldest first."""
    return _WAITING_ROWS.query()


def last(chat: str, but_native_id: str, count: int, skip: int = 0) -> Query:
    """`count` messages of `chat`, newest first, without the `skip` newest and the one of that id."""
    return _LAST.query(chat=chat, but=but_native_id, count=count, skip=skip)


def of_native(chat: str, native_id: str) -> Query:
    """The message of `chat` with the network's id `native_id`, and its changes, oldest first."""
    return _OF_NATIVE.query(chat=chat, native_id=native_id)


def in_chat(chat: str, id: int) -> Query:
    """The event of that id, if it came from `chat`."""
    return _IN_CHAT.query(chat=chat, row_id=id)


def find(key: str) -> Query:
    """The event of that key."""
    return _FIND.query(key=key)


def known(key: str) -> Query:
    """A row when the event of that key was taken in before."""
    return _KNOWN.query(key=key)


def newest_received(from_id: int, before_ms: int) -> Query:
    """The highest `id`, of those from `from_id` on, of what was received before that time; null where there is none."""
    return _NEWEST_RECEIVED.query(from_id=from_id, before_ms=before_ms)


def forget(before_id: int) -> Write:
    """Drop what ended and is older than that id. Redeliveries are recognised only while the row is kept."""
    return _FORGET.write(before_id=before_id)
