"""Assembly: instructions put one behind the other, with places that are known only later."""

from __future__ import annotations

from dataclasses import dataclass, field

from function_calls.basic.nodes import At
from function_calls.basic.program import Instruction, Procedure
from services.json_values import JsonValue


@dataclass(slots=True)
class Spot:
    """A number that an instruction needs and that is known when all are there: mostly where it jumps to."""

    position: int = -1


@dataclass(slots=True)
class Assembly:
    """The code of one procedure as it grows."""

    _code: list[tuple[str, object]] = field(default_factory=list)
    _places: list[tuple[int, int, int]] = field(default_factory=list)
    _statements: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def here(self) -> int:
        """Where the next instruction comes to stand."""
        return len(self._code)

    def emit(self, at: At, operation: str, operand: object = None) -> None:
        """Append an instruction. In its operand, and in a list that is one, Spots become their positions."""
        if not self._places or self._places[-1][1:] != at:
            self._places.append((len(self._code), at.line, at.column))
        self._code.append((operation, operand))

    def mark(self, spot: Spot) -> None:
        """The next instruction is the one that `spot` means."""
        spot.position = len(self._code)

    def statement(self, start: int, loops: int) -> None:
        """From `start` to here stands one statement, within so many loops. Inner ones are told first."""
        self._statements.append((start, len(self._code), loops))

    def procedure(self, name: str, parameters: tuple[str, ...]) -> Procedure:
        """All of it."""
        code: tuple[Instruction, ...] = tuple((operation, _settled(operand)) for operation, operand in self._code)
        return Procedure(name, parameters, code, tuple(self._places), tuple(self._statements))


def _settled(operand: object) -> JsonValue:
    if isinstance(operand, Spot):
        return operand.position
    return [_settled(part) for part in operand] if isinstance(operand, list) else operand
