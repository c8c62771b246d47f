"""Leadership lease of a daemon on PostgreSQL, and the state of the database for operators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
import structlog
from sqlalchemy import Integer, bindparam, text

from services.store.port import Query, Statement, StoreError, Write
from services.store.postgres.connections import adapt, address_of, connect_writer, hang_up, place_of
from services.store.postgres.reader import operator_connection
from services.store.statements import StatementCompiler
from services.store.turns import leases
from services.store.turns.leases import Held, Unreachable

_LEAST_SECONDS, _MOST_SECONDS = 0.5, 10.0
_SHARE = 6
"""Divisor of the lease that limits one request. The lease is renewed every third, so after two unanswered requests
there is time for another if the lease lasts at least three seconds."""
_LOCKED = "55P03"
_log = structlog.get_logger("lease")
# Sessions that began a transaction with the guard of `services/store/turns/leases.py` longer ago than the lease lasts
# and are idle in it. Sessions that are busy or wait for a lock are not included; neither are those of other roles,
# which the view hides.
_CUT_OFF = Statement(
    "leases.cut_off",
    text(
        "SELECT pg_terminate_backend(a.pid) FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid "
        "WHERE l.locktype = 'relation' AND l.mode = 'RowShareLock' AND l.relation = to_regclass('leases')::oid "
        "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "AND a.wait_event = 'ClientRead' "
        "AND a.xact_start < clock_timestamp() - :lease_ms * interval '1 millisecond'"
    ).bindparams(bindparam("lease_ms", type_=Integer)),
)


class _Answer(NamedTuple):
    rows: list[tuple[Any, ...]]
    touched: int


class PostgresLease:
    """The leadership lease as seen by one process. A lost connection is replaced with the next request."""

    def __init__(self, url: str, holder: str, seconds: float, prepare: Callable[[], object]) -> None:
        """`holder` identifies this process; the lease lasts `seconds`. `prepare` creates missing tables and is called
        in a thread. Raises StoreError if `url` is invalid."""
        self._address = address_of(url)
        self._place = place_of(url)
        self._holder = holder
        self._prepare = prepare
        self._lease_ms = round(seconds * 1000)
        self._patience_seconds = min(_MOST_SECONDS, max(_LEAST_SECONDS, seconds / _SHARE))
        self._compiler = StatementCompiler("postgresql")
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._asking = asyncio.Lock()

    async def take(self) -> int | Held:
        """Take the lease. Returns its token, or the present holder (Held, with an empty name if unknown). Creates
        missing tables. Raises StoreError if the database cannot be reached."""
        try:
            held = await self._held()
        except _NoLeases:
            await asyncio.to_thread(self._prepare)
            held = None
        # Read before trying to take the lease, because that locks the row even if it fails.
        if held is not None and held.left_ms > 0 and held.holder != self._holder:
            return held
        try:
            answer = await self._asked(leases.take(self._holder, self._lease_ms))
        except _Locked:
            await self._cut_off()
            return held or Held("", 0)
        if answer.rows:
            token: int = answer.rows[0][0]
            return token
        return await self._held() or Held("", 0)

    async def renew(self, token: int) -> bool:
        """Renew the lease; False if another process has taken over. Raises StoreError (Unreachable) without an answer
        in time."""
        return (await self._asked(leases.renew(token, self._lease_ms))).touched == 1

    async def release(self) -> None:
        """Release the lease if this process holds it, so that another can take it at once. Raises StoreError."""
        await self._asked(leases.release(self._holder))

    def guard(self, token: int) -> Write:
        """The statement that each transaction of this leadership has to begin with; it fails the transaction
        (StoreFenced) after a take-over."""
        return leases.guard(token)

    async def close(self) -> None:
        """Close the connection; the lease stays."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _cut_off(self) -> None:
        """Terminate sessions that hang in a transaction that has locked the row. The server terminates idle ones, see
        `connect_as_leader`, but a client that has sent only part of a pipeline counts as busy."""
        try:
            answer = await self._asked(_CUT_OFF.query(lease_ms=self._lease_ms))
        except Unreachable as problem:
            _log.warning("held_up_leader_not_cut_off", problem=str(problem))
            return
        if (True,) in answer.rows:
            _log.warning("held_up_leader_cut_off")

    async def _held(self) -> Held | None:
        rows = (await self._asked(leases.HELD)).rows
        return Held(rows[0][0], rows[0][2]) if rows else None

    async def _asked(self, question: Write | Query) -> _Answer:
        try:
            async with self._asking:
                return await self._answered(question)
        except psycopg.errors.UndefinedTable as error:
            raise _NoLeases(f"{self._place} has no tables of this program") from error
        except psycopg.Error as error:
            if error.sqlstate == _LOCKED:
                raise _Locked(f"{self._place}: the lease is locked") from error
            await self.close()
            raise Unreachable(f"{self._place} cannot be asked who leads: {error}") from error
        except TimeoutError as error:
            await self.close()
            raise Unreachable(f"{self._place} does not say in time who leads") from error

    async def _answered(self, question: Write | Query) -> _Answer:
        """The server's answer. Raises psycopg.Error, and TimeoutError exactly after the timeout: cancelling the
        driver's call would wait for a silent server."""
        answering = asyncio.create_task(self._answer(question))
        try:
            await asyncio.wait([answering], timeout=self._patience_seconds)
        finally:
            is_late = not answering.done()
            if is_late:
                await self._end(answering)
        if is_late:
            raise TimeoutError
        return answering.result()

    async def _end(self, answering: asyncio.Task[_Answer]) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            answering.cancel()
        else:
            hang_up(connection)
        await asyncio.gather(answering, return_exceptions=True)
        if connection is not None:
            await connection.close()

    async def _answer(self, question: Write | Query) -> _Answer:
        compiled = self._compiler.compiled(question.statement)
        connection = await self._connected()
        cursor = await connection.execute(compiled.sql, compiled.bind(question.values))
        rows = await cursor.fetchall() if cursor.description else []
        return _Answer(rows, cursor.rowcount)

    async def _connected(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = None
            self._connection = connection = await psycopg.AsyncConnection.connect(self._address, autocommit=True)
            adapt(connection.adapters)
            most_ms = round(self._patience_seconds * 500)
            await connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{most_ms}ms",))
        return self._connection


class _NoLeases(StoreError):
    """The `leases` table is missing: the database is new."""


class _Locked(Unreachable):
    """Another transaction has locked the lease's row for longer than the lock timeout."""


def connect_as_leader(address: str, seconds: float) -> psycopg.Connection[Any]:
    """The writer's connection of a leader with a lease of `seconds`. The server terminates its session if it is idle in
    a transaction for that long: the locked lease row would prevent a take-over. Raises psycopg.Error."""
    connection = connect_writer(address)
    try:
        connection.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, false)", (f"{round(seconds * 1000)}ms",)
        )
    except BaseException:
        connection.close()
        raise
    return connection


class DatabaseState(NamedTuple):
    """State of the database as reported by the server."""

    place: str
    """Database and host, without user and password."""
    server_version: str
    schema_version: str | None
    """None if the program's tables do not exist."""
    leader: Held | None
    """The present leader."""


_STATE = Statement(
    "leases.state",
    text("SELECT current_setting('server_version') AS version, to_regclass('alembic_version') IS NOT NULL AS is_ours"),
)
_SCHEMA = Statement("leases.schema", text("SELECT version_num FROM alembic_version"))


def state_of(url: str) -> DatabaseState:
    """The state of the database at `url`. Raises ReaderError if it cannot be reached or read."""
    with operator_connection(url, writes=False) as database:
        (server,) = database.rows(_STATE.query())
        if not server["is_ours"]:
            return DatabaseState(place_of(url), server["version"], None, None)
        schema, held = database.rows(_SCHEMA.query()), database.rows(leases.HELD)
        leader = Held(held[0]["holder"], held[0]["left_ms"]) if held and held[0]["left_ms"] > 0 else None
        return DatabaseState(place_of(url), server["version"], schema[0]["version_num"] if schema else None, leader)
