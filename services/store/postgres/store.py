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
from services.store.port import Conflict, Query, Row, StoreBroken, StoreError, StoreFenced, StoreHealth, Write
from services.store.postgres.connections import (
    address_of,
    connect_reader,
    connect_writer,
    is_from_server,
    passes,
    place_of,
    refusal,
    take_lock,
)
from services.store.postgres.reader import PostgresReader
from services.store.sqlite.lock import StoreInUse
from services.store.statements import StatementCompiler, Step, Unit
from services.store.unit_queue import UnitQueue

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_REFUSED = (psycopg.Error, ValueError, OverflowError, TypeError)
_Cursor = psycopg.Cursor[Any]


class _NotNow(Exception):
    """Nothing of a transaction was done, and it may be done later."""


class PostgresCommitter:
    """Executes groups of units on one connection, which it makes anew when it was lost. `guard` stands first in every
    transaction, and has to touch one row. Belongs to one thread at a time."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        connect: Callable[[], psycopg.Connection[Any]],
        guard: Step | None = None,
    ) -> None:
        """`connect` may raise psycopg.Error and StoreInUse."""
        self._connection: psycopg.Connection[Any] | None = connection
        self._connect = connect
        self._guard = guard
        self._cursors: list[_Cursor] = []
        self._log = structlog.get_logger("store")
        self.commits = 0
        """Transactions committed so far."""
        self.broken: StoreBroken | None = None
        """Why nothing is taken any more."""

    def run(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Set the outcome of every unit. A unit that fails is undone and leaves no trace in the others: those before it
        are done again without it, those after it are tried next. Returns the units, in their order, of which nothing
        was done because the database cannot be reached now."""
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
        """Give the lock back at once; else the server would, a moment after the connection is closed."""
        try:
            if self._connection is not None and self.broken is None:
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        except psycopg.Error as error:
            self._log.warning("store_unlock_failed", problem=str(error))

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _transaction(self, units: Sequence[Unit]) -> int | None:
        """The position of the unit that failed, all being undone; None when every unit has its outcome. Raises
        _NotNow."""
        if self.broken is None:
            connection = self._connected()
            try:
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
            self._give_all(units, self.broken)
        return None

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            try:
                self._connection = self._connect()
            except (psycopg.Error, StoreInUse) as error:
                # In use: most likely by our own lost session, which the server has not noticed yet.
                raise _NotNow(str(error)) from error
            self._cursors.clear()
            self._log.info("store_connected_again")
        return self._connection

    def _lost(self, error: Exception | None) -> _NotNow:
        """Nothing was committed: what the server had of the transaction is gone with the connection."""
        self.close()
        return _NotNow(f"the connection to the database was lost: {error or 'closed'}")

    def _executed(self, connection: psycopg.Connection[Any], units: Sequence[Unit]) -> list[list[int]]:
        """What each statement of each unit has touched, in a transaction that is open now. Raises _UnitFailed, _NotNow
        and StoreBroken."""
        try:
            sent = self._send(connection, units)
        except psycopg.Error as lost:
            sent = _Sent((), (), None, lost)
        error = sent.servers
        if connection.closed or connection.broken:
            raise self._lost(error)
        if error is not None and passes(error):
            self._undo(connection)
            raise _NotNow(f"{type(error).__name__} ({error.sqlstate})")
        if not all(_is_done(cursor) for cursor in sent.opening):
            raise StoreBroken(f"the transaction could not begin: {error}")
        if self._guard is not None and sent.opening[-1].rowcount != 1:
            raise StoreFenced("another process has the right to write now")
        return [sent.counts(position, unit) for position, unit in enumerate(units)]

    def _send(self, connection: psycopg.Connection[Any], units: Sequence[Unit]) -> _Sent:
        """Send everything at once and wait for all answers: a group costs one way there and back, however many
        statements it has."""
        cursors = self._cursors_of(connection)
        opening: list[_Cursor] = []
        by_unit: list[list[_Cursor]] = []
        ours: Exception | None = None
        servers: psycopg.Error | None = None
        with connection.pipeline() as pipeline:
            try:
                opening.append(next(cursors).execute(_BEGIN))
                if self._guard is not None:
                    guard, values, _ = self._guard
                    opening.append(next(cursors).execute(guard.sql, values))
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
        return _Sent(opening, by_unit, ours, servers)

    def _cursors_of(self, connection: psycopg.Connection[Any]) -> Iterator[_Cursor]:
        """A cursor for each statement: that is where its answer comes. They are used again for the next group."""
        yield from self._cursors
        while True:
            self._cursors.append(connection.cursor())
            yield self._cursors[-1]

    def _commit(self, connection: psycopg.Connection[Any], units: Sequence[Unit], counts: list[list[int]]) -> None:
        """Raises _NotNow where the server says that it has undone everything."""
        try:
            ended = connection.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            if connection.closed or connection.broken:
                self.broken = StoreBroken(
                    "the connection was lost at a commit; what is durable is known after a restart"
                )
                self._give_all(units, self.broken)
                return
            # An error that comes as an answer says that nothing was committed.
            if passes(error):
                raise _NotNow(f"commit: {type(error).__name__} ({error.sqlstate})") from error
            outcome = refusal("commit", error)
            if isinstance(outcome, StoreBroken):
                self.broken = outcome
            self._give_all(units, outcome)
            return
        if ended != "COMMIT":
            self.broken = StoreBroken(f"commit: the server answered {ended}")
            self._give_all(units, self.broken)
            return
        self.commits += 1
        for unit, count in zip(units, counts, strict=True):
            unit.outcome = count

    def _undo(self, connection: psycopg.Connection[Any]) -> None:
        """Raises _NotNow."""
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error as error:
            raise self._lost(error) from error

    def _refuse(self, units: Sequence[Unit], failure: _UnitFailed) -> int | None:
        error = failure.error
        outcome = error if isinstance(error, StoreError) else refusal(failure.name, error)
        if isinstance(outcome, StoreBroken):
            self.broken = outcome
            self._give_all(units, outcome)
            return None
        units[failure.position].outcome = outcome
        return failure.position

    @staticmethod
    def _give_all(units: Sequence[Unit], outcome: StoreError) -> None:
        for unit in units:
            unit.outcome = outcome


class _Sent(NamedTuple):
    """What was sent, and the answers where there are any."""

    opening: Sequence[_Cursor]
    by_unit: Sequence[Sequence[_Cursor]]
    ours: Exception | None
    """Why a value of the last unit was refused before it was sent."""
    servers: psycopg.Error | None
    """The first error that the server answered, or that the connection had."""

    def counts(self, position: int, unit: Unit) -> list[int]:
        """The rows that each step of that unit has touched. Raises _UnitFailed."""
        cursors = self.by_unit[position] if position < len(self.by_unit) else ()
        counts = []
        for (statement, _, expect), cursor in zip(unit.steps, cursors, strict=False):
            if not _is_done(cursor):
                # The statements behind the one that failed have no answer either, but they are not asked for it.
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
    """The unit at `position` was refused at its statement `name`."""

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
    """A Store in one database of a server. Made by `open`; belongs to the loop it was opened in."""

    def __init__(self, units: UnitQueue, reader: PostgresReader) -> None:
        self._units = units
        self._reader = reader

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        clock: Clock,
        prepare: Callable[[str], object] | None = None,
        on_broken: Callable[[StoreBroken], None] | None = None,
        guard: Write | None = None,
        connect: Connect = connect_writer,
    ) -> PostgresStore:
        """The store in the database at `url`, `postgresql://user:password@host:5432/name`, which has to be there.

        `prepare` brings the schema up to date; it is called with `url`, in a thread.
        `on_broken` is called in the loop, once, when the store broke and the process has to end.
        `guard` is executed first in every transaction and has to touch exactly one row: the right to write, where
        several processes may get it. When it touches none, the group and all after it fail with StoreFenced. Without
        it the store holds a lock of the database, and there is one store at a time.
        `connect` opens the writer's connection.

        Raises:
            StoreInUse: another process has the database.
            StoreError: the address is none, or the database cannot be reached, is not in UTF-8 or does not let us in.
        """
        address = address_of(url)

        def connect_to_write() -> psycopg.Connection[Any]:
            connection = connect(address)
            try:
                _check(connection, url)
                if guard is None:
                    take_lock(connection, url)
            except BaseException:
                connection.close()
                raise
            return connection

        compiler = StatementCompiler("postgresql")
        first = None if guard is None else _step(guard, compiler)
        connection = await _connected(connect_to_write, url, clock)
        try:
            if prepare is not None:
                await asyncio.to_thread(prepare, url)
        except BaseException:
            connection.close()
            raise
        units = UnitQueue(
            PostgresCommitter(connection, connect_to_write, first),
            compiler,
            clock,
            refusal=refusal,
            on_broken=on_broken,
            most_in_group=_MOST_IN_GROUP,
            patience_seconds=_PATIENCE_SECONDS,
        )
        reader = PostgresReader(partial(connect_reader, address), clock, patience_seconds=_PATIENCE_SECONDS)
        return cls(units, reader)

    @property
    def groups(self) -> int:
        """Transactions committed so far; the fewer for the same units, the better they shared."""
        return self._units.groups

    @property
    def post_errors(self) -> int:
        """Posted units that failed so far."""
        return self._units.post_errors

    @property
    def broken(self) -> StoreBroken | None:
        """Why the process has to end; None while all is well."""
        return self._units.broken

    def health(self) -> StoreHealth:
        """The state at this moment. See Store."""
        return StoreHealth(self._units.problem)

    async def check(self) -> None:
        """Nothing: the server looks after its files, and units that cannot reach it are retried."""

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[list[int]]:
        """All of `writes` or nothing, durable when it returns; the row counts. See Store."""
        return self._units.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        """The same, lazily and with nobody waiting. See Store."""
        self._units.post(writes)

    async def read(self, query: Query) -> list[Row]:
        """The rows of `query` as committed.

        Raises:
            BadUnit: the database refused the query.
            StoreClosed: the store was closed.
            StoreError: the database could not be reached for a minute.
        """
        statement, values = query
        compiled = self._units.read(statement)
        try:
            return await self._reader.rows(compiled.sql, compiled.bind(values))
        except (psycopg.Error, ValueError, OverflowError, TypeError) as error:
            raise refusal(statement.name, error) from error

    async def close(self) -> None:
        """Refuse new units, finish the rest and close; the database is free when it returns."""
        self._units.close()
        await self._units.ended()
        await self._reader.close()


async def _connected(connect: Callable[[], psycopg.Connection[Any]], url: str, clock: Clock) -> psycopg.Connection[Any]:
    """The first connection. A server that starts together with this process gets a moment. Raises StoreError."""
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
    except psycopg.Error as error:
        raise StoreError(f"{place_of(url)} cannot be reached: {error}") from error


def _check(connection: psycopg.Connection[Any], url: str) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"{place_of(url)} keeps text as {encoding}; make one with ENCODING 'UTF8'")


def _step(write: Write, compiler: StatementCompiler) -> Step:
    compiled = compiler.compiled(write.statement)
    return compiled, compiled.bind(write.values), 1
