"""The store on SQLite: a file on a disk of this machine."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from services.clock import Clock
from services.private_files import make_private
from services.store.lock import StoreLock
from services.store.port import Query, Row, Statement, StoreBroken, StoreError, Write
from services.store.sqlite_writer import GroupCommitter, connect_writer, refusal
from services.store.statements import StatementCompiler
from services.store.unit_queue import UnitQueue


class SqliteStore:
    """A Store in one file, for one process. Made by `open`; belongs to the loop it was opened in."""

    def __init__(
        self,
        committer: GroupCommitter,
        reader: sqlite3.Connection,
        lock: StoreLock,
        clock: Clock,
        on_broken: Callable[[StoreBroken], None] | None,
    ) -> None:
        self._reader = reader
        compiler = StatementCompiler("sqlite")
        self._units = UnitQueue(committer, compiler, clock, refusal=refusal, on_broken=on_broken, release=lock.release)
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
        """The store in the file `path`, which is created where it is missing.

        `prepare` brings the schema up to date; it is called with `path` when this process alone has the database.
        `on_broken` is called in the loop, once, when the store broke and the process has to end.
        `connect` opens the writer's connection.

        Raises:
            StoreInUse: another process has the database.
            StoreBroken: the file is no SQLite database, or is damaged.
            StoreFull: it cannot be written.
            StoreError: its folder is missing or no place for a database.
        """
        lock = StoreLock.take(path)
        try:
            writer, reader = _connect(path, prepare, connect)
        except BaseException:
            lock.release()
            raise
        return cls(GroupCommitter(writer), reader, lock, clock, on_broken)

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

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[list[int]]:
        """All of `writes` or nothing, durable when it returns; the row counts. See Store."""
        return self._units.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        """The same, lazily and with nobody waiting. See Store."""
        self._units.post(writes)

    async def read(self, query: Query) -> list[Row]:
        """The rows of `query` as committed. It runs in the loop, where a query by index takes some 20 µs.

        Raises:
            BadUnit: the database refused the query.
            StoreClosed: the store was closed.
        """
        statement, values = query
        compiled = self._units.read(statement)
        try:
            # All rows at once: an open read keeps the write-ahead log from being emptied.
            cursor = self._reader.execute(compiled.sql, compiled.bind(values))
            rows = cursor.fetchall()
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise refusal(statement.name, error) from error
        columns = self._columns.get(statement)
        if columns is None:
            columns = self._columns[statement] = tuple(column[0] for column in cursor.description)
        return [dict(zip(columns, row, strict=False)) for row in rows]

    async def close(self) -> None:
        """Refuse new units, finish the rest, checkpoint and close; the file is free when it returns."""
        if not self._units.is_closed:
            # Before the writer closes: the last connection empties the write-ahead log, and this one may not write.
            self._reader.close()
            self._units.close()
        await self._units.ended()


def _connect(
    path: Path, prepare: Callable[[Path], object] | None, connect: Callable[[Path], sqlite3.Connection]
) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """The writer's and the reader's connection."""
    path.touch(mode=0o600)
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        with suppress(PermissionError):  # it belongs to somebody else who lets us write
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
    # It runs in the loop, so it must not wait for a lock; with a write-ahead log it does not need to.
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0.1, cached_statements=512)
