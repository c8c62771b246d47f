"""A folder of files per chat. Paths are resolved component by component and never leave the folder."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import secrets
import stat
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from config.sections.processes import FilesSettings
from services.patterns import is_visible
from services.refs import ChatRef
from services.storage import path_matches

MOST_DEPTH = 12
_MOST_NAME_BYTES = 200  # of the 255 that file systems take, so that a name of ours fits beside it
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LONGEST_FOLDER = 180
_KEPT_OF_A_LONG_ONE = 100


class Problem(StrEnum):
    """Why something cannot be done in a workspace; `files.problem.…` says it."""

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
    NO_FILE = "no_file"  # a link, a device, a pipe
    LINKED = "linked"
    NOT_TEXT = "not_text"
    TOO_BIG = "too_big"
    FULL = "full"
    TOO_MANY = "too_many"


class WorkspaceError(Exception):
    """Something cannot be done; `values` are for the sentence that says so."""

    def __init__(self, problem: Problem, **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.values = values


def parts_of(path: str) -> tuple[str, ...]:
    """The names that a path or a pattern leads through, each fit to be one; `.` is none. Raises WorkspaceError."""
    parts = _parts(path)
    if not parts:
        raise WorkspaceError(Problem.BLANK)
    return parts


def folder_parts_of(path: str) -> tuple[str, ...]:
    """The same for a folder; nothing and `.` mean the workspace itself. Raises WorkspaceError."""
    return _parts(path) if path.strip() else ()


def is_name(name: str) -> bool:
    """Whether a name that stands in a folder is one that could be written here."""
    return _problem(name) is None


def folder_name(chat: ChatRef) -> str:
    """What the folder of `chat` is called: different for different chats, on file systems that do not tell capitals
    from small letters as well."""
    name = "".join(_plain(one) for one in chat.key)
    if len(name) <= _LONGEST_FOLDER:
        return name
    # A dot stands in no shorter name, so this is no other chat's.
    digest = hashlib.sha256(chat.key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:_KEPT_OF_A_LONG_ONE]}.{digest}"


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
    """What is wrong with one name."""
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
# Not waiting for who would write into a pipe, and not taking a terminal.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TO_OWNER = 0o700
_TO_OWNER_FILE = 0o600


@dataclass(frozen=True, slots=True)
class Found:
    """Something in a folder, as it is itself: of a link, the link."""

    parts: tuple[str, ...]
    is_folder: bool
    is_file: bool
    size: int


@contextmanager
def opened(root: int, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The folder that `parts` lead to from the folder `root`, open while the block runs. `make`: what is missing is
    made. Raises WorkspaceError."""
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
    """What is in a plain file. Raises WorkspaceError for all else, and for a file that is longer."""
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
    if found.st_nlink > 1:  # the other name may be anywhere
        raise WorkspaceError(Problem.LINKED)


def write(folder: int, name: str, content: bytes, beside: str) -> None:
    """Put `content` into the place of `name`, all of it or nothing; `beside` is a name that is free. What had the name
    before is left as it is and has lost it. Raises WorkspaceError where that was no plain file."""
    before = found_at(folder, name)
    if before is not None and before.is_folder:
        raise WorkspaceError(Problem.IS_FOLDER)
    if before is not None and not before.is_file:
        raise WorkspaceError(Problem.NO_FILE)
    try:
        _replace(folder, name, content, beside)
    except FileNotFoundError:  # somebody has removed the folder in this moment
        raise WorkspaceError(Problem.NOT_FOUND) from None


def _replace(folder: int, name: str, content: bytes, beside: str) -> None:
    descriptor = os.open(beside, _NEW_FILE, _TO_OWNER_FILE, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        raise
    os.fsync(folder)


def remove(folder: int, name: str) -> None:
    """Take a plain file away. Raises WorkspaceError for all else."""
    found = found_at(folder, name)
    if found is None:
        raise WorkspaceError(Problem.NOT_FOUND)
    if found.is_folder:
        raise WorkspaceError(Problem.IS_FOLDER)
    if not found.is_file:
        raise WorkspaceError(Problem.NO_FILE)
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:  # somebody was faster
        raise WorkspaceError(Problem.NOT_FOUND) from None
    os.fsync(folder)


def found_at(folder: int, name: str) -> Found | None:
    """What has that name in the folder; None: nothing."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return Found((name,), stat.S_ISDIR(status.st_mode), stat.S_ISREG(status.st_mode), status.st_size)


def walk(folder: int, most: int, *, deep: bool = True) -> Iterator[Found]:
    """Everything in the folder and, where `deep`, in those below, by name; a folder before what is in it. Of one folder
    at most `most`. Raises WorkspaceError where folders lie deeper than anything that is written here."""
    return _walk(folder, (), most, deep)


def _walk(folder: int, above: tuple[str, ...], most: int, deep: bool) -> Iterator[Found]:
    if len(above) > MOST_DEPTH:
        raise WorkspaceError(Problem.TOO_DEEP, most=MOST_DEPTH)
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in itertools.islice(entries, most))
    for name in names:
        found = found_at(folder, name)
        if found is None:
            continue
        parts = (*above, name)
        yield Found(parts, found.is_folder, found.is_file, found.size)
        if not (found.is_folder and deep):
            continue
        try:
            inner = _open_folder(name, folder)
        except WorkspaceError:
            continue  # it went, or became something else, in this moment
        try:
            yield from _walk(inner, parts, most, deep)
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


__all__ = ["Entry", "Listing", "Problem", "Workspace", "WorkspaceError", "Workspaces"]
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
    """One chat's folder. Everything here blocks, and belongs into a thread. Each operation raises WorkspaceError for
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
        with self._opened() as root, opened(root, above) as folder:
            return read(folder, name, self._most_bytes)

    def write(self, path: str, content: bytes, *, append: bool = False) -> int:
        """Write the file, whole or not at all, and the folders that lead to it; how many bytes it has then. `append`:
        behind what it holds."""
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
        """Take the file away."""
        *above, name = parts_of(path)
        with self._lock, self._opened() as root, opened(root, above) as folder:
            remove(folder, name)

    def list(self, path: str = "") -> Listing:
        """What lies in the folder `path`, by name."""
        parts = folder_parts_of(path)
        try:
            with self._opened() as root, opened(root, parts) as folder:
                return _listing(walk(folder, self._settings.most_files + 1, deep=False), parts)
        except WorkspaceError as fault:
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
        except WorkspaceError as fault:
            if fault.problem is Problem.NOT_FOUND:
                return Listing((), 0, 0)
            raise

    def _everything(self, root: int) -> Iterator[Found]:
        """All that is here, and at most one more than may be: what a process has left behind may be much more."""
        most = self._settings.most_files + 1
        return itertools.islice(walk(root, most), most)

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """The chat's folder."""
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
        """What the file holds now; nothing where there is none."""
        try:
            with opened(root, parts[:-1]) as folder:
                return read(folder, parts[-1], self._most_bytes)
        except WorkspaceError as fault:
            if fault.problem is Problem.NOT_FOUND:
                return b""
            raise

    def _check_room(self, root: int, parts: Sequence[str], size: int) -> None:
        """Raises WorkspaceError where a file of that size finds no room."""
        settings = self._settings
        if size > self._most_bytes:
            raise WorkspaceError(Problem.TOO_BIG, kilobytes=settings.file_kilobytes)
        there = {found.parts: found for found in self._everything(root)}
        new = sum(tuple(parts[:length]) not in there for length in range(1, len(parts) + 1))
        if new and len(there) + new > settings.most_files:
            raise WorkspaceError(Problem.TOO_MANY, most=settings.most_files)
        used = sum(found.size for found in there.values() if found.is_file and found.parts != tuple(parts))
        if used + size > settings.quota_megabytes * _MEGABYTE:
            raise WorkspaceError(Problem.FULL, megabytes=settings.quota_megabytes)


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
