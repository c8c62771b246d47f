"""Again and again: every other Friday, daily, weekdays, on Mondays and Thursdays, once a month, each morning."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time

from services.recurrence import Unit
from services.times.dates import dates_at
from services.times.durations import Amount, amount_at, unit_at
from services.times.lexicon import ORDINALS, PLURAL_WEEKDAYS, PORTIONS, REPEATING, WEEKDAYS
from services.times.parts import Part
from services.times.readings import Grain
from services.times.repeats import Repeats, Trouble
from services.times.tokens import NUMBER, ORDINAL, Line

Parts = Iterator[tuple[Part, int]]
WORKDAYS = (1, 2, 3, 4, 5)
WEEKEND = (6, 7)
_UNITS = {
    Grain.DAY: (Unit.DAY, 1),
    Grain.WEEK: (Unit.WEEK, 1),
    "fortnight": (Unit.WEEK, 2),
    Grain.MONTH: (Unit.MONTH, 1),
    Grain.QUARTER: (Unit.MONTH, 3),
    Grain.YEAR: (Unit.YEAR, 1),
    "decade": (Unit.YEAR, 10),
}
_SECONDS = {Grain.SECOND: 1, Grain.MINUTE: 60, Grain.HOUR: 3600}
_AND = frozenset((",", "and", "&", "or", "/", "+"))
_MOST_LISTED = 12


def repeats_at(line: Line, index: int, today: date) -> Parts:
    """What begins at `index` and says that something comes again and again."""
    word, then = line.words[index], line.words[index + 1]
    if word in ("every", "each", "any"):
        yield from _every(line, index + 1, today)
    elif word == "all":
        if unit_at(line, index + 1) == "weekend" or then in PLURAL_WEEKDAYS:
            yield from _every(line, index + 1, today)
    elif word in ("once", "one", "twice") or then == "times":
        yield from _so_often(line, index, today)
    elif word in REPEATING:
        yield _of_unit(*REPEATING[word]), index + 1
    elif word in ("bi", "semi") and then == "-" and word + line.words[index + 2] in REPEATING:
        yield _of_unit(*REPEATING[word + line.words[index + 2]]), index + 3
    else:
        yield from _plural(line, index)


def _so_often(line: Line, index: int, today: date) -> Parts:
    """`once a week`, `once every 2 weeks`, `twice a day`: when, the last one does not say."""
    word, after = line.words[index], index + (2 if line.words[index + 1] == "times" else 1)
    if word == "once" and line.words[after] == "every":
        yield from _every(line, after + 1, today)
    elif line.words[after] in ("a", "an", "per", "each", "every"):
        if word == "once":
            yield from _every(line, after + 1, today)
        elif unit_at(line, after + 1) is not None and _is_more(line, index):
            yield Part(repeats=Repeats(), trouble=Trouble.VAGUE), after + 2
    elif line.words[after] in REPEATING and _is_more(line, index):
        yield Part(repeats=Repeats(), trouble=Trouble.VAGUE), after + 1


def _is_more(line: Line, index: int) -> bool:
    """Whether it is `twice` or so many times, and not just once."""
    return line.words[index] == "twice" or line.kinds[index] == NUMBER


def _plural(line: Line, index: int) -> Parts:
    """`Mondays`, `weekdays`, `working days`, `weekends`, `mornings`."""
    word, then = line.words[index], line.words[index + 1]
    if word in ("weekday", "weekend") and then in ("mornings", "afternoons", "evenings", "nights"):
        days: tuple[int, ...] = WORKDAYS if word == "weekday" else WEEKEND
        yield Part(repeats=Repeats(Unit.WEEK), weekdays=days, portion=PORTIONS[then]), index + 2
    elif word in ("weekdays", "workdays"):
        yield Part(repeats=Repeats(Unit.WEEK), weekdays=WORKDAYS), index + 1
    elif word in ("business", "working", "work") and line.words[index + 1] == "days":
        yield Part(repeats=Repeats(Unit.WEEK), weekdays=WORKDAYS), index + 2
    elif word == "weekends":
        yield Part(repeats=Repeats(Unit.WEEK), weekdays=WEEKEND), index + 1
    elif word in PLURAL_WEEKDAYS:
        days, end = _weekdays(line, index)
        yield Part(repeats=Repeats(Unit.WEEK), weekdays=days), end
    elif word in ("mornings", "afternoons", "evenings", "nights"):
        yield Part(repeats=Repeats(Unit.DAY), portion=PORTIONS[word]), index + 1


def weekdays_at(line: Line, index: int) -> Parts:
    """Several weekdays: `monday and thursday`, `mon, wed, fri`, `Mon-Fri`."""
    if line.words[index] not in WEEKDAYS and line.words[index] not in PLURAL_WEEKDAYS:
        return
    days, end = _weekdays(line, index)
    if len(days) > 1 or line.words[index] in PLURAL_WEEKDAYS:
        yield Part(weekdays=days), end


def days_at(line: Line, index: int) -> Parts:
    """Several days of the month: `1st and 15th`."""
    days: list[int] = []
    end = index
    while line.kinds[end] == ORDINAL and 1 <= line.values[end] <= 31 and len(days) < _MOST_LISTED:
        days.append(line.values[end])
        after = end + 1
        while line.words[after] in _AND or line.words[after] == "the":
            after += 1
        if line.kinds[after] != ORDINAL:
            break
        end = after
    if len(days) > 1:
        yield Part(days=tuple(sorted(set(days)))), end + 1


def _weekdays(line: Line, index: int) -> tuple[tuple[int, ...], int]:
    """The weekdays listed from `index` on, in order, and where the list ends."""
    days: list[int] = []
    end = index
    while len(days) < _MOST_LISTED:
        day = _weekday(line, end)
        if day is None:
            break
        days.append(day)
        end += 2 if line.words[end + 1] == "." and line.glued(end + 1) else 1
        through = _weekday(line, end + 1)
        if line.words[end] in ("-", "–", "to", "through", "thru", "till", "until") and through is not None:
            days.extend((day + step - 1) % 7 + 1 for step in range(1, (through - day) % 7 + 1))
            end += 2
        after = end
        while line.words[after] in _AND or line.words[after] in ("on", "every", "each"):
            after += 1
        if after == end or _weekday(line, after) is None:
            break
        end = after
    return tuple(sorted(set(days))), end


def _weekday(line: Line, index: int) -> int | None:
    word = line.words[index]
    return WEEKDAYS.get(word) or PLURAL_WEEKDAYS.get(word)


def _every(line: Line, index: int, today: date) -> Parts:
    """What follows `every`."""
    index += line.words[index] == "single"
    word, step = line.words[index], 1
    is_second = word == "second" and (line.words[index + 1] in WEEKDAYS or unit_at(line, index + 1) is not None)
    if is_second and _is_of_the_month(line, index + 2):
        yield from _every_nth(line, index, today)
        return
    if word in ("other", "alternate") or is_second:
        index, step = index + 1, 2
    weekday = _weekday(line, index)
    if weekday is not None:
        days, end = _weekdays(line, index)
        yield Part(repeats=Repeats(Unit.WEEK, step), weekdays=days), end
        return
    yield from _every_unit(line, index, step)
    if step == 1:
        yield from _every_nth(line, index, today)
        amount = amount_at(line, index)
        if amount is not None:
            yield from _of_amount(*amount)
        yield from _every_date(line, index, today)


def _is_of_the_month(line: Line, index: int) -> bool:
    """Whether `of the month` follows: then the second Friday is no other Friday, but the second one of the month."""
    return line.words[index] in ("of", "in") and line.words[index + 1 : index + 3] == ["the", "month"]


def _every_unit(line: Line, index: int, step: int) -> Parts:
    """`every day`, `every other week`, `every weekday`, `every morning`, `every hour and a half`."""
    word, unit, end = line.words[index], unit_at(line, index), index + 1
    if word in ("business", "working", "work") and unit_at(line, end) == Grain.DAY:
        unit, end = "weekday", end + 1
    if unit == "weekday":
        yield Part(repeats=Repeats(Unit.WEEK, step), weekdays=WORKDAYS), end
    elif unit == "weekend":
        yield Part(repeats=Repeats(Unit.WEEK, step), weekdays=WEEKEND), end
    elif word in PORTIONS:
        yield Part(repeats=Repeats(Unit.DAY, step), portion=PORTIONS[word]), end
    elif unit is not None and len(word) > 1:
        if unit == Grain.HOUR and line.words[end : end + 3] == ["on", "the", "hour"]:
            yield Part(repeats=Repeats(None, seconds=3600 * step, window=(time(0), time(23, 59)))), end + 3
        if line.words[end] == "and" and unit in _SECONDS:
            yield from _and_a_half(line, index, unit)
        yield _of_unit(unit, step), end


def _every_date(line: Line, index: int, today: date) -> Parts:
    """`every May 3rd`, `every January`, `every Christmas`."""
    for part, end in dates_at(line, index, today):
        if "year" not in part and not part.keys().isdisjoint(("month", "holiday")):
            yield {**part, "repeats": Repeats(Unit.YEAR)}, end


def _and_a_half(line: Line, index: int, unit: Grain | str) -> Parts:
    """`every hour and a half`."""
    if line.words[index + 2] in ("a", "half") and "half" in (line.words[index + 2], line.words[index + 3]):
        seconds = _SECONDS[Grain(unit)] * 3 // 2
        yield Part(repeats=Repeats(None, seconds=seconds)), index + (3 if line.words[index + 2] == "half" else 4)


def _every_nth(line: Line, index: int, today: date) -> Parts:
    """`every first Monday`, `every last day of the month`, `every 15th`, `every 3rd day`."""
    if line.kinds[index] != ORDINAL and line.words[index] != "last" and line.words[index] not in ORDINALS:
        return
    for part, end in dates_at(line, index, today):
        number, what = part.get("nth", (0, ""))
        if what.startswith("weekday") or number < 0:
            yield {**part, "repeats": Repeats(Unit.MONTH)}, end
        elif number > 0 and what in _UNITS:
            unit, step = _UNITS[what]
            yield Part(repeats=Repeats(unit, step * number)), end
        elif part.keys() == {"day"}:
            yield {**part, "repeats": Repeats(Unit.MONTH)}, end


def _of_amount(amount: Amount, end: int) -> Parts:
    """`every 3 days`, `every 90 minutes`."""
    if amount.unit == "weekday" and amount.count == 1:
        yield Part(repeats=Repeats(Unit.WEEK), weekdays=WORKDAYS), end
    elif amount.unit in _UNITS and amount.count.denominator == 1 and amount.count > 0:
        unit, step = _UNITS[amount.unit]
        yield Part(repeats=Repeats(unit, step * int(amount.count))), end
    elif amount.unit == Grain.YEAR and (amount.count * 12).denominator == 1:
        yield Part(repeats=Repeats(Unit.MONTH, int(amount.count * 12))), end
    elif amount.length.seconds and not amount.length.months:
        seconds = round(amount.length.seconds + amount.length.days * 86_400)
        yield Part(repeats=Repeats(None, seconds=seconds)), end


def _of_unit(unit: Grain | str, step: int) -> Part:
    if unit in _SECONDS:
        return Part(repeats=Repeats(None, seconds=_SECONDS[Grain(unit)] * step))
    if unit == "night":
        return Part(repeats=Repeats(Unit.DAY, step), portion="night")
    calendar, each = _UNITS.get(unit, (Unit.YEAR, 100))
    return Part(repeats=Repeats(calendar, each * step))
