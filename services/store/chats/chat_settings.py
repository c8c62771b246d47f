"""Settings, permanent approvals and active functions of chats."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import delete_row, insert_new, integer, table, text, upsert

CHAT_SETTINGS = table(
    "chat_settings",
    text("chat", primary_key=True),
    text("name", primary_key=True),
    text("value"),
    text("set_by"),
    integer("at_ms"),
)

_SET = Statement("chat_settings.set", upsert(CHAT_SETTINGS))
_CLEAR = Statement("chat_settings.clear", delete_row(CHAT_SETTINGS))
EVERYTHING = Statement(
    "chat_settings.all", select(CHAT_SETTINGS.c.chat, CHAT_SETTINGS.c.name, CHAT_SETTINGS.c.value)
).query()
"""All chats' own settings: `chat`, `name`, `value`."""


def put(chat: str, name: str, value: str, set_by: str, at_ms: int) -> Write:
    """Set the chat's own value of the setting `name`, replacing an earlier one; `set_by` is the member."""
    return _SET.write(chat=chat, name=name, value=value, set_by=set_by, at_ms=at_ms)


def clear(chat: str, name: str) -> Write:
    """Delete the chat's own value of `name`, so that the YAML value applies."""
    return _CLEAR.write(chat=chat, name=name)


GRANTS = table(
    "grants",
    integer("id", primary_key=True),
    text("chat"),
    text("digest"),
    text("function"),
    text("arguments"),
    text("given_by"),
    text("given_by_name"),
    integer("given_ms"),
    integer("revoked_ms", nullable=True),
    text("revoked_by", nullable=True),
)
_HOLDS = GRANTS.c.revoked_ms.is_(None)
Index("grants_once", GRANTS.c.chat, GRANTS.c.digest, unique=True, sqlite_where=_HOLDS, postgresql_where=_HOLDS)

_GIVE = Statement("grants.give", insert_new(GRANTS))
_REVOKE = Statement(
    "grants.revoke",
    update(GRANTS)
    .where(GRANTS.c.chat == bindparam("in_chat"), GRANTS.c.digest == bindparam("with_digest"), _HOLDS)
    .values(revoked_ms=bindparam("now_ms"), revoked_by=bindparam("by")),
)
HOLDING = Statement("grants.holding", select(GRANTS).where(_HOLDS).order_by(GRANTS.c.id)).query()
"""All columns of the active permanent approvals of all chats, oldest first."""
_OF_CHAT = Statement(
    "grants.of_chat", select(GRANTS).where(GRANTS.c.chat == bindparam("chat"), _HOLDS).order_by(GRANTS.c.id)
)


def give(**values: str | int) -> Write:
    """Add a permanent approval, a value for each column but those of its end. Touches no row if an equal one is
    active."""
    return _GIVE.write(**values, revoked_ms=None, revoked_by=None)


def revoke(chat: str, digest: str, by: str, now_ms: int) -> Write:
    """Mark the active permanent approval with that digest as revoked by the member `by`. Touches no row if there is no
    active one."""
    return _REVOKE.write(in_chat=chat, with_digest=digest, by=by, now_ms=now_ms)


def of_chat(chat: str) -> Query:
    """All columns of the active permanent approvals of one chat, oldest first."""
    return _OF_CHAT.query(chat=chat)


ACTIVATIONS = table(
    "activations",
    text("chat", primary_key=True),
    text("name", primary_key=True),
    text("given_by"),
    integer("at_ms"),
)

_ACTIVATE = Statement("activations.activate", insert_new(ACTIVATIONS))
_DEACTIVATE = Statement("activations.deactivate", delete_row(ACTIVATIONS))
ALL_ACTIVATIONS = Statement(
    "activations.all",
    select(ACTIVATIONS.c.chat, ACTIVATIONS.c.name).order_by(
        ACTIVATIONS.c.chat, ACTIVATIONS.c.at_ms, ACTIVATIONS.c.name
    ),
).query()
"""All activations: `chat`, `name`, oldest first within a chat."""


def activate(chat: str, name: str, given_by: str, at_ms: int) -> Write:
    """Activate the function `name` in the chat. Touches no row if it is active already."""
    return _ACTIVATE.write(chat=chat, name=name, given_by=given_by, at_ms=at_ms)


def deactivate(chat: str, name: str) -> Write:
    """Deactivate the function `name` in the chat. Touches no row if it is not active."""
    return _DEACTIVATE.write(chat=chat, name=name)
