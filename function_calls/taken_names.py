"""Names and commands that functions have taken: within a bot each belongs to one function."""

from __future__ import annotations

from collections.abc import Sequence

from function_calls.groups import ToolGroup
from function_calls.spec import FunctionSpec


class TakenNames:
    """Who has which name or command. Functions of different bots may share them."""

    def __init__(self) -> None:
        self._takers: dict[tuple[str, str], list[FunctionSpec | ToolGroup]] = {}

    def clashes(self, one: FunctionSpec | ToolGroup) -> list[str]:
        """What `one` would take that another has, each with both places. Empty: it may be taken."""
        wanted = _wanted(one)
        if self._takers.keys().isdisjoint(wanted):
            return []
        return [
            f"{kind} {word!r} is taken twice: by {_place(other)} and by {_place(one)}"
            for kind, word in wanted
            for other in self._takers.get((kind, word), ())
            if other.bot is None or one.bot is None or other.bot == one.bot
        ]

    def take(self, one: FunctionSpec | ToolGroup) -> None:
        """From now on these are those of `one`."""
        for wanted in _wanted(one):
            self._takers.setdefault(wanted, []).append(one)


def _wanted(one: FunctionSpec | ToolGroup) -> Sequence[tuple[str, str]]:
    """A group is called by its name as a function is, so the two share their names."""
    commands = one.commands if isinstance(one, FunctionSpec) else ()
    return [("name", one.name), *(("command", word) for word in commands)]


def _place(one: FunctionSpec | ToolGroup) -> str:
    return f"{one.name} ({one.source})" if one.source else one.name
