"""Where a change of some paths shows: the folders to watch, and whether anything there is other than it was."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_MOST_FOLDERS = 2000
"""Of one path: more of them is not a folder of functions, but somebody's whole disk."""
_MOST_LINKS = 40
"""So many links on the way to a file are a circle, as they are to the system."""


@dataclass(frozen=True, slots=True)
class Places:
    """What there is at some paths at one moment, and where it would show that something changes."""

    folders: Mapping[str, tuple[int, int]]
    """The folders to watch, none of them a link, each with its device and inode: one that was deleted and made again is
    another one."""
    names: frozenset[str]
    """Paths right in those folders that matter, whether they exist or not."""
    whole: frozenset[str]
    """Those of the folders in which everything matters that is not hidden."""
    state: frozenset[tuple[str, tuple[int, ...]]]
    """All that matters and exists. It differs whenever any of it was changed, added or taken away."""
    is_cut: bool = False
    """Whether there are more folders than are watched."""

    def concerns(self, path: str) -> bool:
        """Whether a change of `path`, below one of the folders, may matter."""
        if path in self.names or path in self.folders:
            return True
        folder, _, name = path.rpartition("/")
        return (folder or "/") in self.whole and not _is_hidden(name)


def places_of(paths: Iterable[Path]) -> Places:
    """Where changes of `paths` show. Of a path that does not exist, the nearest folder that does; of a folder, all
    below it and the folder around it; of a link, every step to what it leads to."""
    found = _Found()
    for path in paths:
        found.follow(os.path.abspath(path))
    return Places(
        {folder: identity for folder in found.folders if (identity := _identity(folder)) is not None},
        frozenset(found.names),
        frozenset(found.whole),
        frozenset(found.state.items()),
        found.is_cut,
    )


class _Found:
    """What has been found so far."""

    def __init__(self) -> None:
        self.folders: set[str] = set()
        self.names: set[str] = set()
        self.whole: set[str] = set()
        self.state: dict[str, tuple[int, ...]] = {}
        self.is_cut = False

    def follow(self, path: str) -> None:
        """Go to `path` step by step. Where it stands after each is no link, because links were replaced by what they
        lead to."""
        at, steps, links = "/", deque(path.split("/")), 0
        while steps:
            step = steps.popleft()
            if step in ("", "."):
                continue
            if step == "..":
                at = os.path.dirname(at)
                continue
            here = os.path.join(at, step)
            found = _looked_at(here)
            if found is None:
                self._note(at, here)
                return
            if stat.S_ISLNK(found.st_mode):
                self._note(at, here, found)
                links += 1
                try:
                    target = os.readlink(here)
                except OSError:
                    return
                if links > _MOST_LINKS:
                    return
                steps.extendleft(reversed(target.split("/")))
                at = "/" if target.startswith("/") else at
                continue
            if not steps:
                self._note(at, here, found)
            at = here
        if os.path.isdir(at):
            self._everything_in(at)

    def _note(self, folder: str, path: str, found: os.stat_result | None = None) -> None:
        if not os.path.isdir(folder):
            # A file stands where a folder is to be: it has to go first.
            folder, path = os.path.dirname(folder), folder
        self.folders.add(folder)
        self.names.add(path)
        if found is not None:
            self.state[path] = _state(found)

    def _everything_in(self, folder: str) -> None:
        if folder in self.whole:
            return
        if len(self.whole) >= _MOST_FOLDERS:
            self.is_cut = True
            return
        self.whole.add(folder)
        self.folders.add(folder)
        try:
            with os.scandir(folder) as entries:
                paths = [entry.path for entry in entries if not _is_hidden(entry.name)]
        except OSError:
            return
        for path in paths:
            found = _looked_at(path)
            if found is None:
                continue
            self.state[path] = _state(found)
            if stat.S_ISLNK(found.st_mode):
                self.follow(path)
            elif stat.S_ISDIR(found.st_mode):
                self._everything_in(path)


def _is_hidden(name: str) -> bool:
    """What no source reads: hidden files, what Python compiled, and what editors leave beside a file."""
    return name.startswith(".") or name == "__pycache__" or name.endswith("~")


def _looked_at(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def _identity(folder: str) -> tuple[int, int] | None:
    found = _looked_at(folder)
    return None if found is None else (found.st_dev, found.st_ino)


def _state(found: os.stat_result) -> tuple[int, ...]:
    """Of a folder only that it is this one: what is in it has a state of its own, and hidden files come and go."""
    if stat.S_ISDIR(found.st_mode):
        return (found.st_dev, found.st_ino)
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
