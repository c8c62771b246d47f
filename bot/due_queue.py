"""What is due and waits to be said: of each kind a line for each chat, chats in turn, one at a time of each."""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import NamedTuple

from services.clock import Clock

_ASIDE_SECONDS = 60.0
_LONGEST_ASIDE_SECONDS = 900.0


class Line(NamedTuple):
    """Which line something stands in."""

    kind: str
    chat: str


class DueQueue:
    """Lines of ids. A chat whose id was taken gives the next one, of any kind, only after its `release`."""

    def __init__(self, clock: Clock, kinds: Iterable[str]) -> None:
        self._clock = clock
        self._known: set[int] = set()
        self._lines: dict[Line, deque[int]] = {}
        # In order, and each chat is taken out at once from wherever it stands.
        self._ready: dict[str, OrderedDict[str, None]] = {kind: OrderedDict() for kind in kinds}
        self._busy: set[str] = set()
        self._later: list[tuple[float, int, str]] = []
        self._aside: list[tuple[float, int, Line, int]] = []
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

    def add(self, line: Line, one: int) -> None:
        """At the end of the line; nothing when it is known."""
        if one in self._known:
            return
        self._known.add(one)
        self._line(line).append(one)
        self.waiting += 1

    def take(self, kind: str) -> tuple[Line, int] | None:
        """The first of that kind of the chat whose turn it is; None when no chat is ready with one."""
        now = self._clock.monotonic()
        while self._later and self._later[0][0] <= now:
            self._free(heapq.heappop(self._later)[2])
        while self._aside and self._aside[0][0] <= now:
            _, _, back, one = heapq.heappop(self._aside)
            self._line(back).append(one)
        if not self._ready[kind]:
            return None
        line = Line(kind, next(iter(self._ready[kind])))
        for ready in self._ready.values():
            ready.pop(line.chat, None)
        ids = self._lines[line]
        one = ids.popleft()
        if not ids:
            del self._lines[line]
        self._busy.add(line.chat)
        self.waiting -= 1
        return line, one

    def put_back(self, line: Line, one: int) -> None:
        """What was taken is the first of its line again."""
        self._line(line).appendleft(one)
        self.waiting += 1

    def put_aside(self, line: Line, one: int) -> None:
        """What was taken failed by a fault of its own: it stands at the end of its line again after a minute, and each
        time that it fails once more after twice as long, up to a quarter of an hour."""
        failures = self._failures.get(one, 0)
        self._failures[one] = failures + 1
        seconds = min(_ASIDE_SECONDS * 2**failures, _LONGEST_ASIDE_SECONDS)
        heapq.heappush(self._aside, (self._clock.monotonic() + seconds, next(self._order), line, one))
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
        for ids in self._lines.values():
            self._known.difference_update(ids)
        self._known.difference_update(one for _, _, _, one in self._aside)
        self._aside.clear()
        self._failures.clear()
        self._lines.clear()
        for ready in self._ready.values():
            ready.clear()
        self.waiting = 0

    def _line(self, line: Line) -> deque[int]:
        ids = self._lines.get(line)
        if ids is None:
            ids = self._lines[line] = deque()
            if line.chat not in self._busy:
                self._ready[line.kind][line.chat] = None
        return ids

    def _free(self, chat: str) -> None:
        self._busy.discard(chat)
        for kind, ready in self._ready.items():
            if Line(kind, chat) in self._lines:
                ready[chat] = None
