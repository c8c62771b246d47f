"""Schema changes in one transaction."""

from __future__ import annotations

import ast
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, MetaData, create_engine, event, text
from sqlalchemy.pool import NullPool

from services.store.port import StoreError

VERSIONS = Path(__file__).parent / "versions"
"""Folder of the migrations."""


@contextmanager
def transaction(path: Path) -> Iterator[Connection]:
    """Context manager for one transaction on the database `path`, including schema changes, rolled back on an
    exception; by default the driver commits before each of them."""
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path, isolation_level=None), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.begin() as connection:
        yield connection


class DatabaseTooNew(StoreError):
    """The database was written by a newer version of the program; nothing was changed."""


class Upgraded(NamedTuple):
    """Result of an upgrade: schema versions before and after, and the backup's path. For a new database `before` and
    `backup` are None."""

    before: str | None
    after: str
    backup: Path | None


class Revisions(NamedTuple):
    """Ids of all known migrations, and the latest one (None if there are none)."""

    known: frozenset[str]
    head: str | None


def read_revisions(versions: Path) -> Revisions:
    """The migrations in the folder `versions`, parsed without running them.

    Raises:
        StoreError: they are not a linear sequence.
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


def create(connection: Connection, tables: MetaData, head: str) -> None:
    """Create the tables in an empty database, with the version `head`. Raises SQLAlchemyError."""
    tables.create_all(connection)
    connection.execute(
        text(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
        )
    )
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": head})


def migrate(connection: Connection, versions: Path) -> None:
    """Apply the migrations in `versions` that the database lacks. Raises SQLAlchemyError if one fails."""
    from services.store.migrations.commands import migrate as apply  # imports alembic

    apply(connection, versions)


def _constants(file: Path) -> dict[str, str | None]:
    """The module's assignments `name = "text"` and `name = None` above its functions. The rest is not parsed, because
    every start reads these files."""
    found: dict[str, str | None] = {}
    above, _, _ = file.read_bytes().partition(b"\ndef ")
    for node in ast.parse(above, str(file)).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() | None as value)):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str() | None as value)):
                found[name] = value
    return found
