"""Ordered events of the HTTP platform's chats, from which its event streams are read."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Index, bindparam, delete, or_, select

from services.store.port import Query, Row, Statement, Write
from services.store.schema import beyond_newest, insert_new, integer, table, text

EVENTS = table(
    "http_events",
    integer("id", primary_key=True),
    text("chat"),
    text("native_id"),
    text("private_to", nullable=True),
    text("body"),
)
Index("http_events_by_chat", EVENTS.c.chat, EVENTS.c.id)
Index("http_events_once", EVENTS.c.chat, EVENTS.c.native_id, unique=True)

_ADD = Statement("http_events.add", insert_new(EVENTS, "chat", "native_id"))
_PRUNE = Statement("http_events.prune", delete(EVENTS).where(*beyond_newest(EVENTS)))
_VISIBLE = or_(EVENTS.c.private_to.is_(None), EVENTS.c.private_to == bindparam("viewer"), bindparam("sees_all", 0) == 1)
_PAGE = select(EVENTS.c.id, EVENTS.c.body).where(
    EVENTS.c.chat == bindparam("chat"), EVENTS.c.id > bindparam("after"), EVENTS.c.id < bindparam("before"), _VISIBLE
)
_AFTER = Statement("http_events.after", _PAGE.order_by(EVENTS.c.id).limit(bindparam("count")))
_NEWEST = Statement("http_events.newest", _PAGE.order_by(EVENTS.c.id.desc()).limit(bindparam("count")))
_FIND = Statement(
    "http_events.find",
    select(EVENTS.c.id, EVENTS.c.body).where(
        EVENTS.c.chat == bindparam("chat"), EVENTS.c.native_id == bindparam("native_id"), _VISIBLE
    ),
)


class Event(NamedTuple):
    """One row: its position in the order of all events, and the event as a JSON object."""

    id: int
    body: str


class Viewer(NamedTuple):
    """Reader of events: one member, or a trusted program that sees all."""

    member: str
    sees_all: bool = False


def add(event: Event, chat: str, native_id: str, private_to: str | None = None) -> Write:
    """Store `event` of `chat`; touches no row if the chat already has an event with this native id."""
    return _ADD.write(id=event.id, chat=chat, native_id=native_id, private_to=private_to, body=event.body)


def prune(chat: str, keep: int) -> Write:
    """Delete all events of `chat` except the newest `keep`."""
    return _PRUNE.write(chat=chat, keep=keep)


def after(chat: str, cursor: int, before: int, count: int, viewer: Viewer) -> Query:
    """At most `count` events of `chat` with cursor < id < before that `viewer` may see, oldest first: `id`, `body`."""
    return _AFTER.query(chat=chat, after=cursor, before=before, count=count, **_eyes(viewer))


def newest(chat: str, before: int, count: int, viewer: Viewer) -> Query:
    """The last `count` events of `chat` with id < before that `viewer` may see, newest first: `id`, `body`."""
    return _NEWEST.query(chat=chat, after=-1, before=before, count=count, **_eyes(viewer))


def find(chat: str, native_id: str, viewer: Viewer) -> Query:
    """The event of `chat` with this native id, if `viewer` may see it, else no row: `id`, `body`."""
    return _FIND.query(chat=chat, native_id=native_id, **_eyes(viewer))


def event_of(row: Row) -> Event:
    """Convert a row of `after`, `newest` or `find` to an Event."""
    return Event(row["id"], row["body"])


def _eyes(viewer: Viewer) -> dict[str, str | int]:
    return {"viewer": viewer.member, "sees_all": int(viewer.sees_all)}
