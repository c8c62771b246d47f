"""A storage of definition files without a disk."""

from __future__ import annotations

from collections.abc import Mapping

from services.storage import StorageError


class MemoryStorage:
    """Storage that holds its files in memory, by path."""

    def __init__(self, files: Mapping[str, bytes | str] | None = None) -> None:
        self._files: dict[str, tuple[str, bytes]] = {}
        self._version = 0
        for path, content in (files or {}).items():
            self.write(path, content)

    def write(self, path: str, content: bytes | str, *, etag: str | None = None) -> None:
        """Add or replace a file. Without `etag` it gets a new one."""
        self._version += 1
        etag = str(self._version) if etag is None else etag
        self._files[path] = (etag, content.encode() if isinstance(content, str) else content)

    def delete(self, path: str) -> None:
        """Delete a file. Raises KeyError if it does not exist."""
        del self._files[path]

    def list(self) -> Mapping[str, str]:
        return {path: etag for path, (etag, _) in sorted(self._files.items())}

    def read(self, path: str) -> bytes:
        try:
            return self._files[path][1]
        except KeyError:
            raise StorageError(f"{path}: no such file") from None

    def place(self, path: str) -> str:
        return path
