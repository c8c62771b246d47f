"""What scripts want models to know in a chat, and which chats have had their beginning."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

CHAT_NOTES = table(
    "chat_notes",
    text("chat", primary_key=True),
    text("name", primary_key=True),
    text("words"),
    integer("is_instruction"),
    text("set_by"),
    integer("at_ms"),
)
BEGUN_CHATS = table(
    "begun_chats",
    text("chat", primary_key=True),
    text("bot", primary_key=True),
    integer("at_ms"),
)

_INSERT = insert(CHAT_NOTES).values({column.name: bindparam(column.name) for column in CHAT_NOTES.columns})
_PUT = Statement(
    "chat_notes.put",
    _INSERT.on_conflict_do_update(
        index_elements=["chat", "name"],
        set_={name: _INSERT.excluded[name] for name in ("words", "is_instruction", "set_by", "at_ms")},
    ),
)
_CLEAR = Statement("chat_notes.clear", delete(CHAT_NOTES).where(CHAT_NOTES.c.chat == bindparam("chat")))
_REMOVE = Statement(
    "chat_notes.remove",
    delete(CHAT_NOTES).where(CHAT_NOTES.c.chat == bindparam("chat"), CHAT_NOTES.c.name == bindparam("name")),
)
_ALL = Statement(
    "chat_notes.all", select(CHAT_NOTES).order_by(CHAT_NOTES.c.chat, CHAT_NOTES.c.at_ms, CHAT_NOTES.c.name)
)
_BEGIN = Statement(
    "chat_notes.begin",
    insert(BEGUN_CHATS)
    .values({column.name: bindparam(column.name) for column in BEGUN_CHATS.columns})
    .on_conflict_do_nothing(),
)
_BEGUN = Statement("chat_notes.begun", select(BEGUN_CHATS.c.chat, BEGUN_CHATS.c.bot))


def put(chat: str, name: str, words: str, *, is_instruction: bool, set_by: str, at_ms: int) -> Write:
    """Models are told `words` in the chat, in the place of what they were told under that name."""
    return _PUT.write(chat=chat, name=name, words=words, is_instruction=int(is_instruction), set_by=set_by, at_ms=at_ms)


def remove(chat: str, name: str) -> Write:
    """Models are no longer told what stands under that name."""
    return _REMOVE.write(chat=chat, name=name)


def clear(chat: str) -> Write:
    """Models are told nothing more."""
    return _CLEAR.write(chat=chat)


def everything() -> Query:
    """What models are told in every chat: `chat`, `name`, `words`, `is_instruction` and so on, the oldest first."""
    return _ALL.query()


def begin(chat: str, bot: str, at_ms: int) -> Write:
    """The chat has had its beginning with that bot. Nothing where it had before."""
    return _BEGIN.write(chat=chat, bot=bot, at_ms=at_ms)


def begun() -> Query:
    """Every chat that has had its beginning: `chat`, `bot`."""
    return _BEGUN.query()
