"""Notes on members and chats, by the chat where they were told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Index, bindparam, delete, exists, or_, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import TEXT, binds, insert_numbered, integer, table, text

NOTES = table(
    "memory_notes",
    text("chat", primary_key=True),
    integer("number", primary_key=True),
    text("private_to"),
    text("about"),
    text("author"),
    text("author_name"),
    text("text"),
    text("subject"),
    integer("at_ms"),
    text("call_key"),
    integer("ended_ms", nullable=True),
    text("ended_by", nullable=True),
    Index("memory_notes_by_call", "chat", "call_key", unique=True),
    Index("memory_notes_by_member", "chat", "about"),
    Index("memory_notes_ended", "ended_ms"),
)
MOST_MEMBERS = 8
"""Maximum number of members in one `about`."""

_BINDS = binds(NOTES)
_CHAT = NOTES.c.chat == _BINDS["chat"]
_THIS = _CHAT & (NOTES.c.number == _BINDS["number"])
_LIVE = NOTES.c.ended_ms.is_(None)
_KEY = bindparam("key", type_=TEXT)
_END = {"ended_ms": bindparam("now_ms"), "ended_by": _KEY}
_SET = ("chat", "private_to", "about", "author", "author_name", "text", "subject", "at_ms", "call_key")
_SELF = NOTES.alias("self")
_IS_SELF = (_SELF.c.chat == NOTES.c.chat) & (_SELF.c.number == _BINDS["number"])

_ADD = Statement("memory.add", insert_numbered(NOTES, _SET, _CHAT))
_REPLACE = Statement("memory.replace", update(NOTES).where(_THIS & _LIVE).values(_END))
_ERASED = {"text": "", "subject": "", "author_name": ""}
_FORGET = Statement("memory.forget", update(NOTES).where(_THIS & _LIVE).values(_END | _ERASED))
_REPLACED = _CHAT & (NOTES.c.text != "")
_RESTORE = Statement(
    "memory.restore",
    update(NOTES).where(_REPLACED & (NOTES.c.ended_by == _KEY)).values(ended_ms=None, ended_by=None),
)
_FORGET_REPLACED = Statement(
    "memory.forget_replaced",
    delete(NOTES).where(_REPLACED & exists().where(_IS_SELF, _SELF.c.call_key == NOTES.c.ended_by)),
)
_BY_CALL = Statement(
    "memory.by_call", select(NOTES).where(_CHAT & or_(NOTES.c.call_key == _KEY, NOTES.c.ended_by == _KEY))
)
_NUMBERED = Statement("memory.numbered", select(NOTES).where(_THIS & _LIVE))
_READERS = ["", bindparam("reader", type_=TEXT)]
_MEMBERS = ["", *(bindparam(f"member_{at}", type_=TEXT) for at in range(MOST_MEMBERS))]
_ABOUT = Statement(
    "memory.about",
    select(NOTES)
    .where(_CHAT & _LIVE & NOTES.c.private_to.in_(_READERS) & NOTES.c.about.in_(_MEMBERS))
    .order_by(NOTES.c.number),
)


class Note(NamedTuple):
    """A note, told by its author about themselves or about the chat."""

    chat: str
    number: int
    """Number within the chat; not used again while the row exists."""
    private_to: str
    """Key of the only member who may read it in a group, or empty."""
    about: str
    """Key of the author, or empty for a note on the chat."""
    author: str
    author_name: str
    text: str
    """Empty if it was forgotten."""
    subject: str
    """Equal for notes that cannot both be true, or empty."""
    at_ms: int
    """When it was said."""
    call_key: str
    ended_ms: int | None = None
    """When it was replaced or forgotten; None: it is valid."""
    ended_by: str | None = None
    """Key of the call that replaced or forgot it."""


def add(note: Note) -> Write:
    """Add `note` with the chat's next number instead of its own. Conflict if its call has added one before, or if
    another process took the number."""
    return _ADD.write_expecting(1, **{name: getattr(note, name) for name in _SET})


def replace(note: Note, call_key: str, now_ms: int) -> Write:
    """End a note, which `restore` can make valid again."""
    return _REPLACE.write(chat=note.chat, number=note.number, key=call_key, now_ms=now_ms)


def restore(chat: str, call_key: str) -> Write:
    """Make the notes valid again that the call replaced."""
    return _RESTORE.write(chat=chat, key=call_key)


def forget(note: Note, call_key: str, now_ms: int) -> list[Write]:
    """Erase a note, and delete those that it had replaced. Its number stays reserved until the row is deleted."""
    ends = _FORGET.write(chat=note.chat, number=note.number, key=call_key, now_ms=now_ms)
    return [_FORGET_REPLACED.write(chat=note.chat, number=note.number), ends]


def by_call(chat: str, call_key: str) -> Query:
    """The notes that the call added, replaced or forgot."""
    return _BY_CALL.query(chat=chat, key=call_key)


def numbered(chat: str, number: int) -> Query:
    """The valid note of `chat` with that number, private or not."""
    return _NUMBERED.query(chat=chat, number=number)


def about(chat: str, members: Sequence[str], reader: str) -> Query:
    """The valid notes of `chat` on itself and on the first eight `members`, by number. Private ones are included only
    for the member `reader`."""
    keys = {f"member_{at}": members[at] if at < len(members) else "" for at in range(MOST_MEMBERS)}
    return _ABOUT.query(chat=chat, reader=reader, **keys)
