"""What writes to SQLite: takes lists of units, and makes one transaction of each list."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import structlog

from services.store.port import BadUnit, Conflict, StoreBroken, StoreError, StoreFull
from services.store.units import Unit

# The disk has no room, is read-only or failed: the statement was undone, and may succeed later.
_NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def connect_writer(path: Path) -> sqlite3.Connection:
    """A connection whose commits survive a loss of power, in autocommit mode. Creates the file."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    for pragma in (
        "busy_timeout = 5000",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "journal_size_limit = 67108864",
        # The same pages are written again and again: the more commits lie between two copies of them, the fewer copies.
        "wal_autocheckpoint = 8000",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def refusal(name: str, error: Exception) -> StoreError:
    """What the store raises for an `error` of the driver in the statement `name`."""
    code = primary_code(error)
    if code in _NO_ROOM:
        return StoreFull(f"{name}: {error}")
    if code in _DAMAGED:
        return StoreBroken(f"{name}: the database file is damaged: {error}")
    return BadUnit(f"{name}: {error}")


def primary_code(error: Exception) -> int:
    """SQLite's result code without its details; 0 for an error that is not SQLite's own."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


class GroupCommitter:
    """Executes groups of units on one connection. Belongs to one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._log = structlog.get_logger("store")
        self.commits = 0
        """Transactions committed so far."""
        self.broken: StoreBroken | None = None
        """Why nothing is taken any more."""

    def run(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Set the outcome of every unit. A unit that fails is undone and leaves no trace in the others: those before it
        are done again without it, those after it are tried next. Nothing is ever left."""
        todo = [units]
        while todo:
            part = todo.pop()
            if not part:
                continue
            failed = self._transaction(part)
            if failed is not None:
                todo += (part[failed + 1 :], part[:failed])
        return ()

    def finish(self) -> None:
        """Empty the write-ahead log into the database, for a shorter start and a single file."""
        if self.broken is not None:
            return
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            # All is in the log already; the next start reads it from there.
            self._log.warning("store_checkpoint_failed", error=str(error))

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        self._connection.close()

    def _transaction(self, units: Sequence[Unit]) -> int | None:
        """The position of the unit that failed, all being undone; None when every unit has its outcome."""
        if self.broken is not None:
            self._give_all(units, self.broken)
            return None
        done = 0
        try:
            self._begin()
            for unit in units:
                unit.outcome = self._execute(unit)
                done += 1
        except (Conflict, sqlite3.Error, ValueError, OverflowError) as error:
            # A lone surrogate is a ValueError, an integer over 64 bits an OverflowError.
            self._undo()
            return self._refuse(units, done, error)
        try:
            self._connection.execute("COMMIT")
            self.commits += 1
        except sqlite3.Error as error:
            self._commit_failed(units, error)
        return None

    def _begin(self) -> None:
        """Only here can another process's lock be met. The whole group waits for it, however long it takes."""
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if primary_code(error) != sqlite3.SQLITE_BUSY:
                    raise
                self._log.warning("store_waits_for_lock", hint="another process holds the write lock of the database")
            else:
                return

    def _execute(self, unit: Unit) -> list[int]:
        cursor = self._cursor
        execute, counts = cursor.execute, []
        for statement, values, expect in unit.steps:
            execute(statement.sql, values)
            if cursor.description is not None:
                # The count of RETURNING is known, and COMMIT possible, only when its rows are fetched.
                cursor.fetchall()
            count = cursor.rowcount
            if count < 0:
                # The driver counts only what begins with INSERT, UPDATE, DELETE or REPLACE; `WITH … UPDATE` does not.
                (count,) = cursor.execute("SELECT changes()").fetchone()
            if expect is not None and count != expect:
                raise Conflict(f"{statement.name}: touched {count} rows, expected {expect}")
            counts.append(count)
        return counts

    def _undo(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _refuse(self, units: Sequence[Unit], position: int, error: Exception) -> int | None:
        unit = units[position]
        outcome = error if isinstance(error, StoreError) else refusal(unit.names, error)
        if isinstance(outcome, StoreBroken):
            self.broken = outcome
            self._give_all(units, outcome)
            return None
        unit.outcome = outcome
        return position

    def _commit_failed(self, units: Sequence[Unit], error: sqlite3.Error) -> None:
        if primary_code(error) == sqlite3.SQLITE_FULL:
            # The frame that would make the transaction valid had no room in the log: a crash cannot bring it back.
            self._undo()
            self._give_all(units, StoreFull(f"commit: {error}"))
        else:
            self.broken = StoreBroken(f"commit: {error}; what is durable is known after a restart")
            self._give_all(units, self.broken)

    @staticmethod
    def _give_all(units: Sequence[Unit], outcome: StoreError) -> None:
        for unit in units:
            unit.outcome = outcome
