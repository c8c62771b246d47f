"""So long from now, or from something else: in 20 minutes, two weeks from tomorrow, 3 days before Christmas, an hour ago,
3 Fridays from now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from fractions import Fraction

from services.times.durations import Amount, amount_at, unit_at
from services.times.lexicon import ORDINALS, PLURAL_WEEKDAYS, WEEKDAYS
from services.times.parts import Part, Span
from services.times.readings import Grain, Length, Reading
from services.times.resolving import Moment
from services.times.spans import moved, unit_span
from services.times.tokens import NUMBER, ORDINAL, Line

Parts = Iterator[tuple[Part, int]]
Anchor = Callable[[int], tuple[Part, Reading, int] | None]
_LATER = frozenset(("hence", "later", "out", "away", "ahead"))
_AGO = frozenset(("ago", "back", "earlier"))
_MOST_FRIDAYS = 200
_DAY = timedelta(days=1)


class Relative:
    """The rules for lengths of time, at one moment."""

    def __init__(self, line: Line, moment: Moment, anchor: Anchor) -> None:
        self._line = line
        self._moment = moment
        self._anchor = anchor

    def parts_at(self, at: int, so_far: Part, link: str) -> Parts:
        """What a length at `at` means, with what stands before and behind it."""
        line, word = self._line, self._line.words[at]
        if word in (
            "in",
            "within",
            "after",
            "+",
            "all",
            "full",
            "whole",
            "more",
            "less",
            "next",
            "entire",
            "over",
            "under",
        ):
            yield from self._led(at, so_far)
        if word == "day" and line.words[at + 1] in ("after", "before"):
            yield from self._beside(Length(days=1), Grain.DAY, at + 1, so_far)
        if word in ("week", "month", "year", "morning", "night", "hour", "minute", "min") and line.words[at + 1] in (
            "after",
            "before",
            "from",
        ):
            amount = {"week": Length(days=7), "month": Length(months=1), "year": Length(months=12)}.get(word)
            seconds = {"hour": 3600, "minute": 60, "min": 60}.get(word)
            if amount is None and seconds:
                amount = Length(seconds=seconds)
            if amount is not None:
                yield from self._beside(amount, Grain.MINUTE if seconds else Grain.DAY, at + 1, so_far)
        if line.kinds[at] == ORDINAL or word in ORDINALS:
            yield from self._nth_weekday_beside(at)
        if word in WEEKDAYS and line.words[at + 1] in ("after", "before") and line.words[at + 2] != "next":
            yield from self._weekday_beside(at)
        if word == "closest":
            yield from self._closest(at, 1, at + 1)
        elif line.words[at + 1] == "closest":
            yield from self._closest(at, line.values[at] or 2, at + 2)
        yield from self._counted_weekdays(at, link)
        yield from self._amount(at, so_far, link)

    def _amount(self, at: int, so_far: Part, link: str) -> Parts:
        line = self._line
        if (
            line.kinds[at] == NUMBER
            and line.words[at + 1] in ("upcoming", "coming")
            and (unit := unit_at(line, at + 2))
        ):
            if unit in (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR):
                yield Part(span=unit_span(unit, line.values[at], 1, self._moment.today)), at + 3
            return
        found = amount_at(line, at)
        if found is None:
            if link == "in" and not so_far and line.is_digits(at) and at + 1 >= line.size and line.values[at] < 100:
                yield Part(length=Length(seconds=60 * line.values[at]), grain=Grain.MINUTE), at + 1
            return
        amount, end = found
        if line.words[end] == "'":
            end += 1
        word, then = line.words[end], line.words[end + 1]
        if word == "time" and link == "in":
            yield self._from_now(amount), end + 1
        if word in ("from", "since", "after") and then in ("now", "today"):
            yield self._from_now(amount), end + 2
        elif word == "more" and link == "in":
            yield self._from_now(amount), end + 1
        elif word in _LATER:
            yield self._from_now(amount), end + 1
        elif word in _AGO:
            yield self._ago(amount), end + 1
        elif word in ("before", "after", "from", "past", "prior", "since", "following", "until", "till", "of"):
            if word not in ("until", "till", "of"):
                start = end + 1 if word == "prior" else end
                yield from self._beside(amount.length, amount.grain, start, so_far, amount=amount)
            if word == "before" and not so_far:
                yield self._ago(amount), end + 1
        if link == "in":
            yield self._from_now(amount), end
        if word == "starting" or word == "beginning":
            yield Part(lasts=amount.length, grain=amount.grain), end
        elif link == "for":
            yield Part(lasts=amount.length, grain=amount.grain), end
        elif not so_far and link in ("", "about", "the", "around"):
            yield Part(lasts=amount.length, grain=amount.grain, is_bare=True), end

    def _led(self, at: int, so_far: Part) -> Parts:
        """`in …`, `within …`, `after …`, `+…`, `all day`, `more than …`."""
        line, word = self._line, self._line.words[at]
        start = at + 1
        if word in ("all", "full", "whole", "entire") and not so_far:
            start += line.words[start] in ("-", "the")
            unit = unit_at(line, start)
            lengths = {
                Grain.DAY: Length(days=1),
                Grain.WEEK: Length(days=7),
                Grain.MONTH: Length(months=1),
                Grain.YEAR: Length(months=12),
            }
            if unit in lengths and not line.words[start].endswith("s"):
                yield Part(lasts=lengths[Grain(unit)], grain=Grain(unit)), start + 1
            return
        if word in ("more", "less", "over", "under"):
            start += line.words[start] == "than"
            found = amount_at(line, start)
            if found is not None and not so_far:
                yield Part(lasts=found[0].length, grain=found[0].grain), found[1]
            return
        if word in ("in", "within") or (word in ("after", "+") and not so_far):
            while line.words[start] in (
                "about",
                "around",
                "roughly",
                "approximately",
                "the",
                "next",
                "exactly",
                "another",
                "+",
            ):
                start += 1
            counted = list(self._counted_weekdays(start, "in")) if word == "in" else []
            yield from counted
            found = amount_at(line, start)
            if (
                found is None
                and word == "within"
                and line.words[start - 1] in ("next", "the")
                and (unit := unit_at(line, start))
            ):
                found = self._one(unit, start)
            if found is None or (word == "after" and line.words[found[1]] in ("past", "to")):
                return
            amount, end = found
            if line.words[end] == "'" and line.words[end + 1] == "time":
                end += 2
            elif line.words[end] == "time":
                end += 1
            elif line.words[end] == "from" and line.words[end + 1] in ("now", "today"):
                end += 2
            elif line.words[end] in ("since", "from", "after") and word == "in":
                yield from self._beside(amount.length, amount.grain, end, so_far, amount=amount)
            part = self._from_now(amount)
            if word == "within":
                part["deadline"] = True
            yield part, end

    def _one(self, unit: Grain | str, start: int) -> tuple[Amount, int] | None:
        """`the next day and 5 hours`: a unit without a number is one of it."""
        lengths = {
            Grain.HOUR: Length(seconds=3600),
            Grain.DAY: Length(days=1),
            Grain.WEEK: Length(days=7),
            Grain.MONTH: Length(months=1),
            Grain.YEAR: Length(months=12),
        }
        length = lengths.get(Grain(unit)) if unit in lengths else None
        if length is None:
            return None
        amount, end = Amount(length, Grain(unit), unit, Fraction(1)), start + 1
        if self._line.words[end] == "and" and (more := amount_at(self._line, end + 1)) is not None:
            return Amount(length + more[0].length, more[0].grain, more[0].unit, more[0].count), more[1]
        return amount, end

    def _from_now(self, amount: Amount) -> Part:
        if amount.unit == "weekday":
            day = _working_days(self._moment.today, int(amount.count))
            return Part(span=Span(day, day + _DAY, Grain.DAY))
        return Part(length=amount.length, grain=amount.grain)

    def _ago(self, amount: Amount) -> Part:
        if amount.unit == "weekday":
            day = _working_days(self._moment.today, -int(amount.count))
            return Part(span=Span(day, day + _DAY, Grain.DAY))
        return Part(length=-amount.length, grain=amount.grain)

    def _beside(self, length: Length, grain: Grain, at: int, so_far: Part, *, amount: Amount | None = None) -> Parts:
        """`… before Christmas`, `… after 5pm`, `… from tomorrow`."""
        if so_far and "deadline" not in so_far:
            return
        back = self._line.words[at] in ("before", "prior", "to")
        found = self._anchor(at + 1)
        if found is None:
            return
        part, reading, end = found
        if reading.trouble is not None or reading.repeats is not None or "lasts" in part:
            return
        step = -length if back else length
        if amount is not None and amount.unit == "weekday":
            day = _working_days(reading.start.date(), int(amount.count) * (-1 if back else 1))
            yield Part(span=Span(day, day + _DAY, Grain.DAY)), end
        elif step.seconds or reading.has_clock:
            start = reading.start.replace(tzinfo=self._moment.now.tzinfo)
            yield Part(at=step.after(start).replace(tzinfo=None), grain=min(grain, Grain.MINUTE, key=_coarse)), end
        else:
            day = moved(reading.start.date(), step)
            yield Part(span=Span(day, day + _DAY, Grain.DAY)), end

    def _weekday_beside(self, at: int) -> Parts:
        """`the Monday after Easter`."""
        found = self._anchor(at + 2)
        if found is None or found[1].has_clock or found[1].repeats is not None:
            return
        day, weekday = found[1].start.date(), WEEKDAYS[self._line.words[at]]
        if self._line.words[at + 1] == "after":
            day += ((weekday - day.isoweekday() - 1) % 7 + 1) * _DAY
        else:
            day -= ((day.isoweekday() - weekday - 1) % 7 + 1) * _DAY
        yield Part(span=Span(day, day + _DAY, Grain.DAY)), found[2]

    def _nth_weekday_beside(self, at: int) -> Parts:
        """`the third Tuesday after Christmas`."""
        number = self._line.values[at] or ORDINALS.get(self._line.words[at], 0)
        weekday = self._line.words[at + 1]
        if (
            weekday not in WEEKDAYS
            or self._line.words[at + 2] not in ("after", "before")
            or not 0 < number <= _MOST_FRIDAYS
        ):
            return
        for part, end in self._weekday_beside(at + 1):
            step = (number - 1) * 7 * (1 if self._line.words[at + 2] == "after" else -1) * _DAY
            span = part["span"]
            yield Part(span=Span(span.start + step, span.end + step, Grain.DAY)), end

    def _counted_weekdays(self, at: int, link: str) -> Parts:
        """`3 Fridays from now`, `two monday later`, `in 2 Fridays`, `2 Sundays ago`."""
        line = self._line
        if line.kinds[at] != NUMBER or not 0 < line.values[at] <= _MOST_FRIDAYS:
            return
        word = line.words[at + 1]
        weekday = WEEKDAYS.get(word) or PLURAL_WEEKDAYS.get(word)
        if weekday is None:
            return
        count, today, end = line.values[at], self._moment.today, at + 2
        ahead = (weekday - today.isoweekday() - 1) % 7 + 1
        day = today + (ahead + 7 * (count - 1)) * _DAY
        if line.words[end] in ("from", "after") and line.words[end + 1] in ("now", "today"):
            yield Part(span=Span(day, day + _DAY, Grain.DAY)), end + 2
        elif line.words[end] in _LATER:
            yield Part(span=Span(day, day + _DAY, Grain.DAY)), end + 1
        elif line.words[end] in _AGO:
            behind = (today.isoweekday() - weekday - 1) % 7 + 1
            day = today - (behind + 7 * (count - 1)) * _DAY
            yield Part(span=Span(day, day + _DAY, Grain.DAY)), end + 1
        elif link == "in":
            yield Part(span=Span(day, day + _DAY, Grain.DAY)), end

    def _closest(self, at: int, number: int, start: int) -> Parts:
        """`the closest Monday to October 5`, `the second closest …`."""
        line = self._line
        weekday = WEEKDAYS.get(line.words[start])
        if weekday is None or line.words[start + 1] not in ("to", "from"):
            return
        found = self._anchor(start + 2)
        if found is None:
            return
        middle = found[1].start.date()
        days = sorted(
            (middle + step * _DAY for step in range(-7 * number - 7, 7 * number + 8)), key=lambda day: abs(day - middle)
        )
        fitting = [day for day in days if day.isoweekday() == weekday]
        yield Part(span=Span(fitting[number - 1], fitting[number - 1] + _DAY, Grain.DAY)), found[2]


def _working_days(day: date, count: int) -> date:
    """The working day that is so many of them later."""
    step = _DAY if count > 0 else -_DAY
    for _ in range(min(abs(count), 10_000)):
        day += step
        while day.isoweekday() > 5:
            day += step
    return day


def _coarse(grain: Grain) -> int:
    return list(Grain).index(grain)
