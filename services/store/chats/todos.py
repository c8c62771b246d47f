"""To-do lists, one per chat. Numbers are not reused; done and removed entries are deleted some time later."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Index, bindparam, delete, func, select, update

from services.store.port import Query, Row, Statement, Write
from services.store.schema import INTEGER, insert_numbered, integer, table, text

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
_CHAT = todos.c.chat == bindparam("chat")
_THIS = _CHAT & (todos.c.number == bindparam("number"))
_NOT_REMOVED = todos.c.removed_ms.is_(None)
_OPEN = _NOT_REMOVED & todos.c.done_ms.is_(None)

_OPEN_COUNT = select(func.count()).select_from(todos).where(_CHAT & _OPEN).scalar_subquery()

_VALUES = ("chat", "call_key", "author", "author_name", "text", "priority", "created_ms")
ADD = Statement(
    "todos.add", insert_numbered(todos, _VALUES, _CHAT, bindparam("most_open", type_=INTEGER) > _OPEN_COUNT)
)
FINISH = Statement(
    "todos.finish",
    update(todos).where(_THIS & _OPEN).values(done_ms=bindparam("at_ms"), ended_by=bindparam("ended_key")),
)
REOPEN = Statement(
    "todos.reopen",
    update(todos)
    .where(_THIS & _NOT_REMOVED & todos.c.done_ms.is_not(None) & (bindparam("most_open", type_=INTEGER) > _OPEN_COUNT))
    .values(done_ms=None, ended_by=None),
)
REWORD = Statement("todos.reword", update(todos).where(_THIS & _NOT_REMOVED).values(text=bindparam("words")))
REMOVE = Statement(
    "todos.remove",
    update(todos)
    .where(_THIS & _NOT_REMOVED)
    .values(text="", removed_ms=bindparam("at_ms"), ended_by=bindparam("ended_key")),
)
FORGET = Statement(
    "todos.forget",
    delete(todos).where(_CHAT & (func.coalesce(todos.c.removed_ms, todos.c.done_ms) < bindparam("before_ms"))),
)
ALL = Statement("todos.all", select(todos).where(_CHAT).order_by(todos.c.number))


@dataclass(frozen=True, slots=True)
class Todo:
    """One entry of a chat's to-do list: open, done or removed."""

    number: int
    text: str
    """Empty if removed."""
    priority: int
    """0 low, 1 normal, 2 high."""
    author: str
    """Key of the member who added it."""
    author_name: str
    call_key: str
    """Key of the call that added it."""
    ended_by: str | None
    """Key of the call that finished or removed it."""
    is_done: bool
    is_removed: bool


def add(**values: str | int) -> Write:
    """Add an entry with the chat's next number. Touches no row if the call has added it before, if `most_open` are
    open, or if a concurrent addition took the number."""
    return ADD.write(**values)


def finish(chat: str, number: int, *, call_key: str, at_ms: int) -> Write:
    """Mark an open entry as done, recording the call. Touches no row if it is not open."""
    return FINISH.write(chat=chat, number=number, ended_key=call_key, at_ms=at_ms)


def reopen(chat: str, number: int, *, most_open: int) -> Write:
    """Open a done entry again. Touches no row if it is not done, or `most_open` are open."""
    return REOPEN.write(chat=chat, number=number, most_open=most_open)


def reword(chat: str, number: int, text: str) -> Write:
    """Change the text of an open or done entry; touches no row if it was removed."""
    return REWORD.write(chat=chat, number=number, words=text)


def remove(chat: str, number: int, *, call_key: str, at_ms: int) -> Write:
    """Erase an entry's text and mark it as removed (no row if it was before); its number stays reserved until the row
    is deleted."""
    return REMOVE.write(chat=chat, number=number, ended_key=call_key, at_ms=at_ms)


def forget(chat: str, before_ms: int) -> Write:
    """Delete entries that were done or removed before that time."""
    return FORGET.write(chat=chat, before_ms=before_ms)


def everything(chat: str) -> Query:
    """All rows of the chat, including removed ones, by number."""
    return ALL.query(chat=chat)


def todo(row: Row) -> Todo:
    """Convert a row of `everything` to a Todo."""
    copied = {
        name: row[name] for name in ("number", "text", "priority", "author", "author_name", "call_key", "ended_by")
    }
    return Todo(**copied, is_done=row["done_ms"] is not None, is_removed=row["removed_ms"] is not None)
