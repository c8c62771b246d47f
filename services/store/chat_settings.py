"""What chats have set for themselves."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

CHAT_SETTINGS = table(
    "chat_settings",
    text("chat", primary_key=True),
    text("name", primary_key=True),
    text("value"),
    text("set_by"),
    integer("at_ms"),
)

_INSERT = insert(CHAT_SETTINGS).values({column.name: bindparam(column.name) for column in CHAT_SETTINGS.columns})
_SET = Statement(
    "chat_settings.set",
    _INSERT.on_conflict_do_update(
        index_elements=["chat", "name"],
        set_={name: _INSERT.excluded[name] for name in ("value", "set_by", "at_ms")},
    ),
)
_CLEAR = Statement(
    "chat_settings.clear",
    delete(CHAT_SETTINGS).where(CHAT_SETTINGS.c.chat == bindparam("chat"), CHAT_SETTINGS.c.name == bindparam("name")),
)
_ALL = Statement("chat_settings.all", select(CHAT_SETTINGS.c.chat, CHAT_SETTINGS.c.name, CHAT_SETTINGS.c.value))


def put(chat: str, name: str, value: str, set_by: str, at_ms: int) -> Write:
    """The chat sets `name` for itself."""
    return _SET.write(chat=chat, name=name, value=value, set_by=set_by, at_ms=at_ms)


def clear(chat: str, name: str) -> Write:
    """The chat goes back to what YAML says."""
    return _CLEAR.write(chat=chat, name=name)


def everything() -> Query:
    """Every chat's own settings: `chat`, `name`, `value`."""
    return _ALL.query()
