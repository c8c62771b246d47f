"""The functions and groups of functions that chats have taken to hand, and who did."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

ACTIVATIONS = table(
    "activations",
    text("chat", primary_key=True),
    text("name", primary_key=True),
    text("given_by"),
    integer("at_ms"),
)

_ACTIVATE = Statement(
    "activations.activate",
    insert(ACTIVATIONS)
    .values({column.name: bindparam(column.name) for column in ACTIVATIONS.columns})
    .on_conflict_do_nothing(),
)
_DEACTIVATE = Statement(
    "activations.deactivate",
    delete(ACTIVATIONS).where(ACTIVATIONS.c.chat == bindparam("chat"), ACTIVATIONS.c.name == bindparam("name")),
)
_ALL = Statement(
    "activations.all",
    select(ACTIVATIONS.c.chat, ACTIVATIONS.c.name).order_by(
        ACTIVATIONS.c.chat, ACTIVATIONS.c.at_ms, ACTIVATIONS.c.name
    ),
)


def activate(chat: str, name: str, given_by: str, at_ms: int) -> Write:
    """`name` is at hand in the chat. Nothing where it is already."""
    return _ACTIVATE.write(chat=chat, name=name, given_by=given_by, at_ms=at_ms)


def deactivate(chat: str, name: str) -> Write:
    """`name` is put away again."""
    return _DEACTIVATE.write(chat=chat, name=name)


def everything() -> Query:
    """What is at hand in every chat: `chat`, `name`, the oldest of a chat first."""
    return _ALL.query()
