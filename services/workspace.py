"""A folder of files for each chat. All of it is read and written by paths within, and nothing leads out of it."""

from __future__ import annotations

import itertools
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from config.files import FilesSettings
from services import workspace_folders as folders
from services.refs import ChatRef
from services.wildcards import path_matches
from services.workspace_folders import Found
from services.workspace_paths import (
    Problem,
    WorkspaceFault,
    folder_name,
    folder_parts_of,
    is_name,
    parts_of,
)

__all__ = ["Entry", "Listing", "Problem", "Workspace", "WorkspaceFault", "Workspaces"]
MOST_SHOWN = 200
_LOCKS = 64
_MEGABYTE = 1_000_000
_KILOBYTE = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder."""

    path: str
    """From the workspace on."""
    is_folder: bool
    bytes: int
    """0 for a folder."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What there is."""

    entries: tuple[Entry, ...]
    more: int
    """So many more than are shown."""
    unnamed: int
    """So many that are no plain files, or have names that cannot be written here."""


class Workspaces:
    """The folders of all chats, below one."""

    def __init__(self, root: Path, settings: FilesSettings | None = None) -> None:
        self._root = root
        self._settings = settings or FilesSettings()
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def use(self, settings: FilesSettings) -> None:
        """From now on these hold for what `of` gives."""
        self._settings = settings

    def of(self, chat: ChatRef) -> Workspace:
        """The folder of `chat`; nothing is made yet."""
        name = folder_name(chat)
        return Workspace(self._root, name, self._settings, self._locks[hash(name) % _LOCKS])


class Workspace:
    """One chat's folder. Everything here blocks, and belongs into a thread. Each operation raises WorkspaceFault for
    what may not be or is not there, and OSError where the machine fails."""

    def __init__(self, root: Path, name: str, settings: FilesSettings, lock: threading.Lock) -> None:
        self._root = root.absolute()
        self._name = name
        self._settings = settings
        self._lock = lock
        self._most_bytes = settings.file_kilobytes * _KILOBYTE

    def made(self) -> Path:
        """The folder itself, there from now on: for a process that is to work in it."""
        with self._opened(make=True):
            return self._root / self._name

    def read(self, path: str) -> bytes:
        """What is in the file."""
        *above, name = parts_of(path)
        with self._opened() as root, folders.opened(root, above) as folder:
            return folders.read(folder, name, self._most_bytes)

    def write(self, path: str, content: bytes, *, append: bool = False) -> int:
        """Write the file, whole or not at all, and the folders that lead to it; how many bytes it has then. `append`:
        behind what it holds."""
        parts = parts_of(path)
        *above, name = parts
        with self._lock, self._opened(make=True) as root:
            if append:
                content = self._before(root, parts) + content
            self._check_room(root, parts, len(content))
            with folders.opened(root, above, make=True) as folder:
                folders.write(folder, name, content, f".rollcall-{secrets.token_hex(8)}")
        return len(content)

    def remove(self, path: str) -> None:
        """Take the file away."""
        *above, name = parts_of(path)
        with self._lock, self._opened() as root, folders.opened(root, above) as folder:
            folders.remove(folder, name)

    def list(self, path: str = "") -> Listing:
        """What lies in the folder `path`, by name."""
        parts = folder_parts_of(path)
        try:
            with self._opened() as root, folders.opened(root, parts) as folder:
                return _listing(folders.walk(folder, self._settings.most_files + 1, deep=False), parts)
        except WorkspaceFault as fault:
            if fault.problem is Problem.NOT_FOUND and not parts:
                return Listing((), 0, 0)  # nothing was ever written
            raise

    def glob(self, pattern: str) -> Listing:
        """The files whose paths fit `pattern`: `*` and `?` within a name, `**` for any number of folders."""
        wanted = parts_of(pattern)
        try:
            with self._opened() as root:
                found = self._everything(root)
                return _listing(one for one in found if one.is_file and path_matches(wanted, one.parts))
        except WorkspaceFault as fault:
            if fault.problem is Problem.NOT_FOUND:
                return Listing((), 0, 0)
            raise

    def _everything(self, root: int) -> Iterator[Found]:
        """All that is here, and at most one more than may be: what a process has left behind may be much more."""
        most = self._settings.most_files + 1
        return itertools.islice(folders.walk(root, most), most)

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """The chat's folder."""
        if make:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise WorkspaceFault(Problem.NOT_FOUND) from None
        try:
            with folders.opened(root, [self._name], make=make) as folder:
                yield folder
        finally:
            os.close(root)

    def _before(self, root: int, parts: Sequence[str]) -> bytes:
        """What the file holds now; nothing where there is none."""
        try:
            with folders.opened(root, parts[:-1]) as folder:
                return folders.read(folder, parts[-1], self._most_bytes)
        except WorkspaceFault as fault:
            if fault.problem is Problem.NOT_FOUND:
                return b""
            raise

    def _check_room(self, root: int, parts: Sequence[str], size: int) -> None:
        """Raises WorkspaceFault where a file of that size finds no room."""
        settings = self._settings
        if size > self._most_bytes:
            raise WorkspaceFault(Problem.TOO_BIG, kilobytes=settings.file_kilobytes)
        there = {found.parts: found for found in self._everything(root)}
        new = sum(tuple(parts[:length]) not in there for length in range(1, len(parts) + 1))
        if new and len(there) + new > settings.most_files:
            raise WorkspaceFault(Problem.TOO_MANY, most=settings.most_files)
        used = sum(found.size for found in there.values() if found.is_file and found.parts != tuple(parts))
        if used + size > settings.quota_megabytes * _MEGABYTE:
            raise WorkspaceFault(Problem.FULL, megabytes=settings.quota_megabytes)


def _listing(found: Iterator[Found], above: Sequence[str] = ()) -> Listing:
    entries: list[Entry] = []
    more = unnamed = 0
    for one in found:
        if not (one.is_file or one.is_folder) or not all(is_name(part) for part in one.parts):
            unnamed += 1
        elif len(entries) == MOST_SHOWN:
            more += 1
        else:
            entries.append(Entry("/".join([*above, *one.parts]), one.is_folder, one.size if one.is_file else 0))
    return Listing(tuple(entries), more, unnamed)
