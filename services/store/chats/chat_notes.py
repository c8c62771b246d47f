"""Notes that scripts add to the models' prompts in a chat, and the chats whose start script has run."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from services.store.port import Query, Statement, Write
from services.store.schema import delete_row, insert_new, integer, table, text, upsert

CHAT_NOTES = table(
    "chat_notes",
    text("chat", primary_key=True),
    text("bot", primary_key=True),
    text("name", primary_key=True),
    text("words"),
    integer("is_instruction"),
    integer("from_outside"),
    integer("from_member"),
    text("script"),
    text("set_by"),
    integer("at_ms"),
)
STARTED_CHATS = table(
    "begun_chats",
    text("chat", primary_key=True),
    text("bot", primary_key=True),
    integer("at_ms"),
)

_PUT = Statement("chat_notes.put", upsert(CHAT_NOTES))
_REMOVE = Statement("chat_notes.remove", delete_row(CHAT_NOTES))
EVERYTHING = Statement(
    "chat_notes.all", select(CHAT_NOTES).order_by(CHAT_NOTES.c.chat, CHAT_NOTES.c.at_ms, CHAT_NOTES.c.name)
).query()
"""All notes of all chats: `chat`, `bot`, `name`, `words` and so on, oldest first."""
_MARK_STARTED = Statement("chat_notes.mark_started", insert_new(STARTED_CHATS))
_FORGET_STARTED = Statement("chat_notes.forget_started", delete_row(STARTED_CHATS))
STARTED = Statement("chat_notes.started", select(STARTED_CHATS.c.chat, STARTED_CHATS.c.bot)).query()
"""All chats whose start script has run: `chat`, `bot`."""
_STARTED_HERE = Statement(
    "chat_notes.started_here",
    select(STARTED_CHATS.c.at_ms).where(
        STARTED_CHATS.c.chat == bindparam("chat"), STARTED_CHATS.c.bot == bindparam("bot")
    ),
)


def put(**values: str | int) -> Write:
    """Set the note `name` for the bot's models in the chat, a value for each column, replacing an earlier one."""
    return _PUT.write(**values)


def remove(chat: str, bot: str, name: str) -> Write:
    """Delete the note `name` of the bot in the chat. Touches no row if it does not exist."""
    return _REMOVE.write(chat=chat, bot=bot, name=name)


def mark_started(chat: str, bot: str, at_ms: int) -> Write:
    """Record that the chat's start script has run for that bot. Touches no row if it is recorded already."""
    return _MARK_STARTED.write(chat=chat, bot=bot, at_ms=at_ms)


def started(chat: str, bot: str) -> Query:
    """When the chat's start script ran for that bot; no row if it has not run."""
    return _STARTED_HERE.query(chat=chat, bot=bot)


def forget_started(chat: str, bot: str) -> Write:
    """Delete the record that the chat's start script has run for that bot."""
    return _FORGET_STARTED.write(chat=chat, bot=bot)
