"""Puts the parts of a phrase together: a day, a time of day, a zone, how often, from when to when."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.times.beside import beside_parts
from services.times.bounds import deadline_parts, range_parts, repeat_parts
from services.times.clock_parts import clock_parts, number_parts
from services.times.dates import dates_at
from services.times.moments import Moment
from services.times.parts import Part, joined
from services.times.portions import portion_parts
from services.times.readings import Grain, Length, Reading
from services.times.recurrences import days_at
from services.times.relative import relative_parts
from services.times.resolving import resolve
from services.times.spots import Inner, Parts, Spot
from services.times.tokens import END, NUMBER, Line

_LINKS = frozenset(
    (
        *("at", "@", "on", "in", "of", "for", "from", "the", ",", ";", "during", "starting", "beginning"),
        *("around", "about", "approximately", "approx", "roughly", "exactly", "~", "and", "-", "is", "say"),
        *("sometime", "anytime", "over"),
    )
)
"""Words that only lead to what follows."""
_BEHIND = frozenset(("approximately", "approx", "roughly", "exactly", "sharp", "precisely", "ish"))
_FROM_THEN_ON = frozenset(("after", "afterwards", "thereafter"))
_MOST_STEPS = 400
"""Of one search, phrases within it included: no phrase that somebody says needs a tenth of it."""
_MOST_LINKS = 4
_MOST_DEPTH = 3
_MOST_TRIED = 3
"""Ways to the same end."""


@dataclass(slots=True)
class Budget:
    """How much may still be tried."""

    steps: int = _MOST_STEPS


@dataclass(slots=True)
class _Search:
    """What one search has found."""

    end: int
    """Where the phrase has to end; negative: as far as it goes."""
    in_range: bool = False
    ends: list[tuple[int, Part]] = field(default_factory=list)
    reading: Reading | None = None
    is_done: bool = False


class Phrases:
    """Looks for phrases in a line, as of one moment."""

    def __init__(self, line: Line, moment: Moment, budget: Budget | None = None) -> None:
        self._line = line
        self._moment = moment
        self._budget = budget or Budget()
        self._depth = 0

    def whole(self, start: int, end: int) -> Reading | None:
        """The reading of everything from `start` to `end`: one without a trouble, where there is one."""
        search = _Search(end)
        self._look(search, start, Part())
        return search.reading

    def longest(self, start: int) -> Inner | None:
        """The phrase that begins at `start` and goes furthest."""
        search = self._deeper(start, in_range=False)
        tried: dict[int, int] = {}
        for reached, part in sorted(search.ends, key=lambda one: -one[0]):
            tried[reached] = tried.get(reached, 0) + 1
            if tried[reached] <= _MOST_TRIED and (reading := resolve(part, self._moment)) is not None:
                return part, reading, reached
        return None

    def _other_end(self, start: int) -> tuple[Part, int] | None:
        search = self._deeper(start, in_range=True)
        return max(((part, reached) for reached, part in search.ends), key=lambda one: one[1], default=None)

    def _deeper(self, start: int, *, in_range: bool) -> _Search:
        search = _Search(-1, in_range)
        if self._depth < _MOST_DEPTH:
            self._depth += 1
            try:
                self._look(search, start, Part())
            finally:
                self._depth -= 1
        return search

    def _look(self, search: _Search, index: int, so_far: Part) -> None:
        if self._budget.steps <= 0:
            return
        self._budget.steps -= 1
        if so_far and 0 <= search.end <= index:
            reading = resolve(so_far, self._moment)
            if reading is not None and (search.reading is None or reading.trouble is None):
                search.reading = reading
                search.is_done = reading.trouble is None
            return
        if so_far:
            search.ends.append((index, so_far))
        if index >= self._line.size:
            search.is_done = search.end < 0
            return
        for part, after in self._candidates(search, index, so_far):
            both = joined(so_far, part) if part else so_far
            if after > index and both is not None:
                self._look(search, after, both)
                if search.is_done:
                    return

    def _candidates(self, search: _Search, index: int, so_far: Part) -> Parts:
        """What may stand next, behind words that only link."""
        line, link, has_the = self._line, "", False
        for at in range(index, min(index + _MOST_LINKS, line.size)):
            if line.kinds[at] == END:
                return
            spot = Spot(line, at, so_far, link, has_the, search.in_range, self._moment, self.longest, self._other_end)
            for rule in _RULES:
                yield from rule(spot)
            word = line.words[at]
            if word not in _LINKS or (word == "-" and line.glued(at) and line.kinds[at + 1] == NUMBER):
                return
            if word == "the":
                has_the = True
            elif word != "," or not link:
                link = word


def _filling_parts(spot: Spot) -> Parts:
    """`now`, and words behind a time that change nothing: `sharp`, `or so`, `-ish`."""
    word, then = spot.word, spot.ahead()
    if word in ("now", "immediately"):
        yield Part(length=Length(), grain=Grain.SECOND), spot.at + 1
    elif word in ("right", "just") and then == "now":
        yield Part(length=Length(), grain=Grain.SECOND), spot.at + 2
    elif not spot.so_far:
        return
    elif word in _BEHIND or (word in _FROM_THEN_ON and {"repeats", "span"} <= spot.so_far.keys()):
        yield Part(), spot.at + 1
    elif (word, then) in (("or", "so"), ("-", "ish")):
        yield Part(), spot.at + 2


def _date_parts(spot: Spot) -> Parts:
    yield from days_at(spot.line, spot.at)
    yield from dates_at(spot.line, spot.at, spot.moment.today, day_first=spot.moment.day_first)


_RULES = (
    repeat_parts,
    range_parts,
    _filling_parts,
    portion_parts,
    clock_parts,
    deadline_parts,
    relative_parts,
    beside_parts,
    _date_parts,
    number_parts,
)
"""In the order in which they are tried."""
