"""The store on a PostgreSQL server: one writer with group commits, and readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import psycopg
import structlog
from psycopg.pq import TransactionStatus

from services.clock import Clock
from services.retry import Retry, RetryDecision, RetryPolicy
from services.store.port import Conflict, Query, Row, StoreBroken, StoreError, StoreFenced, StoreHealth, Values
from services.store.postgres.connections import (
    address_of,
    application_name,
    connect_reader,
    connect_writer,
    is_from_server,
    passes,
    place_of,
    refusal,
)
from services.store.postgres.locks import END_SESSIONS, EXCLUSIVE, HOLDERS, TAKE, Claim, LockHeld, take
from services.store.postgres.reader import PostgresReader
from services.store.sqlite.lock import StoreInUse
from services.store.statements import CompiledStatement, Unit, compile_statement, give_all
from services.store.unit_queue import UnitQueue

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_REFUSED = (psycopg.Error, ValueError, OverflowError, TypeError)
_Cursor = psycopg.Cursor[Any]


class _NotNow(Exception):
    """The transaction was rolled back and may be retried later."""


class PostgresCommitter:
    """Executes groups of units on one connection. When it is lost, connects again and takes all locks again. Used by
    one thread at a time."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        connect: Callable[[Sequence[Claim]], psycopg.Connection[Any]],
        claims: Sequence[Claim],
        name: str,
    ) -> None:
        """`connection` holds the locks of `claims`. `connect` opens a new one with locks and may raise psycopg.Error
        and LockHeld. `name`: application name of this process."""
        self._connection: psycopg.Connection[Any] | None = connection
        self._connect = connect
        self._claims = dict.fromkeys(claims)
        self._name = name
        self._cursors: list[_Cursor] = []
        self._log = structlog.get_logger("store")
        self.commits = 0
        self.broken: StoreBroken | None = None

    def run(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Set the outcome of every unit. If a unit fails, those before it are executed again without it, then those
        after it. Returns the units, in order, that were not executed because the database cannot be reached now."""
        todo = [units]
        while todo:
            part = todo.pop()
            if not part:
                continue
            try:
                failed = self._transaction(part)
            except _NotNow as problem:
                self._log.warning("store_tries_again", problem=str(problem))
                return [*part, *chain.from_iterable(reversed(todo))]
            if failed is not None:
                todo += (part[failed + 1 :], part[:failed])
        return ()

    def finish(self) -> None:
        """Release all locks at once; otherwise the server does so some time after the connection is closed."""
        try:
            if self._connection is not None and self.broken is None:
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        except psycopg.Error as error:
            self._log.warning("store_unlock_failed", problem=str(error))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _transaction(self, units: Sequence[Unit]) -> int | None:
        """Position of the failed unit, with everything rolled back; None if every unit has its outcome. Raises _NotNow
        if it may be retried later."""
        if self.broken is None:
            try:
                connection = self._connected()
                counts = self._executed(connection, units)
            except _UnitFailed as failure:
                self._undo(connection)
                return self._refuse(units, failure)
            except StoreBroken as problem:
                self.broken = problem
                self.close()
            else:
                self._commit(connection, units, counts)
                return None
        if self.broken is not None:
            give_all(units, self.broken)
        return None

    def _connected(self) -> psycopg.Connection[Any]:
        """The connection, with all locks. Raises _NotNow if it cannot be opened now, and StoreFenced if another process
        has taken a lock."""
        if self._connection is None:
            try:
                self._connection = self._connect([*self._claims])
            except LockHeld as held:
                if any(holder != self._name for holder in held.holders):
                    raise StoreFenced(f"{held}: this process had lost its connection") from held
                # Held by the lost session of this process, which the server has not noticed yet.
                raise _NotNow(str(held)) from held
            except psycopg.Error as error:
                raise _NotNow(str(error)) from error
            self._cursors.clear()
            self._log.info("store_connected_again")
        return self._connection

    def _lost(self, error: Exception | None) -> _NotNow:
        """Close the lost connection and return the error to raise; the server rolls back its transaction."""
        self.close()
        return _NotNow(f"the connection to the database was lost: {error or 'closed'}")

    def _executed(self, connection: psycopg.Connection[Any], units: Sequence[Unit]) -> list[list[int]]:
        """Row counts of each unit's statements, in a transaction that stays open. Raises _UnitFailed, _NotNow for a
        lost connection or temporary error, and StoreBroken if there is no transaction."""
        try:
            sent = self._send(connection, units)
        except psycopg.Error as lost:
            sent = _Sent(None, (), None, lost)
        error = sent.servers
        if connection.closed or connection.broken:
            raise self._lost(error)
        if error is not None and passes(error):
            self._undo(connection)
            raise _NotNow(f"{type(error).__name__} ({error.sqlstate})")
        if sent.begin is None or not _is_done(sent.begin):
            raise StoreBroken(f"the transaction could not begin: {error}")
        return [sent.counts(position, unit) for position, unit in enumerate(units)]

    def _send(self, connection: psycopg.Connection[Any], units: Sequence[Unit]) -> _Sent:
        """Send all statements in a pipeline and wait for all answers: a group takes one round trip, whatever its
        size."""
        cursors = self._cursors_of(connection)
        begin: _Cursor | None = None
        by_unit: list[list[_Cursor]] = []
        ours: Exception | None = None
        servers: psycopg.Error | None = None
        with connection.pipeline() as pipeline:
            try:
                begin = next(cursors).execute(_BEGIN)
                for unit in units:
                    by_unit.append([])
                    for statement, values, _ in unit.steps:
                        by_unit[-1].append(next(cursors).execute(statement.sql, values))
            except _REFUSED as error:
                if isinstance(error, psycopg.Error) and is_from_server(error):
                    servers = error
                else:
                    ours = error
            try:
                pipeline.sync()
            except psycopg.Error as error:
                servers = servers or error
        return _Sent(begin, by_unit, ours, servers)

    def _cursors_of(self, connection: psycopg.Connection[Any]) -> Iterator[_Cursor]:
        """A cursor for each statement, which receives its answer; reused for the next group."""
        yield from self._cursors
        while True:
            self._cursors.append(connection.cursor())
            yield self._cursors[-1]

    def _commit(self, connection: psycopg.Connection[Any], units: Sequence[Unit], counts: list[list[int]]) -> None:
        """Commit and set the outcomes: row counts, or an error. A connection lost here breaks the store, because the
        result is unknown. Raises _NotNow if the server reports a rollback that may be retried."""
        try:
            ended = connection.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            if connection.closed or connection.broken:
                self.broken = StoreBroken(
                    "the connection was lost at a commit; what is durable is known after a restart"
                )
                give_all(units, self.broken)
                return
            # An error response means that nothing was committed.
            if passes(error):
                raise _NotNow(f"commit: {type(error).__name__} ({error.sqlstate})") from error
            outcome = refusal("commit", error)
            if isinstance(outcome, StoreBroken):
                self.broken = outcome
            give_all(units, outcome)
            return
        if ended != "COMMIT":
            self.broken = StoreBroken(f"commit: the server answered {ended}")
            give_all(units, self.broken)
            return
        self.commits += 1
        for unit, count in zip(units, counts, strict=True):
            if unit.steps and unit.steps[0][0].name == TAKE.name and count[0]:
                self._claims[Claim(*unit.steps[0][1])] = None
            unit.outcome = count

    def _undo(self, connection: psycopg.Connection[Any]) -> None:
        """Roll back if a transaction is open. Raises _NotNow if the connection is lost."""
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.rollback()
        except psycopg.Error as error:
            raise self._lost(error) from error

    def _refuse(self, units: Sequence[Unit], failure: _UnitFailed) -> int | None:
        error = failure.error
        outcome = error if isinstance(error, StoreError) else refusal(failure.name, error)
        if isinstance(outcome, StoreBroken):
            self.broken = outcome
            give_all(units, outcome)
            return None
        units[failure.position].outcome = outcome
        return failure.position


class _Sent(NamedTuple):
    """Cursors of the statements that were sent, and errors."""

    begin: _Cursor | None
    by_unit: Sequence[Sequence[_Cursor]]
    ours: Exception | None
    """Error of a value in the last unit that was rejected before it was sent."""
    servers: psycopg.Error | None
    """First error from the server or the connection."""

    def counts(self, position: int, unit: Unit) -> list[int]:
        """Row counts of that unit's steps. Raises _UnitFailed for a failed statement or a number of rows other than
        expected."""
        cursors = self.by_unit[position] if position < len(self.by_unit) else ()
        counts = []
        for (statement, _, expect), cursor in zip(unit.steps, cursors, strict=False):
            if not _is_done(cursor):
                # Later statements have no answer either, but the loop ends at the first.
                raise _UnitFailed(position, statement.name, self.servers or psycopg.OperationalError("no answer"))
            if expect is not None and cursor.rowcount != expect:
                conflict = Conflict(f"{statement.name}: touched {cursor.rowcount} rows, expected {expect}")
                raise _UnitFailed(position, statement.name, conflict)
            counts.append(cursor.rowcount)
        if len(counts) < len(unit.steps):
            statement, _, _ = unit.steps[len(counts)]
            raise _UnitFailed(position, statement.name, self.ours or psycopg.OperationalError("not sent"))
        return counts


class _UnitFailed(Exception):
    """The unit at `position` failed in its statement `name`."""

    def __init__(self, position: int, name: str, error: Exception) -> None:
        super().__init__(position, name)
        self.position = position
        self.name = name
        self.error = error


def _is_done(cursor: _Cursor) -> bool:
    return cursor.pgresult is not None


_MOST_IN_GROUP = 64
_PATIENCE_SECONDS = 60.0
_START = RetryPolicy(attempts=20, first_wait_seconds=0.5, longest_wait_seconds=2.0)
_START_SECONDS = 15.0

Connect = Callable[[str], psycopg.Connection[Any]]


class PostgresStore:
    """Store in one database of a server. Created by `open`; bound to the loop that opened it."""

    def __init__(self, units: UnitQueue, reader: PostgresReader, name: str) -> None:
        self.units = units
        self.name = name
        """Application name of this process's sessions."""
        self.commit, self.post = units.commit, units.post
        self._reader = reader

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        clock: Clock,
        prepare: Callable[[str], object] | None = None,
        on_broken: Callable[[StoreBroken], None] | None = None,
        claims: Sequence[Claim] = (EXCLUSIVE,),
        connect: Connect = connect_writer,
    ) -> PostgresStore:
        """Open the store in the existing database at `url`, `postgresql://user:password@host:5432/name`.

        `prepare` upgrades the schema; it is called with `url`, in a thread. `on_broken` is called once, in the loop,
        when the store breaks and the process has to end. `claims` are locks that are held like those of `claim`.
        `connect` opens the writer's connection.

        Raises:
            StoreInUse: another process holds one of `claims`.
            StoreError: the URL is invalid, or the database cannot be reached, is not in UTF-8 or rejects the login.
        """
        address = address_of(url)

        def connect_to_write(claims: Sequence[Claim]) -> psycopg.Connection[Any]:
            connection = connect(address)
            try:
                _check(connection, url)
                for claim in claims:
                    take(connection, claim)
            except BaseException:
                connection.close()
                raise
            return connection

        connection = await _connected(partial(connect_to_write, claims), url, clock)
        try:
            if prepare is not None:
                await asyncio.to_thread(prepare, url)
        except BaseException:
            connection.close()
            raise
        units = UnitQueue(
            PostgresCommitter(connection, connect_to_write, claims, application_name(url)),
            "postgresql",
            clock,
            refusal=refusal,
            on_broken=on_broken,
            most_in_group=_MOST_IN_GROUP,
            patience_seconds=_PATIENCE_SECONDS,
        )
        reader = PostgresReader(partial(connect_reader, address), clock, patience_seconds=_PATIENCE_SECONDS)
        return cls(units, reader, application_name(url))

    @property
    def broken(self) -> StoreBroken | None:
        """Why the process has to end; None if all is well."""
        return self.units.broken

    def health(self) -> StoreHealth:
        return StoreHealth(self.units.problem)

    async def check(self) -> None:
        """Does nothing: the server maintains its files, and units are retried while it cannot be reached."""

    async def read(self, query: Query) -> list[Row]:
        """The committed rows of `query`, retried for up to a minute.

        Raises:
            BadUnit: the database rejected the query.
            StoreClosed: the store was closed.
            StoreError: the database could not be reached for a minute.
        """
        return await self._rows(self.units.read(query.statement), query.values)

    async def claim(self, name: str) -> str | None:
        """Take the lock `name`, unless another process holds it. Returns None if this process holds it now, else the
        application name of the holder, or "another process" if unknown.

        A lock is held until the store is closed. After a lost connection it is taken again before the next write; if
        another process has taken it meanwhile, the store breaks with StoreFenced.

        Raises:
            StoreBroken, StoreClosed: as for `commit`.
            StoreError: the holder could not be asked for.
        """
        (taken,) = await self.commit([TAKE.write(name=name)])
        if taken:
            return None
        rows = await self._rows(compile_statement(HOLDERS, "postgresql"), {"name": name})
        return next((str(row["holder"]) for row in rows), "another process")

    async def end_session(self, holder_application_name: str) -> bool:
        """Terminate the sessions of a process that hold locks, so that its locks are free. Returns whether there was
        one.

        Raises:
            BadUnit: the sessions belong to a role that this role may not terminate.
            StoreError: the database could not be reached for a minute.
        """
        values = {"holder": holder_application_name}
        rows = await self._rows(compile_statement(END_SESSIONS, "postgresql"), values)
        return any(row["ended"] for row in rows)

    async def _rows(self, statement: CompiledStatement, values: Values) -> list[Row]:
        try:
            return await self._reader.rows(statement.sql, statement.bind(values))
        except _REFUSED as error:
            raise refusal(statement.name, error) from error

    async def close(self) -> None:
        self.units.close()
        await self.units.ended()
        await self._reader.close()


async def _connected(connect: Callable[[], psycopg.Connection[Any]], url: str, clock: Clock) -> psycopg.Connection[Any]:
    """The first connection, retried for some seconds in case the server is starting up. Logs each failed attempt.
    Raises StoreError if it cannot be reached or may not be used, and StoreInUse if a lock is held."""
    log = structlog.get_logger("store")

    def judge(error: psycopg.OperationalError) -> RetryDecision:
        log.warning("store_waits_for_database", problem=str(error))
        return RetryDecision(True)

    try:
        return await Retry(clock, _START).run(
            lambda: asyncio.to_thread(connect),
            on=psycopg.OperationalError,
            judge=judge,
            deadline=clock.monotonic() + _START_SECONDS,
        )
    except LockHeld as held:
        holders = ", ".join(held.holders) or "another process"
        raise StoreInUse(f"{place_of(url)} is in use by {holders}; stop it first") from held
    except psycopg.Error as error:
        raise StoreError(f"{place_of(url)} cannot be reached: {error}") from error


def _check(connection: psycopg.Connection[Any], url: str) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"{place_of(url)} keeps text as {encoding}; make one with ENCODING 'UTF8'")
