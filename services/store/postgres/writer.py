"""What writes to PostgreSQL: takes lists of units, and makes one transaction of each list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import psycopg
import structlog
from psycopg.pq import TransactionStatus

from services.store.lock import StoreInUse
from services.store.port import Conflict, StoreBroken, StoreError, StoreFenced
from services.store.postgres.connections import is_from_server, passes, refusal
from services.store.units import Step, Unit

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
