"""Copies of a SQLite database, each of them checked before it counts."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from services.clock import Clock
from services.store.port import StoreBroken, StoreError
from services.store.sqlite_writer import refusal


def back_up(path: Path, folder: Path, *, label: str, clock: Clock, keep: int) -> Path:
    """Copy the database `path` into `folder` as `<name>-<UTC time>-<label>.db`. Its newest `keep` copies stay. The
    database may be in use meanwhile. Returns the copy: a whole database in a single file.

    Killed half way it leaves a `.partial` file, which the next one overwrites.

    Raises:
        StoreBroken: the database is damaged; no older copy was deleted.
        StoreFull: there is no room for the copy.
        StoreError: `folder` cannot be written.
    """
    copy = folder / f"{path.stem}-{clock.now():%Y%m%dT%H%M%SZ}-{label}.db"
    partial = folder / f"{path.stem}.partial"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)
        _copy(path, partial)
        os.replace(partial, copy)
        _sync(folder)
        for old in sorted(folder.glob(f"{path.stem}-*.db"))[: -max(keep, 1)]:
            old.unlink()
    except OSError as error:
        raise StoreError(f"copying {path} into {folder}: {error.strerror}") from error
    return copy


def damage(path: Path) -> str | None:
    """The first fault that SQLite finds in the whole file `path` (about a second for 500 MB); None when it is sound."""
    try:
        with closing(sqlite3.connect(path)) as database:
            (finding,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if finding == "ok" else str(finding)


def _copy(source: Path, target: Path) -> None:
    try:
        with closing(sqlite3.connect(source)) as database, closing(sqlite3.connect(target)) as copy:
            database.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # a single file, without a log beside it
    except sqlite3.Error as error:
        target.unlink()
        raise refusal(f"copying {source}", error) from error
    fault = damage(target)
    if fault is not None:
        target.unlink()
        raise StoreBroken(f"{source} is damaged: {fault}")


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
