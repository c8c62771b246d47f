"""Names of tools: within a bot each belongs to one file, the one that had it first."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from config.diagnostics import Diagnostic
from function_calls.basic.codes import Code

ToolKey = tuple[str, str]
"""Bot and name."""


class Taker(NamedTuple):
    """The file that a name belongs to."""

    source: str
    path: str
    file: str
    """As a person is told of it."""


class Names:
    """Who has which name."""

    def __init__(self) -> None:
        self._takers: dict[ToolKey, Taker] = {}

    def take(self, key: ToolKey, taker: Taker) -> Taker | None:
        """Who else has it already; None: it is the taker's from now on."""
        first = self._takers.setdefault(key, taker)
        return None if first[:2] == taker[:2] else first

    def free(self, source: str, path: str, but: Collection[ToolKey] = ()) -> None:
        """The file has none any more but these."""
        theirs = [key for key, taker in self._takers.items() if taker[:2] == (source, path)]
        for key in theirs:
            if key not in but:
                del self._takers[key]

    def is_free(self, key: ToolKey) -> bool:
        """Whether nobody has it."""
        return key not in self._takers


def taken_twice(key: ToolKey, first: str, second: str, line: int) -> Diagnostic:
    """The fault of the second file that would be a tool which the first one is already."""
    bot, name = key
    message = f"tool {name!r} of bot {bot!r} is there twice, in {first} and in {second}; call one of them otherwise"
    return Diagnostic(second, line, 1, Code.DUPLICATE_TOOL.value, message)
