"""What is due and waits to be said: a line for each chat, chats in turn, one at a time of each."""

from __future__ import annotations

import heapq
import itertools
from collections import deque

from services.clock import Clock

_ASIDE_SECONDS = 60.0
_LONGEST_ASIDE_SECONDS = 900.0


class DueQueue:
    """Lines of ids. A chat whose id was taken gives the next one only after its `release`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: set[int] = set()
        self._lines: dict[str, deque[int]] = {}
        self._ready: deque[str] = deque()
        self._busy: set[str] = set()
        self._later: list[tuple[float, int, str]] = []
        self._aside: list[tuple[float, int, str, int]] = []
        self._failures: dict[int, int] = {}
        self._order = itertools.count()
        self.waiting = 0
        """Ids that nobody has taken."""

    @property
    def known(self) -> int:
        """Ids that wait or were taken and are not forgotten yet."""
        return len(self._known)

    @property
    def aside(self) -> int:
        """Those of the known that were put aside and whose time has not come."""
        return len(self._aside)

    def add(self, chat: str, one: int) -> None:
        """At the end of the chat's line; nothing when it is known."""
        if one in self._known:
            return
        self._known.add(one)
        self._line(chat).append(one)
        self.waiting += 1

    def take(self) -> tuple[str, int] | None:
        """The first of the chat whose turn it is; None when no chat is ready."""
        now = self._clock.monotonic()
        while self._later and self._later[0][0] <= now:
            self._free(heapq.heappop(self._later)[2])
        while self._aside and self._aside[0][0] <= now:
            _, _, chat, one = heapq.heappop(self._aside)
            self._line(chat).append(one)
        if not self._ready:
            return None
        chat = self._ready.popleft()
        line = self._lines[chat]
        one = line.popleft()
        if not line:
            del self._lines[chat]
        self._busy.add(chat)
        self.waiting -= 1
        return chat, one

    def put_back(self, chat: str, one: int) -> None:
        """What was taken is the first of its chat again."""
        self._line(chat).appendleft(one)
        self.waiting += 1

    def put_aside(self, chat: str, one: int) -> None:
        """What was taken failed by a fault of its own: it stands at the end of its chat's line again after a minute,
        and each time that it fails once more after twice as long, up to a quarter of an hour."""
        failures = self._failures.get(one, 0)
        self._failures[one] = failures + 1
        seconds = min(_ASIDE_SECONDS * 2**failures, _LONGEST_ASIDE_SECONDS)
        heapq.heappush(self._aside, (self._clock.monotonic() + seconds, next(self._order), chat, one))
        self.waiting += 1

    def forget(self, one: int) -> None:
        """What was taken is done with."""
        self._known.discard(one)
        self._failures.pop(one, None)

    def release(self, chat: str, pause_seconds: float = 0.0) -> None:
        """The chat may give its next one, after a pause."""
        if pause_seconds > 0:
            heapq.heappush(self._later, (self._clock.monotonic() + pause_seconds, next(self._order), chat))
        else:
            self._free(chat)

    def clear(self) -> None:
        """Forget all that wait; what was taken stays taken."""
        for line in self._lines.values():
            self._known.difference_update(line)
        self._known.difference_update(one for _, _, _, one in self._aside)
        self._aside.clear()
        self._failures.clear()
        self._lines.clear()
        self._ready.clear()
        self.waiting = 0

    def _line(self, chat: str) -> deque[int]:
        line = self._lines.get(chat)
        if line is None:
            line = self._lines[chat] = deque()
            if chat not in self._busy:
                self._ready.append(chat)
        return line

    def _free(self, chat: str) -> None:
        self._busy.discard(chat)
        if chat in self._lines:
            self._ready.append(chat)
