"""Program: a script as flat code. Plain data, so that it can be kept and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from sys import intern
from typing import Any

from function_calls.basic.nodes import At
from services.refs import JsonObject, JsonValue

VERSION = 1
"""Of the code's form. Programs of another one are generated anew."""

Instruction = tuple[str, JsonValue]
"""What to do, and with what: see `values_code.py` and `control_code.py`."""


class BadProgram(ValueError):
    """This is no program, or one of another version of the language."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A SUB, a FUNCTION, or with an empty name the script itself."""

    name: str
    parameters: tuple[str, ...]
    code: tuple[Instruction, ...]
    places: tuple[tuple[int, int, int], ...]
    """From which instruction on which line and column it comes from."""
    statements: tuple[tuple[int, int, int], ...]
    """Of each statement its first instruction, the one behind it, and how many loops stand around it: where a run goes
    on when the statement fails and ON ERROR RESUME NEXT holds. Inner statements come before those around them."""

    def place(self, position: int) -> At:
        """Where in the script the instruction comes from."""
        found = (1, 1)
        for start, line, column in self.places:
            if start > position:
                break
            found = (line, column)
        return At(*found)

    def behind(self, position: int) -> tuple[int, int]:
        """The instruction behind the statement that this one belongs to, and the loops that stand around that."""
        for start, end, loops in self.statements:
            if start <= position < end:
                return end, loops
        return len(self.code) - 1, 0  # what belongs to no statement is the end

    def to_json(self) -> JsonObject:
        """As plain data."""
        return {
            "parameters": list(self.parameters),
            "code": [list(instruction) for instruction in self.code],
            "places": [list(place) for place in self.places],
            "statements": [list(statement) for statement in self.statements],
        }


@dataclass(frozen=True, slots=True)
class Program:
    """What a machine runs."""

    procedures: Mapping[str, Procedure]
    """By name; the script itself has none."""
    keywords: tuple[str, ...]
    """All keywords that it may want, sorted."""
    calls: tuple[str, ...]
    """The functions that it CALLs by a name that stands in it, as written, sorted."""
    digest: str
    """Two programs with the same one do the same."""

    def to_json(self) -> JsonObject:
        """As plain data."""
        return {
            "version": VERSION,
            "procedures": {name: procedure.to_json() for name, procedure in self.procedures.items()},
            "keywords": list(self.keywords),
            "calls": list(self.calls),
        }

    @classmethod
    def of_json(cls, data: JsonObject) -> Program:
        """The program that `to_json` wrote. Raises BadProgram."""
        try:
            if data["version"] != VERSION:
                raise BadProgram(f"the program is of version {data['version']!r}, not {VERSION}")
            procedures = {name: _procedure(name, written) for name, written in data["procedures"].items()}
            return made(procedures, [str(word) for word in data["keywords"]], [str(name) for name in data["calls"]])
        except (AttributeError, IndexError, KeyError, TypeError) as fault:
            raise BadProgram("this is no program") from fault


def made(procedures: Mapping[str, Procedure], keywords: list[str], calls: list[str]) -> Program:
    """The program of these parts, with its digest."""
    parts: list[Any] = [VERSION, {name: procedure.to_json() for name, procedure in procedures.items()}]
    written = json.dumps(parts, separators=(",", ":"), sort_keys=True)
    return Program(
        procedures, tuple(sorted(set(keywords))), tuple(sorted(set(calls))), sha256(written.encode()).hexdigest()
    )


def _procedure(name: str, data: JsonObject) -> Procedure:
    return Procedure(
        name,
        tuple(data["parameters"]),
        # The same text of an operation is one object, which makes finding it quicker.
        tuple((intern(operation), operand) for operation, operand in data["code"]),
        tuple((start, line, column) for start, line, column in data["places"]),
        tuple((start, end, loops) for start, end, loops in data["statements"]),
    )
