"""Date and time functions. Values are local times in the chat's time zone."""

from __future__ import annotations

import calendar
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.date_texts import HINT, Form, Moment, days_later, read, within_calendar
from function_calls.basic.environment import World
from function_calls.basic.functions.declaration import ANY, DATE, NUMBER, LanguageFunction, function
from function_calls.basic.functions.formatting import UNITS, Unit, day_name, month_name
from function_calls.basic.values import as_number, kind_of, normalized_number, number_of
from services.refs import JsonValue

_SHOWN_UNITS = "year, quarter, month, week, day, hour, minute and second"
"""Unit names as shown to authors."""
MOST_SECONDS = 10_000_000_000_000
"""Upper bound of any interval between two dates, in any unit."""
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DAYS = {"week": 7, "day": 1}


def moment_of(world: World, value: JsonValue, name: str) -> Moment:
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    if moment is None:
        raise RunError(RunCode.BAD_VALUE, f"{name} needs a date, not {kind_of(value)}; {HINT}")
    return moment


def _later(world: World, moment: Moment, count: int | float, unit: Unit) -> Moment:
    if abs(count) > MOST_SECONDS:
        raise RunError(RunCode.BAD_VALUE, "the date is outside the years 1 to 9999")
    if unit in _MONTHS:
        if moment.form == "time":
            return moment
        return Moment(within_calendar(lambda: _months_later(moment.at, int(count) * _MONTHS[unit])), moment.form)
    if unit in _DAYS or moment.form == "time":
        return days_later(moment, count * _DAYS[unit] if unit in _DAYS else count * _SECONDS[unit] / 86_400)
    seconds = round(count * _SECONDS[unit])
    return Moment(within_calendar(lambda: _elapsed(world, moment.at, timedelta(seconds=seconds))), "both")


def _elapsed(world: World, at: datetime, by: timedelta) -> datetime:
    """Add elapsed time to a local time, across daylight saving changes."""
    zone = world.now().tzinfo
    return (at.replace(tzinfo=zone).astimezone(UTC) + by).astimezone(zone).replace(tzinfo=None)


def _months_later(at: datetime, months: int) -> datetime:
    """Add calendar months. The day is clamped to the last day of a shorter month. Raises OverflowError outside the
    years 1 to 9999."""
    count = at.year * 12 + at.month - 1 + months
    year, month = count // 12, count % 12 + 1
    if not 1 <= year <= 9999:
        raise OverflowError
    return at.replace(year=year, month=month, day=min(at.day, calendar.monthrange(year, month)[1]))


def _difference(world: World, start: datetime, end: datetime, unit: Unit) -> int:
    """Number of units from `start` to `end`: days and weeks count calendar dates; months and longer count full ones;
    shorter units count elapsed time. Negative if `end` is earlier."""
    if unit in _DAYS:
        return _cut((end.date() - start.date()).days, _DAYS[unit])
    if unit in _MONTHS:
        return _cut(_full_months(start, end), _MONTHS[unit])
    zone = world.now().tzinfo
    try:
        passed = end.replace(tzinfo=zone).astimezone(UTC) - start.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:  # near year 1 or 9999 the conversion to UTC leaves the calendar
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
    return UNITS.get(value.strip().lower()) if type(value) is str and len(value) <= 20 else None


def _no_unit(name: str) -> RunError:
    return RunError(RunCode.BAD_VALUE, f"{name}: unknown unit; known units: {_SHOWN_UNITS}")


def _wall(world: World, form: Form) -> Moment:
    return Moment(world.now().replace(tzinfo=None, microsecond=0), form)


def _dated(moment: Moment) -> datetime:
    if moment.form == "time":
        raise RunError(RunCode.BAD_VALUE, f"expected a date, found a time of day; {HINT}")
    return moment.at


DATES: list[LanguageFunction] = []


def _part(name: str, give: Callable[[Moment], int], about: str, gives: int) -> None:
    example = f'{name}("2026-11-20 22:15:30")'
    function(DATES, f"{name}(date)", example, gives, about=about, takes=(DATE,))(give)


@function(DATES, "NOW()", "NOW()", "2026-11-20 22:15:00")
def _now(world: World) -> JsonValue:
    """The current date and time in the chat's time zone."""
    return str(_wall(world, "both"))


@function(DATES, "TODAY()", "TODAY()", "2026-11-20")
def _today(world: World) -> JsonValue:
    """The current date in the chat's time zone."""
    return str(_wall(world, "date"))


@function(
    DATES, "DATE([year or date], [month], [day])", "DATE(2026, 12, 24)", "2026-12-24", takes=(ANY, ANY, ANY), fewest=0
)
def _date(world: World, *values: JsonValue) -> JsonValue:
    """The current date; the date part of a date and time; or the date with this year, month and day.

    DATE() for today, DATE(date) for its date part, or DATE(year, month, day). Raises RunError for two arguments, a
    time of day or an invalid date."""
    if not values:
        return _today(world)
    if len(values) == 3:
        return _from_parts(*(int(number_of(value)) for value in values))
    moment = moment_of(world, values[0], "DATE")
    if len(values) == 2 or moment.form == "time":
        raise RunError(RunCode.BAD_VALUE, f"DATE needs a date, or a year, a month and a day; {HINT}")
    return str(Moment(moment.at, "date"))


@function(DATES, "DATESERIAL(year, month, day)", "DATESERIAL(2026, 12, 24)", "2026-12-24")
def _from_parts(year: int, month: int, day: int) -> str:
    """The date with this year, month and day.

    Months and days past the end carry over into the next year or month, as in the classic
    DATESERIAL. Raises RunError outside the calendar."""
    months = year * 12 + month - 1
    first = within_calendar(lambda: datetime(months // 12, months % 12 + 1, 1))  # noqa: DTZ001 - a local time
    return str(Moment(within_calendar(lambda: first + timedelta(days=day - 1)), "date"))


@function(DATES, "TIME([date])", 'TIME("2026-11-20 08:05")', "08:05:00", takes=(ANY,), fewest=0)
def _time(world: World, *values: JsonValue) -> JsonValue:
    """The current time of day, or the time of day of a date and time."""
    moment = moment_of(world, values[0], "TIME") if values else _wall(world, "both")
    return str(Moment(moment.at, "time"))


@function(DATES, "DATEVALUE(text)", 'DATEVALUE("20.11.2026")', "2026-11-20", also=("dateonly",))
def _date_value(moment: Moment) -> JsonValue:
    """The date in a text, without the time."""
    return str(Moment(_dated(moment), "date"))


@function(DATES, "TIMEVALUE(text)", 'TIMEVALUE("8:05 PM")', "20:05:00")
def _timevalue(moment: Moment) -> JsonValue:
    """The time of day in a text."""
    return str(Moment(moment.at, "time"))


@function(
    DATES,
    "DATEADD(date, number, [unit])",
    'DATEADD("2026-01-31", 1, "month")',
    "2026-02-28",
    takes=(ANY, ANY, ANY),
    fewest=2,
    about=f"The date plus a number of units. Units: {_SHOWN_UNITS}; the default is day.",
)
def date_add(world: World, *values: JsonValue) -> JsonValue:
    """DATEADD(date, number, unit), or DATEADD(unit, number, date) as in classic BASIC; the unit defaults to days.
    Raises RunError if the unit, the number or the date is invalid."""
    date, number, unit = values[0], values[1], _unit_word(values[2]) if len(values) > 2 else "day"
    if len(values) > 2 and _unit_word(values[0]) is not None:
        date, unit = values[2], _unit_word(values[0])
    if unit is None:
        raise _no_unit("DATEADD")
    count = as_number(number)
    if count is None:
        raise RunError(
            RunCode.WRONG_TYPE, f"DATEADD needs a date, a number and a unit, not {kind_of(number)} as number"
        )
    return str(_later(world, moment_of(world, date, "DATEADD"), count, unit))


@function(
    DATES,
    "DATEDIFF(from, to, [unit])",
    'DATEDIFF("2026-11-20", "2026-12-24", "day")',
    34,
    takes=(ANY, ANY, ANY),
    fewest=2,
)
def date_diff(world: World, *values: JsonValue) -> JsonValue:
    """The number of full units between two dates; the default unit is day.

    DATEDIFF(from, to, unit), or DATEDIFF(unit, from, to) as in classic BASIC; the unit defaults to days. Raises
    RunError if the unit or a date is invalid, or if a date is compared with a time of day."""
    first, last, unit = values[0], values[1], _unit_word(values[2]) if len(values) > 2 else "day"
    if len(values) > 2 and _unit_word(values[0]) is not None:
        first, last, unit = values[1], values[2], _unit_word(values[0])
    if unit is None:
        raise _no_unit("DATEDIFF")
    start, end = moment_of(world, first, "DATEDIFF"), moment_of(world, last, "DATEDIFF")
    if (start.form == "time") != (end.form == "time"):
        raise RunError(RunCode.BAD_VALUE, "DATEDIFF cannot compare a date with a time of day")
    return _difference(world, start.at, end.at, unit)


def _unit_functions(unit: str, later: JsonValue, between: int) -> None:
    """Declare `ADD_DAYS(date, number)` and `DAYS_BETWEEN(from, to)` for a unit, with the values of their examples."""
    add, between_name = f"ADD_{unit.upper()}S", f"{unit.upper()}S_BETWEEN"
    first, last = "2026-11-20 22:15:30", "2027-01-20 22:15:30"
    adds, counts = f"The date plus a number of {unit}s.", f"The number of full {unit}s between two dates."

    @function(DATES, f"{add}(date, number)", f'{add}("{first}", 2)', later, about=adds)
    def _add(world: World, date: JsonValue, number: JsonValue) -> JsonValue:
        return date_add(world, date, number, unit)

    @function(DATES, f"{between_name}(from, to)", f'{between_name}("{first}", "{last}")', between, about=counts)
    def _between(world: World, start: JsonValue, end: JsonValue) -> JsonValue:
        return date_diff(world, start, end, unit)


for _unit, _later_example, _between_example in (
    ("year", "2028-11-20 22:15:30", 0),
    ("month", "2027-01-20 22:15:30", 2),
    ("week", "2026-12-04 22:15:30", 8),
    ("day", "2026-11-22 22:15:30", 61),
    ("hour", "2026-11-21 00:15:30", 1464),
    ("minute", "2026-11-20 22:17:30", 87840),
    ("second", "2026-11-20 22:15:32", 5270400),
):
    _unit_functions(_unit, _later_example, _between_example)
_part("YEAR", lambda moment: _dated(moment).year, "The year.", 2026)
_part("MONTH", lambda moment: _dated(moment).month, "The month, 1 to 12.", 11)
_part("DAY", lambda moment: _dated(moment).day, "The day of the month.", 20)
_part("QUARTER", lambda moment: (_dated(moment).month + 2) // 3, "The quarter of the year, 1 to 4.", 4)
_part(
    "WEEKDAY",
    lambda moment: _dated(moment).isoweekday() % 7 + 1,
    "The day of the week, from 1 (Sunday) to 7 (Saturday).",
    6,
)
_part("WEEKNUM", lambda moment: _dated(moment).isocalendar().week, "The ISO week of the year.", 47)
_part("HOUR", lambda moment: moment.at.hour, "The hour, 0 to 23.", 22)
_part("MINUTE", lambda moment: moment.at.minute, "The minute.", 15)
_part("SECOND", lambda moment: moment.at.second, "The second.", 30)


@function(DATES, "WEEKDAYNAME(day, [short])", 'WEEKDAYNAME("2026-11-20")', "Friday")
def _weekday_name(world: World, value: JsonValue, short: JsonValue = None) -> JsonValue:
    """The name of the weekday of a date, or of a number as WEEKDAY returns it.

    Raises RunError if the number is not from 1 (Sunday) to 7, or the date is invalid."""
    number = as_number(value)
    if number is None:
        return day_name(_dated(moment_of(world, value, "WEEKDAYNAME")).weekday(), world.language, short=bool(short))
    if not 1 <= number <= 7:
        raise RunError(RunCode.BAD_VALUE, "WEEKDAYNAME needs a day from 1 (Sunday) to 7 (Saturday)")
    return day_name((int(number) + 5) % 7, world.language, short=bool(short))


@function(DATES, "MONTHNAME(month, [short])", "MONTHNAME(11)", "November")
def _month_name(world: World, value: JsonValue, short: JsonValue = None) -> JsonValue:
    """The name of the month of a date, or of a number from 1 to 12."""
    number = as_number(value)
    month = int(number) if number is not None else _dated(moment_of(world, value, "MONTHNAME")).month
    if not 1 <= month <= 12:
        raise RunError(RunCode.BAD_VALUE, "MONTHNAME needs a month from 1 to 12")
    return month_name(month, world.language, short=bool(short))


def _span(unit: str, days: Callable[[int | float], int | float], count: int, example: str, gives: str) -> None:
    """Declare the function of a unit that converts a number of units to days."""
    about = f"A duration in {unit} to add to a date: `NOW() + {unit.upper()}({count})`."
    function(DATES, f"{unit.upper()}(number)", example, gives, about=about, takes=(NUMBER,))(days)


_span("days", lambda number: number, 7, "TODAY() + DAYS(7)", "2026-11-27")
_span("weeks", lambda number: normalized_number(number * 7), 2, "TODAY() + WEEKS(2)", "2026-12-04")
_span("hours", lambda number: number / 24, 3, "NOW() + HOURS(1)", "2026-11-20 23:15:00")
_span("minutes", lambda number: number / 1440, 30, "NOW() + MINUTES(30)", "2026-11-20 22:45:00")


@function(DATES, "TIMER()", "TIMER()", 80100)
def _timer(world: World) -> JsonValue:
    """The number of seconds since midnight."""
    now = world.now()
    return now.hour * 3600 + now.minute * 60 + now.second + now.microsecond // 10_000 / 100


@function(
    DATES, "UNIXTIME([date])", 'UNIXTIME("1970-01-02T00:00:00Z")', 86400, also=("timestamp",), takes=(ANY,), fewest=0
)
def _unix(world: World, *values: JsonValue) -> JsonValue:
    """The number of seconds since 1970-01-01 00:00 UTC."""
    if not values:
        return math.floor(world.now().timestamp())
    at = _dated(moment_of(world, values[0], "UNIXTIME"))
    return math.floor((at.replace(tzinfo=world.now().tzinfo) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())


@function(DATES, "FROMUNIX(seconds)", "YEAR(FROMUNIX(86400))", 1970)
def _from_unix(world: World, seconds: int | float) -> JsonValue:
    """The date and time for a number of seconds since 1970-01-01 00:00 UTC."""
    if abs(seconds) > MOST_SECONDS:
        raise RunError(RunCode.BAD_VALUE, "the date is outside the years 1 to 9999")
    start = datetime(1970, 1, 1, tzinfo=UTC)
    at = within_calendar(lambda: (start + timedelta(seconds=round(seconds))).astimezone(world.now().tzinfo))
    return str(Moment(at.replace(tzinfo=None), "both"))
