"""Instants in words: what day and time it is for somebody, and how far away. Sentences come from `config/texts/`."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, tzinfo

from config.texts import Phrases

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_DAYS_OF_A_MONTH, _DAYS_OF_A_YEAR = 30.4375, 365.25
_MOST_HOURS, _MOST_DAYS, _MOST_MONTHS = 48, 60, 24
"""Up to so many of a unit are said in it; more are said in the next one."""


def moment(at: datetime, zone: tzinfo, now: datetime, texts: Phrases) -> str:
    """`tomorrow, Saturday 21 November at 17:00`, as the clocks of `zone` show the instant `at`. Both are aware."""
    there = at.astimezone(zone)
    said = day(there.date(), now.astimezone(zone).date(), texts)
    return texts.say("moments.moment", day=said, clock=f"{there:%H:%M}")


def day(which: date, today: date, texts: Phrases) -> str:
    """`tomorrow, Saturday 21 November`; with the year where it is another one than that of `today`."""
    key = "moments.day" if which.year == today.year else "moments.day_with_year"
    said = texts.say(
        key,
        weekday=texts.words("time.weekdays")[which.weekday()],
        day=which.day,
        month=texts.words("time.months")[which.month - 1],
        year=which.year,
    )
    near = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get((which - today).days)
    return said if near is None else texts.say(f"moments.{near}", day=said)


def clock(at: datetime | time) -> str:
    """`17:00`, with seconds where there are any."""
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"


def distance(at: datetime, now: datetime, texts: Phrases) -> str:
    """`in 2 hours 5 minutes`, or `3 days ago`."""
    away = at - now
    key = "moments.ago" if away < timedelta() else "moments.ahead"
    return texts.say(key, amount=amount(abs(away.total_seconds()), texts))


def amount(seconds: float, texts: Phrases) -> str:
    """A length of time as people say it: two units at most, rounded the more the longer it is."""
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
    """The same in the one unit that fits: minutes, hours from one on, days from two on."""
    if seconds >= 2 * _DAY:
        return _counted(round(seconds / _DAY), "days", texts)
    if seconds >= _HOUR:
        return _counted(round(seconds / _HOUR), "hour", texts)
    return _counted(max(1, round(seconds / _MINUTE)), "minute", texts)


def ago(seconds: float, texts: Phrases) -> str:
    """`2 hours ago`, roughly."""
    return texts.say("moments.ago", amount=rough_amount(seconds, texts))


def exact_amount(seconds: int, texts: Phrases) -> str:
    """The same without any rounding: `1 hour 30 minutes`."""
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
