"""Storage of definition files: listing with etags, reading, and path patterns."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol


class StorageError(OSError):
    """A file that cannot be listed or read; says which one and why."""


class Storage(Protocol):
    """Files by their paths, with `/` between folders, relative to the storage."""

    def list(self) -> Mapping[str, str]:
        """Path → etag of every file, in the order of the paths. An etag changes whenever the content does.
        Raises StorageError when the storage itself cannot be read."""

    def read(self, path: str) -> bytes:
        """The content of one file. Raises StorageError, also when it is gone."""

    def place(self, path: str) -> str:
        """The file as a person is told of it."""


class LocalFolder:
    """The files of a folder whose names fit a pattern; hidden ones, and those that begin with `_`, are left out."""

    def __init__(
        self,
        root: Path,
        patterns: Sequence[str],
        *,
        is_deep: bool = False,
        folders: Sequence[str] | None = None,
        without: tuple[str, ...] = (".", "_"),
    ) -> None:
        """`is_deep`: those of its folders too; with `folders` only of those whose names fit, a pattern for each step
        down and no further. `without`: the beginnings of names that are left out."""
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
    """One file as a storage. Its path there is its name."""

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


class MemoryStorage:
    """Files in memory."""

    def __init__(self, files: Mapping[str, bytes | str] | None = None) -> None:
        self._files: dict[str, tuple[str, bytes]] = {}
        self._version = 0
        for path, content in (files or {}).items():
            self.write(path, content)

    def write(self, path: str, content: bytes | str, *, etag: str | None = None) -> None:
        """Put a file there, or another content in its place. Without `etag` it gets one that no file here had."""
        self._version += 1
        etag = str(self._version) if etag is None else etag
        self._files[path] = (etag, content.encode() if isinstance(content, str) else content)

    def delete(self, path: str) -> None:
        """Take a file away."""
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


def storage_at(path: Path, patterns: Sequence[str], *, is_deep: bool = False) -> LocalFolder | LocalFile:
    """The storage of what an operator named: a folder's files that fit a pattern, or one file whatever its name."""
    return LocalFolder(path, patterns, is_deep=is_deep) if path.is_dir() else LocalFile(path)


def plain_etag(etag: str) -> str:
    """`etag` without the quotes and the mark of a weak one, which some storages give and others do not: two that are
    equal then are of the same content."""
    text = etag.strip()
    text = text[2:] if text[:2] in ("W/", "w/") else text
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def shown(file: Path) -> str:
    """`file` as a person is told of it: relative to the working folder where it lies in there."""
    try:
        return str(file.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def _etag(path: str | Path) -> str:
    """Of a regular file; empty for others, and for one that is gone. Editors put a new file in the old one's place, and
    two writes within a tick of the clock differ in nothing but this."""
    try:
        state = os.stat(path)
    except OSError:
        return ""
    if not stat.S_ISREG(state.st_mode):
        return ""
    return f"{state.st_mtime_ns:x}-{state.st_size:x}-{state.st_ino:x}-{state.st_ctime_ns:x}"


ANY_FOLDERS = "**"


def path_matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the names of `path` fit those of `pattern`, one by one."""
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
    """Whether one name fits: `*` is any characters or none, `?` is one, and all else is itself."""
    at = here = 0
    star, resume = -1, 0
    while here < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, resume = at, here
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[here]):
            at += 1
            here += 1
        elif star >= 0:  # the last star takes one more: the ones before need not be tried again
            resume += 1
            at, here = star + 1, resume
        else:
            return False
    return not pattern[at:].strip("*")


def _skipped(pattern: Sequence[str], places: set[int]) -> set[int]:
    """`places` and those behind every `**` there, which may stand for no folder at all."""
    found = set(places)
    for place in places:
        while place < len(pattern) and pattern[place] == ANY_FOLDERS:
            place += 1
            found.add(place)
    return found


_OTHERS = 0o077


def make_private(path: Path) -> None:
    """Take `path` from group and others, where it is there and they have any rights. Raises OSError."""
    try:
        mode = path.stat().st_mode
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS & 0o777)
    except FileNotFoundError:
        return
