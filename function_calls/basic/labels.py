"""Labels, and what goes to them, in one SUB, FUNCTION or tool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from function_calls.basic.codes import Code
from function_calls.basic.nodes import At
from function_calls.basic.reading import Reading

Path = tuple[int, ...]
"""The blocks around a statement, from the outermost one inwards, each with a number of its own."""


class _Place(NamedTuple):
    at: At
    path: Path


class _Going(NamedTuple):
    at: At
    """Of the label's name."""
    label: str
    what: str
    path: Path


class Labels:
    """Collected while a script is read."""

    __slots__ = ("_goings", "_places", "_reading")

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._places: dict[str, _Place] = {}
        self._goings: list[_Going] = []

    def stands(self, at: At, name: str, path: Path) -> None:
        """A label stands here."""
        first = self._places.setdefault(name, _Place(at, path))
        if first.at != at:
            message = f"the label {name} stands in line {first.at.line} already; give one of them another name"
            self._reading.fault(at, Code.DUPLICATE_NAME, message)

    def wanted(self, at: At, name: str, what: str, path: Path) -> None:
        """GOTO, GOSUB or ON ERROR GOTO goes to it."""
        self._goings.append(_Going(at, name, what, path))

    @contextmanager
    def of_their_own(self) -> Iterator[None]:
        """A SUB or FUNCTION begins, and lasts."""
        outside = self._places, self._goings
        self._places, self._goings = {}, []
        try:
            yield
            self.settle()
        finally:
            self._places, self._goings = outside

    def settle(self) -> None:
        """All of the SUB, FUNCTION or tool has been read: remember what goes nowhere, and begin anew."""
        for going in self._goings:
            place = self._places.get(going.label)
            if place is None:
                self._unknown(going)
            elif place.path != going.path[: len(place.path)]:
                message = (
                    f"{going.what} {going.label} goes into a block from outside: the label in line {place.at.line} "
                    "stands within an IF, a loop or a SELECT; put it behind or before that"
                )
                self._reading.fault(going.at, Code.MISPLACED, message)
        self._places.clear()
        self._goings.clear()

    def _unknown(self, going: _Going) -> None:
        hint = self._reading.nearest.hint((going.label,), self._places)
        message = (
            f"there is no label {going.label} here{hint}; a label is a line's number, or `{going.label}:` on a line"
        )
        self._reading.fault(going.at, Code.UNKNOWN_LABEL, message)
