"""Running: all that a run has at a moment. The instructions work on it; the machine lets them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping

from function_calls.basic.caught import LastError
from function_calls.basic.frames import Frame
from function_calls.basic.limits import Limits
from function_calls.basic.memory import Memory
from function_calls.basic.program import Procedure
from function_calls.basic.world import World
from services.json_values import JsonObject, JsonValue


class Running:
    """The state of one run, and what it may use."""

    __slots__ = ("error", "frames", "limits", "memory", "procedures", "top", "world")

    def __init__(
        self,
        procedures: Mapping[str, Procedure],
        top: JsonObject,
        world: World,
        limits: Limits,
        held: int = 0,
        above: int = 0,
    ) -> None:
        self.procedures = procedures
        self.top = top
        """The script's own variables, which its SUBs and FUNCTIONs see as well."""
        self.frames: list[Frame] = []
        """The one that runs is last."""
        self.world = world
        self.limits = limits
        self.error = LastError()
        self.memory = Memory(limits, functools.partial(_held_by, self.frames), held, above)

    def count(self) -> int:
        """How many values these are, those in lists and maps not counted."""
        return sum(
            len(frame.variables) + len(frame.stack) + len(frame.loops) + sum(len(way.loops) for way in frame.ways_back)
            for frame in self.frames
        )


def _held_by(frames: Iterable[Frame]) -> Iterator[JsonValue]:
    """Everything that a run of these frames holds."""
    for frame in frames:
        yield from frame.variables.values()
        yield from frame.stack
        for loop in frame.loops:
            yield from loop
        for way in frame.ways_back:
            for loop in way.loops:
                yield from loop
