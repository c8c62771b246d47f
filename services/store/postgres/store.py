"""The store on PostgreSQL: a server that other machines may reach as well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import psycopg
import structlog

from services.clock import Clock
from services.retry import Retry, RetryPolicy, Verdict
from services.store.port import Query, Row, StoreBroken, StoreError, StoreHealth, Write
from services.store.postgres.connections import (
    address_of,
    connect_reader,
    connect_writer,
    place_of,
    refusal,
    take_lock,
)
from services.store.postgres.reader import PostgresReader
from services.store.postgres.writer import PostgresCommitter
from services.store.statements import StatementCompiler
from services.store.unit_queue import UnitQueue
from services.store.units import Step

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

    def judge(error: psycopg.OperationalError) -> Verdict:
        log.warning("store_waits_for_database", problem=str(error))
        return Verdict(True)

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
