"""Storage of definition files: listing with etags, reading, and path patterns."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol


class StorageError(OSError):
    """A file cannot be listed or read; the message has the file and the reason."""


class Storage(Protocol):
    """Files by path, relative to the storage, with `/` between folders."""

    def list(self) -> Mapping[str, str]:
        """Path → etag of all files, ordered by path. The etag changes whenever the content does. Raises StorageError if
        the storage itself cannot be read."""

    def read(self, path: str) -> bytes:
        """The content of a file. Raises StorageError, also if it does not exist."""

    def place(self, path: str) -> str:
        """The file's location for messages, such as a path relative to the working directory."""


class LocalFolder:
    """Files of a folder whose names match a pattern, except hidden files and those that begin with `_`."""

    def __init__(
        self,
        root: Path,
        patterns: Sequence[str],
        *,
        is_deep: bool = False,
        folders: Sequence[str] | None = None,
        without: tuple[str, ...] = (".", "_"),
    ) -> None:
        """`is_deep`: include subfolders; with `folders` only those whose names match, one pattern for each level and no
        deeper. `without`: prefixes of excluded names."""
        self._root = root
        self._patterns = tuple(patterns)
        self._is_deep = is_deep
        self._folders = folders
        self._without = without

    def list(self) -> Mapping[str, str]:
        try:
            return dict(sorted(self._files(self._root, "", 0)))
        except FileNotFoundError:
            raise StorageError(f"{self._root}: there is no such folder or file; make it, or correct the path") from None
        except OSError as error:
            raise StorageError(f"{self._root}: {error.strerror}") from None

    def read(self, path: str) -> bytes:
        try:
            return (self._root / path).read_bytes()
        except OSError as error:
            raise StorageError(f"{self.place(path)}: {error.strerror}") from None

    def place(self, path: str) -> str:
        return shown(self._root / path)

    def _files(self, folder: Path, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(self._without):
                    continue
                if entry.is_dir():
                    if self._goes_into(entry.name, depth):
                        yield from self._files(folder / entry.name, f"{prefix}{entry.name}/", depth + 1)
                elif any(fnmatchcase(entry.name, pattern) for pattern in self._patterns):
                    found = _etag(entry.path)
                    if found:
                        yield prefix + entry.name, found

    def _goes_into(self, name: str, depth: int) -> bool:
        if not self._is_deep or self._folders is None:
            return self._is_deep
        return depth < len(self._folders) and fnmatchcase(name, self._folders[depth])


class LocalFile:
    """A single file as a storage, with its name as the path. Lists no files while it does not exist."""

    def __init__(self, file: Path) -> None:
        self._folder = LocalFolder(file.parent, [])
        self._file = file

    def list(self) -> Mapping[str, str]:
        found = _etag(self._file)
        return {self._file.name: found} if found else {}

    def read(self, path: str) -> bytes:
        return self._folder.read(path)

    def place(self, path: str) -> str:
        return self._folder.place(path)


def storage_at(path: Path, patterns: Sequence[str], *, is_deep: bool = False) -> LocalFolder | LocalFile:
    """The storage for a path in the settings: matching files of a folder, or a single file with any name, if `path` is
    no existing folder."""
    return LocalFolder(path, patterns, is_deep=is_deep) if path.is_dir() else LocalFile(path)


def plain_etag(etag: str) -> str:
    """`etag` without quotes and weak prefix, which only some storages use, so that etags can be compared."""
    text = etag.strip()
    text = text[2:] if text[:2] in ("W/", "w/") else text
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def shown(file: Path) -> str:
    """`file` for messages: relative to the working directory if it is inside."""
    try:
        return str(file.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def _etag(path: str | Path) -> str:
    """Etag of a regular file, else empty. Includes inode and ctime: editors replace files, and two writes within a
    clock tick have the same mtime."""
    try:
        state = os.stat(path)
    except OSError:
        return ""
    if not stat.S_ISREG(state.st_mode):
        return ""
    return f"{state.st_mtime_ns:x}-{state.st_size:x}-{state.st_ino:x}-{state.st_ctime_ns:x}"


ANY_FOLDERS = "**"


def path_matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the names of `path` match those of `pattern`, one by one; `**` in `pattern` matches any number of names,
    also none."""
    places = _skipped(pattern, {0})
    for name in path:
        after: set[int] = set()
        for place in places:
            if place == len(pattern):
                continue
            if pattern[place] == ANY_FOLDERS:
                after.add(place)
            elif name_matches(pattern[place], name):
                after.add(place + 1)
        places = _skipped(pattern, after)
    return len(pattern) in places


def name_matches(pattern: str, name: str) -> bool:
    """Whether a name matches: `*` is any characters, `?` one, and all others are literal."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _skipped(pattern: Sequence[str], places: set[int]) -> set[int]:
    """`places` and those after each `**` there, which may match no folder."""
    found = set(places)
    for place in places:
        while place < len(pattern) and pattern[place] == ANY_FOLDERS:
            place += 1
            found.add(place)
    return found


_OTHERS = 0o077


def make_private(path: Path) -> None:
    """Remove all rights of group and others from `path`, if it exists. Raises OSError."""
    try:
        mode = path.stat().st_mode
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS & 0o777)
    except FileNotFoundError:
        return
