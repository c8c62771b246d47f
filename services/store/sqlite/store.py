"""The store on SQLite: one file on a local disk."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import structlog
from sqlalchemy import create_engine, event
from sqlalchemy.pool import NullPool

from services.clock import Clock
from services.storage import make_private
from services.store.port import (
    Query,
    Row,
    Statement,
    StoreBroken,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreHealth,
)
from services.store.reader import OperatorConnection, ReaderError
from services.store.sqlite.disk import Disk
from services.store.sqlite.integrity import IntegrityCheck, refuse_damaged
from services.store.sqlite.lock import StoreLock
from services.store.sqlite.writer import GroupCommitter, connect_writer, refusal
from services.store.unit_queue import UnitQueue
from services.threads import Threads

_CHECK_SECONDS = 24 * 3600.0


class SqliteStore:
    """Store in one file, for one process. Created by `open`; bound to the loop that opened it."""

    def __init__(
        self,
        path: Path,
        committer: GroupCommitter,
        reader: sqlite3.Connection,
        disk: Disk,
        lock: StoreLock,
        clock: Clock,
        on_broken: Callable[[StoreBroken], None] | None,
        *,
        is_checked: bool,
    ) -> None:
        self._path = path
        self._committer = committer
        self._reader = reader
        self._disk = disk
        self._clock = clock
        self._checked_ms = clock.now_ms() if is_checked else None
        self._check_at = clock.monotonic() + (_CHECK_SECONDS if is_checked else 0.0)
        self._integrity: IntegrityCheck | None = None
        self._checking: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("store")
        self.units = UnitQueue(committer, "sqlite", clock, refusal=refusal, on_broken=on_broken, release=lock.release)
        self.commit, self.post = self.units.commit, self.units.post
        self._columns: dict[Statement, tuple[str, ...]] = {}

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        prepare: Callable[[Path], object] | None = None,
        on_broken: Callable[[StoreBroken], None] | None = None,
        connect: Callable[[Path], sqlite3.Connection] = connect_writer,
    ) -> SqliteStore:
        """Open the store in the file `path`, which is created if missing.

        `prepare` upgrades the schema; it is called with `path` while this process has the lock. `on_broken` is called
        once, in the loop, when the store breaks and the process has to end. `connect` opens the writer's connection.
        The file is checked for damage first, within two seconds; a longer check is left to the first `check`.

        Raises:
            StoreInUse: another process has the database.
            StoreDamaged: the file is not a SQLite database, or is damaged.
            StoreFull: it cannot be written.
            StoreError: its folder is missing or unsuitable.
        """
        lock, disk = StoreLock.take(path), Disk(path)
        is_full = disk.problem() is not None
        try:
            if is_full:
                disk.release_reserve()
            is_checked = refuse_damaged(path)
            writer, reader = _connect(path, prepare, connect)
        except BaseException:
            lock.release()
            raise
        committer = GroupCommitter(writer, disk)
        if is_full and (obstacle := committer.make_room()):
            reader.close()
            committer.close()
            lock.release()
            raise StoreFull(f"{path}: {disk.problem() or obstacle}")
        return cls(path, committer, reader, disk, lock, clock, on_broken, is_checked=is_checked)

    @property
    def broken(self) -> StoreBroken | None:
        """Why the process has to end; None if all is well."""
        return self.units.broken

    async def read(self, query: Query) -> list[Row]:
        """The committed rows of `query`. Runs in the loop, where an indexed query takes some 20 µs.

        Raises:
            BadUnit: the database rejected the query.
            StoreDamaged: the file is damaged; the store is broken from now on.
            StoreClosed: the store was closed.
        """
        statement, values = query
        compiled = self.units.read(statement)
        try:
            # Fetch all rows at once: an open read prevents checkpoints.
            cursor = self._reader.execute(compiled.sql, compiled.bind(values))
            rows = cursor.fetchall()
        except (sqlite3.Error, ValueError, OverflowError) as error:
            problem = refusal(statement.name, error)
            if isinstance(problem, StoreBroken):
                self.units.break_down(problem)
            raise problem from error
        columns = self._columns.get(statement)
        if columns is None:
            columns = self._columns[statement] = tuple(column[0] for column in cursor.description)
        return [dict(zip(columns, row, strict=False)) for row in rows]

    def health(self) -> StoreHealth:
        return StoreHealth(self.units.problem or self._committer.problem or self._disk.problem(), self._checked_ms)

    async def check(self) -> None:
        """Do nothing if the store is broken or closed; else retry failed steps, adapt to the free disk space, and check
        for damage once a day. See Store."""
        if self.units.broken is not None or self.units.is_closed:
            return
        self._committer.needs_care = True
        with suppress(StoreError):
            await self.commit([])
        if self._checking is None and self._clock.monotonic() >= self._check_at:
            self._check_at = self._clock.monotonic() + _CHECK_SECONDS
            self._checking = asyncio.create_task(self._look_for_damage(), name="store-integrity")

    async def _look_for_damage(self) -> None:
        """Run the full integrity check in a thread; a fault breaks the store, a success is recorded for `health`."""
        self._integrity = IntegrityCheck(self._path)
        began = self._clock.monotonic()
        try:
            fault = await Threads().run(self._integrity.fault, full=True)
        except TimeoutError:
            return
        except StoreError as error:
            self._log.warning("store_not_checked", error=str(error))
            return
        finally:
            self._integrity = self._checking = None
        if fault is not None:
            self.units.break_down(StoreDamaged(f"{self._path} is damaged: {fault}"))
            return
        self._checked_ms = self._clock.now_ms()
        self._log.info("store_checked", seconds=round(self._clock.monotonic() - began, 1))

    async def close(self) -> None:
        """Reject new units, finish the queued ones, checkpoint and close; the file is released when it returns."""
        if self._integrity is not None:
            self._integrity.stop()
        if self._checking is not None:
            await asyncio.wait([self._checking])
        if not self.units.is_closed:
            # Before the writer closes: the last connection checkpoints the log, and the reader may not write. A damaged
            # file is left as it is.
            if not isinstance(self.units.broken, StoreDamaged):
                self._reader.close()
            self.units.close()
        await self.units.ended()
        self._reader.close()


def _connect(
    path: Path, prepare: Callable[[Path], object] | None, connect: Callable[[Path], sqlite3.Connection]
) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Make the file private, run `prepare`, and open the connections of the writer and the reader. Raises StoreError,
    also if the file system does not support a write-ahead log."""
    path.touch(mode=0o600)
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        with suppress(PermissionError):  # the file has another owner, and is writable nevertheless
            make_private(file)
    if prepare is not None:
        prepare(path)
    with ExitStack() as opened:
        try:
            writer = opened.enter_context(closing(connect(path)))
            reader = opened.enter_context(closing(_connect_reader(path)))
            (journal_mode,) = writer.execute("PRAGMA journal_mode").fetchone()
            reader.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except sqlite3.Error as error:
            raise refusal(f"opening {path}", error) from error
        if journal_mode != "wal":
            raise StoreError(f"{path} cannot have a write-ahead log; put it on a disk of this machine")
        opened.pop_all()
    return writer, reader


def _connect_reader(path: Path) -> sqlite3.Connection:
    # Reads run in the loop, so they must not wait for a lock; with a write-ahead log they need none.
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0.1, cached_statements=512)


_WAIT_SECONDS = 10.0


def checkpoint(path: Path) -> None:
    """Copy the write-ahead log of the database `path` into it, as far as possible without waiting. Raises
    sqlite3.Error."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def operator_connection(path: Path, *, writes: bool) -> OperatorConnection:
    """Connection of operator commands to the existing database `path`, read-only unless `writes`. Raises
    ReaderError."""
    if not path.exists():
        raise ReaderError(f"there is no database {path}; start the daemon once, or name its settings with --config")
    uri = f"{path.resolve().as_uri()}?mode={'rw' if writes else 'ro'}"

    def connect() -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
            if writes:
                connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error as error:
            raise ReaderError(f"{path} cannot be opened: {error}") from None
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    if writes:
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return OperatorConnection(engine)
