"""Program: compiled script as plain data, which can be stored and compared."""

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
"""Version of the code format. Programs of other versions are compiled again."""

Instruction = tuple[str, JsonValue]
"""Operation and operand, see `values_code.py` and `machine.py`."""


class BadProgram(ValueError):
    """The data is not a program, or a program of another version."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A SUB, a FUNCTION, or, with an empty name, the script itself."""

    name: str
    parameters: tuple[str, ...]
    code: tuple[Instruction, ...]
    places: tuple[tuple[int, int, int], ...]
    """Source positions: first instruction, line and column."""
    statements: tuple[tuple[int, int, int], ...]
    """First instruction of each statement, the instruction after it, and the number of loops around it, where ON ERROR
    RESUME NEXT continues. Inner statements precede the statements around them."""

    def place(self, position: int) -> At:
        """Source position of the instruction at index `position`; line 1, column 1 if unknown."""
        found = (1, 1)
        for start, line, column in self.places:
            if start > position:
                break
            found = (line, column)
        return At(*found)

    def behind(self, position: int) -> tuple[int, int]:
        """The instruction after the statement that contains `position`, and the number of loops around it."""
        for start, end, loops in self.statements:
            if start <= position < end:
                return end, loops
        return len(self.code) - 1, 0  # only the end is outside of all statements

    def to_json(self) -> JsonObject:
        """As plain data: `parameters`, `code`, `places` and `statements`."""
        return {
            "parameters": list(self.parameters),
            "code": [list(instruction) for instruction in self.code],
            "places": [list(place) for place in self.places],
            "statements": [list(statement) for statement in self.statements],
        }


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled script."""

    procedures: Mapping[str, Procedure]
    """By name; the script itself has the empty name."""
    keywords: tuple[str, ...]
    """Names of all keywords in it, sorted."""
    calls: tuple[str, ...]
    """Functions that it CALLs by a literal name, as written, sorted."""
    digest: str
    """Equal for programs with equal behaviour."""

    def to_json(self) -> JsonObject:
        """As plain data: `version` of the format, `procedures` by name, `keywords` and `calls`."""
        return {
            "version": VERSION,
            "procedures": {name: procedure.to_json() for name, procedure in self.procedures.items()},
            "keywords": list(self.keywords),
            "calls": list(self.calls),
        }

    @classmethod
    def of_json(cls, data: JsonObject) -> Program:
        """The program that `to_json` serialized. Raises BadProgram for another version or other data."""
        try:
            if data["version"] != VERSION:
                raise BadProgram(f"the program has version {data['version']!r}, not {VERSION}")
            procedures = {name: _procedure(name, written) for name, written in data["procedures"].items()}
            return made(procedures, [str(word) for word in data["keywords"]], [str(name) for name in data["calls"]])
        except (AttributeError, IndexError, KeyError, TypeError) as fault:
            raise BadProgram("the data is not a program") from fault


def made(procedures: Mapping[str, Procedure], keywords: list[str], calls: list[str]) -> Program:
    """A program of these parts, with its digest."""
    parts: list[Any] = [VERSION, {name: procedure.to_json() for name, procedure in procedures.items()}]
    written = json.dumps(parts, separators=(",", ":"), sort_keys=True)
    return Program(
        procedures, tuple(sorted(set(keywords))), tuple(sorted(set(calls))), sha256(written.encode()).hexdigest()
    )


def _procedure(name: str, data: JsonObject) -> Procedure:
    return Procedure(
        name,
        tuple(data["parameters"]),
        # Interned names make the dispatch faster.
        tuple((intern(operation), operand) for operation, operand in data["code"]),
        tuple((start, line, column) for start, line, column in data["places"]),
        tuple((start, end, loops) for start, end, loops in data["statements"]),
    )
