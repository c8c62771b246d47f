"""Brings a database to the schema of this version of the program, before anything else uses it.

Alembic takes a second to import, so it is imported only when there is something to do.
"""

from __future__ import annotations

import ast
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, MetaData, text
from sqlalchemy.exc import SQLAlchemyError

from services.clock import Clock
from services.store.backups import back_up
from services.store.migrations.transaction import VERSIONS, transaction
from services.store.port import StoreError
from services.store.sqlite_writer import refusal


class DatabaseTooNew(StoreError):
    """The database was written by a newer version of the program; nothing was changed."""


class Upgraded(NamedTuple):
    """What an upgrade did. `before` is None for a new database, and so is `backup`."""

    before: str | None
    after: str
    backup: Path | None


class Revisions(NamedTuple):
    """The migrations that the code has: all their ids, and the last one (None when there are none)."""

    known: frozenset[str]
    head: str | None


def upgrade(
    path: Path,
    *,
    backups: Path,
    clock: Clock,
    keep: int = 5,
    tables: MetaData | None = None,
    versions: Path = VERSIONS,
) -> Upgraded | None:
    """Apply the migrations in `versions` that the database `path` lacks, all in one transaction, after a copy of it was
    put into `backups` (of which the newest `keep` stay). A missing or empty file becomes a new database: made of
    `tables` at once where they are given, else by all migrations.

    Returns what was done; None when the database was up to date. Killed at any point, it leaves the old schema or the
    new one, and can be run again. Call it when this process alone has the database.

    Raises:
        DatabaseTooNew: it has a version that the code does not know.
        StoreError: a migration failed, or the file is damaged, full or no database of ours; it is as it was.
    """
    revisions = read_revisions(versions)
    version, empty = _version_of(path)
    if version == revisions.head and (version is not None or empty):
        return None
    if version is not None and version not in revisions.known:
        raise DatabaseTooNew(
            f"{path} has schema version {version}, which this version of the program does not know. "
            f"Start the newer version that wrote it, or put a copy from {backups} in its place"
        )
    if version is None and not empty:
        raise StoreError(f"{path} has tables but no schema version: it is no database of this program")
    head = revisions.head
    if head is None:
        return None
    backup = None if version is None else back_up(path, backups, label=version, clock=clock, keep=keep)
    _apply(path, head, tables if version is None else None, versions, backup)
    return Upgraded(version, head, backup)


def read_revisions(versions: Path) -> Revisions:
    """The migrations in the folder `versions`, read from their source without running it.

    Raises:
        StoreError: they do not form one line.
    """
    parents: dict[str, str | None] = {}
    for file in sorted(versions.glob("*.py")):
        if file.name != "__init__.py":
            names = _constants(file)
            revision = names.get("revision")
            if revision is None:
                raise StoreError(f"{file} names no revision")
            parents[revision] = names.get("down_revision")
    heads = set(parents) - set(parents.values())
    if parents and len(heads) != 1:
        raise StoreError(
            f"{versions} has {len(heads)} last revisions ({', '.join(sorted(heads))}); they must form one line"
        )
    return Revisions(frozenset(parents), heads.pop() if heads else None)


def _version_of(path: Path) -> tuple[str | None, bool]:
    """The schema version of the database, and whether it is empty."""
    if not path.exists():
        return None, True
    try:
        with closing(sqlite3.connect(path)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            if "alembic_version" not in tables:
                return None, not tables
            row = database.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise refusal(f"opening {path}", error) from error
    return (row[0] if row else None), False


def _apply(path: Path, head: str, tables: MetaData | None, versions: Path, backup: Path | None) -> None:
    try:
        with transaction(path) as connection:
            if tables is not None:
                _create(connection, tables, head)
            else:
                _migrate(connection, versions)
    except SQLAlchemyError as error:
        kept = f"; a copy is {backup}" if backup else ""
        raise StoreError(f"the upgrade of {path} to {head} failed, and was undone{kept}: {error}") from error


def _create(connection: Connection, tables: MetaData, head: str) -> None:
    tables.create_all(connection)
    connection.execute(
        text(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
        )
    )
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": head})


def _migrate(connection: Connection, versions: Path) -> None:
    from services.store.migrations.commands import migrate  # imports alembic

    migrate(connection, versions)


def _constants(file: Path) -> dict[str, str | None]:
    """The module's own `name = "text"` and `name = None`, which stand above its functions. Every start reads them, so
    the rest is not."""
    found: dict[str, str | None] = {}
    above, _, _ = file.read_bytes().partition(b"\ndef ")
    for node in ast.parse(above, str(file)).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() | None as value)):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str() | None as value)):
                found[name] = value
    return found
