"""English durations, offsets from now, and offsets from another time: in 20 minutes, 3 days before Christmas."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from services.times.words.lexicon import ORDINALS, PLURAL_WEEKDAYS, UNITS, WEEKDAYS
from services.times.words.parts import Clock, Part, Parts, RuleContext, moved, one_day, unit_span, working_days_later
from services.times.words.readings import Grain, Length
from services.times.words.tokens import NUMBER, ORDINAL, WORD, Line

_SECONDS = {Grain.SECOND: 1, Grain.MINUTE: 60, Grain.HOUR: 3600, Grain.DAY: 86_400}
_DAYS = {Grain.DAY: 1, Grain.WEEK: 7, "fortnight": 14}
_MONTHS = {Grain.MONTH: 1, Grain.QUARTER: 3, Grain.YEAR: 12, "decade": 120, "century": 1200}
_FINENESS = list(Grain)
_SIGNS = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4)}
_FEW = {"couple": 2, "few": 3, "several": 3, "pair": 2, "dozen": 12}
_MOST_COUNT = 100_000
_NAMED = {"half": Fraction(1, 2), "quarter": Fraction(1, 4)}


@dataclass(frozen=True, slots=True)
class Amount:
    """Duration as written in English, with its last unit and count."""

    length: Length
    grain: Grain
    """Grain of its finest unit."""
    unit: Grain | str
    """Unit of the last element."""
    count: Fraction
    is_bare: bool = False
    """Written with "a" or without a number."""


def amount_at(line: Line, index: int) -> tuple[Amount, int] | None:
    """Longest duration that starts at `index`, with its end; None without a duration."""
    first = _one_at(line, index)
    if first is None:
        return None
    amount, end = first
    while True:
        more = _more_at(line, end, amount)
        if more is None:
            return amount, end
        amount, end = more


def unit_at(line: Line, index: int) -> Grain | str | None:
    """Time unit named by the word at `index`; None for another word."""
    return UNITS.get(line.words[index])


def _more_at(line: Line, index: int, amount: Amount) -> tuple[Amount, int] | None:
    """`amount` plus its continuation at `index`, with the end; None without one: `and a half`, `, 3 hours`, `30` after
    `1h` or `1 hr`."""
    is_short = line.words[index - 1] in ("hr", "hrs", "h") and len(line.words[index]) == 2
    is_minutes = line.kinds[index] == NUMBER and line.values[index] < 60 and (line.glued(index) or is_short)
    if amount.unit == Grain.HOUR and is_minutes and unit_at(line, index + 1) is None:
        return _sum(amount, _amount(Fraction(line.values[index]), Grain.MINUTE)), index + 1
    start = index
    while line.words[start] in (",", "and", "+", "&", "plus"):
        start += 1
    if start - index > 2:
        return None
    if line.words[index] == "and":
        fraction = _fraction_at(line, index + 1)
        if (
            fraction is not None
            and unit_at(line, fraction[1]) is None
            and line.words[fraction[1]] not in ("of", "past")
        ):
            return _sum(amount, _amount(fraction[0] * 1, amount.unit)), fraction[1]
    more = _one_at(line, start)
    if more is None or more[0].unit == amount.unit or (more[0].is_bare and start == index):
        return None
    return _sum(amount, more[0]), more[1]


def _one_at(line: Line, index: int) -> tuple[Amount, int] | None:
    """A number with its unit at `index` as a duration, with its end; None otherwise."""
    counted = count_at(line, index)
    if counted is None and unit_at(line, index) in ONE and line.words[index + 1] == "and":
        is_half = _fraction_at(line, index + 2) is not None  # `hour and a half`
        counted = (Fraction(1), index, False) if is_half and len(line.words[index]) > 1 else None
    if counted is None:
        return None
    count, end, is_bare = counted
    if count > _MOST_COUNT:
        return None
    sign = line.words[end]
    if sign in ("'", '"', "′", "″") and line.kinds[end - 1] == NUMBER and line.glued(end):
        return _amount(count, Grain.MINUTE if sign in ("'", "′") else Grain.SECOND), end + 1
    if line.words[end] == "-" and unit_at(line, end + 1) is not None:
        end += 1
    if line.words[end] in ("business", "working", "work") and unit_at(line, end + 1) == Grain.DAY:
        return _amount(count, "weekday", is_bare=is_bare), end + 2
    unit = unit_at(line, end)
    if unit is None or unit == "weekend" or (len(line.words[end]) == 1 and line.kinds[end - 1] != NUMBER):
        return None
    if line.words[end] == ".":
        return None
    after = end + 1
    if line.words[after] == "." and len(line.words[end]) <= 4 and line.kinds[after + 1] in (NUMBER, WORD):
        after += 1  # full stop of an abbreviation
    return _amount(count, unit, is_bare=is_bare), after


def count_at(line: Line, index: int) -> tuple[Fraction, int, bool] | None:
    """Number at `index`, its end, and whether it is only "a"; None without a number: 2, 2.5, 1/4, 2 and a half, a
    couple of, half an."""
    word, kind = line.words[index], line.kinds[index]
    if kind == NUMBER:
        return _digits_at(line, index)
    if word in ("a", "an"):
        return _indefinite_at(line, index)
    if word in _FEW:
        return Fraction(_FEW[word]), index + 2 if line.words[index + 1] == "of" else index + 1, False
    if word in _SIGNS:
        return _SIGNS[word], index + 1, False
    if word == "half" and line.words[index + 1] in ("a", "an", "hour", "day", "year", "-"):
        return Fraction(1, 2), index + (1 if line.words[index + 1] in ("hour", "day", "year") else 2), False
    if word == "quarter" and line.words[index + 1] == "of" and line.words[index + 2] in ("a", "an"):
        return Fraction(1, 4), index + 3, False
    if word == "quarter" and line.words[index + 1] in ("hour", "-"):
        return Fraction(1, 4), index + (1 if line.words[index + 1] == "hour" else 2), False
    if word == "another":
        counted = count_at(line, index + 1)
        return (counted[0], counted[1], False) if counted else (Fraction(1), index + 1, False)
    return None


def _digits_at(line: Line, index: int) -> tuple[Fraction, int, bool] | None:
    """Number at `index` as in `count_at`; also with a fraction after a space, as in `2 1/2`."""
    end = index + 1
    if line.is_digits(index) and line.is_digits(end) and line.words[end + 1] == "/" and line.is_digits(end + 2):
        part = _plain_digits_at(line, end)
        return None if part is None or part[0] >= 1 else (line.values[index] + part[0], part[1], False)
    return _plain_digits_at(line, index)


def _plain_digits_at(line: Line, index: int) -> tuple[Fraction, int, bool] | None:
    count, end = Fraction(line.values[index]), index + 1
    sign = line.words[end]
    if line.glued(end) and sign in (".", "/", ",") and line.is_digits(end + 1) and line.glued(end + 1):
        digits = line.words[end + 1]
        if sign == "/":
            return (count / line.values[end + 1], end + 2, False) if line.values[end + 1] else None
        if sign == "." or len(digits) != 3:
            return count + Fraction(int(digits), 10 ** len(digits)), end + 2, False
        return count * 1000 + int(digits), end + 2, False
    if sign in _SIGNS:
        return count + _SIGNS[sign], end + 1, False
    if sign == "and":
        fraction = _fraction_at(line, end + 1)
        if fraction is not None and unit_at(line, fraction[1]) is not None:
            return count + fraction[0], fraction[1], False
    if line.words[index] == "three" and sign == "quarters":
        after = end + 1
        while line.words[after] in ("of", "an", "a"):
            after += 1
        return Fraction(3, 4), after, False
    if line.words[end] == "more":
        end += 1
    return count, end, False


def _indefinite_at(line: Line, index: int) -> tuple[Fraction, int, bool]:
    after = line.words[index + 1]
    if after in _FEW:
        return Fraction(_FEW[after]), index + 3 if line.words[index + 2] == "of" else index + 2, False
    if after in ("half", "quarter"):
        end = index + 2
        while line.words[end] in ("of", "an", "a", "-"):
            end += 1
        return _NAMED[after], end, False
    return Fraction(1), index + 1, True


def _fraction_at(line: Line, index: int) -> tuple[Fraction, int] | None:
    """Fraction at `index` with its end, such as `a half`, `a quarter` or `three quarters`; None otherwise."""
    if line.words[index] == "three" and line.words[index + 1] == "quarters":
        return Fraction(3, 4), index + 2
    start = index + 1 if line.words[index] in ("a", "an") else index
    fraction = _NAMED.get(line.words[start])
    return None if fraction is None else (fraction, start + 1)


def _sum(left: Amount, right: Amount) -> Amount:
    grain = min(left.grain, right.grain, key=_FINENESS.index)
    return Amount(left.length + right.length, grain, right.unit, right.count)


def _amount(count: Fraction, unit: Grain | str, *, is_bare: bool = False) -> Amount:
    """`count` units; fractions of calendar units are converted to smaller units."""
    if unit in _MONTHS:
        months = count * _MONTHS[unit]
        grain = Grain.YEAR if _MONTHS[unit] >= 12 else Grain(unit)
        return Amount(_of_months(months), grain, unit, count, is_bare)
    if unit == "weekday":
        return Amount(Length(days=int(count)), Grain.DAY, unit, count, is_bare)
    if unit in _DAYS:
        days, part = divmod(count * _DAYS[unit], 1)
        grain = Grain.HOUR if part else Grain.DAY if unit == Grain.DAY else Grain.WEEK
        return Amount(Length(days=int(days), seconds=float(part * 86_400)), grain, unit, count, is_bare)
    grain = Grain(unit)
    return Amount(Length(seconds=float(count * _SECONDS[grain])), grain, unit, count, is_bare)


def _of_months(months: Fraction) -> Length:
    whole, rest = divmod(months, 1)
    return Length(months=int(whole), days=round(rest * 30))


LATER = frozenset(("hence", "later", "out", "away", "ahead"))
AGO = frozenset(("ago", "back", "earlier"))
_LEADING = frozenset(("in", "within", "after", "+"))
_WHOLE = frozenset(("all", "full", "whole", "entire"))
_COMPARING = frozenset(("more", "less", "over", "under"))
_ABOUT = frozenset(("about", "around", "roughly", "approximately", "the", "next", "exactly", "another", "+"))
_CALENDAR = (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR)
ONE: dict[Grain | str | None, Length] = {
    Grain.MINUTE: Length(seconds=60),
    Grain.HOUR: Length(seconds=3600),
    Grain.DAY: Length(days=1),
    Grain.WEEK: Length(days=7),
    Grain.MONTH: Length(months=1),
    Grain.YEAR: Length(months=12),
}
"""Length of one unit."""
_MOST_MINUTES = 100
_MONTHS_OR_MONDAYS = frozenset(("mon", "mons"))


def relative_parts(spot: RuleContext) -> Parts:
    """Rule for durations: offsets from now, deadlines, or lengths, by the words around them."""
    word = spot.word
    if word in _LEADING and (word in ("in", "within") or not spot.parsed):
        yield from _led(spot)
    elif word in _WHOLE and not spot.parsed:
        yield from _whole(spot)
    elif word in _COMPARING and not spot.parsed:
        start = spot.at + (2 if spot.ahead() == "than" else 1)
        found = amount_at(spot.line, start)
        if found is not None:
            yield Part(lasts=found[0].length, grain=found[0].grain), found[1]
    elif spot.line.kinds[spot.at] == NUMBER and spot.ahead() in ("upcoming", "coming"):
        unit = unit_at(spot.line, spot.at + 2)
        if unit in _CALENDAR:
            span = unit_span(unit, spot.line.values[spot.at], 1, spot.moment.today)
            yield Part(span=span), spot.at + 3
    else:
        yield from _followed(spot)


def _followed(spot: RuleContext) -> Parts:
    """Parts for a duration without a leading word, by the words after it (`from now`, `ago`) and before it (`for`)."""
    line, at, link, so_far = spot.line, spot.at, spot.link, spot.parsed
    either = _either_at(spot, at) if link in ("", "for") and not so_far else None
    if either is not None:
        yield either
        return
    found = amount_at(line, at)
    if found is None:
        is_last = at + 1 >= line.size and line.kinds[at] == NUMBER and line.values[at] < _MOST_MINUTES
        if link == "in" and not so_far and is_last:
            yield Part(length=Length(seconds=60 * line.values[at]), grain=Grain.MINUTE), at + 1
        return
    amount, end = found
    word, then = line.words[end], line.words[end + 1]
    if word in ("from", "since", "after") and then in ("now", "today"):
        yield _from_now(spot, amount), end + 2
    elif word in LATER:
        yield _from_now(spot, amount), end + 1
    elif word in AGO or (word == "before" and not so_far and end + 1 >= line.size):
        yield _from_now(spot, amount, back=True), end + 1
    if link == "in":
        yield _from_now(spot, amount), end + (word in ("time", "more"))
    if word in ("starting", "beginning") or link == "for":
        yield Part(lasts=amount.length, grain=amount.grain), end
    elif not so_far and link in ("", "about", "the", "around"):
        yield Part(lasts=amount.length, grain=amount.grain, is_bare=True), end


def _either_at(spot: RuleContext, start: int) -> tuple[Part, int] | None:
    """Part for an amount at `start` with two meanings, and its end: `10 to 15 minutes`, and `2 mon`, which are months
    or Mondays; None otherwise."""
    line, end = spot.line, start + 1
    one = amount_at(line, start) if line.words[start] in ("a", "an", "one") else None
    if one is not None and line.words[one[1]] == "or" and line.kinds[one[1] + 1] == NUMBER:  # `an hour or two`
        lengths = [
            Part(length=each.length, grain=each.grain)
            for each in (one[0], _amount(Fraction(line.values[one[1] + 1]), one[0].unit))
        ]
        return (Part(either=tuple(lengths)), one[1] + 2) if unit_at(line, one[1] + 2) is None else None
    if line.kinds[start] != NUMBER:
        return None
    if line.words[end] in _MONTHS_OR_MONDAYS and 0 < line.values[start] <= _MOST_WEEKDAYS:
        count, today = line.values[start], spot.moment.today
        monday = today + (7 * count - today.isoweekday() + 1) * _DAY
        other = Part(span=one_day(monday))
        if spot.word not in _LEADING and line.words[end] == "mon" and count <= 12:  # `5 mon`
            other = Part(weekday=1, clocks=(Clock(count),))
        is_dotted = line.words[end + 1] == "." and line.glued(end + 1)
        return Part(either=(Part(length=Length(months=count), grain=Grain.MONTH), other)), end + 1 + is_dotted
    more = amount_at(line, end + 1) if line.words[end] in ("to", "-", "–", "or") else None
    if more is None or line.kinds[end + 1] != NUMBER or not line.values[start] < more[0].count:
        return None
    least = _amount(Fraction(line.values[start]), more[0].unit)
    lengths = [Part(length=one.length, grain=one.grain) for one in (least, more[0])]
    return Part(either=tuple(lengths)), more[1]


def _led(spot: RuleContext) -> Parts:
    """Parts for a duration after `in`, `within`, `after` or `+`: an offset from now."""
    line, word, start = spot.line, spot.word, spot.at + 1
    while line.words[start] in _ABOUT:
        start += 1
    either = _either_at(spot, start)
    if either is not None:
        yield either
        return
    found = amount_at(line, start)
    is_next = line.words[start - 1] == "next"
    if found is None and (is_next or (word == "within" and line.words[start - 1] == "the")):
        found = _relative_one_at(spot, start)
    if found is None or (word == "after" and line.words[found[1]] in ("past", "to")):
        return
    amount, end = found
    if line.words[end] == "'" and line.words[end + 1] == "time":
        end += 2
    elif line.words[end] == "time":
        end += 1
    elif line.words[end] == "from" and line.words[end + 1] in ("now", "today"):
        end += 2
    part = _from_now(spot, amount)
    if (word == "within" or is_next) and "length" in part:
        part["deadline"] = True
    yield part, end


def _whole(spot: RuleContext) -> Parts:
    """Part for the length `all day`, `full-week` or `all the year`."""
    start = spot.at + (2 if spot.ahead() in ("-", "the") else 1)
    unit = unit_at(spot.line, start)
    if unit in _CALENDAR and unit in ONE and not spot.line.words[start].endswith("s"):
        yield Part(lasts=ONE[unit], grain=Grain(unit)), start + 1


def _relative_one_at(spot: RuleContext, start: int) -> tuple[Amount, int] | None:
    """Duration at `start` whose unit has no number and counts as one: `the next day and 5 hours`; None otherwise."""
    unit = unit_at(spot.line, start)
    if unit is None or unit not in ONE:
        return None
    amount, end = Amount(ONE[unit], Grain(unit), unit, Fraction(1)), start + 1
    more = amount_at(spot.line, end + 1) if spot.line.words[end] == "and" else None
    if more is None:
        return amount, end
    return Amount(amount.length + more[0].length, more[0].grain, more[0].unit, more[0].count), more[1]


def _from_now(spot: RuleContext, amount: Amount, *, back: bool = False) -> Part:
    if amount.unit == "weekday":
        count = int(amount.count) * (-1 if back else 1)
        return Part(span=one_day(working_days_later(spot.moment.today, count)))
    return Part(length=-amount.length if back else amount.length, grain=amount.grain)


_BEFORE = frozenset(("before", "prior"))
_AFTER = frozenset(("after", "from", "past", "since", "following"))
_MOST_WEEKDAYS = 200
_DAY = timedelta(days=1)


def offset_parts(spot: RuleContext) -> Parts:
    """Rule for times given by their distance from another time."""
    line, at, word = spot.line, spot.at, spot.word
    if line.kinds[at] == NUMBER:
        yield from _counted_weekdays(spot)
    if word == "closest" or spot.ahead() == "closest":
        yield from _closest(spot)
    elif word in WEEKDAYS and spot.ahead() in ("after", "before"):
        yield from _weekday_offset(spot, at, 1)
    elif (
        (line.kinds[at] == ORDINAL or word in ORDINALS)
        and spot.ahead() in WEEKDAYS
        and spot.ahead(2) in ("after", "before")
    ):
        yield from _weekday_offset(spot, at + 1, line.values[at] or ORDINALS.get(word, 1))
    if not spot.parsed or "deadline" in spot.parsed:
        unit = unit_at(line, at)
        if unit in ONE and len(word) > 1 and spot.ahead() in ("after", "before", "from"):
            yield from _offset_part(spot, ONE[unit], at + 1)
        found = amount_at(line, at)
        if found is not None and line.words[found[1]] in _BEFORE | _AFTER:
            yield from _offset_part(spot, found[0].length, found[1], found[0])
        elif found is not None and spot.link not in ("in", "for") and line.words[found[1]] == "on":
            yield from _week_on(spot, found[0], found[1] + 1)


def _offset_part(spot: RuleContext, length: Length, at: int, amount: Amount | None = None) -> Parts:
    """Parts for the time at the distance `length` from the one named after `at`: `… before Christmas`, `… after
    5pm`."""
    back = spot.line.words[at] in _BEFORE
    found = spot.inner(at + (2 if spot.line.words[at + 1] == "to" else 1))
    if found is None:
        return
    part, reading, end = found
    if reading.problem is not None or reading.repeats is not None or "lasts" in part:
        return
    step, sign = (-length, -1) if back else (length, 1)
    if amount is not None and amount.unit == "weekday":
        yield Part(span=one_day(working_days_later(reading.start.date(), int(amount.count) * sign))), end
    elif step.seconds or reading.has_clock:
        start = reading.start.replace(tzinfo=spot.moment.now.tzinfo)
        grain = Grain.SECOND if reading.grain == Grain.SECOND else Grain.MINUTE
        yield Part(at=step.after(start).replace(tzinfo=None), grain=grain), end
    else:
        yield Part(span=one_day(moved(reading.start.date(), step))), end


def _week_on(spot: RuleContext, amount: Amount, at: int) -> Parts:
    """Part for weeks after the coming weekday: `a week on Monday`."""
    weekday = WEEKDAYS.get(spot.line.words[at])
    if weekday is not None and amount.grain == Grain.WEEK and not amount.length.seconds:
        ahead = (weekday - spot.moment.today.isoweekday() - 1) % 7 + 1 + amount.length.days
        yield Part(span=one_day(spot.moment.today + ahead * _DAY)), at + 1


def _weekday_offset(spot: RuleContext, at: int, number: int) -> Parts:
    """Part for the weekday with that number before or after another day: `the Monday after Easter`, `the third Tuesday
    before Christmas`."""
    found = spot.inner(at + 2) if 0 < number <= _MOST_WEEKDAYS else None
    if found is None or found[1].repeats is not None:
        return
    day, weekday = found[1].start.date(), WEEKDAYS[spot.line.words[at]]
    if spot.line.words[at + 1] == "after":
        day += ((weekday - day.isoweekday() - 1) % 7 + 1 + 7 * (number - 1)) * _DAY
    else:
        day -= ((day.isoweekday() - weekday - 1) % 7 + 1 + 7 * (number - 1)) * _DAY
    if found[1].has_clock:
        yield Part(at=datetime.combine(day, found[1].start.time()), grain=found[1].grain), found[2]
    else:
        yield Part(span=one_day(day)), found[2]


def _counted_weekdays(spot: RuleContext) -> Parts:
    """Parts for a number of weekdays from today: `3 Fridays from now`, `in 2 Fridays`, `2 Sundays ago`."""
    line, count, today, end = spot.line, spot.line.values[spot.at], spot.moment.today, spot.at + 2
    weekday = WEEKDAYS.get(spot.ahead()) or PLURAL_WEEKDAYS.get(spot.ahead())
    if weekday is None or not 0 < count <= _MOST_WEEKDAYS:
        return
    ahead = (weekday - today.isoweekday() - 1) % 7 + 1 + 7 * (count - 1)
    behind = (today.isoweekday() - weekday - 1) % 7 + 1 + 7 * (count - 1)
    word = line.words[end]
    if word in ("from", "after") and line.words[end + 1] in ("now", "today"):
        yield Part(span=one_day(today + ahead * _DAY)), end + 2
    elif word in LATER:
        yield Part(span=one_day(today + ahead * _DAY)), end + 1
    elif word in AGO:
        yield Part(span=one_day(today - behind * _DAY)), end + 1
    elif spot.link == "in":
        yield Part(span=one_day(today + ahead * _DAY)), end


def _closest(spot: RuleContext) -> Parts:
    """Part for the weekday closest to another day: `the closest Monday to October 5`, `the second closest …`."""
    line, start, number = spot.line, spot.at + 1, 1
    if spot.word != "closest":
        start, number = spot.at + 2, line.values[spot.at] or ORDINALS.get(spot.word, 1)
    weekday = WEEKDAYS.get(line.words[start])
    if weekday is None or line.words[start + 1] not in ("to", "from") or not 0 < number <= _MOST_WEEKDAYS:
        return
    found = spot.inner(start + 2)
    if found is None:
        return
    middle = found[1].start.date()
    first = (weekday - middle.isoweekday()) % 7
    distances = sorted((first + 7 * weeks for weeks in range(-number - 1, number + 1)), key=abs)
    yield Part(span=one_day(middle + distances[number - 1] * _DAY)), found[2]
