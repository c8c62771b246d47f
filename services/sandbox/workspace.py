"""One folder of files per chat. Paths are resolved component by component and cannot leave the folder."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import secrets
import stat
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from config.sections.processes import FilesSettings
from services.patterns import is_visible
from services.refs import ChatRef
from services.storage import path_matches

MOST_DEPTH = 12
_MOST_NAME_BYTES = 200  # of at most 255, so that a temporary name has room
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LONGEST_FOLDER = 180
_PREFIX_OF_LONG_NAMES = 100


class Problem(StrEnum):
    """Reason why a file operation failed; texts under `files.problem.…`."""

    BLANK = "blank"
    ABSOLUTE = "absolute"
    PARENT = "parent"
    HIDDEN = "hidden"
    BACKSLASH = "backslash"
    UNSEEN = "unseen"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    NOT_FOUND = "not_found"
    IS_FOLDER = "is_folder"
    NO_FOLDER = "no_folder"
    NO_FILE = "no_file"  # a link, a device or a pipe
    LINKED = "linked"
    NOT_TEXT = "not_text"
    TOO_BIG = "too_big"
    FULL = "full"
    TOO_MANY = "too_many"


class WorkspaceError(Exception):
    """A file operation failed; `values` fill the placeholders of its text."""

    def __init__(self, problem: Problem, **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.values = values


def parts_of(path: str) -> tuple[str, ...]:
    """Validated components of a path or pattern, without `.`. Raises WorkspaceError if it is blank, absolute, too deep
    (12), or has a hidden, `..`, too long or unprintable component."""
    parts = _parts(path)
    if not parts:
        raise WorkspaceError(Problem.BLANK)
    return parts


def folder_name(chat: ChatRef) -> str:
    """Folder name for `chat`: unique, also on case-insensitive file systems."""
    name = "".join(_plain(one) for one in chat.key)
    if len(name) <= _LONGEST_FOLDER:
        return name
    # Short names contain no dot, so names with a digest cannot collide with them.
    digest = hashlib.sha256(chat.key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:_PREFIX_OF_LONG_NAMES]}.{digest}"


def _parts(path: str) -> tuple[str, ...]:
    if not path.strip():
        raise WorkspaceError(Problem.BLANK)
    if path.startswith("/"):
        raise WorkspaceError(Problem.ABSOLUTE)
    written = unicodedata.normalize("NFC", path) if is_visible(path) else path
    parts = [part for part in written.removesuffix("/").split("/") if part != "."]
    for part in parts:
        problem = _problem(part)
        if problem is not None:
            raise WorkspaceError(problem)
    if len(parts) > MOST_DEPTH:
        raise WorkspaceError(Problem.TOO_DEEP, most=MOST_DEPTH)
    return tuple(parts)


def _problem(name: str) -> Problem | None:
    """Why a single path component is not permitted; None if it is."""
    if not is_visible(name):
        return Problem.UNSEEN
    if not name.strip():
        return Problem.BLANK
    if "\\" in name:
        return Problem.BACKSLASH
    if name == "..":
        return Problem.PARENT
    if name.startswith("."):
        return Problem.HIDDEN
    if "/" in name or len(name.encode()) > _MOST_NAME_BYTES:
        return Problem.TOO_LONG
    return None


def _plain(one: str) -> str:
    return one if one in _PLAIN else "".join(f"_{byte:02x}" for byte in one.encode("utf-8", "surrogatepass"))


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Do not block on a pipe without a writer, and do not acquire a controlling terminal.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TO_OWNER = 0o700
_TO_OWNER_FILE = 0o600


@dataclass(frozen=True, slots=True)
class Entry:
    """Directory entry with its path components; links are not followed. Neither folder nor file: a link, device or
    pipe."""

    parts: tuple[str, ...]
    is_folder: bool
    is_file: bool
    bytes: int
    """0 unless it is a file."""

    @property
    def path(self) -> str:
        """Its path components, separated by `/`."""
        return "/".join(self.parts)


@contextmanager
def opened(root: int, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Context manager that yields a descriptor of the folder at `parts` below the descriptor `root`, without following
    links. `make` creates missing folders. Raises WorkspaceError if a component is missing or not a folder."""
    folder = os.dup(root)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, _TO_OWNER, dir_fd=folder)
            inner = _open_folder(part, folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def read(folder: int, name: str, most_bytes: int) -> bytes:
    """Read a regular file. Raises WorkspaceError if it is missing, any other entry, hard-linked, or longer than
    `most_bytes`."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        raise WorkspaceError(Problem.NOT_FOUND) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EACCES):
            raise WorkspaceError(Problem.NO_FILE) from None
        raise
    try:
        _check_plain(os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most_bytes + 1)
    finally:
        os.close(descriptor)
    if len(content) > most_bytes:
        raise WorkspaceError(Problem.TOO_BIG, kilobytes=most_bytes // 1000)
    return content


def _check_plain(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise WorkspaceError(Problem.IS_FOLDER)
    if not stat.S_ISREG(found.st_mode):
        raise WorkspaceError(Problem.NO_FILE)
    if found.st_nlink > 1:  # its other links may be outside the workspace
        raise WorkspaceError(Problem.LINKED)


def write(folder: int, name: str, content: bytes, temporary_name: str) -> None:
    """Atomically replace `name` by a file with `content`, first written under the free name `temporary_name`. The old
    file itself is not modified. Raises WorkspaceError if the existing entry is not a regular file or the folder is
    gone."""
    before = found_at(folder, name)
    if before is not None and before.is_folder:
        raise WorkspaceError(Problem.IS_FOLDER)
    if before is not None and not before.is_file:
        raise WorkspaceError(Problem.NO_FILE)
    try:
        _replace(folder, name, content, temporary_name)
    except FileNotFoundError:  # the folder was removed meanwhile
        raise WorkspaceError(Problem.NOT_FOUND) from None


def _replace(folder: int, name: str, content: bytes, temporary_name: str) -> None:
    descriptor = os.open(temporary_name, _NEW_FILE, _TO_OWNER_FILE, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary_name, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary_name, dir_fd=folder)
        raise
    os.fsync(folder)


def remove(folder: int, name: str) -> None:
    """Remove a regular file. Raises WorkspaceError if it is missing or any other entry."""
    found = found_at(folder, name)
    if found is None:
        raise WorkspaceError(Problem.NOT_FOUND)
    if found.is_folder:
        raise WorkspaceError(Problem.IS_FOLDER)
    if not found.is_file:
        raise WorkspaceError(Problem.NO_FILE)
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:  # removed meanwhile
        raise WorkspaceError(Problem.NOT_FOUND) from None
    os.fsync(folder)


def found_at(folder: int, name: str) -> Entry | None:
    """Entry `name` of the folder; None if it does not exist."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    is_file = stat.S_ISREG(status.st_mode)
    return Entry((name,), stat.S_ISDIR(status.st_mode), is_file, status.st_size if is_file else 0)


def walk(folder: int, most: int, *, deep: bool = True, above: tuple[str, ...] = ()) -> Iterator[Entry]:
    """Entries of the folder, with `deep` also of its subfolders, sorted by name and parents first; at most `most` per
    folder. `above`: the folder's own path. Raises WorkspaceError if folders are nested deeper than MOST_DEPTH."""
    if len(above) > MOST_DEPTH:
        raise WorkspaceError(Problem.TOO_DEEP, most=MOST_DEPTH)
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in itertools.islice(entries, most))
    for name in names:
        found = found_at(folder, name)
        if found is None:
            continue
        parts = (*above, name)
        yield replace(found, parts=parts)
        if not (found.is_folder and deep):
            continue
        try:
            inner = _open_folder(name, folder)
        except WorkspaceError:
            continue  # removed or replaced meanwhile
        try:
            yield from walk(inner, most, above=parts)
        finally:
            os.close(inner)


def _open_folder(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        raise WorkspaceError(Problem.NOT_FOUND) from None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
    found = found_at(folder, name)
    is_plain = found is not None and found.is_file
    raise WorkspaceError(Problem.NO_FOLDER if is_plain else Problem.NO_FILE)


MOST_SHOWN = 200
_LOCKS = 64
_MEGABYTE = 1_000_000
_KILOBYTE = 1000


@dataclass(frozen=True, slots=True)
class Listing:
    """Listed entries, at most 200, with counts of the others."""

    entries: tuple[Entry, ...]
    more: int
    """Number of entries above the display limit."""
    unnamed: int
    """Number of entries that are not regular files or have names that cannot be addressed."""


class Workspaces:
    """Workspaces of all chats, one folder each below `root`."""

    def __init__(self, root: Path, settings: FilesSettings | None = None) -> None:
        self._root = root
        self._settings = settings or FilesSettings()
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def use(self, settings: FilesSettings) -> None:
        """Apply `settings` to workspaces returned from now on."""
        self._settings = settings

    def of(self, chat: ChatRef) -> Workspace:
        """Workspace of `chat`; its folder is created by the first write."""
        name = folder_name(chat)
        return Workspace(self._root, name, self._settings, self._locks[hash(name) % _LOCKS])


class Workspace:
    """Workspace of one chat. All methods block, so call them in a thread; they raise WorkspaceError for invalid paths,
    missing files and exceeded limits, and OSError for system failures."""

    def __init__(self, root: Path, name: str, settings: FilesSettings, lock: threading.Lock) -> None:
        self._root = root.absolute()
        self._name = name
        self._settings = settings
        self._lock = lock
        self._most_bytes = settings.file_kilobytes * _KILOBYTE

    def made(self) -> Path:
        """Absolute path of the chat's folder, created if it is missing; for processes that run in it."""
        with self._opened(make=True):
            return self._root / self._name

    def read(self, path: str) -> bytes:
        """Content of the file. Raises WorkspaceError if it is missing, not a regular file, or above the size limit."""
        *above, name = parts_of(path)
        with self._opened() as root, opened(root, above) as folder:
            return read(folder, name, self._most_bytes)

    def write(self, path: str, content: bytes, *, append: bool = False) -> int:
        """Write the file atomically, creating parent folders; returns its new size in bytes. `append` adds to the
        existing content. Raises WorkspaceError above the limits on file size, number of files and total size."""
        parts = parts_of(path)
        *above, name = parts
        with self._lock, self._opened(make=True) as root:
            if append:
                content = self._before(root, parts) + content
            self._check_room(root, parts, len(content))
            with opened(root, above, make=True) as folder:
                write(folder, name, content, f".rollcall-{secrets.token_hex(8)}")
        return len(content)

    def remove(self, path: str) -> None:
        """Remove the file. Raises WorkspaceError if it is missing or not a regular file."""
        *above, name = parts_of(path)
        with self._lock, self._opened() as root, opened(root, above) as folder:
            remove(folder, name)

    def list(self, path: str = "") -> Listing:
        """Entries of the folder `path` (empty and `.`: the workspace itself), sorted by name, without those of
        subfolders. Empty if the workspace does not exist yet."""
        parts = _parts(path) if path.strip() else ()
        try:
            with self._opened() as root, opened(root, parts) as folder:
                return _listing(walk(folder, self._settings.most_files + 1, deep=False, above=parts))
        except WorkspaceError as fault:
            if fault.problem is Problem.NOT_FOUND and not parts:
                return Listing((), 0, 0)  # the folder is created by the first write
            raise

    def glob(self, pattern: str) -> Listing:
        """Files whose paths match `pattern`: `*` and `?` within a name, `**` for any number of folders. Empty if the
        workspace does not exist yet."""
        wanted = parts_of(pattern)
        try:
            with self._opened() as root:
                found = self._everything(root)
                return _listing(one for one in found if one.is_file and path_matches(wanted, one.parts))
        except WorkspaceError as fault:
            if fault.problem is Problem.NOT_FOUND:
                return Listing((), 0, 0)
            raise

    def _everything(self, root: int) -> Iterator[Entry]:
        """All entries, at most one more than the limit: processes may have left many more."""
        most = self._settings.most_files + 1
        return itertools.islice(walk(root, most), most)

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """Context manager that yields a descriptor of the chat's folder; `make` creates it. Raises WorkspaceError (not
        found) if it is missing."""
        if make:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise WorkspaceError(Problem.NOT_FOUND) from None
        try:
            with opened(root, [self._name], make=make) as folder:
                yield folder
        finally:
            os.close(root)

    def _before(self, root: int, parts: Sequence[str]) -> bytes:
        """Current content of the file; empty if it does not exist."""
        try:
            with opened(root, parts[:-1]) as folder:
                return read(folder, parts[-1], self._most_bytes)
        except WorkspaceError as fault:
            if fault.problem is Problem.NOT_FOUND:
                return b""
            raise

    def _check_room(self, root: int, parts: Sequence[str], size: int) -> None:
        """Raises WorkspaceError if a file of that size exceeds a limit."""
        settings = self._settings
        if size > self._most_bytes:
            raise WorkspaceError(Problem.TOO_BIG, kilobytes=settings.file_kilobytes)
        there = {found.parts: found for found in self._everything(root)}
        new = sum(tuple(parts[:length]) not in there for length in range(1, len(parts) + 1))
        if new and len(there) + new > settings.most_files:
            raise WorkspaceError(Problem.TOO_MANY, most=settings.most_files)
        used = sum(found.bytes for found in there.values() if found.parts != tuple(parts))
        if used + size > settings.quota_megabytes * _MEGABYTE:
            raise WorkspaceError(Problem.FULL, megabytes=settings.quota_megabytes)


def _listing(found: Iterable[Entry]) -> Listing:
    entries: list[Entry] = []
    more = unnamed = 0
    for one in found:
        if not (one.is_file or one.is_folder) or any(map(_problem, one.parts)):
            unnamed += 1
        elif len(entries) == MOST_SHOWN:
            more += 1
        else:
            entries.append(one)
    return Listing(tuple(entries), more, unnamed)
