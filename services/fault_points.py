"""Named points at which a test can kill the process or let a write fail. When unarmed, each takes one look-up."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Mapping


class FaultPoints:
    """Named points that are armed to kill the process or raise an OSError at their nth hit, from a text such as
    `tool.after_intent:3=kill;reply.before_outbox:1=ENOSPC`."""

    def __init__(self, armed: Mapping[str, tuple[int, str]] | None = None) -> None:
        self._armed = dict(armed or {})
        self._reached: dict[str, int] = {}
        self.reach: Callable[[str], object] = self._reach if self._armed else self._armed.__contains__
        """Report that execution has reached the named point. Performs the action armed for this hit, if any."""

    @classmethod
    def parse(cls, text: str) -> FaultPoints:
        """Parse `name:n=action;…` with the action `kill` (SIGKILL at the `n`th hit) or the name of an errno (raises
        that OSError); `n` defaults to 1. Raises ValueError for other texts."""
        armed: dict[str, tuple[int, str]] = {}
        for part in filter(None, (piece.strip() for piece in text.split(";"))):
            place, equals, action = part.partition("=")
            name, _, count = place.partition(":")
            is_known = action == "kill" or action in errno.errorcode.values()
            if not equals or not name or not is_known or not (count or "1").isdecimal():
                raise ValueError(f"{part!r} is not of the form name:n=kill or name:n=ENOSPC")
            armed[name] = (int(count or 1), action)
        return cls(armed)

    def _reach(self, name: str) -> None:
        if name in self._armed:
            self._hit(name)

    def _hit(self, name: str) -> None:
        at, action = self._armed[name]
        self._reached[name] = self._reached.get(name, 0) + 1
        if self._reached[name] != at:
            return
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        number = next(code for code, label in errno.errorcode.items() if label == action)
        raise OSError(number, os.strerror(number))
