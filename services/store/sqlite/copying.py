"""SQLite databases as source and target of a copy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Select, Table, insert

from services.clock import SystemClock
from services.store.all_tables import all_tables
from services.store.copying import Row
from services.store.port import Statement, StoreError
from services.store.schema import binds
from services.store.sqlite.lock import StoreLock
from services.store.sqlite.upgrade import new_file, sync, upgrade
from services.store.sqlite.writer import refusal
from services.store.statements import compile_statement


class SqliteCopy:
    """See CopyConnection."""

    keeps_nul = True

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self.place = place
        self._connection = connection

    def select(self, query: Select[Any]) -> Iterator[Row]:
        return self._connection.execute(compile_statement(Statement("copy", query), "sqlite").sql)

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        statement = Statement("copy", insert(table).values(binds(table)))
        self._connection.executemany(compile_statement(statement, "sqlite").sql, rows)


@contextmanager
def copy_source(path: Path) -> Iterator[SqliteCopy]:
    """A snapshot of the existing database `path`. Raises StoreError."""
    with _transaction(path, path, "query_only = ON") as copy:
        yield copy


@contextmanager
def copy_target(path: Path) -> Iterator[SqliteCopy]:
    """A new database, which is written under another name and becomes `path` when the context ends without an
    exception. If killed, it leaves a file `….migrating`, which the next call replaces.

    Raises:
        StoreInUse: `path` is locked.
        StoreError: `path` or its log exists, or cannot be written.
        OSError: a file cannot be written.
    """
    partial = path.with_name(f"{path.name}.migrating")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = StoreLock.take(path)
    try:
        for file in (path, path.with_name(f"{path.name}-wal")):
            if file.exists():
                raise StoreError(f"{file} exists. Move it to another folder, or choose another `home`")
        new_file(partial)
        upgrade(partial, backups=path.parent, clock=SystemClock(), tables=all_tables())
        # The file is discarded after a failure, and synchronised once at the end.
        with _transaction(partial, path, "journal_mode = OFF", "synchronous = OFF") as copy:
            yield copy
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)
        lock.release()


@contextmanager
def _transaction(path: Path, place: Path, *pragmas: str) -> Iterator[SqliteCopy]:
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN")
            yield SqliteCopy(connection, str(place))
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise refusal(str(place), error) from error
