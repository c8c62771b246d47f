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


LOOK_SECONDS = 30.0
"""So often everything is looked at: some file systems tell of no change, and some changes are told of to nobody."""
_STEP_MS = 50
"""Changes that follow each other as fast are one."""
_LONGEST_MS = 400
"""A file that is written all the time is looked at this often."""
_log = structlog.get_logger("watching")


class _Asked:
    """Somebody who wants to hear of some paths."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self.places: Places | None = None
        """As they were last seen; None: not yet."""
        self.is_watched = asyncio.Event()
        self.is_touched = asyncio.Event()


class Watcher:
    """The port `Changes` on the file system. An event only makes it look; what is other than it was is told. So nobody
    hears of what does not matter to them, and what was missed is found by the next look."""

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
        """Begin to watch."""
        self._watching = asyncio.create_task(self._watch(), name="watcher")
        self._watching.add_done_callback(self._ended)

    async def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        """See `Changes`."""
        asked = _Asked(paths)
        self._asked.append(asked)
        try:
            if self._watching is not None:
                self._look.set()
                # What changes after the first item is noticed, so it has to be watched before.
                await asked.is_watched.wait()
            while not self._is_closed:
                asked.is_touched.clear()
                yield
                await asked.is_touched.wait()
        finally:
            self._asked.remove(asked)
            self._look.set()

    def tell_all(self) -> None:
        """Anything may have changed: everybody looks again."""
        for asked in self._asked:
            asked.is_touched.set()
        self._look.set()

    async def look(self) -> None:
        """Find what was told of to nobody."""
        self._look.set()

    async def close(self) -> None:
        """Watch nothing any more; whoever waits for changes comes to an end."""
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
        """Nobody waits for a watcher that broke down."""
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
                    # What happened before the new folders were watched was told of to nobody.
                    self._look.set()
            for one in asked:
                one.is_watched.set()

    def _take(self, asked: Sequence[_Asked], seen: Sequence[Places]) -> None:
        """Tell those for whom something is other than it was."""
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
            # Its first step is to watch.
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
            # A folder that went away meanwhile, or more folders than the system watches: the looks go on.
            if str(error) != self._problem:
                _log.warning("folders_cannot_be_watched", problem=str(error), looked_at_every_seconds=LOOK_SECONDS)
            self._problem = str(error)
            self._folders = {}

    def _concerns(self, _change: Change, path: str) -> bool:
        return any(one.places is not None and one.places.concerns(path) for one in self._asked)


def _seen(asked: Sequence[Sequence[Path]]) -> list[Places]:
    return [places_of(paths) for paths in asked]
