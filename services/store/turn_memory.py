"""What functions have written into the state of a member's turns in a chat, for the turns that follow."""

from __future__ import annotations

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import delete_batch, integer, table, text

TURN_MEMORY = table(
    "turn_memory",
    text("chat", primary_key=True),
    text("member", primary_key=True),
    text("state"),
    integer("until_ms"),
)

_INSERT = insert(TURN_MEMORY).values({column.name: bindparam(column.name) for column in TURN_MEMORY.columns})
_KEEP = Statement(
    "turn_memory.keep",
    _INSERT.on_conflict_do_update(
        index_elements=["chat", "member"],
        set_={name: _INSERT.excluded[name] for name in ("state", "until_ms")},
    ),
)
_GET = Statement(
    "turn_memory.get",
    select(TURN_MEMORY.c.state).where(
        TURN_MEMORY.c.chat == bindparam("chat"),
        TURN_MEMORY.c.member == bindparam("member"),
        TURN_MEMORY.c.until_ms > bindparam("now_ms"),
    ),
)
_FORGET = Statement("turn_memory.forget", delete_batch(TURN_MEMORY, TURN_MEMORY.c.until_ms <= bindparam("now_ms")))


def keep(chat: str, member: str, state: str, until_ms: int) -> Write:
    """The state after a turn, as JSON."""
    return _KEEP.write(chat=chat, member=member, state=state, until_ms=until_ms)


def get(chat: str, member: str, now_ms: int) -> Query:
    """The `state` that is still kept; no row when there is none."""
    return _GET.query(chat=chat, member=member, now_ms=now_ms)


def forget(now_ms: int) -> Write:
    """Drop what has been kept long enough."""
    return _FORGET.write(now_ms=now_ms)
