"""Upgrade of a PostgreSQL database to this version's schema, before anything else uses it.

It makes no backup: that is left to the server's operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, MetaData, create_engine
from sqlalchemy.dialects.postgresql.base import PGTypeCompiler
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from services.store.migrations.transaction import (
    VERSIONS,
    DatabaseTooNew,
    Revisions,
    Upgraded,
    create,
    migrate,
    read_revisions,
)
from services.store.port import StoreError
from services.store.postgres.connections import address_of, place_of

_LOCK = 0x526F6C6C_55706772  # "RollUpgr"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
_VERSION = "SELECT version_num FROM alembic_version"


def upgrade(url: str, *, tables: MetaData | None = None, versions: Path = VERSIONS) -> Upgraded | None:
    """Apply the migrations in `versions` that the database at `url` lacks, in one transaction. An empty database is
    created from `tables` if given, else by all migrations. Waits for a concurrent upgrade.

    Returns what was done; None if the database was up to date.

    Raises:
        DatabaseTooNew: its version is unknown to this code.
        StoreError: nothing was changed; a migration failed, it is not this program's, or it cannot be reached.
    """
    revisions, address = read_revisions(versions), address_of(url)
    try:
        with psycopg.connect(address, autocommit=True) as looking:
            if _to_do(_names(looking), looking, revisions, url) is None:
                return None
        with _transaction(address) as (connection, driver):
            # Check again now that the lock is held.
            to_do = _to_do(_names(driver), driver, revisions, url)
            if to_do is None:
                return None
            if to_do.before is None and tables is not None:
                create(connection, tables, to_do.after)
            else:
                migrate(connection, versions)
    except (SQLAlchemyError, psycopg.Error) as error:
        raise StoreError(
            f"the upgrade of {place_of(url)} to {revisions.head} failed, and was undone: {error}"
        ) from error
    return to_do


def _names(connection: psycopg.Connection[Any]) -> set[str]:
    return {name for (name,) in connection.execute(_TABLES).fetchall()}


def _to_do(names: set[str], connection: psycopg.Connection[Any], revisions: Revisions, url: str) -> Upgraded | None:
    """The necessary upgrade (no backup); None if the schema is up to date. Raises DatabaseTooNew for an unknown
    version, and StoreError for tables without a version."""
    row = connection.execute(_VERSION).fetchone() if "alembic_version" in names else None
    version: str | None = row[0] if row else None
    if version is None and names - {"alembic_version"}:
        raise StoreError(
            f"{place_of(url)} has tables but no schema version: it is no database of this program. Give it one of its "
            "own, or a schema of its own (?options=-csearch_path%3Drollcall)"
        )
    if version is not None and version not in revisions.known:
        raise DatabaseTooNew(
            f"{place_of(url)} has schema version {version}, which this version of the program does not know. "
            "Start the newer version that wrote it, or restore a copy from before"
        )
    if revisions.head is None or version == revisions.head:
        return None
    return Upgraded(version, revisions.head, None)


@contextmanager
def _transaction(address: str) -> Iterator[tuple[Connection, psycopg.Connection[Any]]]:
    """Context manager for one transaction under the upgrade lock, for which it waits, including schema changes, as a
    SQLAlchemy and a driver connection."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(address), poolclass=NullPool)
    engine.dialect.type_compiler_instance = _ByCodePoint(engine.dialect)
    with engine.begin() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        driver.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        yield connection, driver


class _ByCodePoint(PGTypeCompiler):
    """Collates text columns by code point, as SQLite does, whatever the database's locale; key ranges and the order of
    names depend on it."""

    def visit_TEXT(self, type_: Any, **options: Any) -> str:  # noqa: N802  # the name is SQLAlchemy's
        return 'TEXT COLLATE "C"'
