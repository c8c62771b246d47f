"""Jumps of one procedure: its labels, what goes there, and the loops that EXIT and CONTINUE mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NamedTuple

from function_calls.basic.assembly import Assembly, Spot
from function_calls.basic.codes import Code, Fault
from function_calls.basic.nodes import At, Label

Path = tuple[int, ...]
"""The blocks around a statement, from the outermost one inwards, each with a number of its own."""


class Around(NamedTuple):
    """A block that can be left."""

    kind: str
    leave: Spot
    leave_loops: int
    again: Spot | None = None
    again_loops: int = 0


class _Place(NamedTuple):
    at: At
    spot: Spot
    path: Path
    loops: int


class _Going(NamedTuple):
    """Somebody goes to a label."""

    at: At
    label: str
    path: Path
    target: Spot
    loops: Spot
    what: str


_ALSO = {"do": "while", "while": "do"}


class Jumps:
    """Collected while the code is made, settled when all of it is there."""

    def __init__(self, assembly: Assembly, faults: list[Fault]) -> None:
        self._assembly = assembly
        self._faults = faults
        self._labels: dict[str, _Place] = {}
        self._goings: list[_Going] = []
        self._around: list[Around] = []
        self._path: Path = ()
        self._blocks = 0
        self.loops = 0
        """How many FORs are under way here."""

    @contextmanager
    def block(self, around: Around | None = None, loops: int = 0) -> Iterator[None]:
        """What stands in here is a block of its own, with so many more FORs under way."""
        self._blocks += 1
        before = self._path
        self._path = (*before, self._blocks)
        self.loops += loops
        if around is not None:
            self._around.append(around)
        yield
        if around is not None:
            self._around.pop()
        self.loops -= loops
        self._path = before

    def label(self, label: Label) -> None:
        """A label stands here."""
        spot = Spot()
        self._assembly.mark(spot)
        first = self._labels.setdefault(label.name, _Place(label.at, spot, self._path, self.loops))
        if first.spot is not spot:
            self._faults.append(
                Fault(label.at, Code.DUPLICATE_NAME, f"the label {label.name} stands in line {first.at.line} already")
            )

    def go(self, at: At, label: str, comes_back: bool) -> None:
        """GOTO or GOSUB."""
        going = _Going(at, label, self._path, Spot(), Spot(), "GOSUB" if comes_back else "GOTO")
        self._goings.append(going)
        if comes_back:
            self._assembly.emit(at, "gosub", [going.target, going.loops])
        else:
            if self.loops:
                self._assembly.emit(at, "cut", going.loops)
            self._assembly.emit(at, "jump", going.target)

    def on_error(self, at: At, label: str) -> None:
        """ON ERROR GOTO: the label has to stand in no block, since errors come from anywhere."""
        going = _Going(at, label, (), Spot(), Spot(), "ON ERROR GOTO")
        self._goings.append(going)
        self._assembly.emit(at, "on_error", going.target)

    def leave(self, at: At, what: str) -> None:
        """EXIT: go behind the innermost block of this kind."""
        around = self._innermost(what)
        if around is None:
            self._misplaced(at, "BREAK" if what == "loop" else f"EXIT {what.upper()}", what)
        else:
            self._go(at, around.leave, around.leave_loops)

    def again(self, at: At, what: str) -> None:
        """CONTINUE: go to where the innermost loop of this kind begins anew."""
        around = self._innermost(what)
        if around is None or around.again is None:
            self._misplaced(at, "CONTINUE" if what == "loop" else f"CONTINUE {what.upper()}", what)
        else:
            self._go(at, around.again, around.again_loops)

    def settle(self) -> None:
        """All labels have been told."""
        for going in self._goings:
            place = self._labels.get(going.label)
            if place is None:
                near = get_close_matches(going.label, list(self._labels), 1)
                hint = f"; is {near[0]} meant?" if near else ""
                message = f"there is no label {going.label} for {going.what} in this SUB, FUNCTION or script{hint}"
                self._faults.append(Fault(going.at, Code.UNKNOWN_LABEL, message))
            elif place.path != going.path[: len(place.path)]:
                message = (
                    f"{going.what} {going.label} goes into a block from outside: the label in line {place.at.line} "
                    "stands within an IF, a loop or a SELECT; put it behind or before that"
                )
                self._faults.append(Fault(going.at, Code.MISPLACED, message))
            else:
                going.target.position = place.spot.position
                going.loops.position = place.loops

    def _innermost(self, what: str) -> Around | None:
        for wanted in (what, _ALSO.get(what)):
            for around in reversed(self._around):
                if around.kind == wanted or (what == "loop" and around.kind != "select"):
                    return around
        return self._around[-1] if what == "loop" and self._around else None

    def _go(self, at: At, spot: Spot, loops: int) -> None:
        if loops != self.loops:
            self._assembly.emit(at, "cut", loops)
        self._assembly.emit(at, "jump", spot)

    def _misplaced(self, at: At, statement: str, what: str) -> None:
        of = "loop" if what == "loop" else what.upper()
        self._faults.append(Fault(at, Code.MISPLACED, f"{statement} stands in no {of}"))
