"""English recurrences and bounds: every other Friday, weekdays, once a month; until, from … to."""

from __future__ import annotations

from datetime import date, time

from services.times.en.clocks import RANGE, clock_at
from services.times.en.dates import dates_at
from services.times.en.durations import Amount, amount_at, unit_at
from services.times.recurrence import Unit
from services.times.words.lexicon import ORDINALS, PLURAL_WEEKDAYS, PORTIONS, REPEATING, WEEKDAYS
from services.times.words.parts import Part, Parts, RuleContext, without
from services.times.words.readings import Grain, Repeats, TimeProblem
from services.times.words.tokens import NUMBER, ORDINAL, Line

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
    """Recurrences that start at `index`, as parts with their ends, most likely first."""
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
    """Recurrences at `index` by frequency: `once a week`, `once every 2 weeks`; `twice a day` has the problem VAGUE."""
    word, after = line.words[index], index + (2 if line.words[index + 1] == "times" else 1)
    if word == "once" and line.words[after] == "every":
        yield from _every(line, after + 1, today)
    elif line.words[after] in ("a", "an", "per", "each", "every"):
        if word == "once":
            yield from _every(line, after + 1, today)
        elif unit_at(line, after + 1) is not None and _is_more(line, index):
            yield Part(repeats=Repeats(), problem=TimeProblem.VAGUE), after + 2
    elif line.words[after] in REPEATING and _is_more(line, index):
        yield Part(repeats=Repeats(), problem=TimeProblem.VAGUE), after + 1


def _is_more(line: Line, index: int) -> bool:
    """Whether the recurrence is `twice` or `n times` per period."""
    return line.words[index] == "twice" or line.kinds[index] == NUMBER


def _plural(line: Line, index: int) -> Parts:
    """Recurrences at `index` in one or two plural words: `Mondays`, `weekdays`, `working days`, `weekends`,
    `mornings`."""
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
    """Several weekdays at `index`: `monday and thursday`, `mon, wed, fri`, `Mon-Fri`; one only in the plural."""
    if line.words[index] not in WEEKDAYS and line.words[index] not in PLURAL_WEEKDAYS:
        return
    days, end = _weekdays(line, index)
    if len(days) > 1 and "or" in line.words[index:end]:
        yield Part(either=tuple(Part(weekday=day) for day in days)), end
    elif len(days) > 1 or line.words[index] in PLURAL_WEEKDAYS:
        yield Part(weekdays=days), end


def days_at(line: Line, index: int) -> Parts:
    """Several days of the month at `index`: `1st and 15th`."""
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
    if len(days) > 1 and "or" in line.words[index:end]:
        yield Part(either=tuple(Part(day=day) for day in days)), end + 1
    elif len(days) > 1:
        yield Part(days=tuple(sorted(set(days)))), end + 1


def _weekdays(line: Line, index: int) -> tuple[tuple[int, ...], int]:
    """Weekdays listed from `index` on, sorted, with the end of the list."""
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
    """Recurrences whose words after `every` start at `index`."""
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
    """Whether `of the month` follows: then the second Friday is the second of the month, not every other Friday."""
    return line.words[index] in ("of", "in") and line.words[index + 1 : index + 3] == ["the", "month"]


def _every_unit(line: Line, index: int, step: int) -> Parts:
    """Recurrences by the unit at `index`, after `every`: day, other week, weekday, morning, hour and a half."""
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
    """Yearly recurrences by the date at `index`, after `every`: `May 3rd`, `January`, `Christmas`."""
    for part, end in dates_at(line, index, today):
        if "year" not in part and not part.keys().isdisjoint(("month", "holiday")):
            yield {**part, "repeats": Repeats(Unit.YEAR)}, end


def _and_a_half(line: Line, index: int, unit: Grain | str) -> Parts:
    """Recurrence of one and a half units: `every hour and a half`."""
    if line.words[index + 2] in ("a", "half") and "half" in (line.words[index + 2], line.words[index + 3]):
        seconds = _SECONDS[Grain(unit)] * 3 // 2
        yield Part(repeats=Repeats(None, seconds=seconds)), index + (3 if line.words[index + 2] == "half" else 4)


def _every_nth(line: Line, index: int, today: date) -> Parts:
    """Recurrences by an ordinal at `index`, after `every`: `first Monday`, `last day of the month`, `15th`, `3rd
    day`."""
    if line.kinds[index] != ORDINAL and line.words[index] != "last" and line.words[index] not in ORDINALS:
        return
    for part, end in days_at(line, index):
        if "days" in part:
            yield {**part, "repeats": Repeats(Unit.MONTH)}, end
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
    """Recurrence with `amount` as its interval: `every 3 days`, `every 90 minutes`."""
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


_UNTIL = frozenset(("until", "till", "til", "untill", "through", "thru", "ending"))
_EXCEPT = frozenset(("except", "excepting", "excluding", "but", "besides"))
_EXCEPT_OF_TWO = frozenset((("except", "for"), ("apart", "from"), ("other", "than"), ("but", "not"), ("not", "on")))
_FROM = frozenset(("starting", "beginning", "from", "start", "as"))


def range_parts(spot: RuleContext) -> Parts:
    """Rule for the end of a range, from `to` on."""
    so_far = spot.parsed
    if not so_far or "to" in so_far or spot.word not in RANGE:
        return
    if spot.word == "and" and not ("is_between" in so_far or "repeats" in so_far):
        return
    if spot.word == "but" and spot.ahead() != "before":
        return
    start = spot.at + 1
    while spot.line.words[start] in ("the", "at", "on", "before", "by"):
        start += 1
    if "repeats" in so_far:
        for clock, end, _ in clock_at(spot.line, start, after_at=True):
            yield Part(to=Part(clocks=(clock,))), end
        return
    found = spot.other_end(start)
    if found is None or "repeats" in found[0] or "to" in found[0]:
        return
    if "zone" in found[0] and "zone" not in so_far:
        yield Part(to=without(found[0], "zone"), zone=found[0]["zone"]), found[1]
    else:
        yield Part(to=found[0]), found[1]


def deadline_parts(spot: RuleContext) -> Parts:
    """Rule for `by`, `no later than`, `before`, `until` and `between`; also for `after` and `later than` before a time
    of day."""
    word, so_far = spot.word, spot.parsed
    if word == "between" and "to" not in so_far:
        yield Part(is_between=True), spot.at + 1
    is_last = word == "no" and (spot.ahead(), spot.ahead(2)) == ("later", "than")
    if word in ("by", "before") or is_last or (word in _UNTIL and not so_far):
        if not so_far.keys() & {"deadline", "lasts"}:
            yield Part(deadline=True), spot.at + (3 if is_last else 1)
    elif so_far:
        return
    elif word in ("after", "past", "since"):
        found = spot.inner(spot.at + 1)
        if found is not None and found[0].keys() & {"clocks", "weekday"}:
            yield found[0], found[2]
    elif word == "later" and spot.ahead() == "than":
        found = spot.inner(spot.at + 2)
        if found is not None:
            yield found[0], found[2]


def repeat_parts(spot: RuleContext) -> Parts:
    """Rule for recurrences with their weekdays and bounds."""
    line, at, today, so_far = spot.line, spot.at, spot.moment.today, spot.parsed
    if "repeats" not in so_far:
        yield from repeats_at(line, at, today)
    if "repeats" in so_far or "weekdays" in so_far:
        yield from _bounds(spot)
    if "weekdays" not in so_far:
        yield from weekdays_at(line, at)
        if "repeats" in so_far:
            for part, end in repeats_at(line, at, today):
                if "weekdays" in part and part.get("repeats") == Repeats(Unit.WEEK):
                    yield Part(weekdays=part["weekdays"]), end


def _bounds(spot: RuleContext) -> Parts:
    """Parts for the bounds of a recurrence: `until June`, `starting Monday`, `for 10 times`, `except Sundays`."""
    line, word, start, so_far = spot.line, spot.word, spot.at + 1, spot.parsed
    if word in _UNTIL and "until" not in so_far:
        start += line.words[start] in ("on", "at")
        found = spot.inner(start)
        if found is not None and "repeats" not in found[0]:
            yield Part(until=found[0]), found[2]
    elif word in _FROM and "first" not in so_far:
        while line.words[start] in ("on", "of", "from", "in"):
            start += 1
        found = spot.inner(start)
        if found is not None and not found[0].keys() & {"repeats", "to"}:
            yield Part(first=found[0]), found[2]
    elif "but" not in so_far and (word in _EXCEPT or (word, line.words[start]) in _EXCEPT_OF_TWO):
        yield from _except(spot, start if word in _EXCEPT else start + 1)
    elif word == "for" and line.kinds[start] == NUMBER and line.words[start + 1] == "times":
        yield Part(count=line.values[start]), start + 2


def _except(spot: RuleContext, at: int) -> Parts:
    """Part for the weekdays excluded from a recurrence, which are named at `at`; holidays give the problem SEVERAL,
    because a rule cannot exclude them."""
    line, today = spot.line, spot.moment.today
    while line.words[at] in ("on", "for", "the"):
        at += 1
    if line.words[at] in ("weekends", "weekend"):
        yield Part(but=WEEKEND), at + 1
        return
    if line.words[at] in ("public", "bank", "school", "national"):
        at += 1
    if line.words[at] in ("holidays", "holiday"):
        yield Part(problem=TimeProblem.SEVERAL), at + 1
        return
    named = [(part["weekdays"], end) for part, end in weekdays_at(line, at)]
    named += [((part["weekday"],), end) for part, end in dates_at(line, at, today) if "weekday" in part]
    for days, end in named[:1]:
        yield Part(but=days), end
