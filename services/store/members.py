"""What members have set for themselves, wherever they are."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import TEXT, integer, table, text

MEMBERS = table("members", text("member", primary_key=True), text("timezone"), integer("changed_ms"))
_NEW = insert(MEMBERS).values({column.name: bindparam(column.name, type_=column.type) for column in MEMBERS.columns})
_SET_ZONE = Statement(
    "members.set_zone",
    _NEW.on_conflict_do_update(
        index_elements=["member"],
        set_={"timezone": _NEW.excluded.timezone, "changed_ms": _NEW.excluded.changed_ms},
    ),
)
_CLEAR = Statement("members.clear", delete(MEMBERS).where(MEMBERS.c.member == bindparam("of_member", type_=TEXT)))
_ONE = Statement("members.one", select(MEMBERS).where(MEMBERS.c.member == bindparam("member", type_=TEXT)))


def set_zone(member: str, timezone: str, now_ms: int) -> Write:
    """The zone that the member lives in."""
    return _SET_ZONE.write(member=member, timezone=timezone, changed_ms=now_ms)


def clear(member: str) -> Write:
    """Forget what the member has set."""
    return _CLEAR.write(of_member=member)


def one(member: str) -> Query:
    """What the member has set: `timezone`; nothing when nothing is."""
    return _ONE.query(member=member)
