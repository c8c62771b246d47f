"""Budgets: amounts used by holder, kind and day. The statement that takes an amount checks the limit, so two concurrent
turns cannot take the same remainder. Rate limits and notices of outages are rows of the same table."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Index, bindparam, case, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER, TEXT, integer, table, text, upsert

BUDGETS = table(
    "budgets",
    text("holder", primary_key=True),
    text("kind", primary_key=True),
    text("day", primary_key=True),
    integer("used"),
    Index("budgets_by_day", "day"),
)
NOTICE_PREFIX = "told "
"""Prefix of holders that mark a notice as already sent."""
USAGE_PREFIX = "usage "
"""Prefix of holders that count the use of one member in one chat, without a limit."""
_OUTAGE_PREFIX = f"{NOTICE_PREFIX}outage "
RATE_PREFIX = "rate "
"""Prefix of holders of a rate limit. `used` is when all of it is available again, in microseconds since 1970 UTC."""
_MINUTE_US = 60_000_000
_NO_LIMIT = 2**62
_KEY = ("holder", "kind", "day")
_AMOUNT = bindparam("amount", type_=INTEGER)
_MOST = bindparam("most", type_=INTEGER)
_THIS = (
    (BUDGETS.c.holder == bindparam("of_holder"))
    & (BUDGETS.c.kind == bindparam("of_kind"))
    & (BUDGETS.c.day == bindparam("of_day"))
)
_SETTLED = BUDGETS.c.used + bindparam("change")

_TAKE = Statement(
    "budgets.take",
    insert(BUDGETS)
    .from_select(
        [*_KEY, "used"],
        select(*(bindparam(name, type_=TEXT) for name in _KEY), _AMOUNT).where(_AMOUNT <= _MOST),
    )
    .on_conflict_do_update(
        index_elements=list(_KEY), set_={"used": BUDGETS.c.used + _AMOUNT}, where=BUDGETS.c.used + _AMOUNT <= _MOST
    ),
)
_SETTLE = Statement("budgets.settle", update(BUDGETS).where(_THIS).values(used=case((_SETTLED < 0, 0), else_=_SETTLED)))
_USED = Statement(
    "budgets.used",
    select(BUDGETS.c.kind, BUDGETS.c.used).where(
        BUDGETS.c.holder == bindparam("of_holder"), BUDGETS.c.day == bindparam("of_day")
    ),
)
_NOW, _STEP = bindparam("now_us", type_=INTEGER), bindparam("step_us", type_=INTEGER)
_LATEST = _NOW + _MINUTE_US
# A time after the period was stored before the clock was set back.
_FROM = case((or_(BUDGETS.c.used < _NOW, BUDGETS.c.used > _LATEST), _NOW), else_=BUDGETS.c.used)
_RUN = Statement(
    "budgets.run",
    insert(BUDGETS)
    .values({name: bindparam(name) for name in _KEY} | {"used": _NOW + _STEP})
    .on_conflict_do_update(index_elements=list(_KEY), set_={"used": _FROM + _STEP}, where=_FROM + _STEP <= _LATEST),
)
_NOTE_OUTAGE = Statement("budgets.note_outage", upsert(BUDGETS))
_OUTAGE = Statement(
    "budgets.outage", select(func.max(BUDGETS.c.used).label("at_ms")).where(BUDGETS.c.holder == bindparam("of_holder"))
)
END_OUTAGES = Statement(
    "budgets.end_outages", delete(BUDGETS).where(BUDGETS.c.holder.startswith(_OUTAGE_PREFIX))
).write()
"""Deletes all notices of an outage."""
_PREFIX = bindparam("prefix", type_=TEXT)
_USAGE = Statement(
    "budgets.usage",
    select(BUDGETS.c.holder, BUDGETS.c.kind, BUDGETS.c.day, BUDGETS.c.used).where(
        BUDGETS.c.day >= bindparam("first_day"), func.substr(BUDGETS.c.holder, 1, func.length(_PREFIX)) == _PREFIX
    ),
)


def take(holder: str, kind: str, day: str, amount: int, most: int) -> Write:
    """Add `amount` to the holder's use on that day; the unit is undone (Conflict) if more than `most` would be used.
    `day` is an ISO date."""
    return _TAKE.write_expecting(1, holder=holder, kind=kind, day=day, amount=amount, most=most)


def mark_notified(holder: str, kind: str, day: str) -> Write:
    """Mark the notice of `holder`, which begins with `NOTICE_PREFIX`, as sent. Touches no row if already marked."""
    return _TAKE.write(holder=holder, kind=kind, day=day, amount=1, most=1)


def run(holder: str, kind: str, day: str, most: int, now_us: int) -> Write:
    """Count a run under a limit of `most` at once, each of which is available again after an equal part of the period;
    the unit is undone (Conflict) above it. `now_us`: microseconds since 1970 UTC."""
    step_us = _MINUTE_US // most
    return _RUN.write_expecting(1, holder=f"{RATE_PREFIX}{holder}", kind=kind, day=day, now_us=now_us, step_us=step_us)


def note_outage(readers: str, day: str, at_ms: int) -> Write:
    """Record that `readers` are notified of an outage of all models, at `at_ms` since 1970 UTC."""
    return _NOTE_OUTAGE.write(holder=f"{_OUTAGE_PREFIX}{readers}", kind="outage", day=day, used=at_ms)


def outage(readers: str) -> Query:
    """One row: `at_ms`, when `readers` were last notified of the present outage; null if they were not."""
    return _OUTAGE.query(of_holder=f"{_OUTAGE_PREFIX}{readers}")


def settle(holder: str, kind: str, day: str, change: int) -> Write:
    """Adjust a taken amount by `change` to the amount really used; never below 0, but it may exceed the limit. Touches
    no row if nothing was taken."""
    return _SETTLE.write(of_holder=holder, of_kind=kind, of_day=day, change=change)


def used(holder: str, day: str) -> Query:
    """The holder's use on that day: `kind`, `used`. No row for kinds that were not used."""
    return _USED.query(of_holder=holder, of_day=day)


def count(chat: str, member: str, kind: str, day: str, amount: int) -> Write:
    """Add `amount` to the use of the member in the chat with these keys. An empty `member`: requests of the bot
    itself."""
    return _TAKE.write(holder=f"{USAGE_PREFIX}{chat}\n{member}", kind=kind, day=day, amount=amount, most=_NO_LIMIT)


def is_count(write: Write) -> bool:
    """Whether `write` is one of `count`."""
    return isinstance(write.values, Mapping) and str(write.values.get("holder")).startswith(USAGE_PREFIX)


def usage(chat: str, first_day: str) -> Query:
    """Counts in that chat since that ISO date: `holder`, `kind`, `day`, `used`; the member is the second line of
    `holder`."""
    return _USAGE.query(prefix=f"{USAGE_PREFIX}{chat}\n", first_day=first_day)
