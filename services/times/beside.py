"""Before and after something else: 3 days before Christmas, an hour after noon, the Monday after Easter, 3 Fridays from
now, the closest Monday to October 5."""

from __future__ import annotations

from datetime import datetime, timedelta

from services.times.durations import Amount, amount_at, unit_at
from services.times.lexicon import ORDINALS, PLURAL_WEEKDAYS, WEEKDAYS
from services.times.parts import Part
from services.times.readings import Grain, Length
from services.times.relative import AGO, LATER, ONE
from services.times.spans import moved, one_day, working_days_later
from services.times.spots import Parts, Spot
from services.times.tokens import NUMBER, ORDINAL

_BEFORE = frozenset(("before", "prior"))
_AFTER = frozenset(("after", "from", "past", "since", "following"))
_MOST_WEEKDAYS = 200
_DAY = timedelta(days=1)


def beside_parts(spot: Spot) -> Parts:
    """What is said by how far it is from something else."""
    line, at, word = spot.line, spot.at, spot.word
    if line.kinds[at] == NUMBER:
        yield from _counted_weekdays(spot)
    if word == "closest" or spot.ahead() == "closest":
        yield from _closest(spot)
    elif word in WEEKDAYS and spot.ahead() in ("after", "before"):
        yield from _weekday_beside(spot, at, 1)
    elif (
        (line.kinds[at] == ORDINAL or word in ORDINALS)
        and spot.ahead() in WEEKDAYS
        and spot.ahead(2) in ("after", "before")
    ):
        yield from _weekday_beside(spot, at + 1, line.values[at] or ORDINALS.get(word, 1))
    if not spot.so_far or "deadline" in spot.so_far:
        unit = unit_at(line, at)
        if unit in ONE and len(word) > 1 and spot.ahead() in ("after", "before", "from"):
            yield from _beside(spot, ONE[unit], at + 1)
        found = amount_at(line, at)
        if found is not None and line.words[found[1]] in _BEFORE | _AFTER:
            yield from _beside(spot, found[0].length, found[1], found[0])
        elif found is not None and spot.link not in ("in", "for") and line.words[found[1]] == "on":
            yield from _week_on(spot, found[0], found[1] + 1)


def _beside(spot: Spot, length: Length, at: int, amount: Amount | None = None) -> Parts:
    """`… before Christmas`, `… after 5pm`, `… prior to tomorrow`."""
    back = spot.line.words[at] in _BEFORE
    found = spot.inner(at + (2 if spot.line.words[at + 1] == "to" else 1))
    if found is None:
        return
    part, reading, end = found
    if reading.trouble is not None or reading.repeats is not None or "lasts" in part:
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


def _week_on(spot: Spot, amount: Amount, at: int) -> Parts:
    """`a week on Monday`: so many weeks behind the coming one."""
    weekday = WEEKDAYS.get(spot.line.words[at])
    if weekday is not None and amount.grain == Grain.WEEK and not amount.length.seconds:
        ahead = (weekday - spot.moment.today.isoweekday() - 1) % 7 + 1 + amount.length.days
        yield Part(span=one_day(spot.moment.today + ahead * _DAY)), at + 1


def _weekday_beside(spot: Spot, at: int, number: int) -> Parts:
    """`the Monday after Easter`, `the third Tuesday before Christmas`."""
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


def _counted_weekdays(spot: Spot) -> Parts:
    """`3 Fridays from now`, `two monday later`, `in 2 Fridays`, `2 Sundays ago`."""
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


def _closest(spot: Spot) -> Parts:
    """`the closest Monday to October 5`, `the second closest …`."""
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
