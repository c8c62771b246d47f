"""English time phrases: parser and combination of parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from services.patterns import lazy_pattern
from services.text_index import listed
from services.times.en.clocks import clock_at, clock_parts, number_parts, portion_parts
from services.times.en.dates import dates_at
from services.times.en.day_resolving import day_of_part
from services.times.en.durations import offset_parts, relative_parts
from services.times.en.recurrences import days_at, deadline_parts, range_parts, repeat_parts
from services.times.en.resolving import resolve
from services.times.words.lexicon import MONTHS, TODAY, UNITS, VAGUE, WEEKDAYS
from services.times.words.parts import Inner, Moment, Part, Parts, RuleContext, joined
from services.times.words.readings import Found, Grain, Length, Reading, TimeProblem, nothing
from services.times.words.tokens import END, NUMBER, ORDINAL, SIGN, WORD, Line

_LINKS = frozenset(
    listed("""
    at @ on in of for from the , ; during starting beginning around about approximately approx roughly exactly ~ and -
    is say sometime anytime over
    """)
)
"""Words that only introduce the next part."""
_BEHIND = frozenset(("approximately", "approx", "roughly", "exactly", "sharp", "precisely", "ish"))
_NOW = frozenset(("now", "immediately", "instantly", "rn"))
_NOW_IN_TWO = frozenset((("right", "now"), ("just", "now"), ("right", "away"), ("straight", "away")))
_FROM_THEN_ON = frozenset(("after", "afterwards", "thereafter"))
_MOST_STEPS = 400
"""Step limit per search, nested phrases included; real phrases need less than a tenth of it."""
_MOST_LINKS = 4
_MOST_DEPTH = 3
_MOST_TRIED = 3
"""Parses tried per end position."""


@dataclass(slots=True)
class Budget:
    """Remaining steps of a search, shared with its nested searches."""

    steps: int = _MOST_STEPS


@dataclass(slots=True)
class _Search:
    """State of a search for phrases from one start: ends reached so far, and the reading if it has to be whole."""

    end: int
    """Required end of the phrase; negative for the longest match."""
    in_range: bool = False
    ends: list[tuple[int, Part]] = field(default_factory=list)
    reading: Reading | None = None
    is_done: bool = False


class Phrases:
    """Finds phrases in a line, relative to one moment."""

    def __init__(self, line: Line, moment: Moment, budget: Budget | None = None) -> None:
        self._line = line
        self._moment = moment
        self._budget = budget or Budget()
        self._depth = 0

    def whole(self, start: int, end: int) -> Reading | None:
        """Reading of the whole range from `start` to `end`; prefers readings without a problem. None if nothing is
        found within the step limit."""
        search = _Search(end)
        self._look(search, start, Part())
        return search.reading

    def longest(self, start: int) -> Inner | None:
        """Longest phrase that starts at `start` and can be resolved; None without a phrase."""
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

    def _look(self, search: _Search, index: int, parsed: Part) -> None:
        if self._budget.steps <= 0:
            return
        self._budget.steps -= 1
        if parsed and 0 <= search.end <= index:
            reading = resolve(parsed, self._moment)
            if reading is not None and (search.reading is None or reading.problem is None):
                search.reading = reading
                # An ambiguity with known readings is not resolved by a less likely parse.
                search.is_done = reading.problem is None or bool(reading.choices)
            return
        if parsed:
            search.ends.append((index, parsed))
        if index >= self._line.size:
            search.is_done = search.end < 0
            return
        for part, after in self._candidates(search, index, parsed):
            both = joined(parsed, part) if part else parsed
            if after > index and both is not None:
                self._look(search, after, both)
                if search.is_done:
                    return

    def _candidates(self, search: _Search, index: int, parsed: Part) -> Parts:
        """Possible next parts at `index`, after up to three linking words, each with its end."""
        line, link, has_the = self._line, "", False
        for at in range(index, min(index + _MOST_LINKS, line.size)):
            if line.kinds[at] == END:
                return
            spot = RuleContext(
                line, at, parsed, link, has_the, search.in_range, self._moment, self.longest, self._other_end
            )
            for rule in _RULES:
                yield from rule(spot)
            word = line.words[at]
            if word not in _LINKS or (word == "-" and line.glued(at) and line.kinds[at + 1] == NUMBER):
                return
            if word == "the":
                has_the = True
            elif word != "," or not link:
                link = word


def _filling_parts(spot: RuleContext) -> Parts:
    """Rule for `now`, and for words after a time without a meaning: `sharp`, `or so`, `-ish`."""
    word, then = spot.word, spot.ahead()
    if word in _NOW or (word == "once" and spot.link == "at"):
        yield Part(length=Length(), grain=Grain.SECOND), spot.at + 1
    elif (word, then) in _NOW_IN_TWO:
        yield Part(length=Length(), grain=Grain.SECOND), spot.at + 2
    elif not spot.parsed:
        return
    elif word in _BEHIND or (word in _FROM_THEN_ON and {"repeats", "span"} <= spot.parsed.keys()):
        yield Part(), spot.at + 1
    elif (word, then) in (("or", "so"), ("-", "ish")):
        yield Part(), spot.at + 2


def _date_parts(spot: RuleContext) -> Parts:
    """Rule for dates, also in brackets after another part of the phrase: `Tue (Jan 16)`."""
    line, at, today = spot.line, spot.at, spot.moment.today
    if spot.word == "(" and spot.parsed:
        inside = dates_at(line, at + 1, today, day_first=spot.moment.day_first)
        yield from ((part, end + 1) for part, end in inside if line.words[end] == ")")
        return
    if line.is_digits(at) and len(spot.word) == 4 and spot.ahead() not in ("-", "/", "."):
        packed = clock_at(line, at, after_at=True)
        if packed and packed[0][0].exists and _is_hour(spot):
            yield Part(clocks=(packed[0][0],)), packed[0][1]
            return
        if packed and packed[0][0].exists and spot.parsed.keys() == {"deadline"}:
            yield Part(either=(Part(year=line.values[at]), Part(clocks=(packed[0][0],)))), packed[0][1]
            return
    yield from days_at(line, at)
    for part, end in dates_at(line, at, today, day_first=spot.moment.day_first):
        if spot.ahead() == "-" and "is_numeric" in part and "weekday" in spot.parsed:
            yield from _date_or_hours(part, end, spot)
        else:
            yield part, end


_FIRST_YEAR = 1900


def _is_hour(spot: RuleContext) -> bool:
    """Whether four digits are a time of day, not a year: `at 1030`, `by 1030`, `Friday 2030`."""
    so_far = spot.parsed
    is_one_day = "span" in so_far and so_far["span"].end - so_far["span"].start == timedelta(days=1)
    is_after_day = is_one_day or not so_far.keys().isdisjoint(("weekday", "repeats", "weekdays"))
    is_early = spot.line.values[spot.at] < _FIRST_YEAR and not so_far.keys().isdisjoint(("day", "deadline"))
    is_apart = spot.link in ("", ",") and "month" not in so_far
    return spot.link in ("at", "@") or (is_apart and is_after_day) or is_early


def _date_or_hours(part: Part, end: int, spot: RuleContext) -> Parts:
    """Parts for `6-8` after a weekday: a date on that weekday, a range of hours, or either."""
    found = day_of_part({**part, "weekday": spot.parsed["weekday"]}, spot.moment.today)
    first, last = spot.line.values[spot.at], spot.line.values[spot.at + 2]
    if found is None or found[1] is not None:  # not on the weekday
        return
    hours = Part(number=first, to=Part(number=last))
    yield (Part(either=(part, hours)) if first < last and "portion" not in spot.parsed else part), end


_RULES = (
    repeat_parts,
    range_parts,
    _filling_parts,
    portion_parts,
    clock_parts,
    deadline_parts,
    relative_parts,
    offset_parts,
    _date_parts,
    number_parts,
)
"""In order of attempts."""


_LATIN = lazy_pattern(r"[A-Za-z0-9]")
_EDGES = frozenset(".,;:!?()[]<>\"'“”‘’-…")
_OFTEN_OTHER = frozenset(
    listed("may march mar second sat sun mon wed fri fall spring dec jan jun night today's season dusk tea")
)
"""Words that are usually not a time when they occur alone in a sentence."""
_NEVER_FIRST = frozenset(("and", "is", "say", "of", "but", "to"))
"""Links that cannot start a time in a sentence."""
_DECIMAL = lazy_pattern(r"\d+\.\d+(?!\.\d|\d| ?[ap]\.?m)", re.IGNORECASE)
_LEADING = frozenset(("on", "in", "at", "@", "the", "by", "for", "from", "during", "until", "till", "about", "around"))
_DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST_ITEMS = 120
_ENGLISH_MOST_STEPS = 3000
"""Step limit of all searches in one text."""


class English:
    """TimeLanguage for English. With `day_first`, 3/4 is the 3rd of April."""

    def __init__(self, *, day_first: bool = False) -> None:
        self._day_first = day_first

    def speaks(self, text: str) -> bool:
        return _LATIN.search(text) is not None

    def read(self, text: str, now: datetime) -> Reading | None:
        moment = Moment.at(now, day_first=self._day_first)
        bare = " ".join(text.lower().split()).strip(".!? ")
        if bare in VAGUE:
            return nothing(moment.wall, TimeProblem.VAGUE)
        if _DATE.fullmatch(bare) and not _exists(bare):
            # It would otherwise parse as a month and other parts.
            return nothing(moment.wall, TimeProblem.NO_SUCH)
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
            reading = Phrases(line, moment).whole(start, end)
        except (OverflowError, ValueError):  # outside the calendar
            return None
        return self._read_in_part(line, start, end, now) if reading is None else reading

    def _read_in_part(self, line: Line, start: int, end: int, now: datetime) -> Reading | None:
        """AMBIGUOUS reading if only a part of the range is understood, but the rest looks like a part of the time;
        None otherwise."""
        found = self.find_all(line.text, now)
        is_all = len(found) == 1 and (found[0].start, found[0].end) == (line.starts[start], line.ends[end - 1])
        return found[0].reading if is_all else None

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        moment = Moment.at(now, day_first=self._day_first)
        line, found, index, steps = Line(text), [], 0, _ENGLISH_MOST_STEPS
        while index < min(line.size, _MOST_ITEMS) and steps > 0:
            budget = Budget(min(steps, Budget().steps))
            steps -= budget.steps
            one = self._found_at(Phrases(line, moment, budget), line, index)
            steps += budget.steps
            if one is None:
                index += 1
                continue
            reading, end = one
            start, last = _unread_before(line, index), _unread_after(line, end)
            if (start, last) != (index, end):
                repeats = not _OF_RECURRENCE.isdisjoint(line.words[start:index])
                choices = () if repeats else reading.choices if reading.problem else (reading,)
                reading = replace(reading, problem=TimeProblem.AMBIGUOUS, choices=choices)
            found.append(Found(reading, line.starts[start], line.ends[last - 1]))
            index = last
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


_CLOCK_WORDS = frozenset(
    listed("""
    am pm p noon midday midnight o'clock oclock hundred hours hour hrs hr h minutes minute mins min seconds secs sec
    half quarter past ish mon mons
    """)
)
"""Words that continue a time after a number or a unit."""
_OF_RECURRENCE = frozenset(("every", "each", "twice"))
_BEFORE_TIMES = _OF_RECURRENCE | {"early", "late"}


def _unread_after(line: Line, end: int) -> int:
    """End of the words after a time that ends at `end` and look like its continuation; `end` if there are none."""
    at = end
    while at < line.size:
        before, kind, word = line.kinds[at - 1], line.kinds[at], line.words[at]
        is_stuck = line.glued(at) and kind != SIGN and before != SIGN
        is_counted = before in (NUMBER, ORDINAL) or UNITS.get(line.words[at - 1]) in _OF_CLOCKS
        is_named = line.words[at - 1] in MONTHS or line.words[at - 1] in WEEKDAYS
        if is_stuck or (is_counted and word in _CLOCK_WORDS) or ((is_counted or is_named) and line.is_digits(at)):
            at += 1
        elif word in ("and", "or", "at", "@") and _continues(line, at + 1, word):
            at += 2
        else:
            break
    return at


_OF_CLOCKS = (Grain.SECOND, Grain.MINUTE, Grain.HOUR)


def _continues(line: Line, at: int, link: str) -> bool:
    """Whether the word at `at`, after `link`, belongs to the time before it: `and half`, `or friday`, `at 57`."""
    if link in ("at", "@"):
        return line.is_digits(at)
    if link == "or":
        return line.kinds[at] in (NUMBER, ORDINAL) or line.words[at] in WEEKDAYS or line.words[at] in TODAY
    return line.words[at] in ("half", "quarter")


def _unread_before(line: Line, start: int) -> int:
    """Start of the words before a time that starts at `start` and look like its beginning; `start` if there are none:
    a number, `every` or `early` before a time that has no preposition."""
    at = start
    is_led = line.words[start] in _LINKS or line.words[start] in _LEADING
    while at > 0 and not is_led and (line.words[at - 1] in _BEFORE_TIMES or _is_apart(line, at - 1)):
        at -= 1
    return at


def _is_apart(line: Line, at: int) -> bool:
    """Whether the item at `at` is a number in digits, not the end of a decimal or of a list."""
    return line.is_digits(at) and not line.glued(at)


def _is_mark(line: Line, index: int) -> bool:
    """Whether a final sign belongs to the time: 1' and 5"."""
    return line.words[index] in "'\"" and index > 0 and line.kinds[index - 1] == NUMBER and line.glued(index)


def _is_weak(line: Line, start: int, end: int, part: Part) -> bool:
    """Whether the words probably mean something else in a sentence."""
    if line.glued(start) and start > 1 and line.words[start - 1] in (".", "/", ":") and line.glued(start - 1):
        return True  # end of a version or an address
    if ("problem" in part and "repeats" not in part) or (
        "year" not in part and "month" in part and _DECIMAL.match(line.text, line.starts[start])
    ):
        return True
    leading = [word for word in line.words[start : end - 1] if word not in _LEADING]
    if not leading:
        return _is_weak_word(line, end - 1, tuple(line.words[start : end - 1]))
    return part.keys() <= {"year"} and line.words[start] not in ("in", "by", "year", "during")


def _is_weak_word(line: Line, index: int, links: tuple[str, ...]) -> bool:
    """Whether the single word at `index`, after linking words, probably means something else than a time."""
    word, kind = line.words[index], line.kinds[index]
    if kind == ORDINAL or word == "second":
        return not links or (links == ("the",) and not line.words[index].isdigit() and word != "first")
    if kind == NUMBER:
        is_year = len(word) == 4 and not {"in", "by", "during", "until"}.isdisjoint(links)
        return not (is_year or len(word) == 8 or links[-1:] in (("at",), ("@",), ("by",), ("until",)) or "on" in links)
    if word in ("now", "rn"):
        ends = ("", ".", "!", ",", ":", "to") if index == 0 else ("", ".", "!")
        return not links and line.words[index + 1] not in ends
    if kind == WORD and word in _OFTEN_OTHER:
        is_named = line.text[line.starts[index]].isupper()
        return not is_named and ("the" in links or not {"on", "in", "by", "until"} & set(links))
    return not links and word in ("week", "day", "month", "year", "quarter")


def _exists(text: str) -> bool:
    """Whether the calendar has the ISO date `text`, such as `2026-11-20`."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
