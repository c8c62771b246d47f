"""Timers: one row for each reminder and schedule; their times are in `occurrences`. Numbers of a chat are not reused;
ended and removed timers are deleted some time later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Index, and_, bindparam, case, func, or_, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER, TEXT, insert_numbered, integer, table, text
from services.store.turns.inbox import INBOX
from services.store.turns.occurrences import OCCURRENCES

TIMERS = table(
    "timers",
    integer("id", primary_key=True),
    text("kind"),
    integer("number"),
    text("bot"),
    text("chat"),
    integer("is_group"),
    text("private_to", nullable=True),
    text("owner"),
    text("owner_name"),
    text("members"),
    text("function"),
    text("arguments"),
    text("title"),
    text("rule"),
    text("zone"),
    text("source"),
    text("state"),
    integer("done"),
    integer("revision"),
    text("call_key"),
    integer("place"),
    text("changed_by"),
    integer("created_ms"),
    integer("changed_ms"),
    integer("fired_ms", nullable=True),
    integer("turn_id", nullable=True),
    integer("ended_ms", nullable=True),
    text("removed_by", nullable=True),
    integer("being_said"),
)
_LATER_SET = {"number", "fired_ms", "turn_id", "ended_ms", "removed_by"}
_VALUES = [column.name for column in TIMERS.columns if column.name not in _LATER_SET]
_HOLDS = TIMERS.c.state.in_(["active", "paused"])
_DECLARED = TIMERS.c.source != ""
_THIS = TIMERS.c.id == bindparam("row_id")
_NOT_REMOVED = TIMERS.c.state != "removed"
_UNCHANGED = TIMERS.c.revision == bindparam("known_revision")
Index("timers_numbers", TIMERS.c.chat, TIMERS.c.kind, TIMERS.c.number, unique=True)
Index("timers_calls", TIMERS.c.call_key, TIMERS.c.place, unique=True)
Index("timers_owners", TIMERS.c.owner, TIMERS.c.kind, sqlite_where=_HOLDS, postgresql_where=_HOLDS)
Index("timers_declared", TIMERS.c.source, sqlite_where=_DECLARED, postgresql_where=_DECLARED)
Index(
    "timers_ended",
    TIMERS.c.ended_ms,
    sqlite_where=TIMERS.c.ended_ms.is_not(None),
    postgresql_where=TIMERS.c.ended_ms.is_not(None),
)

_HERE = and_(TIMERS.c.chat == bindparam("chat"), TIMERS.c.kind == bindparam("kind"))
_OWNERS = and_(TIMERS.c.owner == bindparam("owner"), TIMERS.c.kind == bindparam("kind"), _HOLDS)
_OWNED = select(func.count()).select_from(TIMERS).where(_OWNERS).scalar_subquery()
_NEXT = OCCURRENCES.alias("next")
_SNOOZED = OCCURRENCES.alias("snoozed")
_WHOLE = select(TIMERS, _NEXT.c.due_ms.label("next_ms"), _SNOOZED.c.due_ms.label("snoozed_ms")).select_from(
    TIMERS.outerjoin(
        _NEXT, and_(_NEXT.c.timer_id == TIMERS.c.id, _NEXT.c.snoozed == 0, _NEXT.c.state == "due")
    ).outerjoin(_SNOOZED, and_(_SNOOZED.c.timer_id == TIMERS.c.id, _SNOOZED.c.snoozed == 1, _SNOOZED.c.state == "due"))
)
_IS_DUE = select(1).where(OCCURRENCES.c.timer_id == TIMERS.c.id, OCCURRENCES.c.state == "due").exists()
_IS_RUNNING = select(1).where(INBOX.c.id == TIMERS.c.turn_id, INBOX.c.reason == "waiting").exists()

_ADD = Statement(
    "timers.add",
    insert_numbered(TIMERS, _VALUES, _HERE, bindparam("most_per_owner", type_=INTEGER) > _OWNED),
)
_CHANGE = Statement(
    "timers.change",
    update(TIMERS)
    .where(_THIS, _NOT_REMOVED, _UNCHANGED)
    .values(
        **{
            name: bindparam(f"new_{name}", type_=TIMERS.c[name].type)
            for name in ("title", "arguments", "rule", "zone", "state", "done", "changed_by", "changed_ms")
        },
        revision=TIMERS.c.revision + 1,
        ended_ms=case((bindparam("new_state", type_=TEXT) == "ended", TIMERS.c.ended_ms), else_=None),
    ),
)
_REMOVE = Statement(
    "timers.remove",
    update(TIMERS)
    .where(_THIS, _NOT_REMOVED)
    .values(
        state="removed",
        changed_by=bindparam("by_call"),
        removed_by=bindparam("by_member"),
        being_said=case((or_(TIMERS.c.state == "ended", _IS_RUNNING), 1), else_=0),
        changed_ms=bindparam("now_ms"),
        ended_ms=bindparam("now_ms"),
        revision=TIMERS.c.revision + 1,
    ),
)
_FIRED = Statement(
    "timers.fired",
    update(TIMERS)
    .where(_THIS)
    .values(
        done=TIMERS.c.done + bindparam("passed"),
        fired_ms=func.coalesce(bindparam("at_ms", type_=INTEGER), TIMERS.c.fired_ms),
        turn_id=func.coalesce(bindparam("of_turn", type_=INTEGER), TIMERS.c.turn_id),
    ),
)
_RESET_COUNT = Statement(
    "timers.reset_count", update(TIMERS).where(_THIS).values(rule=bindparam("new_rule"), revision=TIMERS.c.revision + 1)
)
_END = Statement(
    "timers.end",
    update(TIMERS)
    .where(_THIS, TIMERS.c.state == "active", ~_IS_DUE)
    .values(state="ended", ended_ms=bindparam("now_ms")),
)
_OF_CHAT = Statement("timers.of_chat", _WHOLE.where(_HERE, _HOLDS))
_OF_NUMBER = Statement("timers.of_number", _WHOLE.where(_HERE, TIMERS.c.number == bindparam("number"), _NOT_REMOVED))
_OF_ID = Statement("timers.of_id", _WHOLE.where(_THIS))
_OF_CALL = Statement(
    "timers.of_call", _WHOLE.where(TIMERS.c.call_key == bindparam("call_key")).order_by(TIMERS.c.place)
)
_REMOVED_BY = Statement(
    "timers.removed_by_call",
    _WHOLE.where(
        TIMERS.c.chat == bindparam("chat"), TIMERS.c.state == "removed", TIMERS.c.changed_by == bindparam("by_call")
    ).order_by(TIMERS.c.number),
)
DECLARED = Statement("timers.declared", _WHOLE.where(_DECLARED, _NOT_REMOVED).order_by(TIMERS.c.source)).query()
"""Timers declared in the settings and not removed, by source."""
_RECENTLY_SENT = Statement(
    "timers.recently_sent",
    _WHOLE.where(_HERE, _NOT_REMOVED, TIMERS.c.fired_ms.is_not(None)).order_by(TIMERS.c.fired_ms.desc()).limit(20),
)
_COUNT = Statement("timers.count", select(func.count().label("count")).select_from(TIMERS).where(_OWNERS))


def add(*, most_per_owner: int, **values: Any) -> Write:
    """Add a timer with the next number of its chat and kind. The unit is undone if the call has added it before, if the
    owner has `most_per_owner` of the kind, or if a concurrent addition took the number."""
    initial = {"state": "active", "done": 0, "revision": 0, "changed_by": "", "being_said": 0}
    return _ADD.write_expecting(1, most_per_owner=most_per_owner, **initial, **values)


def change(row: Mapping[str, Any], *, changed_by: str, now_ms: int, **values: Any) -> Write:
    """Replace columns of `row`. The unit is undone if the timer was changed or removed since `row` was read."""
    names = ("title", "arguments", "rule", "zone", "state", "done")
    new = {f"new_{name}": values.get(name, row[name]) for name in names}
    new |= {"new_changed_by": changed_by, "new_changed_ms": now_ms}
    return _CHANGE.write_expecting(1, row_id=row["id"], known_revision=row["revision"], **new)


def remove(id: int, *, by_call: str, by_member: str, now_ms: int) -> Write:
    """Mark a timer as removed by a call and member, and record whether an occurrence was just claimed. Touches no row
    if it was removed before."""
    return _REMOVE.write(row_id=id, by_call=by_call, by_member=by_member, now_ms=now_ms)


def fired(id: int, *, passed: int, at_ms: int | None, turn_id: int | None) -> Write:
    """Add `passed` to the number of past occurrences. `turn_id` and `at_ms` belong to the last one; None, if it was not
    dispatched, leaves the stored values unchanged."""
    return _FIRED.write(row_id=id, passed=passed, at_ms=at_ms, of_turn=turn_id)


def reset_count(id: int, rule: str) -> Write:
    """Replace the timer's rule and increase its revision, after the start of its elapsed time has changed."""
    return _RESET_COUNT.write(row_id=id, new_rule=rule)


def end(id: int, now_ms: int) -> Write:
    """Mark an active timer as ended if it has no further occurrence; touches no row otherwise."""
    return _END.write(row_id=id, now_ms=now_ms)


def of_chat(chat: str, kind: str) -> Query:
    """Active and paused timers of the chat, all columns, with `next_ms` and `snoozed_ms`, the times of the next and the
    snoozed occurrence (null without one)."""
    return _OF_CHAT.query(chat=chat, kind=kind)


def of_number(chat: str, kind: str, number: int) -> Query:
    """The timer with that number and the columns of `of_chat`; no row if it was removed."""
    return _OF_NUMBER.query(chat=chat, kind=kind, number=number)


def of_id(id: int) -> Query:
    """One timer, removed or not, with the columns of `of_chat`."""
    return _OF_ID.query(row_id=id)


def of_call(call_key: str) -> Query:
    """Timers that a call added, in the order of their addition."""
    return _OF_CALL.query(call_key=call_key)


def removed_by_call(chat: str, call_key: str) -> Query:
    """Timers of the chat that a call removed, by number."""
    return _REMOVED_BY.query(chat=chat, by_call=call_key)


def recently_sent(chat: str, kind: str) -> Query:
    """The last 20 timers of the chat that were dispatched and not removed, latest first."""
    return _RECENTLY_SENT.query(chat=chat, kind=kind)


def count(owner: str, kind: str) -> Query:
    """A member's number of active and paused timers of a kind in all chats, as `count`."""
    return _COUNT.query(owner=owner, kind=kind)
