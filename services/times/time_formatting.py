"""Instants and recurrence rules as text in the chat's language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import product

from cronsim import CronSim

from config.texts import Phrases
from services.times.recurrence import BadCron, Calendar, Every, Once, Rule, Unit, read_cron

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_DAYS_OF_A_MONTH, _DAYS_OF_A_YEAR = 30.4375, 365.25
_MOST_HOURS, _MOST_DAYS, _MOST_MONTHS = 48, 60, 24
"""Largest amount shown in each unit; larger amounts use the next unit."""


def moment(at: datetime, zone: tzinfo, now: datetime, texts: Phrases) -> str:
    """Text of the aware instant `at` in `zone`: `tomorrow, Saturday 21 November at 17:00`."""
    there = at.astimezone(zone)
    day_text = day(there.date(), now.astimezone(zone).date(), texts)
    return texts.say("moments.moment", day=day_text, clock=f"{there:%H:%M}")


def day(which: date, today: date, texts: Phrases) -> str:
    """Text of a date: `tomorrow, Saturday 21 November`; with the year if it differs from that of `today`."""
    key = "moments.day" if which.year == today.year else "moments.day_with_year"
    text = texts.say(
        key,
        weekday=texts.words("time.weekdays")[which.weekday()],
        day=which.day,
        month=texts.words("time.months")[which.month - 1],
        year=which.year,
    )
    near = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get((which - today).days)
    return text if near is None else texts.say(f"moments.{near}", day=text)


def clock(at: datetime | time) -> str:
    """Text of a time of day: `17:00`, with seconds unless they are zero."""
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"


def distance(at: datetime, now: datetime, texts: Phrases) -> str:
    """Text of the time from `now` to `at`, both aware, rounded: `in 2 hours 5 minutes`, or `3 days ago`."""
    away = at - now
    key = "moments.ago" if away < timedelta() else "moments.ahead"
    return texts.say(key, amount=amount(abs(away.total_seconds()), texts))


def amount(seconds: float, texts: Phrases) -> str:
    """Text of a rounded duration: `2 hours 5 minutes`; one unit, except hours below 48 with minutes."""
    seconds = round(seconds)
    if seconds < _MINUTE:
        return _counted(seconds, "second", texts)
    minutes = round(seconds / _MINUTE)
    if minutes < 60:
        return _counted(minutes, "minute", texts)
    hours, minutes = divmod(minutes, 60)
    if hours < _MOST_HOURS:
        return _both(_counted(hours, "hour", texts), minutes, "minute", texts)
    days = seconds / _DAY
    if days < _MOST_DAYS:
        return _counted(round(days), "days", texts)
    months = round(days / _DAYS_OF_A_MONTH)
    if months < _MOST_MONTHS:
        return _counted(months, "month", texts)
    return _counted(round(days / _DAYS_OF_A_YEAR), "year", texts)


def rough_amount(seconds: float, texts: Phrases) -> str:
    """Text of a rounded duration in one unit: minutes (at least 1), hours from one on, days from two on."""
    if seconds >= 2 * _DAY:
        return _counted(round(seconds / _DAY), "days", texts)
    if seconds >= _HOUR:
        return _counted(round(seconds / _HOUR), "hour", texts)
    return _counted(max(1, round(seconds / _MINUTE)), "minute", texts)


def ago(seconds: float, texts: Phrases) -> str:
    """Text of a past time, `seconds` before now, rounded: `2 hours ago`."""
    return texts.say("moments.ago", amount=rough_amount(seconds, texts))


def exact_amount(seconds: int, texts: Phrases) -> str:
    """Text of an exact duration in days, hours, minutes and seconds: `1 hour 30 minutes`."""
    parts: list[str] = []
    for size, unit in ((_DAY, "days"), (_HOUR, "hour"), (_MINUTE, "minute"), (1, "second")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(_counted(count, unit, texts))
    return texts.say("moments.gap").join(parts) or _counted(0, "second", texts)


def _both(first: str, count: int, unit: str, texts: Phrases) -> str:
    return f"{first}{texts.say('moments.gap')}{_counted(count, unit, texts)}" if count else first


def _counted(count: int, unit: str, texts: Phrases) -> str:
    return texts.say(f"moments.{unit}.{'one' if count == 1 else 'many'}", count=count)


_WORKING_DAYS = (1, 2, 3, 4, 5)
_MOST_TIMES = 6
"""Limit of listed times per day."""


class _NotInWords(Exception):
    """The rule has no short description in words."""


def in_words(rule: Rule, zone: tzinfo, now: datetime, texts: Phrases) -> str:
    """Describe `rule` in `zone` in the language of `texts`; a rule without a short description is shown as cron. `now`
    is aware and decides whether years are shown. Never raises."""
    today = now.astimezone(zone).date()
    match rule.when:
        case Once(wall):
            return texts.say("moments.moment", day=day(wall.date(), today, texts), clock=clock(wall))
        case Every(seconds, since) if rule.count == 1:
            return moment(since + timedelta(seconds=seconds), zone, now, texts)
        case Every(seconds):
            text = texts.say("rules.elapsed", amount=exact_amount(seconds, texts))
        case Calendar():
            text = _calendar(rule.when, texts)
    if rule.count is not None:
        text = texts.say("rules.once" if rule.count == 1 else "rules.times", rule=text, count=rule.count)
    if rule.until is not None:
        text = texts.say("rules.until", rule=text, day=_last_moment(rule.until, today, texts))
    return text


def _last_moment(until: datetime, today: date, texts: Phrases) -> str:
    """Text of the end of a rule: its day, with the time unless it is the end of the day."""
    text = day(until.date(), today, texts)
    if (until.hour, until.minute) == (23, 59):
        return text
    return texts.say("moments.moment", day=text, clock=clock(until))


def _calendar(calendar: Calendar, texts: Phrases) -> str:
    try:
        return _calendar_in_words(calendar, texts)
    except _NotInWords:
        text = texts.say("rules.cron", cron=calendar.cron)
        if calendar.step == 1:
            return text
        return texts.say(
            "rules.cron_step", rule=text, count=calendar.step, unit=texts.say(f"rules.unit.{calendar.unit}")
        )


@dataclass(frozen=True, slots=True)
class _Days:
    """The last three fields of a cron expression as values. None: unrestricted."""

    days: tuple[int, ...] | None
    """Days of the month; 0 is the last one."""
    months: tuple[int, ...] | None
    weekdays: tuple[int, ...] | None
    """0 is Sunday."""
    nth: tuple[int, int] | None = None
    """Weekday and its position in the month; 6 is the last one."""


def _calendar_in_words(calendar: Calendar, texts: Phrases) -> str:
    try:
        cron = read_cron(calendar.cron)
    except BadCron as error:
        raise _NotInWords from error
    minute, hour, *fields = calendar.cron.split()
    days = _days_of(cron, *fields)
    if hour == "*":
        return _within_hours(minute, cron, calendar, days, texts)
    if minute == "*" or len(cron.minutes) * len(cron.hours) > _MOST_TIMES:
        raise _NotInWords
    times = [clock(time(*one)) for one in product(sorted(cron.hours), sorted(cron.minutes))]
    return texts.say("rules.at", period=_period(calendar, days, texts), times=_listed(times, texts))


def _within_hours(minute: str, cron: CronSim, calendar: Calendar, days: _Days, texts: Phrases) -> str:
    """Describe a rule with the minute field `minute` that fires in every hour of every day. Raises _NotInWords for
    others."""
    if days != _Days(None, None, None) or calendar.step != 1:
        raise _NotInWords
    every = re.fullmatch(r"\*(?:/(\d+))?", minute)
    if every:
        minutes = int(every[1] or 1)
        if 60 % minutes:
            raise _NotInWords
        return texts.say("rules.elapsed", amount=exact_amount(minutes * 60, texts))
    if cron.minutes == {0}:
        return texts.say("rules.elapsed", amount=exact_amount(3600, texts))
    if len(cron.minutes) != 1:
        raise _NotInWords
    return texts.say("rules.hourly", minute=f"{min(cron.minutes):02}")


def _days_of(cron: CronSim, month_day: str, month: str, weekday: str) -> _Days:
    """Days of `cron` with its last three fields. Raises _NotInWords for combinations without a phrase."""
    days = None if month_day == "*" else tuple(sorted(cron.days))
    months = None if month == "*" else tuple(sorted(cron.months))
    if days == (CronSim.LAST,):
        days = (0,)
    elif days is not None and min(days) < 0:
        raise _NotInWords
    nths = [one for one in cron.weekdays if isinstance(one, tuple)]
    if not nths:
        weekdays = {one % 7 for one in cron.weekdays if isinstance(one, int)}
        return _Days(days, months, None if weekday == "*" else tuple(sorted(weekdays)))
    if len(cron.weekdays) > 1:
        raise _NotInWords
    which, nth = nths[0]
    return _Days(days, months, None, (which % 7, 6 if nth == CronSim.LAST else nth))


def _period(calendar: Calendar, days: _Days, texts: Phrases) -> str:
    """Describe the days of the rule and its step. Raises _NotInWords for combinations without a phrase."""
    match days:
        case _Days(None, None, None, None):
            return _every("day", Unit.DAY, calendar, texts)
        case _Days(None, None, tuple(weekdays), None):
            if weekdays == _WORKING_DAYS and calendar.step == 1:
                return texts.say("rules.working_days")
            several = "several_" if len(weekdays) > 1 else ""
            return _every(f"{several}week", Unit.WEEK, calendar, texts, days=_weekdays(weekdays, texts))
        case _Days(None, None, None, tuple(nth)):
            return _every("nth", Unit.MONTH, calendar, texts, day=_nth(nth, texts))
        case _Days(tuple(month_days), None, None, None):
            days_text = [_ordinal(one, texts) for one in month_days]
            return _every("month", Unit.MONTH, calendar, texts, days=_listed(days_text, texts))
        case _Days(tuple(month_days), tuple(months), None, None) if len(month_days) * len(months) <= _MOST_TIMES:
            names = texts.words("time.months")
            if 0 in month_days:
                raise _NotInWords
            days_text = [
                texts.say("rules.month_day", day=one, month=names[month - 1])
                for month, one in product(months, month_days)
            ]
            return _every("year", Unit.YEAR, calendar, texts, days=_listed(days_text, texts))
        case _Days(None, (month,), None, tuple(nth)):
            month_text = texts.words("time.months")[month - 1]
            return _every("year_nth", Unit.YEAR, calendar, texts, day=_nth(nth, texts), month=month_text)
    raise _NotInWords


def _every(what: str, unit: Unit, calendar: Calendar, texts: Phrases, **values: str) -> str:
    """`every`, `every second` or `every n`, by the step of `calendar`. Raises _NotInWords if its unit is not `unit`."""
    if calendar.step == 1:
        return texts.say(f"rules.{what}.each", **values)
    if calendar.unit is not unit:
        raise _NotInWords
    return texts.say(f"rules.{what}.{'second' if calendar.step == 2 else 'more'}", count=calendar.step, **values)


def _weekdays(weekdays: Sequence[int], texts: Phrases) -> str:
    names = texts.words("time.weekdays")
    from_monday = sorted((one - 1) % 7 for one in weekdays)
    return _listed([names[one] for one in from_monday], texts)


def _nth(nth: tuple[int, int], texts: Phrases) -> str:
    weekday = texts.words("time.weekdays")[(nth[0] - 1) % 7]
    return texts.say("rules.nth_weekday", nth=texts.words("rules.nths")[nth[1] - 1], weekday=weekday)


def _ordinal(day_of_month: int, texts: Phrases) -> str:
    """Ordinal text of 1 to 31, or of the last day for 0."""
    return texts.words("rules.days_of_month")[day_of_month - 1]


def _listed(parts: Sequence[str], texts: Phrases) -> str:
    """Texts joined as `a`, `a and b` or `a, b and c` in the language of `texts`."""
    if len(parts) < 2:
        return "".join(parts)
    return texts.say("rules.and").join([texts.say("rules.comma").join(parts[:-1]), parts[-1]])
