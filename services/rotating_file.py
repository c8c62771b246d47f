"""A file of lines that is put aside when it is full, for its owner alone."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from services.private_files import make_private


class RotatingFile:
    """Appends to `path`; what is over `max_bytes` goes to `path.1`, what was there to `path.2`, up to `keep_files`."""

    def __init__(self, path: Path, *, max_bytes: int, keep_files: int) -> None:
        self.path = path
        self._name = str(path)
        self._max_bytes = max_bytes
        self._keep_files = keep_files

    def append(self, lines: bytes) -> None:
        """Append all of `lines` or nothing. Raises OSError. The file is opened each time: somebody else may move it."""
        size = self._size()
        if size and size + len(lines) > self._max_bytes:
            self._rotate()
            size = 0
        # The plain calls of the system: a file object costs more than what it writes here.
        file = os.open(self._name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # A disk that fills up takes the beginning and refuses the rest only when asked again.
            if os.write(file, lines) != len(lines):
                os.truncate(file, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._name)
        finally:
            os.close(file)

    def _size(self) -> int:
        try:
            found = os.stat(self._name)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return 0
        if found.st_mode & 0o077:
            make_private(self.path)
        return found.st_size

    def _rotate(self) -> None:
        for number in range(self._keep_files - 1, 0, -1):
            older = self._aside(number)
            if older.exists():
                older.replace(self._aside(number + 1))
        self.path.replace(self._aside(1))

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
