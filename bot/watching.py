"""One watcher for all files that the daemon was made of: it tells those whose paths have changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from bot.watched_places import Places, places_of

if TYPE_CHECKING:
    from watchfiles import Change

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
        """Begin to watch. Without the package watchfiles nothing is noticed until `tell_all`."""
        try:
            import watchfiles  # noqa: F401 - optional, and a command that ends at once does without
        except ImportError:
            _log.warning("files_are_not_watched", because="watchfiles is not installed", instead="SIGHUP")
            return
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
