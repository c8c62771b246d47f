"""Folders opened one name after another, each from the one before, so that no link is ever followed."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from services.workspace_paths import MOST_DEPTH, Problem, WorkspaceFault

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
    made. Raises WorkspaceFault."""
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
    """What is in a plain file. Raises WorkspaceFault for all else, and for a file that is longer."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        raise WorkspaceFault(Problem.NOT_FOUND) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EACCES):
            raise WorkspaceFault(Problem.NO_FILE) from None
        raise
    try:
        _check_plain(os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most_bytes + 1)
    finally:
        os.close(descriptor)
    if len(content) > most_bytes:
        raise WorkspaceFault(Problem.TOO_BIG, kilobytes=most_bytes // 1000)
    return content


def _check_plain(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise WorkspaceFault(Problem.IS_FOLDER)
    if not stat.S_ISREG(found.st_mode):
        raise WorkspaceFault(Problem.NO_FILE)
    if found.st_nlink > 1:  # the other name may be anywhere
        raise WorkspaceFault(Problem.LINKED)


def write(folder: int, name: str, content: bytes, beside: str) -> None:
    """Put `content` into the place of `name`, all of it or nothing; `beside` is a name that is free. What had the name
    before is left as it is and has lost it. Raises WorkspaceFault where that was no plain file."""
    before = found_at(folder, name)
    if before is not None and before.is_folder:
        raise WorkspaceFault(Problem.IS_FOLDER)
    if before is not None and not before.is_file:
        raise WorkspaceFault(Problem.NO_FILE)
    try:
        _replace(folder, name, content, beside)
    except FileNotFoundError:  # somebody has removed the folder in this moment
        raise WorkspaceFault(Problem.NOT_FOUND) from None


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
    """Take a plain file away. Raises WorkspaceFault for all else."""
    found = found_at(folder, name)
    if found is None:
        raise WorkspaceFault(Problem.NOT_FOUND)
    if found.is_folder:
        raise WorkspaceFault(Problem.IS_FOLDER)
    if not found.is_file:
        raise WorkspaceFault(Problem.NO_FILE)
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:  # somebody was faster
        raise WorkspaceFault(Problem.NOT_FOUND) from None
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
    at most `most`. Raises WorkspaceFault where folders lie deeper than anything that is written here."""
    return _walk(folder, (), most, deep)


def _walk(folder: int, above: tuple[str, ...], most: int, deep: bool) -> Iterator[Found]:
    if len(above) > MOST_DEPTH:
        raise WorkspaceFault(Problem.TOO_DEEP, most=MOST_DEPTH)
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
        except WorkspaceFault:
            continue  # it went, or became something else, in this moment
        try:
            yield from _walk(inner, parts, most, deep)
        finally:
            os.close(inner)


def _open_folder(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        raise WorkspaceFault(Problem.NOT_FOUND) from None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
    found = found_at(folder, name)
    is_plain = found is not None and found.is_file
    raise WorkspaceFault(Problem.NO_FOLDER if is_plain else Problem.NO_FILE)
