"""Reads from PostgreSQL, on connections of their own: a long one holds up neither the writer nor the loop, and the
others only when there are several."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg

from services.clock import Clock
from services.retry import Retry, RetryPolicy, Verdict
from services.store.port import Row
from services.store.postgres.connections import passes

_Connection = psycopg.AsyncConnection[dict[str, Any]]
_MOST = 4
_POLICY = RetryPolicy(attempts=100, first_wait_seconds=0.2, longest_wait_seconds=2.0)


class PostgresReader:
    """Up to four connections, made when they are wanted."""

    def __init__(self, connect: Callable[[], Awaitable[_Connection]], clock: Clock, *, patience_seconds: float) -> None:
        """`connect` may raise psycopg.Error."""
        self._connect = connect
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._retry = Retry(clock, _POLICY, random.uniform)
        self._free: list[_Connection] = []
        self._places = asyncio.Semaphore(_MOST)
        self._closed = False

    async def rows(self, sql: str, values: tuple[Any, ...]) -> list[Row]:
        """The rows of a query; asked again while the database cannot be reached, for as long as the patience lasts.
        Raises psycopg.Error, and errors of values that cannot be sent."""

        async def attempt() -> list[Row]:
            return await self._read(sql, values)

        async with self._places:
            deadline = self._clock.monotonic() + self._patience_seconds
            return await self._retry.run(attempt, on=psycopg.Error, judge=_judge, deadline=deadline)

    async def close(self) -> None:
        """Close what is free; what is being read is closed when it has been read."""
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


def _judge(error: psycopg.Error) -> Verdict:
    """Without a code the connection itself failed."""
    return Verdict(passes(error) or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None))
