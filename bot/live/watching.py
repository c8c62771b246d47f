"""File watcher: reports changed paths of settings and sources."""

from __future__ import annotations

import asyncio
import os
import stat
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from watchfiles import Change


_MOST_FOLDERS = 2000
"""Limit per path: more folders are not a folder of functions, but a whole disk."""
_MOST_LINKS = 40
"""Limit of links on the way to a file, as in the operating system; more are a cycle."""


@dataclass(frozen=True, slots=True)
class Places:
    """State of some paths at one time, and where their changes are visible."""

    folders: Mapping[str, tuple[int, int]]
    """The folders to watch, none of them links, with device and inode: a folder that is deleted and created again
    counts as new."""
    names: frozenset[str]
    """Relevant paths directly in those folders, existing or not."""
    whole: frozenset[str]
    """The folders where everything that is not hidden is relevant."""
    state: frozenset[tuple[str, tuple[int, ...]]]
    """Everything relevant that exists, with its state. Differs after any change."""
    is_cut: bool = False
    """Whether there are more folders than are watched."""

    def concerns(self, path: str) -> bool:
        """Whether a change of `path`, below one of the folders, may be relevant."""
        if path in self.names or path in self.folders:
            return True
        folder, _, name = path.rpartition("/")
        return (folder or "/") in self.whole and not _is_hidden(name)


def places_of(paths: Iterable[Path]) -> Places:
    """Paths to watch for changes of `paths`: for a missing path, the nearest existing folder; for a folder, everything
    below it and its parent; for a link, every step to its target."""
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
    """Accumulator for `places_of`."""

    def __init__(self) -> None:
        self.folders: set[str] = set()
        self.names: set[str] = set()
        self.whole: set[str] = set()
        self.state: dict[str, tuple[int, ...]] = {}
        self.is_cut = False

    def follow(self, path: str) -> None:
        """Follow `path` step by step. `at` is never a link, because links are replaced by their targets."""
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
            # A file is in the place of a folder and has to be removed first.
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
    """Whether no source reads the name: hidden files, compiled Python, and backups by editors."""
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
    """State that changes with the content. For a folder only its identity: its entries have states, and hidden files
    come and go."""
    if stat.S_ISDIR(found.st_mode):
        return (found.st_dev, found.st_ino)
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


LOOK_SECONDS = 30.0
"""Interval of full checks: some file systems send no events, and some events get lost."""
_STEP_MS = 50
"""Changes that follow each other this fast are one."""
_LONGEST_MS = 400
"""A file that is written continuously is checked this often."""
_log = structlog.get_logger("watching")


class _Asked:
    """One subscription to changes of paths."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self.places: Places | None = None
        """State at the last check; None before the first."""
        self.is_watched = asyncio.Event()
        self.is_touched = asyncio.Event()


class Watcher:
    """The port `Changes` on the file system. An event only triggers a check, and only subscriptions whose state has
    changed are notified. The next check finds changes whose events were lost."""

    def __init__(self) -> None:
        self._asked: list[_Asked] = []
        self._look = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._folders: dict[str, tuple[int, int]] = {}
        self._problem = ""
        self._is_closed = False

    def start(self) -> None:
        """Start watching in the background."""
        self._watching = asyncio.create_task(self._watch(), name="watcher")
        self._watching.add_done_callback(self._ended)

    async def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        """Yield once at the start, and after each change of `paths`, until closed; see `Changes`. Several changes may
        be one item."""
        asked = _Asked(paths)
        self._asked.append(asked)
        try:
            if self._watching is not None:
                self._look.set()
                # Changes after the first item must be noticed, so watching has to start before it.
                await asked.is_watched.wait()
            while not self._is_closed:
                asked.is_touched.clear()
                yield
                await asked.is_touched.wait()
        finally:
            self._asked.remove(asked)
            self._look.set()

    def wake_all(self) -> None:
        """Notify all subscriptions, whether or not anything has changed."""
        for asked in self._asked:
            asked.is_touched.set()
        self._look.set()

    async def look(self) -> None:
        """Check for changes whose events were lost."""
        self._look.set()

    async def close(self) -> None:
        """Stop watching and end all subscriptions, whose iterators finish."""
        self._is_closed = True
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        await self._end_listening()
        for asked in self._asked:
            asked.is_watched.set()
            asked.is_touched.set()

    def _ended(self, watching: asyncio.Task[None]) -> None:
        """Release the subscriptions that wait for a crashed watcher."""
        error = None if watching.cancelled() else watching.exception()
        if error is not None:
            _log.critical("files_are_not_watched", because="the watcher broke down", instead="SIGHUP", exc_info=error)
            self._watching = None
            for asked in self._asked:
                asked.is_watched.set()

    async def _watch(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            asked = list(self._asked)
            seen = await asyncio.to_thread(_seen, [one.paths for one in asked])
            self._take(asked, seen)
            folders = {folder: identity for one in seen for folder, identity in one.folders.items()}
            is_other = folders != self._folders
            if is_other or self._listening is None or self._listening.done():
                await self._listen_in(folders)
                if is_other:
                    # Changes before the new folders were watched sent no events.
                    self._look.set()
            for one in asked:
                one.is_watched.set()

    def _take(self, asked: Sequence[_Asked], seen: Sequence[Places]) -> None:
        """Store what was seen of each subscription, and notify those whose state has changed. Logs a warning if there
        are too many folders."""
        for one, places in zip(asked, seen, strict=True):
            if one.places is not None and one.places.state != places.state:
                one.is_touched.set()
            if places.is_cut and (one.places is None or not one.places.is_cut):
                paths = [str(path) for path in one.paths]
                _log.warning("too_many_folders_to_watch", paths=paths, watched=len(places.whole))
            one.places = places

    async def _listen_in(self, folders: dict[str, tuple[int, int]]) -> None:
        await self._end_listening()
        self._folders, self._stop = folders, asyncio.Event()
        if folders:
            self._listening = asyncio.create_task(self._listen(list(folders), self._stop), name="listener")
            # Its first step starts the watching.
            await asyncio.sleep(0)

    async def _end_listening(self) -> None:
        if self._listening is not None:
            self._stop.set()
            await asyncio.wait([self._listening])
            self._listening = None

    async def _listen(self, folders: Sequence[str], stop: asyncio.Event) -> None:
        from watchfiles import awatch

        try:
            events = awatch(
                *folders,
                watch_filter=self._concerns,
                debounce=_LONGEST_MS,
                step=_STEP_MS,
                stop_event=stop,
                recursive=False,
                ignore_permission_denied=True,
            )
            async for _ in events:
                self._look.set()
        except (OSError, RuntimeError) as error:
            # A folder was removed, or there are more folders than the system can watch: periodic checks continue.
            if str(error) != self._problem:
                _log.warning("folders_cannot_be_watched", problem=str(error), looked_at_every_seconds=LOOK_SECONDS)
            self._problem = str(error)
            self._folders = {}

    def _concerns(self, _change: Change, path: str) -> bool:
        return any(one.places is not None and one.places.concerns(path) for one in self._asked)


def _seen(asked: Sequence[Sequence[Path]]) -> list[Places]:
    return [places_of(paths) for paths in asked]
