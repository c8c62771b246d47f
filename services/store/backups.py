"""Copies of a SQLite database, each of them checked before it counts."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from services.clock import Clock
from services.store.port import StoreBroken
from services.store.sqlite_writer import refusal


def back_up(path: Path, folder: Path, *, label: str, clock: Clock, keep: int) -> Path:
    """Copy the database `path` into `folder` as `<name>-<UTC time>-<label>.db`, keep the newest `keep` of its copies and
    delete the others. The database may be in use meanwhile. Returns the copy: a whole database in a single file.

    Killed half way it leaves a `.partial` file, which the next one overwrites.

    Raises:
        StoreBroken: the database is damaged; no older copy was deleted.
        StoreFull: there is no room for the copy.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = folder / f"{path.stem}-{clock.now():%Y%m%dT%H%M%SZ}-{label}.db"
    partial = folder / f"{path.stem}.partial"
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    try:
        _copy(path, partial)
    except sqlite3.Error as error:
        partial.unlink()
        raise refusal(f"copying {path}", error) from error
    fault = damage(partial)
    if fault is not None:
        partial.unlink()
        raise StoreBroken(f"{path} is damaged ({fault}); the copies in {folder} were left as they are")
    os.replace(partial, copy)
    _sync(folder)
    for old in sorted(folder.glob(f"{path.stem}-*.db"))[: -max(keep, 1)]:
        old.unlink()
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
    with closing(sqlite3.connect(source)) as database, closing(sqlite3.connect(target)) as copy:
        database.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # a single file, without a log beside it


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
