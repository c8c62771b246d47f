"""Which part of a chat's past is meant: a number of messages, or a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from services.lazy_patterns import lazy_pattern


@dataclass(frozen=True, slots=True)
class Period:
    """A part of the past; without anything it has no bounds."""

    since_ms: int | None = None
    """Milliseconds since 1970 UTC, included."""
    until_ms: int | None = None
    """Not included; None: until now."""
    count: int | None = None
    """Only so many messages, the latest ones."""


_TODAY = frozenset({"today", "since today", "今天", "今日"})
_YESTERDAY = frozenset({"yesterday", "昨天", "昨日"})
_SINCE_YESTERDAY = frozenset({"since yesterday", "从昨天", "昨天以来", "从昨天开始"})
_THIS_WEEK = frozenset({"this week", "the week", "本周", "这周", "这一周", "本星期"})
_MINUTES = {
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "分钟"), 1),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "小时", "个小时"), 60),
    **dict.fromkeys(("d", "day", "days", "天"), 24 * 60),
}
_MESSAGES = frozenset({"", "message", "messages", "line", "lines", "条", "条消息"})
_LAST = lazy_pattern(r"(?:the )?(?:(?:last|past|latest|最近|过去|最后) ?)?(\d{1,4})? ?([a-z\u4e00-\u9fff]*)")
_LONGEST_MINUTES = 400 * 24 * 60


def read_period(text: str, now: datetime, zone: ZoneInfo) -> Period | None:
    """What `text` says at the instant `now` to people in `zone`: a date or time in ISO 8601 since when, `today`,
    `yesterday`, `since yesterday`, `this week`, `last 2 hours`, `last 100`, and the same in Chinese. None for all
    else."""
    words = " ".join(text.casefold().split())
    today = now.astimezone(zone).date()
    if words in _TODAY:
        return Period(_midnight(today, zone))
    if words in _YESTERDAY:
        return Period(_midnight(today - timedelta(days=1), zone), _midnight(today, zone))
    if words in _SINCE_YESTERDAY:
        return Period(_midnight(today - timedelta(days=1), zone))
    if words in _THIS_WEEK:
        return Period(_midnight(today - timedelta(days=today.weekday()), zone))
    return _last(words, now) or _iso(text.strip().removeprefix("since "), zone)


def since(now: datetime, minutes: float) -> Period:
    """The last `minutes` before `now`."""
    return Period(round((now - timedelta(minutes=min(minutes, _LONGEST_MINUTES))).timestamp() * 1000))


def _last(words: str, now: datetime) -> Period | None:
    found = _LAST.fullmatch(words)
    if found is None or not words:
        return None
    number, unit = found[1], found[2]
    if unit in _MINUTES:
        return since(now, int(number or 1) * _MINUTES[unit])
    if unit in _MESSAGES and number and int(number):
        return Period(count=int(number))
    return None


def _iso(text: str, zone: ZoneInfo) -> Period | None:
    try:
        at = datetime.fromisoformat(text)
        return Period(round((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp() * 1000))
    except (ValueError, OverflowError):
        return None


def _midnight(day: date, zone: ZoneInfo) -> int:
    return round(datetime.combine(day, time(), zone).timestamp() * 1000)
