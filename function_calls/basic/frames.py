"""Frames: what one call of a procedure has while it runs. Frames and all in them become plain data and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from function_calls.basic.program import Procedure
from services.json_values import JsonObject, JsonValue

Loop = list[Any]
"""A FOR that is under way: `[items, next]` of FOR EACH, `[first, times, last, step]` of FOR … TO."""


@dataclass(slots=True)
class WayBack:
    """Where a GOSUB comes back to."""

    position: int
    loops: list[Loop]
    """As they were; what happens in between changes them as little as it changes where to come back to."""


@dataclass(slots=True)
class Frame:
    """One call of a procedure. The script itself is the first one, and its variables are those of the top."""

    procedure: Procedure
    variables: JsonObject
    position: int = 0
    """The instruction that is next; while one runs, the one behind it."""
    stack: list[JsonValue] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    """From the outermost one inwards."""
    ways_back: list[WayBack] = field(default_factory=list)
    on_error: int | str | None = None
    """What ON ERROR said here: `next`, `off`, or the instruction of a label. None: nothing; the caller's word holds."""

    def to_json(self, is_top: bool) -> JsonObject:
        """As plain data that the run changes no more."""
        return {
            "procedure": self.procedure.name,
            "variables": None if is_top else dict(self.variables),
            "position": self.position,
            "stack": list(self.stack),
            "loops": [list(loop) for loop in self.loops],
            "ways_back": [[way.position, [list(loop) for loop in way.loops]] for way in self.ways_back],
            "on_error": self.on_error,
        }


def frame_of_json(data: JsonObject, procedure: Procedure, top: JsonObject) -> Frame:
    """The frame that `to_json` wrote. Raises KeyError, TypeError and ValueError for anything else."""
    return Frame(
        procedure,
        top if data["variables"] is None else dict(data["variables"]),
        _position(data["position"], procedure),
        list(data["stack"]),
        [list(loop) for loop in data["loops"]],
        [
            WayBack(_position(position, procedure), [list(loop) for loop in loops])
            for position, loops in data["ways_back"]
        ],
        data["on_error"],
    )


def _position(value: JsonValue, procedure: Procedure) -> int:
    if type(value) is not int or not 0 <= value < len(procedure.code):
        raise ValueError("a position outside of the procedure")
    return value
