"""Brings a database to the schema of this version of the program, before anything else uses it.

Alembic takes a second to import, so it is imported only when there is something to do.
"""

from __future__ import annotations

import ast
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, MetaData, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from services.clock import Clock
from services.store.backups import back_up
from services.store.port import StoreError
from services.store.sqlite_writer import refusal

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = Path(__file__).parent / "migrations"
VERSIONS = _MIGRATIONS / "versions"


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
    backup = None if empty else back_up(path, backups, label=version or "", clock=clock, keep=keep)
    _apply(path, head, tables if empty else None, versions, backup)
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
            parents[str(names.get("revision"))] = names.get("down_revision")
    heads = set(parents) - set(parents.values())
    if len(heads) > 1:
        raise StoreError(f"{versions} has several last revisions: {', '.join(sorted(heads))}; each needs another parent")
    return Revisions(frozenset(parents), heads.pop() if heads else None)


def write_revision(message: str, tables: MetaData, scratch: Path, versions: Path) -> Path | None:
    """Write the revision that takes the schema of all revisions in `versions` to `tables`; None when there is no
    difference. `scratch` is the path of a database to be made for the comparison."""
    from alembic import command  # noqa: PLC0415  # costs a second
    from alembic.script import Script  # noqa: PLC0415

    with _transaction(scratch) as connection:
        config = _config(connection, versions, tables)
        if read_revisions(versions).head is not None:
            command.upgrade(config, "head")
        changes: list[bool] = []

        def drop_empty(_context: object, _revision: object, directives: list[object]) -> None:
            changes.extend(not script.upgrade_ops.is_empty() for script in directives)  # type: ignore[attr-defined]
            if not any(changes):
                directives.clear()

        script = command.revision(config, message, autogenerate=True, process_revision_directives=drop_empty)
    return Path(script.path) if isinstance(script, Script) else None
