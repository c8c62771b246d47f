"""The English reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime

from services.lazy_patterns import lazy_pattern
from services.times.lexicon import VAGUE
from services.times.moments import Moment
from services.times.parts import Part
from services.times.phrases import Budget, Phrases
from services.times.readings import Found, Reading, nothing
from services.times.repeats import Trouble
from services.times.tokens import NUMBER, ORDINAL, SIGN, WORD, Line

_LATIN = lazy_pattern(r"[A-Za-z0-9]")
_EDGES = frozenset(".,;:!?()[]<>\"'“”‘’-…")
_OFTEN_OTHER = frozenset(
    (
        *("may", "march", "mar", "second", "sat", "sun", "mon", "wed", "fri", "fall", "spring", "dec", "jan", "jun"),
        *("night", "today's", "season", "dusk", "tea"),
    )
)
"""Words that are more often something else than a time when they stand alone in a sentence."""
_NEVER_FIRST = frozenset(("and", "is", "say", "of", "but", "to"))
"""A time in a sentence does not begin with these links."""
_DECIMAL = lazy_pattern(r"\d+\.\d+(?!\.\d|\d| ?[ap]\.?m)", re.IGNORECASE)
_LEADING = frozenset(("on", "in", "at", "@", "the", "by", "for", "from", "during", "until", "till", "about", "around"))
_DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST_ITEMS = 120
_MOST_STEPS = 3000
"""Of all searches in one text."""


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
            return nothing(moment.wall, Trouble.VAGUE)
        if _DATE.fullmatch(bare) and not _exists(bare):
            # Else it would be a month and what follows it.
            return nothing(moment.wall, Trouble.NO_SUCH)
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
            return Phrases(line, moment).whole(start, end)
        except (OverflowError, ValueError):  # outside of the calendar
            return None

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        moment = Moment.at(now, day_first=self._day_first)
        line, found, index, steps = Line(text), [], 0, _MOST_STEPS
        while index < min(line.size, _MOST_ITEMS) and steps > 0:
            budget = Budget(min(steps, Budget().steps))
            steps -= budget.steps
            one = self._found_at(Phrases(line, moment, budget), line, index)
            steps += budget.steps
            if one is None:
                index += 1
                continue
            reading, end = one
            found.append(Found(reading, line.starts[index], line.ends[end - 1]))
            index = end
        return found

    def _found_at(self, phrases: Phrases, line: Line, index: int) -> tuple[Reading, int] | None:
        if line.words[index] in _NEVER_FIRST or (line.kinds[index] == SIGN and line.words[index] not in ("@", "+")):
            return None
        try:
            longest = phrases.longest(index)
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
    if line.glued(start) and start > 1 and line.words[start - 1] in (".", "/", ":") and line.glued(start - 1):
        return True  # the rest of a version, of an address
    if ("trouble" in part and "repeats" not in part) or (
        "year" not in part and "month" in part and _DECIMAL.match(line.text, line.starts[start])
    ):
        return True
    leading = [word for word in line.words[start : end - 1] if word not in _LEADING]
    if not leading:
        return _is_weak_word(line, end - 1, tuple(line.words[start : end - 1]))
    return part.keys() <= {"year"} and line.words[start] not in ("in", "by", "year", "during")


def _is_weak_word(line: Line, index: int, links: tuple[str, ...]) -> bool:
    """The same for one word behind words that only lead to it."""
    word, kind = line.words[index], line.kinds[index]
    if kind == ORDINAL or word == "second":
        return not links or (links == ("the",) and not line.words[index].isdigit() and word != "first")
    if kind == NUMBER:
        is_year = len(word) == 4 and not {"in", "by", "during", "until"}.isdisjoint(links)
        return not (is_year or len(word) == 8 or links[-1:] in (("at",), ("@",), ("by",), ("until",)) or "on" in links)
    if kind == WORD and word in _OFTEN_OTHER:
        is_named = line.text[line.starts[index]].isupper()
        return not is_named and ("the" in links or not {"on", "in", "by", "until"} & set(links))
    return not links and word in ("week", "day", "month", "year", "quarter", "now")


def _exists(text: str) -> bool:
    """Whether there is the day that is written as `2026-11-20`."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
