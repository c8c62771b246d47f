"""Writer of SQLite: executes lists of units, with one transaction for each list."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import structlog

from services.store.port import BadUnit, Conflict, StoreBroken, StoreDamaged, StoreError, StoreFull
from services.store.sqlite.disk import PAGE_BYTES, Disk
from services.store.statements import Unit, give_all

# The disk is full, read-only or failed: the statement was rolled back and may succeed later.
_NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# At COMMIT these mean that the frame which makes the transaction valid, the last one, is not completely in the log.
_NOT_COMMITTED = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE})
# The second code: the log's index, a file in shared memory, could not grow.
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
_BUSY_MILLISECONDS = 5000
_BUSY_CHECKPOINT_MILLISECONDS = 250
_COMMITS_TO_CARE = 64


def connect_writer(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode whose commits survive a power failure. Creates the file. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    for pragma in (
        f"busy_timeout = {_BUSY_MILLISECONDS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def refusal(name: str, error: Exception) -> StoreError:
    """The StoreError for a driver's `error` in the statement `name`: StoreFull for a full or failed disk, StoreDamaged
    for a damaged file, else BadUnit."""
    code = primary_code(error)
    if code in _NO_ROOM:
        return StoreFull(f"{name}: {error}")
    if code in _DAMAGED:
        return StoreDamaged(f"{name}: the database file is damaged: {error}")
    return BadUnit(f"{name}: {error}")


def primary_code(error: Exception) -> int:
    """SQLite's primary result code; 0 for other errors."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


class GroupCommitter:
    """Executes groups of units on one connection, each in one transaction, and keeps a reserve on the disk. Used by one
    thread at a time."""

    def __init__(self, connection: sqlite3.Connection, disk: Disk) -> None:
        self._connection = connection
        self._disk = disk
        self._log_pages = 0
        self._can_make_room = True
        self._obstacle = ""
        """Why nothing is written until `make_room` succeeds; empty if nothing prevents it."""
        self._cursor = connection.cursor()
        self._log = structlog.get_logger("store")
        self.commits = 0
        self.broken: StoreBroken | None = None
        self.problem: str | None = None
        """Why the last transaction could not be written; None if it was."""
        self.needs_care = True
        """Whether the next group begins with `_care`; set in the loop by the store's `check`."""

    def run(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Set the outcome of every unit. If a unit fails, those before it are executed again without it, then those
        after it. Returns no units."""
        if self.needs_care or not self.commits % _COMMITS_TO_CARE:
            self._care()
        self._can_make_room = True
        todo = [units]
        while todo:
            part = todo.pop()
            if not part:
                continue
            if self._obstacle:
                # The remaining space is reserved for recovery.
                self._cannot_write(self._obstacle)
                give_all(part, StoreFull(str(self.problem)))
                continue
            failed = self._transaction(part)
            if failed is not None:
                todo += (part[failed + 1 :], part[:failed])
        return ()

    def finish(self) -> None:
        """Checkpoint and truncate the write-ahead log, for a faster start and a single file."""
        if self.broken is not None:
            return
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            # The log has everything; the next start reads it from there.
            self._log.warning("store_checkpoint_failed", error=str(error))

    def close(self) -> None:
        self._connection.close()

    def _care(self) -> None:
        """Adapt the log's size and the reserve to the free disk space, and retry `make_room` after a full disk. Errors
        are logged."""
        self.needs_care = False
        try:
            pages = self._disk.log_pages()
            if pages != self._log_pages:
                # The same pages are written repeatedly: more commits between checkpoints mean fewer copies.
                self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
                self._connection.execute(f"PRAGMA journal_size_limit = {pages * PAGE_BYTES}")
                if pages < self._log_pages // 2:
                    self._checkpoint()
                self._log_pages = pages
            if self._obstacle:
                self.make_room()
            elif self._disk.log_leaves_room():
                self._disk.keep_reserve()
            else:
                self._obstacle = self._checkpoint()
        except (OSError, sqlite3.Error) as error:
            self._log.warning("store_care_failed", error=str(error))

    def make_room(self) -> str:
        """Release the reserve, checkpoint and truncate the log, and allocate the reserve again. Returns the error;
        empty if it succeeded. Until then `run` rejects everything."""
        self.needs_care = True
        self._disk.release_reserve()
        self._obstacle = self._checkpoint()
        if not self._obstacle and not self._disk.keep_reserve():
            self._obstacle = "there is no room on the disk for its reserve"
        return self._obstacle

    def _checkpoint(self) -> str:
        """Checkpoint and truncate the log. Returns the error; empty if it succeeded."""
        self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_CHECKPOINT_MILLISECONDS}")
        try:
            (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            return f"its log cannot be emptied: {error}"
        else:
            return "its log cannot be emptied: another process reads the database for long" if busy else ""
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")

    def _transaction(self, units: Sequence[Unit]) -> int | None:
        """Position of the failed unit, with everything rolled back; None if every unit has its outcome."""
        if self.broken is not None:
            give_all(units, self.broken)
            return None
        done = 0
        try:
            self._begin()
            for unit in units:
                unit.outcome = self._execute(unit)
                done += 1
        except (Conflict, sqlite3.Error, ValueError, OverflowError) as error:
            # A lone surrogate raises ValueError, an integer over 64 bits OverflowError.
            self._undo()
            return self._transaction(units) if self._was_no_room(error) else self._refuse(units, done, error)
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            return self._commit_failed(units, error)
        self.commits += 1
        if self.problem is not None:
            self._log.info("store_writes_again")
            self.problem = None
        return None

    def _was_no_room(self, error: Exception) -> bool:
        """Whether `error` was caused by a full disk that has space again now."""
        if getattr(error, "sqlite_errorcode", 0) not in _FULL or not self._can_make_room:
            return False
        self._can_make_room = False
        return not self.make_room()

    def _begin(self) -> None:
        """Begin a transaction. Raises sqlite3.OperationalError except for a lock. Only here can another process hold
        the lock; the group waits for it without a limit."""
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if primary_code(error) != sqlite3.SQLITE_BUSY:
                    raise
                self._log.warning("store_waits_for_lock", hint="another process holds the write lock of the database")
            else:
                break
        if self.problem is not None:
            # Write even if the units do not: this shows whether the problem is gone.
            self._connection.execute("PRAGMA user_version = 0")

    def _execute(self, unit: Unit) -> list[int]:
        cursor = self._cursor
        execute, counts = cursor.execute, []
        for statement, values, expect in unit.steps:
            execute(statement.sql, values)
            if cursor.description is not None:
                # RETURNING has its row count, and allows COMMIT, only after its rows are fetched.
                cursor.fetchall()
            count = cursor.rowcount
            if count < 0:
                # The driver counts only statements that begin with INSERT, UPDATE, DELETE or REPLACE, not `WITH …
                # UPDATE`.
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
            give_all(units, outcome)
            return None
        if isinstance(outcome, StoreFull):
            self._cannot_write(str(error))
        unit.outcome = outcome
        return position

    def _commit_failed(self, units: Sequence[Unit], error: sqlite3.Error) -> int | None:
        if error.sqlite_errorcode in _NOT_COMMITTED:
            self._undo()
            if self._was_no_room(error):
                return self._transaction(units)
            self._cannot_write(str(error))
            give_all(units, StoreFull(f"commit: {error}"))
        else:
            self.broken = StoreBroken(f"commit: {error}; what is durable is known after a restart")
            give_all(units, self.broken)
        return None

    def _cannot_write(self, why: str) -> None:
        problem = self._disk.problem() or f"the database cannot be written: {why}"
        if self.problem is None:
            self._log.error("store_cannot_write", problem=problem)
        self.problem = problem
        self.needs_care = True
