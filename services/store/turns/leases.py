"""Who leads: of all daemons on one database the one that may write. A lease runs out by the database's own clock, since
clocks of machines differ. SQLite has the table as well, so that there is one schema; a lock of the file stands for the
lease there (`services/store/sqlite/lock.py`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import bindparam, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from services.store.port import Query, Statement, StoreError, Write
from services.store.schema import INTEGER, integer, table, text

LEADER = "leader"
"""The one lease there is."""
LEASES = table(
    "leases",
    text("name", primary_key=True),
    text("holder"),
    integer("token"),
    integer("until_ms"),
)


class Unreachable(StoreError):
    """The database cannot be asked now; it may be in a moment."""


class Held(NamedTuple):
    """Another process leads."""

    holder: str
    left_ms: int
    """Until its lease runs out unless it is renewed, by the database's clock; not above 0 when it has."""


class _Now(FunctionElement[int]):
    """The database's clock at the moment at which it is looked at, in milliseconds since 1970 UTC."""

    type = INTEGER
    inherit_cache = True


@compiles(_Now, "sqlite")
def _now_on_sqlite(_element: _Now, _compiler: Any, **_options: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


@compiles(_Now, "postgresql")
def _now_on_postgresql(_element: _Now, _compiler: Any, **_options: Any) -> str:
    # Not now(): that is when the transaction began, perhaps before it waited for another one.
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"


_LASTS = bindparam("lease_ms", type_=INTEGER)
_THIS = LEASES.c.name == bindparam("lease")
_MINE = LEASES.c.token == bindparam("held_token", type_=INTEGER)
_TAKE = Statement(
    "leases.take",
    insert(LEASES)
    .values(name=bindparam("lease"), holder=bindparam("taker"), token=literal_column("1"), until_ms=_Now() + _LASTS)
    .on_conflict_do_update(
        index_elements=["name"],
        set_={
            "holder": bindparam("taker"),
            "token": LEASES.c.token + literal_column("1"),
            "until_ms": _Now() + _LASTS,
        },
        where=or_(LEASES.c.until_ms <= _Now(), LEASES.c.holder == bindparam("taker")),
    )
    .returning(LEASES.c.token),
)
_RENEW = Statement("leases.renew", update(LEASES).where(_THIS, _MINE).values(until_ms=_Now() + _LASTS))
_RELEASE = Statement(
    "leases.release",
    update(LEASES).where(_THIS, LEASES.c.holder == bindparam("taker")).values(until_ms=literal_column("0")),
)
_HELD = Statement(
    "leases.held",
    select(LEASES.c.holder, LEASES.c.token, (LEASES.c.until_ms - _Now()).label("left_ms")).where(_THIS),
)
# With the row locked a new leader's taking waits until this transaction has ended, and one that comes after it finds
# another token. A lock for keys alone would not do: taking changes no key.
_GUARD = Statement("leases.guard", select(LEASES.c.token).where(_THIS, _MINE).with_for_update(read=True))


def take(holder: str, lease_ms: int) -> Write:
    """Lead for so long, where nobody does or `holder` itself. Gives one row, the `token` of this leadership, which is
    higher than all before; nothing where another one leads."""
    return _TAKE.write(lease=LEADER, taker=holder, lease_ms=lease_ms)


def renew(token: int, lease_ms: int) -> Write:
    """Lead for so long from now. Touches nothing when another one has taken over."""
    return _RENEW.write(lease=LEADER, held_token=token, lease_ms=lease_ms)


def release(holder: str) -> Write:
    """`holder` leads no more, so that another one may at once. Nothing where it does not lead."""
    return _RELEASE.write(lease=LEADER, taker=holder)


def held() -> Query:
    """`holder`, `token`, and `left_ms`, which is not above 0 when nobody leads; no row where nobody ever did."""
    return _HELD.query(lease=LEADER)


def guard(token: int) -> Write:
    """What each transaction of the leader begins with: it finds one row as long as nobody else has taken over, and
    nobody does before the transaction has ended."""
    return _GUARD.write_expecting(1, lease=LEADER, held_token=token)
