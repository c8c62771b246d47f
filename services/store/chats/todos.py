"""To-do lists, one a chat. Numbers are given once and stay; what is done or removed is forgotten some time later."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Index, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Row, Statement, Write
from services.store.schema import INTEGER, TEXT, integer, table, text

todos = table(
    "todos",
    text("chat", primary_key=True),
    integer("number", primary_key=True),
    text("call_key"),
    text("author"),
    text("author_name"),
    text("text"),
    integer("priority"),
    integer("created_ms"),
    integer("done_ms", nullable=True),
    integer("removed_ms", nullable=True),
    text("ended_by", nullable=True),
    Index("todos_call_key", "chat", "call_key", unique=True),
)
_CHAT = todos.c.chat == bindparam("chat", type_=TEXT)
_THIS = _CHAT & (todos.c.number == bindparam("number", type_=INTEGER))
_KEPT = todos.c.removed_ms.is_(None)
_OPEN = _KEPT & todos.c.done_ms.is_(None)

_NEXT_NUMBER = select(func.coalesce(func.max(todos.c.number), 0) + 1).where(_CHAT).scalar_subquery()
_OPEN_COUNT = select(func.count()).select_from(todos).where(_CHAT & _OPEN).scalar_subquery()
_GIVEN = ("call_key", "author", "author_name", "text")

ADD = Statement(
    "todos.add",
    insert(todos)
    .from_select(
        ["chat", "number", *_GIVEN, "priority", "created_ms"],
        select(
            bindparam("chat", type_=TEXT),
            _NEXT_NUMBER,
            *(bindparam(name, type_=TEXT) for name in _GIVEN),
            bindparam("priority", type_=INTEGER),
            bindparam("created_ms", type_=INTEGER),
        ).where(bindparam("most_open", type_=INTEGER) > _OPEN_COUNT),
    )
    .on_conflict_do_nothing(),
)
FINISH = Statement(
    "todos.finish",
    update(todos)
    .where(_THIS & _OPEN)
    .values(done_ms=bindparam("at_ms", type_=INTEGER), ended_by=bindparam("ended_key", type_=TEXT)),
)
REOPEN = Statement(
    "todos.reopen",
    update(todos)
    .where(_THIS & _KEPT & todos.c.done_ms.is_not(None) & (bindparam("most_open", type_=INTEGER) > _OPEN_COUNT))
    .values(done_ms=None, ended_by=None),
)
REWORD = Statement(
    "todos.reword",
    update(todos).where(_THIS & _KEPT).values(text=bindparam("words", type_=TEXT)),
)
REMOVE = Statement(
    "todos.remove",
    update(todos)
    .where(_THIS & _KEPT)
    .values(text="", removed_ms=bindparam("at_ms", type_=INTEGER), ended_by=bindparam("ended_key", type_=TEXT)),
)
FORGET = Statement(
    "todos.forget",
    delete(todos).where(
        _CHAT & (func.coalesce(todos.c.removed_ms, todos.c.done_ms) < bindparam("before_ms", type_=INTEGER))
    ),
)
ALL = Statement("todos.all", select(todos).where(_CHAT).order_by(todos.c.number))


@dataclass(frozen=True, slots=True)
class Todo:
    """One entry of a chat's list."""

    number: int
    text: str
    """Empty once removed."""
    priority: int
    """0 low, 1 normal, 2 high."""
    author: str
    """The key of the member who added it."""
    author_name: str
    call_key: str
    """The call that added it."""
    ended_by: str | None
    """The call that finished or removed it."""
    is_done: bool
    is_removed: bool


def add(
    chat: str, *, call_key: str, author: str, author_name: str, text: str, priority: int, at_ms: int, most_open: int
) -> Write:
    """A new entry under the chat's next number. Touches no row when the call added it before, when `most_open` are
    open already, or when another addition took the number in this very moment."""
    return ADD.write(
        chat=chat,
        call_key=call_key,
        author=author,
        author_name=author_name,
        text=text,
        priority=priority,
        created_ms=at_ms,
        most_open=most_open,
    )


def finish(chat: str, number: int, *, call_key: str, at_ms: int) -> Write:
    """Mark an open entry as done."""
    return FINISH.write(chat=chat, number=number, ended_key=call_key, at_ms=at_ms)


def reopen(chat: str, number: int, *, most_open: int) -> Write:
    """Make a done entry an open one. Touches no row when `most_open` are open already."""
    return REOPEN.write(chat=chat, number=number, most_open=most_open)


def reword(chat: str, number: int, text: str) -> Write:
    """Give an entry another text."""
    return REWORD.write(chat=chat, number=number, words=text)


def remove(chat: str, number: int, *, call_key: str, at_ms: int) -> Write:
    """Erase an entry's text; its number stays taken until it is forgotten."""
    return REMOVE.write(chat=chat, number=number, ended_key=call_key, at_ms=at_ms)


def forget(chat: str, before_ms: int) -> Write:
    """Delete what was done or removed before that instant."""
    return FORGET.write(chat=chat, before_ms=before_ms)


def everything(chat: str) -> Query:
    """All rows of the chat, removed ones too, by number."""
    return ALL.query(chat=chat)


def todo(row: Row) -> Todo:
    """The entry in a row of `everything`."""
    return Todo(
        number=row["number"],
        text=row["text"],
        priority=row["priority"],
        author=row["author"],
        author_name=row["author_name"],
        call_key=row["call_key"],
        ended_by=row["ended_by"],
        is_done=row["done_ms"] is not None,
        is_removed=row["removed_ms"] is not None,
    )
