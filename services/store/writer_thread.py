"""The one thread that writes, whatever the engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from services.store.units import Committer, Unit


class WriterThread:
    """Runs a Committer in a daemon thread: a store that nobody closed must not keep the process from ending, and
    dying at any point is safe. Calls `release` at its very end. `on_done`, with what could not be done now, and
    `on_end` are called in the loop."""

    def __init__(
        self,
        committer: Committer,
        release: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
        on_done: Callable[[Sequence[Unit]], None],
        on_end: Callable[[], None],
    ) -> None:
        self._committer = committer
        self._release = release
        self._loop = loop
        self._on_done = on_done
        self._on_end = on_end
        self._inbox: SimpleQueue[Sequence[Unit] | None] = SimpleQueue()

    def start(self) -> None:
        """Begin to work."""
        threading.Thread(target=self._work, name="store-writer", daemon=True).start()

    def run(self, units: Sequence[Unit]) -> None:
        """Hand a group over; `on_done` follows when all its outcomes are set."""
        self._inbox.put(units)

    def end(self) -> None:
        """Close the connection after the groups handed over; `on_end` follows."""
        self._inbox.put(None)

    def _work(self) -> None:
        try:
            while (units := self._inbox.get()) is not None:
                left = self._committer.run(units)
                if not self._tell(self._on_done, left):
                    break
            self._committer.finish()
        finally:
            self._committer.close()
            self._release()
            self._tell(self._on_end)

    def _tell(self, callback: Callable[..., None], *args: object) -> bool:
        """False when the loop is closed, and nobody is there to be told."""
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            return False
        return True
