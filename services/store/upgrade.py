"""Brings a SQLite database to the schema of this version of the program, before anything else uses it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import MetaData
from sqlalchemy.exc import SQLAlchemyError

from services.clock import Clock
from services.store.backups import back_up, schema_version
from services.store.migrations.transaction import VERSIONS, transaction
from services.store.port import StoreDamaged, StoreError
from services.store.revisions import DatabaseTooNew, Upgraded, create, migrate, read_revisions


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
    version, empty = schema_version(path)
    if version == revisions.head and (version is not None or empty):
        return None
    if version is not None and version not in revisions.known:
        raise DatabaseTooNew(
            f"{path} has schema version {version}, which this version of the program does not know. "
            f"Start the newer version that wrote it, or go back with rollcall restore FILE to a backup in {backups}"
        )
    if version is None and not empty:
        raise StoreDamaged(f"{path} is damaged: it has tables but no schema version, or is no database of this program")
    head = revisions.head
    if head is None:
        return None
    backup = None if version is None else back_up(path, backups, label=version, clock=clock, keep=keep)
    _apply(path, head, tables if version is None else None, versions, backup)
    return Upgraded(version, head, backup)


def _apply(path: Path, head: str, tables: MetaData | None, versions: Path, backup: Path | None) -> None:
    try:
        with transaction(path) as connection:
            if tables is not None:
                create(connection, tables, head)
            else:
                migrate(connection, versions)
    except SQLAlchemyError as error:
        kept = f"; a copy is {backup}" if backup else ""
        raise StoreError(f"the upgrade of {path} to {head} failed, and was undone{kept}: {error}") from error
