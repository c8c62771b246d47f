"""DATEADD and DATEDIFF: later, and how much later."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import as_number, kind_of
from function_calls.basic.functions.calendar_words import Unit, unit_of
from function_calls.basic.moments import HINT, Moment, days_later, read, within_calendar
from function_calls.basic.world import World
from services.json_values import JsonValue

UNITS = "year, quarter, month, week, day, hour, minute and second"
"""As they are named to authors."""
MOST_SECONDS = 10_000_000_000_000
"""No two moments are further apart, whatever the unit."""
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DAYS = {"week": 7, "day": 1}


def moment_of(world: World, value: JsonValue, name: str) -> Moment:
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    if moment is None:
        raise RunFault(RunCode.BAD_VALUE, f"{name} needs a date, not {kind_of(value)}; {HINT}")
    return moment


def date_add(world: World, *values: JsonValue) -> JsonValue:
    """DATEADD(date, number, unit), and DATEADD(unit, number, date) of old programs."""
    date, number, unit = values[0], values[1], _unit_word(values[2]) if len(values) > 2 else "day"
    if len(values) > 2 and _unit_word(values[0]) is not None:
        date, unit = values[2], _unit_word(values[0])
    if unit is None:
        raise _no_unit("DATEADD")
    count = as_number(number)
    if count is None:
        raise RunFault(
            RunCode.WRONG_TYPE, f"DATEADD needs a date, a number and a unit, not {kind_of(number)} as number"
        )
    return str(_later(world, moment_of(world, date, "DATEADD"), count, unit))


def _later(world: World, moment: Moment, count: int | float, unit: Unit) -> Moment:
    if abs(count) > MOST_SECONDS:
        raise RunFault(RunCode.BAD_VALUE, "the date would be beyond the years 1 to 9999")
    if unit in _MONTHS:
        if moment.form == "time":
            return moment
        return Moment(within_calendar(lambda: _months_later(moment.at, int(count) * _MONTHS[unit])), moment.form)
    if unit in _DAYS or moment.form == "time":
        return days_later(moment, count * _DAYS[unit] if unit in _DAYS else count * _SECONDS[unit] / 86_400)
    seconds = round(count * _SECONDS[unit])
    return Moment(within_calendar(lambda: _elapsed(world, moment.at, timedelta(seconds=seconds))), "both")


def _elapsed(world: World, at: datetime, by: timedelta) -> datetime:
    """So much later as time passes, over changes of the clocks too."""
    zone = world.now().tzinfo
    return (at.replace(tzinfo=zone).astimezone(UTC) + by).astimezone(zone).replace(tzinfo=None)


def _months_later(at: datetime, months: int) -> datetime:
    """The same day, or the last one of a shorter month."""
    count = at.year * 12 + at.month - 1 + months
    year, month = count // 12, count % 12 + 1
    if not 1 <= year <= 9999:
        raise OverflowError
    return at.replace(year=year, month=month, day=min(at.day, calendar.monthrange(year, month)[1]))


def date_diff(world: World, *values: JsonValue) -> JsonValue:
    """DATEDIFF(from, to, unit), and DATEDIFF(unit, from, to) of old programs."""
    first, last, unit = values[0], values[1], _unit_word(values[2]) if len(values) > 2 else "day"
    if len(values) > 2 and _unit_word(values[0]) is not None:
        first, last, unit = values[1], values[2], _unit_word(values[0])
    if unit is None:
        raise _no_unit("DATEDIFF")
    start, end = moment_of(world, first, "DATEDIFF"), moment_of(world, last, "DATEDIFF")
    if (start.form == "time") != (end.form == "time"):
        raise RunFault(RunCode.BAD_VALUE, "DATEDIFF cannot compare a date with a time without one")
    return _difference(world, start.at, end.at, unit)


def _difference(world: World, start: datetime, end: datetime, unit: Unit) -> int:
    """Days are those of the calendar; months, quarters and years are full ones; hours and less pass as time does."""
    if unit in _DAYS:
        return _cut((end.date() - start.date()).days, _DAYS[unit])
    if unit in _MONTHS:
        return _cut(_full_months(start, end), _MONTHS[unit])
    zone = world.now().tzinfo
    try:
        passed = end.replace(tzinfo=zone).astimezone(UTC) - start.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:  # at the ends of the calendar, where another zone has another year
        passed = end - start
    return _cut(passed // timedelta(seconds=1), _SECONDS[unit])


def _full_months(start: datetime, end: datetime) -> int:
    if end < start:
        return -_full_months(end, start)
    months = (end.year - start.year) * 12 + end.month - start.month
    return months if months == 0 or _months_later(start, months) <= end else months - 1


def _cut(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)


def _unit_word(value: JsonValue) -> Unit | None:
    return unit_of(value) if type(value) is str and len(value) <= 20 else None


def _no_unit(name: str) -> RunFault:
    return RunFault(RunCode.BAD_VALUE, f"{name} knows the units {UNITS}; this is none of them")
