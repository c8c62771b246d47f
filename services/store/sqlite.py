"""The store on SQLite: units wait in the loop and go to one writer thread, whole groups at a time.

A commit costs a sync of the disk and two thread switches, whatever is in it. So all units that came while the thread
was busy become one transaction: there is no window to wait for, and the busier the daemon, the less a unit costs.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import structlog

from services.clock import Clock
from services.store.lock import StoreLock
from services.store.port import BadUnit, Query, Row, Statement, StoreBroken, StoreClosed, StoreError, Write
from services.store.sqlite_writer import GroupCommitter, Step, Unit, WriterThread, connect_writer, refusal
from services.store.starvation import Nudge
from services.store.statements import CompiledStatement, StatementCompiler

_MAX_GROUP = 512
_POST_SECONDS = 0.05


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
        self._loop = asyncio.get_running_loop()
        self._committer = committer
        self._reader = reader
        self._clock = clock
        self._on_broken = on_broken
        self._thread = WriterThread(committer, lock, self._loop, self._group_done, self._thread_ended)
        self._nudge = Nudge(self._loop)
        self._compiler = StatementCompiler("sqlite")
        self._known_writes: dict[Statement, CompiledStatement] = {}
        self._columns: dict[Statement, tuple[str, ...]] = {}
        self._log = structlog.get_logger("store")
        self._waiting: list[Unit] = []
        self._in_flight: Sequence[Unit] = ()
        self._urgent = False
        self._flush_due = False
        self._post_timer: asyncio.Task[None] | None = None
        self._refusal: StoreError | None = None
        self._broken: StoreBroken | None = None
        self._ended = asyncio.Event()
        self._post_errors = 0
        self._thread.start()

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
        return self._committer.commits

    @property
    def post_errors(self) -> int:
        """Posted units that failed so far."""
        return self._post_errors

    @property
    def broken(self) -> StoreBroken | None:
        """Why the process has to end; None while all is well."""
        return self._broken

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[list[int]]:
        """All of `writes` or nothing, durable when it returns; the row counts. See Store."""
        waiter = self._loop.create_future()
        try:
            unit = Unit(self._steps(writes), waiter)
        except StoreError as error:
            waiter.set_exception(error)
            return waiter
        self._waiting.append(unit)
        self._flush_soon()
        return waiter

    def post(self, writes: Sequence[Write]) -> None:
        """The same, lazily and with nobody waiting. See Store."""
        try:
            unit = Unit(self._steps(writes), None)
        except StoreError as error:
            self._post_failed([write.statement.name for write in writes], error)
            return
        self._waiting.append(unit)
        if self._post_timer is None:
            self._post_timer = self._loop.create_task(self._flush_posts(), name="store-posts")

    async def read(self, query: Query) -> list[Row]:
        """The rows of `query` as committed. It runs in the loop, where a query by index takes some 20 µs.

        Raises:
            BadUnit: the database refused the query.
            StoreClosed: the store was closed.
        """
        if isinstance(self._refusal, StoreClosed):
            raise _again(self._refusal)
        statement, values = query
        compiled = self._compiler.compiled(statement)
        if not compiled.is_select:
            raise BadUnit(f"{statement.name}: a read cannot write; commit it")
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
        if not isinstance(self._refusal, StoreClosed):
            self._refusal = StoreClosed("the store was closed")
            self._stop_post_timer()
            self._reader.close()
            self._urgent = True
            self._flush()
        await self._ended.wait()

    def _steps(self, writes: Sequence[Write]) -> list[Step]:
        if self._refusal is not None:
            raise _again(self._refusal)
        known, compile_first = self._known_writes, self._write
        steps = []
        for statement, values, expect in writes:
            compiled = known.get(statement) or compile_first(statement)
            try:
                steps.append(Step(statement.name, compiled.sql, compiled.bind(values), expect))
            except ValueError as error:
                raise refusal(statement.name, error) from error
        return steps

    def _write(self, statement: Statement) -> CompiledStatement:
        """The statement compiled, from now on known as one that writes. Raises BadUnit."""
        compiled = self._compiler.compiled(statement)
        if compiled.is_select:
            raise BadUnit(f"{statement.name}: a unit cannot read; make the condition part of a write")
        self._known_writes[statement] = compiled
        return compiled

    def _flush_soon(self) -> None:
        """At the end of this tick of the loop, so that units of other tasks that are ready now share the commit."""
        self._urgent = True
        if not self._flush_due and not self._in_flight:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    async def _flush_posts(self) -> None:
        await self._clock.sleep(_POST_SECONDS)
        self._post_timer = None
        if self._waiting:
            self._flush_soon()

    def _flush(self) -> None:
        self._flush_due = False
        if self._in_flight:
            return
        if not self._waiting:
            self._urgent = False
            if isinstance(self._refusal, StoreClosed):
                self._thread.end()
            return
        self._in_flight = self._waiting[:_MAX_GROUP]
        del self._waiting[:_MAX_GROUP]
        self._urgent = bool(self._waiting)
        self._thread.run(self._in_flight)
        self._nudge.work_is_out()

    def _group_done(self) -> None:
        self._nudge.work_is_back()
        units, self._in_flight = self._in_flight, ()
        for unit in units:
            self._answer(unit)
        if self._committer.broken is not None:
            self._break(self._committer.broken)
        if self._urgent or isinstance(self._refusal, StoreClosed):
            self._flush_soon()

    def _answer(self, unit: Unit) -> None:
        waiter, outcome = unit.waiter, unit.outcome
        if waiter is None:
            if isinstance(outcome, StoreError):
                self._post_failed([step.name for step in unit.steps], outcome)
        elif waiter.done():
            return  # cancelled: the unit was done all the same
        elif isinstance(outcome, list):
            waiter.set_result(outcome)
        else:
            waiter.set_exception(_again(outcome))

    def _break(self, error: StoreBroken) -> None:
        """Nothing is taken any more, and what waited is told so."""
        if self._broken is not None:
            return
        self._broken = error
        self._refusal = self._refusal or error
        units, self._waiting = self._waiting, []
        for unit in units:
            unit.outcome = error
            self._answer(unit)
        self._log.error("store_broken", error=str(error))
        if self._on_broken is not None:
            self._loop.call_soon(self._on_broken, error)

    def _thread_ended(self) -> None:
        """After `close`, or because of an error that nobody foresaw: then what was in flight is unknown."""
        self._nudge.work_is_back()
        if not isinstance(self._refusal, StoreClosed) or self._in_flight or self._waiting:
            self._waiting[:0], self._in_flight = self._in_flight, ()
            self._break(StoreBroken("the writer ended; what is durable is known after a restart"))
        self._ended.set()

    def _post_failed(self, statements: Sequence[str], error: StoreError) -> None:
        self._post_errors += 1
        self._log.error("store_post_failed", statements=list(statements), kind=type(error).__name__, error=str(error))

    def _stop_post_timer(self) -> None:
        if self._post_timer is not None:
            self._post_timer.cancel()
            self._post_timer = None


def _connect(
    path: Path, prepare: Callable[[Path], object] | None, connect: Callable[[Path], sqlite3.Connection]
) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """The writer's and the reader's connection."""
    path.touch(mode=0o600)
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


def _again(error: StoreError) -> StoreError:
    """The same error for another waiter: raised twice, one object would collect the frames of both."""
    return type(error)(*error.args)
