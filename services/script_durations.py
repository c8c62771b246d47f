"""How long scripts remember: `30 days`, `2 hours`, `forever`."""

from __future__ import annotations

import re

from services.json_values import JsonValue

LONGEST_SECONDS = 100 * 365 * 86_400

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s{0,5}([^\W\d]*)")
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "分钟"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "小时", "个小时"), 3600),
    **dict.fromkeys(("", "d", "day", "days", "天"), 86_400),
    **dict.fromkeys(("w", "week", "weeks", "周", "星期", "个星期"), 7 * 86_400),
    **dict.fromkeys(("month", "months", "个月"), 30 * 86_400),
    **dict.fromkeys(("y", "year", "years", "年"), 365 * 86_400),
}
_FOREVER = frozenset({"", "forever", "permanent", "always", "永远", "永久"})


class NoDuration(ValueError):
    """Nothing that says how long."""


def seconds_of(value: JsonValue) -> float | None:
    """How long that is, at most a hundred years; None without an end. A number alone is days. Raises NoDuration."""
    if value is None:
        return None
    text = str(value).strip().casefold()
    if text in _FOREVER:
        return None
    found = None if isinstance(value, bool | list | dict) else _SPAN.fullmatch(text)
    if found is None or found[2] not in _SECONDS or not float(found[1]):
        raise NoDuration(text)
    return min(float(found[1]) * _SECONDS[found[2]], LONGEST_SECONDS)
