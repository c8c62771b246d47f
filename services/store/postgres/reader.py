"""Reads from PostgreSQL, and database access while a daemon is running."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from services.clock import Clock
from services.retry import Retry, RetryDecision, RetryPolicy
from services.store.port import Row, Statement, StoreError
from services.store.postgres.connections import adapt, address_of, passes, place_of
from services.store.postgres.locks import EXCLUSIVE, HOLDERS
from services.store.reader import OperatorConnection, ReaderError

_Connection = psycopg.AsyncConnection[dict[str, Any]]
_MOST = 4
_POLICY = RetryPolicy(attempts=100, first_wait_seconds=0.2, longest_wait_seconds=2.0)


class PostgresReader:
    """Pool of at most four connections, opened on demand."""

    def __init__(self, connect: Callable[[], Awaitable[_Connection]], clock: Clock, *, patience_seconds: float) -> None:
        """`connect` opens a connection and may raise psycopg.Error. Reads are retried for `patience_seconds`."""
        self._connect = connect
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._retry = Retry(clock, _POLICY, random.uniform)
        self._free: list[_Connection] = []
        self._places = asyncio.Semaphore(_MOST)
        self._closed = False

    async def rows(self, sql: str, values: tuple[Any, ...]) -> list[Row]:
        """The rows of a query as dicts by column name, retried for `patience_seconds` while the database cannot be
        reached. Raises psycopg.Error, and errors of values that cannot be sent."""

        async def attempt() -> list[Row]:
            return await self._read(sql, values)

        async with self._places:
            deadline = self._clock.monotonic() + self._patience_seconds
            return await self._retry.run(attempt, on=psycopg.Error, judge=_judge, deadline=deadline)

    async def close(self) -> None:
        """Close the free connections; busy ones are closed after their query."""
        self._closed = True
        while self._free:
            await self._free.pop().close()

    async def _read(self, sql: str, values: tuple[Any, ...]) -> list[Row]:
        connection = self._free.pop() if self._free else await self._connect()
        is_whole = False
        try:
            cursor = await connection.execute(sql, values)
            rows: list[Row] = [*await cursor.fetchall()]
            is_whole = True
        except (psycopg.Error, ValueError, OverflowError, TypeError):
            is_whole = not (connection.closed or connection.broken)
            raise
        finally:
            if is_whole and not self._closed:
                self._free.append(connection)
            else:
                await connection.close()
        return rows


def _judge(error: psycopg.Error) -> RetryDecision:
    """Retry temporary errors and, as an OperationalError without a code means, connection failures."""
    return RetryDecision(passes(error) or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None))


def operator_connection(url: str, *, writes: bool) -> OperatorConnection:
    """Connection of operator commands to the database at `url`, read-only unless `writes`. Raises ReaderError."""

    def connect() -> psycopg.Connection[Any]:
        try:
            connection = psycopg.connect(address_of(url))
        except StoreError as error:
            raise ReaderError(str(error)) from None
        except psycopg.Error as error:
            raise ReaderError(f"{place_of(url)} cannot be opened: {error}") from None
        adapt(connection.adapters)
        connection.read_only = not writes
        return connection

    return OperatorConnection(create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool))


class DatabaseState(NamedTuple):
    """State of a database as reported by its server."""

    place: str
    """Database and host, without user and password."""
    server_version: str
    schema_version: str | None
    """None if the program's tables do not exist."""
    holders: Sequence[str]
    """Application names of the processes that have the database."""


_STATE = Statement(
    "database.state",
    text("SELECT current_setting('server_version') AS version, to_regclass('alembic_version') IS NOT NULL AS is_ours"),
)
_SCHEMA = Statement("database.schema", text("SELECT version_num FROM alembic_version"))


def state_of(url: str) -> DatabaseState:
    """State of the database at `url`. Raises ReaderError if it cannot be read."""
    with operator_connection(url, writes=False) as database:
        (server,) = database.rows(_STATE.query())
        schemas = database.rows(_SCHEMA.query()) if server["is_ours"] else []
        holders = [row["holder"] for row in database.rows(HOLDERS.query(name=EXCLUSIVE.name))]
    schema = next((row["version_num"] for row in schemas), None)
    return DatabaseState(place_of(url), server["version"], schema, holders)
