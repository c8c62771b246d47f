"""The English reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from services.times.lexicon import VAGUE
from services.times.parts import Part
from services.times.phrases import Phrase
from services.times.readings import Found, Grain, Kind, Reading
from services.times.repeats import Trouble
from services.times.resolving import Moment
from services.times.tokens import NUMBER, ORDINAL, SIGN, WORD, Line

_LATIN = re.compile(r"[A-Za-z0-9]")
_EDGES = frozenset(".,;:!?()[]<>\"'“”‘’-…")
_OFTEN_OTHER = frozenset("may march mar second sat sun mon wed fri fall spring dec jan jun".split())
"""Words that are more often something else than a time when they stand alone in a sentence."""
_MOST_ITEMS = 120


class English:
    """Reads English. With `day_first`, 3/4 is the 3rd of April."""

    def __init__(self, *, day_first: bool = False) -> None:
        self._day_first = day_first

    def speaks(self, text: str) -> bool:
        return _LATIN.search(text) is not None

    def read(self, text: str, now: datetime) -> Reading | None:
        moment = Moment.at(now, day_first=self._day_first)
        bare = " ".join(text.lower().split()).strip(".!? ")
        if bare in VAGUE:
            return Reading(Kind.INSTANT, moment.wall, moment.wall, Grain.SECOND, trouble=Trouble.VAGUE)
        line = Line(text)
        start, end = 0, line.size
        while start < end and line.kinds[start] == SIGN and line.words[start] in _EDGES:
            start += 1
        while (
            end > start
            and line.kinds[end - 1] == SIGN
            and line.words[end - 1] in _EDGES
            and not _is_mark(line, end - 1)
        ):
            end -= 1
        if start == end or end - start > _MOST_ITEMS:
            return None
        try:
            return Phrase(line, moment).whole(start, end)
        except (OverflowError, ValueError):  # outside of the calendar
            return None

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        moment = Moment.at(now, day_first=self._day_first)
        line, found, index = Line(text), [], 0
        while index < min(line.size, _MOST_ITEMS):
            one = self._found_at(line, index, moment)
            if one is None:
                index += 1
                continue
            reading, end = one
            found.append(Found(reading, line.starts[index], line.ends[end - 1]))
            index = end
        return found

    def _found_at(self, line: Line, index: int, moment: Moment) -> tuple[Reading, int] | None:
        if line.kinds[index] == SIGN and line.words[index] not in ("@", "+"):
            return None
        try:
            longest = Phrase(line, moment).longest(index)
        except (OverflowError, ValueError):
            return None
        if longest is None or _is_weak(line, index, longest[2], longest[0]):
            return None
        return longest[1], longest[2]


def _is_mark(line: Line, index: int) -> bool:
    """Whether a sign at the end belongs to the time: 1' and 5"."""
    return line.words[index] in "'\"" and index > 0 and line.kinds[index - 1] == NUMBER and line.glued(index)


def _is_weak(line: Line, start: int, end: int, part: Part) -> bool:
    """Whether the words are too likely to mean something else within a sentence."""
    if end - start == 1:
        word, kind = line.words[start], line.kinds[start]
        if kind in (NUMBER, ORDINAL):
            return kind == ORDINAL or len(word) != 8
        if kind == WORD and word in _OFTEN_OTHER:
            return not line.text[line.starts[start]].isupper()
        return word in ("second", "week", "day", "month", "year", "quarter", "now")
    if part.keys() <= {"year"}:
        return line.words[start] not in ("in", "by", "year", "during")
    if part.keys() == {"day"}:
        return line.words[start] not in ("on", "by", "the", "until")
    return "trouble" in part
