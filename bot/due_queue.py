"""What is due and waits to be said: a line for each chat, chats in turn, one at a time of each."""

from __future__ import annotations

import heapq
import itertools
from collections import deque

from services.clock import Clock


class DueQueue:
    """Lines of ids. A chat whose id was taken gives the next one only after its `release`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: set[int] = set()
        self._lines: dict[str, deque[int]] = {}
        self._ready: deque[str] = deque()
        self._busy: set[str] = set()
        self._later: list[tuple[float, int, str]] = []
        self._order = itertools.count()
        self.waiting = 0
        """Ids that nobody has taken."""

    @property
    def known(self) -> int:
        """Ids that wait or were taken and are not forgotten yet."""
        return len(self._known)

    def add(self, chat: str, one: int) -> None:
        """At the end of the chat's line; nothing when it is known."""
        if one in self._known:
            return
        self._known.add(one)
        self._line(chat).append(one)
        self.waiting += 1

    def take(self) -> tuple[str, int] | None:
        """The first of the chat whose turn it is; None when no chat is ready."""
        while self._later and self._later[0][0] <= self._clock.monotonic():
            self._free(heapq.heappop(self._later)[2])
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

    def forget(self, one: int) -> None:
        """What was taken is done with."""
        self._known.discard(one)

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
