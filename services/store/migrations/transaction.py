"""The one transaction that a change of the schema is made in."""

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
"""The folder of the migrations."""


@contextmanager
def transaction(path: Path) -> Iterator[Connection]:
    """One transaction on the database `path`, schema changes included: left to itself, the driver would commit before
    each of them."""
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path, isolation_level=None), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.begin() as connection:
        yield connection


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


def create(connection: Connection, tables: MetaData, head: str) -> None:
    """Make an empty database of `tables` at once, at the version `head`. Raises SQLAlchemyError."""
    tables.create_all(connection)
    connection.execute(
        text(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
        )
    )
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": head})


def migrate(connection: Connection, versions: Path) -> None:
    """Apply the migrations in `versions` that the database lacks. Raises SQLAlchemyError."""
    from services.store.migrations.commands import migrate as apply  # imports alembic

    apply(connection, versions)


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
