"""Upgrade of a SQLite database to this version's schema, with a verified backup first."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import MetaData
from sqlalchemy.exc import SQLAlchemyError

from services.clock import Clock
from services.store.migrations.transaction import (
    VERSIONS,
    DatabaseTooNew,
    Upgraded,
    create,
    migrate,
    read_revisions,
    transaction,
)
from services.store.port import StoreDamaged, StoreError, StoreFull
from services.store.sqlite.integrity import IntegrityCheck
from services.store.sqlite.writer import refusal

KEYS = "keys"
"""Name of the folder next to the database for its key files."""
Progress = Callable[[float], None]
"""Callback with the progress from 0 to 1, called a few times a second in the working thread."""
_TIME = "%Y%m%dT%H%M%SZ"
_FILES = "backup_files"
_STEPS_TO_PROGRESS = 20_000
_PAGES_TO_PROGRESS = 1000
_STALE_SECONDS = 3600.0
"""A partial file that was not written for this long belongs to a process that was killed."""


class Restored(NamedTuple):
    """Result of restoring a backup."""

    replaced: Path | None
    """Path of the previous database; None if there was none."""
    keys: tuple[str, ...]
    """Names of the key files in the backup."""


def back_up(
    path: Path, folder: Path, *, label: str, clock: Clock, keep: int | None, progress: Progress | None = None
) -> Path:
    """Copy the database `path` and its keys into `folder` as `<name>-<UTC time>-<label>.db`, without free pages. The
    newest `keep` backups are kept; None keeps all. The database may be in use. Returns the backup.

    If killed, it leaves a `.partial` file, which a later backup deletes.

    Raises:
        StoreDamaged: the database is damaged; no older backup was deleted.
        StoreFull: there is no space for the backup.
        StoreError: `folder` cannot be written.
    """
    backup = folder / f"{path.stem}-{clock.now():{_TIME}}-{label}.db"
    partial = folder / f"{backup.name}.{os.getpid()}.partial"
    with _errors_of_files(f"copying {path} into {folder}"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in folder.glob(f"{path.stem}*.partial"):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                left.unlink(missing_ok=True)
        try:
            new_file(partial)
            _copy(path, partial, progress)
            sync(partial)
            os.replace(partial, backup)
        finally:
            partial.unlink(missing_ok=True)
        sync(folder)
        if keep is not None:
            for old in backups_in(path, folder)[max(keep, 1) :]:
                old.unlink()
    return backup


def backups_in(path: Path, folder: Path) -> list[Path]:
    """The backups of the database `path` in `folder`, newest first."""
    return sorted((one for one in folder.glob(f"{path.stem}-*.db") if taken_at(one) is not None), reverse=True)


def newest_good(path: Path, folder: Path) -> Path | None:
    """The newest undamaged backup of the database `path` in `folder`; None without an undamaged backup."""
    return next((backup for backup in backups_in(path, folder) if damage(backup) is None), None)


def taken_at(backup: Path) -> datetime | None:
    """Start time of a backup, from its name; None for other files."""
    try:
        return datetime.strptime(backup.stem.split("-")[1], _TIME).replace(tzinfo=UTC)
    except (ValueError, IndexError):
        return None


def restore(backup: Path, path: Path, *, clock: Clock, progress: Progress | None = None) -> Restored:
    """Replace the database `path` by `backup`, and copy its keys into the folder next to it. The replaced files are
    kept under names with `-replaced-` and the time. The caller holds the lock of `path` and has checked `backup` with
    `damage`. If killed at any point, it leaves the previous or the restored database, and can be repeated.

    Raises:
        StoreFull: there is no space for a copy of `backup`; nothing was changed.
        StoreError: the folder of `path` cannot be written, or the copy is damaged.
    """
    fresh = path.with_name(f"{path.name}.restoring")
    with _errors_of_files(f"restoring {backup} to {path}"):
        try:
            new_file(fresh)
            keys = _copy_back(backup, fresh, progress)
            sync(fresh)
            for name, content in keys.items():
                _put_key(path.with_name(KEYS) / name, content, clock)
            replaced = _set_aside(path, clock)
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
        sync(path.parent)
    return Restored(replaced, tuple(keys))


def damage(path: Path) -> str | None:
    """The first fault found by a quick check of the file `path` (a second for 500 MB); None if it is sound."""
    try:
        return IntegrityCheck(path).fault(full=False)
    except StoreError as error:
        return str(error)


def schema_version(path: Path) -> tuple[str | None, bool]:
    """The schema version of the database, (None without one), and whether it is missing or empty. Raises StoreError if
    it cannot be read."""
    if not path.exists():
        return None, True
    try:
        # A read-only connection leaves the log alone, in case it belongs to another database.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            if "alembic_version" not in tables:
                return None, not tables
            row = database.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise refusal(f"opening {path}", error) from error
    return (row[0] if row else None), False


@contextmanager
def _errors_of_files(doing: str) -> Iterator[None]:
    """Context manager that converts OSError to StoreError, with `doing` in its text."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{doing}: {error.strerror}") from error


def new_file(path: Path) -> None:
    """Replace `path` by an empty file for its owner only. Raises OSError."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)


def _copy(source: Path, target: Path, progress: Progress | None) -> None:
    try:
        with closing(sqlite3.connect(source, isolation_level=None)) as database:
            expected = _bytes_used(database)
            _require_room(source, target.parent, expected)
            if progress is not None:
                report = progress
                database.set_progress_handler(
                    lambda: report(min(target.stat().st_size / max(expected, 1), 1.0)), _STEPS_TO_PROGRESS
                )
            # A snapshot, while others write. `Connection.backup` would restart after each of their writes.
            database.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.Error as error:
        problem = refusal(f"copying {source}", error)
        raise StoreDamaged(f"{source} is damaged: {error}") if isinstance(problem, StoreDamaged) else problem from error
    fault = damage(target)
    if fault is not None:
        raise StoreDamaged(f"{source} is damaged: {fault}")
    keys = source.with_name(KEYS)
    files = [(file.name, file.read_bytes()) for file in sorted(keys.glob("*")) if file.is_file()]
    with closing(sqlite3.connect(target)) as copy, copy:
        copy.execute(f"DROP TABLE IF EXISTS {_FILES}")
        copy.execute(f"CREATE TABLE {_FILES} (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT")
        copy.executemany(f"INSERT INTO {_FILES} VALUES (?, ?)", files)  # noqa: S608 - a constant


def _bytes_used(database: sqlite3.Connection) -> int:
    """The size of the database without its free pages."""
    pages, free, size = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _require_room(source: Path, folder: Path, size: int) -> None:
    """Raise StoreFull unless the disk has space for a backup of `size`, and as much again if the database is on it."""
    is_same_disk = source.stat().st_dev == folder.stat().st_dev
    free, needed = shutil.disk_usage(folder).free, size * (2 if is_same_disk else 1)
    if free < needed:
        raise StoreFull(f"a backup in {folder} needs {needed / 1e6:.1f} MB free, and there are {free / 1e6:.1f} MB")


def _copy_back(backup: Path, target: Path, progress: Progress | None) -> Mapping[str, bytes]:
    """Copy `backup` to `target` without its keys; returns the keys' contents by file name. Raises StoreError if the
    copy fails or is damaged."""

    def report(_status: int, left: int, pages: int) -> None:
        if progress is not None:
            progress(1 - left / max(pages, 1))

    try:
        with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy, pages=_PAGES_TO_PROGRESS, progress=report)
            copy.execute("PRAGMA journal_mode = DELETE")  # a single file, without a log
            keys: dict[str, bytes] = {}
            if copy.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (_FILES,)).fetchone():
                keys = dict(copy.execute(f"SELECT name, content FROM {_FILES}"))  # noqa: S608 - a constant
                copy.execute(f"DROP TABLE {_FILES}")
    except sqlite3.Error as error:
        raise refusal(f"copying {backup}", error) from error
    fault = damage(target)
    if fault is not None:
        raise StoreError(f"the copy of {backup} is damaged: {fault}")
    return {Path(name).name: content for name, content in keys.items()}


def _put_key(file: Path, content: bytes, clock: Clock) -> None:
    if file.exists() and file.read_bytes() == content:
        return
    file.parent.mkdir(mode=0o700, exist_ok=True)
    fresh = file.with_name(f"{file.name}.restoring")
    new_file(fresh)
    fresh.write_bytes(content)
    sync(fresh)
    if file.exists():
        os.replace(file, file.with_name(f"{file.name}-replaced-{clock.now():{_TIME}}"))
    os.replace(fresh, file)
    sync(file.parent)


def _set_aside(path: Path, clock: Clock) -> Path | None:
    """Add a second name to the current database, and remove its log, which would be applied to the restored one.
    Returns the second name; None if there is no database."""
    replaced = path.with_name(f"{path.stem}-replaced-{clock.now():{_TIME}}{path.suffix}")
    if path.exists():
        # Checkpoint first: without the log's pages the file alone would be older. A damaged database keeps its log.
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = DELETE").fetchone()
    is_there = path.exists()
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(f"{path.name}{suffix}")
        if is_there and part.exists():
            _link(part, replaced.with_name(f"{replaced.name}{suffix}"))
        if suffix:
            part.unlink(missing_ok=True)
    return replaced if is_there else None


def _link(file: Path, other_name: Path) -> None:
    try:
        os.link(file, other_name)
    except OSError:
        # The file system has no hard links.
        shutil.copy2(file, other_name)


def sync(path: Path) -> None:
    """Write the file or folder to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def upgrade(
    path: Path,
    *,
    backups: Path,
    clock: Clock,
    keep: int = 5,
    tables: MetaData | None = None,
    versions: Path = VERSIONS,
) -> Upgraded | None:
    """Apply the migrations in `versions` that the database `path` lacks, in one transaction, after a backup into
    `backups`, where the newest `keep` are kept. A missing or empty file becomes a new database, created from `tables`
    if given, else by all migrations.

    Returns what was done; None if the database was up to date. If killed at any point, it leaves the old or the new
    schema, and can be repeated. The caller holds the lock of `path`.

    Raises:
        DatabaseTooNew: its version is unknown to this code.
        StoreError: nothing was changed; a migration failed, or the file is damaged, full or not of this program.
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
        hint = f"; a copy is {backup}" if backup else ""
        raise StoreError(f"the upgrade of {path} to {head} failed, and was undone{hint}: {error}") from error
