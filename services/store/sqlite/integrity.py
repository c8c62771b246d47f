"""Integrity checks of a SQLite database."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from services.store.port import StoreDamaged
from services.store.sqlite.disk import reserve_file
from services.store.sqlite.writer import primary_code, refusal

_FULL_SECONDS = 0.25
_QUICK_SECONDS = 1.5
_SMALL_BYTES = 2 << 20
"""A full check of this size takes some 20 ms."""
_OF_THE_DISK = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY}
)


class IntegrityCheck:
    """One check of the file `path` on a separate connection, which writes neither the database nor its log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._changing = threading.Lock()
        self._is_stopped = False

    def fault(self, *, full: bool, seconds: float = math.inf) -> str | None:
        """The first fault; None if the file is sound. `full` also compares indexes with their tables, which takes four
        times as long (about 10 s instead of 2 s for 1 GB).

        Raises:
            TimeoutError: it took longer than `seconds`, or was stopped.
            StoreFull: the file cannot be read now.
        """
        pragma = "integrity_check" if full else "quick_check"
        try:
            with self._connected() as connection, _interrupted_after(seconds, connection):
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                # Checks a page's cells when it is loaded.
                connection.execute("PRAGMA cell_size_check = ON")
                (finding,) = connection.execute(f"PRAGMA {pragma}(1)").fetchone()
        except sqlite3.Error as error:
            code = primary_code(error)
            if code == sqlite3.SQLITE_INTERRUPT:
                raise TimeoutError(f"{pragma} of {self._path}") from error
            if code in _OF_THE_DISK:
                raise refusal(f"checking {self._path}", error) from error
            return str(error)
        except UnicodeDecodeError:
            return "a name in its schema is no text"
        return None if finding == "ok" else " ".join(str(finding).split())

    def stop(self) -> None:
        """Stop the check, from another thread: `fault` raises TimeoutError, also if it begins later."""
        with self._changing:
            self._is_stopped = True
            if self._connection is not None:
                self._connection.interrupt()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        uri = f"{self._path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            with self._changing:
                if self._is_stopped:
                    raise TimeoutError(f"the check of {self._path} was stopped")
                self._connection = connection
            try:
                yield connection
            finally:
                with self._changing:
                    self._connection = None


def refuse_damaged(path: Path) -> bool:
    """Check the database `path` for at most 1.75 s before it is used. Returns whether that was the full check, which
    takes longer above some 50 MB. A missing file is sound.

    Raises:
        StoreDamaged: it is damaged; nothing was changed.
        StoreFull: it cannot be read now.
    """
    if not path.exists():
        return True
    if path.stat().st_size == 0:
        if reserve_file(path).exists() or path.with_name(f"{path.name}-wal").exists():
            raise StoreDamaged(f"{path} is damaged: it is empty, and was not before")
        return True
    log = path.with_name(f"{path.name}-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    # A small database needs no timer, which would start a thread.
    limit = _FULL_SECONDS if size > _SMALL_BYTES else math.inf
    for full, seconds in ((True, limit), (False, _QUICK_SECONDS)):
        try:
            fault = IntegrityCheck(path).fault(full=full, seconds=seconds)
        except TimeoutError:
            continue
        if fault is not None:
            raise StoreDamaged(f"{path} is damaged: {fault}")
        return full
    return False


@contextmanager
def _interrupted_after(seconds: float, connection: sqlite3.Connection) -> Iterator[None]:
    if seconds == math.inf:
        yield
        return
    timer = threading.Timer(seconds, connection.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
