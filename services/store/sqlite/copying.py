"""SQLite databases as source and target of a copy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Table

from services.clock import SystemClock
from services.store.all_tables import all_tables
from services.store.copying import Row, TableSql
from services.store.port import StoreError
from services.store.sqlite.lock import StoreLock
from services.store.sqlite.upgrade import new_file, sync, upgrade
from services.store.sqlite.writer import refusal


class SqliteCopy:
    """See CopyConnection."""

    holds_nul = True

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self.place = place
        self._connection = connection

    def count(self, table: Table) -> int:
        with self._errors(table):
            (count,) = self._connection.execute(TableSql.of(table, "sqlite").size).fetchone()
            return int(count)

    def rows(self, table: Table) -> Iterator[Row]:
        with self._errors(table):
            yield from self._connection.execute(TableSql.of(table, "sqlite").rows)

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        with self._errors(table):
            self._connection.executemany(TableSql.of(table, "sqlite").insert, rows)

    @contextmanager
    def _errors(self, table: Table) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise refusal(f"{self.place}: {table.name}", error) from error


@contextmanager
def copy_source(path: Path) -> Iterator[SqliteCopy]:
    """A snapshot of the existing database `path`. Raises StoreError."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        yield SqliteCopy(connection, str(path))


@contextmanager
def copy_target(path: Path) -> Iterator[SqliteCopy]:
    """A new database, which is written under another name and becomes `path` when the context ends without an
    exception. If killed, it leaves a file `….migrating`, which the next call replaces.

    Raises:
        StoreInUse: `path` is locked.
        StoreError: `path` or its log exists, or cannot be written.
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
        with closing(sqlite3.connect(partial, isolation_level=None)) as connection:
            # The file is discarded after a failure, and synchronised once at the end.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            yield SqliteCopy(connection, str(path))
            connection.execute("COMMIT")
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)
    except sqlite3.Error as error:
        raise refusal(f"writing {partial}", error) from error
    except OSError as error:
        raise StoreError(f"writing {partial}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
        lock.release()
