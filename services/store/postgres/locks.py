"""Advisory locks of the writer's session. The server frees them when the session ends."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
from sqlalchemy import text

from services.store.port import Statement
from services.store.statements import compile_statement

_CLASS = 0x526F6C6C  # "Roll": distinguishes these locks from other programs' locks in the same database
_KEY = "hashtext(coalesce(current_schema(), '') || '/' || :name)"
_GRANTED = (
    "FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid "
    "JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database() "
    f"WHERE l.locktype = 'advisory' AND l.granted AND l.classid = CAST({_CLASS} AS oid) AND l.objsubid = 2"
)
TAKE = Statement("locks.take", text(f"SELECT 1 WHERE pg_try_advisory_lock({_CLASS}, {_KEY})"))
"""Takes the lock `name` and touches one row; none if another session holds it."""
_SHARE = Statement("locks.share", text(f"SELECT 1 WHERE pg_try_advisory_lock_shared({_CLASS}, {_KEY})"))
HOLDERS = Statement(
    "locks.holders",
    text(
        f"SELECT DISTINCT a.application_name AS holder {_GRANTED} "
        f"AND l.objid = CAST(CAST({_KEY} AS bigint) & 4294967295 AS oid) ORDER BY 1"
    ),
)
"""The `holder`s of the lock `name`: application names of their sessions."""
END_SESSIONS = Statement(
    "locks.end_sessions",
    text(f"SELECT pg_terminate_backend(a.pid) AS ended {_GRANTED} AND a.application_name = :holder"),
)
"""Terminates the sessions of `holder` that hold a lock; each row says whether it has `ended`."""


class Claim(NamedTuple):
    """A lock, named within the schema."""

    name: str
    shared: bool = False
    """Whether other processes that share it may hold it too."""


EXCLUSIVE = Claim("store")
"""The whole store, for a single process."""
SHARED = Claim("store", shared=True)
"""The whole store, for processes that divide the work. Excludes a process with EXCLUSIVE."""


class LockHeld(Exception):
    """Other sessions hold the lock `name`: the application names `holders`, empty if they have just ended."""

    def __init__(self, name: str, holders: list[str]) -> None:
        super().__init__(name, holders)
        self.name = name
        self.holders = holders

    def __str__(self) -> str:
        return f"the lock {self.name} is held by {', '.join(self.holders) or 'another process'}"


def take(connection: psycopg.Connection[Any], claim: Claim) -> None:
    """Take the lock for the session of `connection`. Raises LockHeld and psycopg.Error."""
    statement = compile_statement(_SHARE if claim.shared else TAKE, "postgresql")
    if connection.execute(statement.sql, statement.bind({"name": claim.name})).rowcount == 1:
        return
    holders = compile_statement(HOLDERS, "postgresql")
    found = connection.execute(holders.sql, holders.bind({"name": claim.name})).fetchall()
    raise LockHeld(claim.name, [holder for (holder,) in found])
