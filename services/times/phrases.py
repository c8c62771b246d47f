"""Puts the parts of a phrase together: a day, a time of day, a zone, how often, from when to when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from services.recurrence import Unit

from services.times.clocks import clock_at
from services.times.dates import dates_at
from services.times.lexicon import HOURS_OF, MONTHS, PORTIONS, WHICH
from services.times.parts import Clock, Part, Span, joined, without
from services.times.readings import Grain, Length, Reading
from services.times.recurrences import days_at, repeats_at, weekdays_at
from services.times.relative import Relative
from services.times.repeats import Repeats
from services.times.resolving import Moment, resolve
from services.times.tokens import END, NUMBER, ORDINAL, Line
from services.times.zones import zone_at

Parts = Iterator[tuple[Part, int]]
_LINKS = frozenset(
    "at @ on in by of for from the , around about approximately approx roughly exactly ~ between during starting and - "
    "beginning is say till until a".split()
) - {"by", "till", "until", "a"}
_BEHIND = frozenset("approximately approx roughly exactly sharp precisely ish about around".split())
_RANGE = frozenset(("to", "-", "–", "—", "until", "untill", "till", "til", "through", "thru", "and", "but"))
_UNTIL = frozenset(("until", "till", "til", "untill", "through", "thru", "ending"))
_DAYS = frozenset(("year", "month", "day", "weekday", "span", "nth", "holiday", "length", "edge"))
_MOST_STEPS = 300
"""Of one search: no phrase that somebody says needs a tenth of it."""
_MOST_LINKS = 4
_MOST_DEPTH = 3


class Phrase:
    """One search for a phrase within a line."""

    def __init__(self, line: Line, moment: Moment, *, depth: int = 0, in_range: bool = False) -> None:
        self._line = line
        self._moment = moment
        self._depth = depth
        self._in_range = in_range
        self._steps = _MOST_STEPS
        self._ends: list[tuple[int, Part]] = []
        self._reading: Reading | None = None
        self._is_done = False

    def whole(self, start: int, end: int) -> Reading | None:
        """The reading of everything from `start` to `end`."""
        self._search(start, Part(), end)
        return self._reading

    def longest(self, start: int) -> tuple[Part, Reading, int] | None:
        """The part that begins at `start` and goes furthest, what it means, and where it ends."""
        self._search(start, Part(), -1)
        tried: set[int] = set()
        for reached, part in sorted(self._ends, key=lambda one: -one[0]):
            if len(tried) > 4:
                break
            reading = resolve(part, self._moment)
            if reading is not None:
                return part, reading, reached
            tried.add(reached)
        return None

    def longest_part(self, start: int) -> tuple[Part, int] | None:
        """The same for the end of a range, which need not mean anything alone."""
        self._search(start, Part(), -1)
        return max(((part, reached) for reached, part in self._ends), key=lambda one: one[1], default=None)

    def _search(self, index: int, so_far: Part, end: int) -> None:
        if self._steps <= 0:
            return
        self._steps -= 1
        if so_far and 0 <= end <= index:
            reading = resolve(so_far, self._moment)
            if reading is not None and (self._reading is None or reading.trouble is None):
                self._reading = reading
                self._is_done = reading.trouble is None
            return
        if so_far:
            self._ends.append((index, so_far))
        if index >= self._line.size:
            self._is_done = end < 0
            return
        for part, after in self._candidates(index, so_far):
            both = joined(so_far, part) if part else so_far
            if after > index and both is not None:
                self._search(after, both, end)
                if self._is_done:
                    return

    def _candidates(self, index: int, so_far: Part) -> Parts:
        """What may stand next, behind words that only link."""
        line, link = self._line, ""
        has_the = False
        for at in range(index, min(index + _MOST_LINKS, line.size)):
            yield from self._next(at, so_far, link, has_the=has_the)
            word = line.words[at]
            if word not in _LINKS or (word == "-" and line.glued(at) and line.kinds[at + 1] == NUMBER):
                break
            if word == "the":
                has_the = True
            elif word != "," or not link:
                link = word

    def _next(self, at: int, so_far: Part, link: str, *, has_the: bool) -> Parts:
        line, word, kind = self._line, self._line.words[at], self._line.kinds[at]
        if kind == END:
            return
        if "clocks" in so_far and "zone" not in so_far:
            zone = zone_at(line, at)
            if zone is not None:
                yield Part(zone=zone[0]), zone[1]
        yield from self._around_repeats(at, so_far)
        if so_far and "to" not in so_far and word in _RANGE:
            yield from self._range(at, so_far)
        if kind == NUMBER:
            yield from self._number(at, so_far, link)
        elif kind == ORDINAL:
            yield from days_at(line, at)
        else:
            yield from self._word(at, so_far, link)
        yield from Relative(line, self._moment, self._anchor).parts_at(at, so_far, link)
        yield from dates_at(line, at, self._moment.today, day_first=self._moment.day_first)
        if kind == NUMBER:
            yield from self._bare_number(at, so_far, link, has_the=has_the)

    def _anchor(self, at: int) -> tuple[Part, Reading, int] | None:
        if self._depth >= _MOST_DEPTH:
            return None
        return Phrase(self._line, self._moment, depth=self._depth + 1).longest(at)

    def _number(self, at: int, so_far: Part, link: str) -> Parts:
        if "repeats" not in so_far:
            yield from repeats_at(self._line, at, self._moment.today)
        after_at = link in ("at", "@", "around", "about", "for")
        if "clocks" not in so_far and ("lasts" not in so_far or "repeats" in so_far):
            for clock, end, is_sure in clock_at(self._line, at, after_at=after_at):
                if is_sure:
                    yield from self._clocks(clock, end)

    def _clocks(self, clock: Clock, end: int) -> Parts:
        """The time of day, and what else is listed with it: `8am and 8pm`."""
        line, clocks, after = self._line, [clock], end
        while line.words[after] in ("and", ",", "&") and len(clocks) < 6:
            start = after + 1
            while line.words[start] in ("and", "at"):
                start += 1
            more = [found for found in clock_at(line, start, after_at=True) if found[2] or clock.grain == Grain.HOUR]
            if not more or line.words[more[0][1]] in ("minutes", "days", "weeks", "/"):
                break
            clocks.append(more[0][0])
            after = more[0][1]
        if len(clocks) > 1:
            half = next((one.half for one in clocks if one.half in ("am", "pm")), "")
            shared = tuple(Clock(one.hour, one.minute, one.second, one.half or half, one.grain) for one in clocks)
            yield Part(clocks=shared), after
        yield Part(clocks=(clock,)), end

    def _bare_number(self, at: int, so_far: Part, link: str, *, has_the: bool) -> Parts:
        """A number that is an hour, a day or the end of a range only by what stands around it."""
        line, value = self._line, self._line.values[at]
        of = line.words[at + 1] == "of" or (line.words[at + 1] == "on" and False)
        if of and 1 <= value <= 31 and (line.words[at + 2] in WHICH or line.words[at + 2] in ("the", "every", "each")):
            yield Part(day=value), at + 1
        dated = not _DAYS.isdisjoint(so_far) or "repeats" in so_far or "portion" in so_far or "weekdays" in so_far
        ish = "ish" in (line.words[at + 1], line.words[at + 2] if line.words[at + 1] == "-" else "")
        behind_portion = (
            ish
            or line.words[at + 1] in ("in", "at", "this", "tonight", "tomorrow", "on", "today")
            or line.words[at + 1] in PORTIONS
        )
        if (
            "clocks" not in so_far
            and ("lasts" not in so_far or "repeats" in so_far)
            and (
                link in ("at", "@", "around", "about", "for", "by", "until", "till")
                or dated
                or behind_portion
                or not line.is_digits(at)
            )
        ):
            for clock, end, is_sure in clock_at(line, at, after_at=link in ("at", "@") or dated):
                if line.words[end] in MONTHS:
                    continue
                spelled = clock.minute >= 10 and not line.is_digits(at)
                if not is_sure and (link or so_far or behind_portion or spelled):
                    yield from self._clocks(clock, end)
        if (
            1 <= value <= 31
            and "day" not in so_far
            and "month" not in so_far
            and (
                link == "on" or has_the or "span" in so_far or "weekday" in so_far or line.words[at + 1] in ("at", "@")
            )
        ):
            if line.is_digits(at) and (link == "on" or line.words[at + 1] in ("at", "@") or has_the):
                yield Part(day=value), at + 1
        if self._in_range or link in ("from", "between") or line.words[at + 1] in _RANGE:
            if value < 60 and "number" not in so_far and "clocks" not in so_far and "day" not in so_far:
                yield Part(number=value), at + 1

    def _word(self, at: int, so_far: Part, link: str) -> Parts:
        line, word = self._line, self._line.words[at]
        if so_far and word in _BEHIND:
            yield Part(), at + 1
        if so_far and word == "-" and line.words[at + 1] == "ish":
            yield Part(), at + 2
        if word == "t" and "day" in so_far and line.glued(at) and line.glued(at + 1) and line.kinds[at + 1] == NUMBER:
            for clock, end, is_sure in clock_at(line, at + 1):
                if is_sure:
                    yield Part(clocks=(clock,)), end
        if word == "midnight" and "clocks" in so_far:
            yield Part(portion="early morning"), at + 1
        if so_far and word == "or" and line.words[at + 1] == "so":
            yield Part(), at + 2
        if word in ("now", "immediately") or (word in ("right", "just") and line.words[at + 1] == "now"):
            yield Part(length=Length(), grain=Grain.SECOND), at + (1 if word in ("now", "immediately") else 2)
        if "repeats" not in so_far:
            yield from repeats_at(line, at, self._moment.today)
        yield from self._portion(at, so_far, link)
        for clock, end, _ in clock_at(line, at):
            if "clocks" not in so_far:
                yield from self._clocks(clock, end)
        if (
            word in ("by", "before")
            or (word in _UNTIL and not so_far)
            or (word == "no" and line.words[at + 1] == "later" and line.words[at + 2] == "than")
        ):
            if "deadline" not in so_far and "lasts" not in so_far:
                yield Part(deadline=True), at + (1 if word != "no" else 3)
        if word in ("after", "past", "since") and not so_far:
            inner = self._anchor(at + 1)
            if inner is not None and ("clocks" in inner[0] or "weekday" in inner[0]):
                yield inner[0], inner[2]
        if word == "later" and line.words[at + 1] == "than" and not so_far:
            inner_part = Phrase(line, self._moment, depth=self._depth + 1).longest(at + 2) if self._depth < 2 else None
            if inner_part is not None:
                yield inner_part[0], inner_part[2]
        if "weekdays" not in so_far:
            yield from self._weekdays(at, so_far)

    def _weekdays(self, at: int, so_far: Part) -> Parts:
        """Several weekdays: with a time of day, or with what says that they repeat."""
        yield from weekdays_at(self._line, at)
        if "repeats" in so_far:
            for part, end in repeats_at(self._line, at, self._moment.today):
                if "weekdays" in part and part["repeats"] == Repeats(Unit.WEEK):
                    yield Part(weekdays=part["weekdays"]), end

    def _around_repeats(self, at: int, so_far: Part) -> Parts:
        """What bounds something that repeats: until June, for 3 weeks, 10 times, starting Monday, except Sundays."""
        line, word = self._line, self._line.words[at]
        if "repeats" not in so_far and "weekdays" not in so_far:
            return
        if word in _UNTIL and "until" not in so_far and self._depth < _MOST_DEPTH:
            start = at + 2 if line.words[at + 1] in ("on", "at") else at + 1
            found = Phrase(line, self._moment, depth=self._depth + 1).longest(start)
            if found is not None and "repeats" not in found[0]:
                yield Part(until=found[0]), found[2]
        if (
            word in ("starting", "beginning", "from", "start", "as")
            and "first" not in so_far
            and self._depth < _MOST_DEPTH
        ):
            start = at + 1
            while line.words[start] in ("on", "of", "from", "in"):
                start += 1
            found = Phrase(line, self._moment, depth=self._depth + 1).longest(start)
            if found is not None and "repeats" not in found[0] and "to" not in found[0]:
                yield Part(first=found[0]), found[2]
        if word == "except" and "weekdays" not in so_far:
            yield from self._except(at + 1)
        if word == "for" and line.kinds[at + 1] == NUMBER and line.words[at + 2] == "times":
            yield Part(count=line.values[at + 1]), at + 3

    def _except(self, at: int) -> Parts:
        line = self._line
        at += line.words[at] in ("on", "for")
        if line.words[at] in ("weekends", "weekend"):
            yield Part(weekdays=(1, 2, 3, 4, 5)), at + 1
            return
        days = (
            list(weekdays_at(line, at))
            or [
                (Part(weekdays=(part["weekdays"])), end)
                for part, end in repeats_at(line, at, self._moment.today)
                if "weekdays" in part
            ]
            or [
                (Part(weekdays=(part["weekday"],)), end)
                for part, end in dates_at(line, at, self._moment.today)
                if "weekday" in part
            ]
        )
        for part, end in days[:1]:
            left = tuple(day for day in range(1, 8) if day not in part["weekdays"])
            if left:
                yield Part(weekdays=left), end

    def _portion(self, at: int, so_far: Part, link: str) -> Parts:
        """A part of the day: `morning`, `early in the morning`, `this afternoon`, `last night`, `after work`."""
        line, word = self._line, self._line.words[at]
        if "portion" in so_far and so_far["portion"] != "tonight":
            return
        if word in ("early", "late", "later", "earlier"):
            end = at + 1
            while line.words[end] in ("in", "the", "on", "hours", "of", "this", "-"):
                end += 1
            portion = PORTIONS.get(line.words[end])
            if portion is not None:
                name = f"{'early' if word.startswith('ear') else 'late'} {portion}"
                yield Part(portion=name if name in HOURS_OF else portion), end + 1
            elif line.words[end] == "day" and line.words[end + 1] != "of":
                yield Part(portion="morning" if word.startswith("ear") else "late afternoon"), end + 1
            if line.words[at + 1] == "tonight":
                yield from self._today("late evening" if word == "late" else "evening", 0, at + 2)
        if word == "after" and line.words[at + 1] in ("work", "school", "lunch", "dinner", "breakfast"):
            named = {"lunch": "early afternoon", "dinner": "late evening", "breakfast": "late morning"}
            yield Part(portion=named.get(line.words[at + 1], f"after {line.words[at + 1]}")), at + 2
        if word in ("this", "last", "next") and (portion := PORTIONS.get(line.words[at + 1])) is not None:
            yield from self._today(portion, {"this": 0, "last": -1, "next": 1}[word], at + 2)
        if word == "this" and line.words[at + 1] in ("early", "late") and line.words[at + 2] in PORTIONS:
            yield from self._today(f"{line.words[at + 1]} {PORTIONS[line.words[at + 2]]}", 0, at + 3)
        if word in PORTIONS and "portion" not in so_far:
            end = at + 1
            if line.words[end] == "time" or (line.words[end] == "hours"):
                end += 1
            yield Part(portion=PORTIONS[word]), end

    def _today(self, portion: str, days: int, end: int) -> Parts:
        day = self._moment.today + timedelta(days=days)
        name = portion if portion in HOURS_OF else portion.split(" ", 1)[1]
        if name == "night" and days == 0:
            name = "tonight"
        yield Part(portion=name, span=Span(day, day + timedelta(days=1), Grain.DAY)), end

    def _range(self, at: int, so_far: Part) -> Parts:
        """The other end, from `to` on."""
        line, word = self._line, self._line.words[at]
        if word in ("and", "but") and "deadline" in so_far or self._depth >= _MOST_DEPTH:
            return
        start = at + 1
        while line.words[start] in ("the", "at", "on", "before", "by"):
            start += 1
        if "repeats" in so_far:
            for clock, end, _ in clock_at(line, start, after_at=True):
                yield Part(to=Part(clocks=(clock,))), end
            return
        found = Phrase(line, self._moment, depth=self._depth + 1, in_range=True).longest_part(start)
        if found is None or "repeats" in found[0] or "to" in found[0]:
            return
        part = Part(to=found[0])
        if "zone" in found[0] and "zone" not in so_far:
            part = Part(to=without(found[0], "zone"), zone=found[0]["zone"])
        yield part, found[1]
