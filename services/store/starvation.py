"""Keeps the event loop from starving the thread that writes.

A loop that never idles gives the interpreter lock up only for the moment of an empty poll, and takes it back before
the other thread has woken: that thread may wait for seconds. Two remedies, best together.
"""

from __future__ import annotations

import asyncio
import sys
import time

_SWITCH_SECONDS = 50e-6
_PATIENCE_SECONDS = 0.002
_PACE_SECONDS = 0.001
_PAUSE_SECONDS = 0.0002


def switch_threads_often() -> None:
    """Let a waiting thread ask for the interpreter after 50 µs instead of 5 ms. It holds for the whole process, so
    whoever owns the process calls it, before it opens a store."""
    sys.setswitchinterval(_SWITCH_SECONDS)


class Nudge:
    """While work is out at another thread for longer than 2 ms, pauses the loop for 0.2 ms in each millisecond.

    The pace matters: work may also be out because it waits for a lock or a disk.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def work_is_out(self) -> None:
        """The other thread has got work."""
        self._timer = self._loop.call_later(_PATIENCE_SECONDS, self._pause)

    def work_is_back(self) -> None:
        """It has done it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _pause(self) -> None:
        time.sleep(_PAUSE_SECONDS)
        self._timer = self._loop.call_later(_PACE_SECONDS, self._pause)
