"""Free space on a SQLite database's file system, and a reserve file that allows recovery from a full disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

PAGE_BYTES = 4096
_MOST_LOG_PAGES = 8000
_LEAST_LOG_PAGES = 64
_SHARE = 16
"""Divisor: the write-ahead log and the reserve may each take this part of the free space."""
_MOST_RESERVE_BYTES = 4 << 20
_LEAST_BYTES = 128 << 10
"""Below this the disk counts as full: recovery needs space for the log's index and for pages not yet copied."""


class Disk:
    """The file system of `database`. The reserve is a file next to the database; deleting it makes space for a
    checkpoint on a full disk. Every method takes some microseconds, except `keep_reserve` when it writes."""

    def __init__(self, database: Path) -> None:
        self._folder = database.absolute().parent
        self._log = database.with_name(f"{database.name}-wal")
        self._reserve = reserve_file(database)

    def free_bytes(self) -> int | None:
        """Bytes that this process can still write; None if the file system does not report it. Raises OSError."""
        state = os.statvfs(self._folder)
        if not state.f_blocks:
            return None
        # Some blocks may be reserved for root.
        return state.f_frsize * (state.f_bfree if os.geteuid() == 0 else state.f_bavail)

    def problem(self) -> str | None:
        """Why nothing can be written there, without paths; None if no reason is known."""
        try:
            if os.statvfs(self._folder).f_flag & os.ST_RDONLY:
                return "the file system of the database is read-only"
            free = self.free_bytes()
        except OSError as error:
            return f"the disk of the database: {error.strerror}"
        if free is not None and free < _LEAST_BYTES:
            return f"the disk of the database is full: {free // 1024} KiB free"
        return None

    def log_pages(self) -> int:
        """Size of the write-ahead log, in pages, that triggers a checkpoint: a long log needs fewer checkpoints, but
        must not fill the disk. Between 64 and 8000. Raises OSError."""
        free = self.free_bytes()
        if free is None:
            return _MOST_LOG_PAGES
        pages = (free + _size(self._log) + _size(self._reserve)) // _SHARE // PAGE_BYTES
        return max(_LEAST_LOG_PAGES, min(_MOST_LOG_PAGES, pages))

    def log_leaves_room(self) -> bool:
        """Whether the log can be checkpointed even if all its pages are new to the database. Raises OSError."""
        free = self.free_bytes()
        return free is None or _size(self._log) <= free + _size(self._reserve)

    def keep_reserve(self) -> bool:
        """Make the reserve as large as the disk allows, up to 4 MiB; returns whether there is a useful one (128
        KiB)."""
        size = _size(self._reserve)
        try:
            free = self.free_bytes()
            if free is None:
                free = _MOST_RESERVE_BYTES * _SHARE
            wanted = min(_MOST_RESERVE_BYTES, max(_LEAST_BYTES, (free + size) // _SHARE))
            if size < wanted <= free + size - _LEAST_BYTES:
                _allocate(self._reserve, wanted)
                return True
        except OSError:
            return False
        return size >= _LEAST_BYTES

    def release_reserve(self) -> None:
        """Delete the reserve. Does nothing if it is missing or cannot be deleted."""
        with suppress(OSError):
            self._reserve.unlink()


def reserve_file(database: Path) -> Path:
    """The path of the reserve file of `database`."""
    return database.with_name(f"{database.name}.reserve")


def _allocate(path: Path, size: int) -> None:
    """Allocate `size` bytes. Raises OSError; then the file is deleted."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, size)
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(file)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
