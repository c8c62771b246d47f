"""Lock that gives one process access to a SQLite database: two writers would starve each other."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from services.store.port import StoreError


class StoreInUse(StoreError):
    """Another process, or another store of this one, has the database; the message has the holder's process id."""


class StoreLock:
    """Exclusive right to write a database, until `release` or the end of the process, even by kill -9.

    The lock is on a file next to the database. It is never deleted: otherwise two processes could lock two files.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, database: Path) -> StoreLock:
        """Lock `database`, whose folder has to exist.

        Raises:
            StoreInUse: it is locked.
            StoreError: the lock file cannot be written.
        """
        path = lock_file(database)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreInUse(f"{database} is in use by process {holder}; stop it first (its lock is {path})") from None
        # On a full disk the number is missing; the lock is still valid.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
        return cls(descriptor)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def lock_file(database: Path) -> Path:
    """The path of the lock file of `database`."""
    return database.with_name(f"{database.name}.lock")
