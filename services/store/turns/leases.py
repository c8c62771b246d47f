"""Leadership lease: of all daemons on one database, only its holder may write. It expires by the database's clock,
because clocks of machines differ. SQLite has the table only for a common schema; there a file lock is used
(`services/store/sqlite/lock.py`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import bindparam, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from services.store.port import Statement, StoreError, Write
from services.store.schema import INTEGER, integer, table, text

LEADER = "leader"
"""Name of the only lease."""
LEASES = table(
    "leases",
    text("name", primary_key=True),
    text("holder"),
    integer("token"),
    integer("until_ms"),
)


class Unreachable(StoreError):
    """The database cannot be reached now; a retry may succeed."""


class Held(NamedTuple):
    """The lease as held by another process, the leader."""

    holder: str
    left_ms: int
    """Milliseconds until its lease expires unless renewed, by the database's clock; not above 0 if it has expired."""


class _Now(FunctionElement[int]):
    """The database's clock when the expression is evaluated, in milliseconds since 1970 UTC."""

    type = INTEGER
    inherit_cache = True


@compiles(_Now, "sqlite")
def _now_on_sqlite(_element: _Now, _compiler: Any, **_options: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


@compiles(_Now, "postgresql")
def _now_on_postgresql(_element: _Now, _compiler: Any, **_options: Any) -> str:
    # Not now(), which returns the start of the transaction, perhaps before it waited for a lock.
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
HELD = Statement(
    "leases.held",
    select(LEASES.c.holder, LEASES.c.token, (LEASES.c.until_ms - _Now()).label("left_ms")).where(_THIS),
).query(lease=LEADER)
"""`holder`, `token`, and `left_ms`, which is not above 0 if the lease is free; no row if it was never taken."""
# While the row is locked, a new leader has to wait until this transaction has ended, and a transaction after that finds
# another token. A lock of the key alone (FOR KEY SHARE) would not do: taking the lease changes no key.
_GUARD = Statement("leases.guard", select(LEASES.c.token).where(_THIS, _MINE).with_for_update(read=True))


def take(holder: str, lease_ms: int) -> Write:
    """Take the lease for `lease_ms` if it is free or held by `holder`. Returns one row with the `token`, which is
    higher than all earlier ones; no row if another holder has the lease."""
    return _TAKE.write(lease=LEADER, taker=holder, lease_ms=lease_ms)


def renew(token: int, lease_ms: int) -> Write:
    """Extend the lease to `lease_ms` from now. Touches no row if another process has taken over."""
    return _RENEW.write(lease=LEADER, held_token=token, lease_ms=lease_ms)


def release(holder: str) -> Write:
    """Release the lease so that another process can take it at once. Touches no row if `holder` does not hold it."""
    return _RELEASE.write(lease=LEADER, taker=holder)


def guard(token: int) -> Write:
    """First statement of each transaction of the leader: it finds one row unless another process has taken over, which
    undoes the unit, and prevents a take-over until the transaction has ended."""
    return _GUARD.write_expecting(1, lease=LEADER, held_token=token)
