"""On which days something does not repeat, in Chinese: 除了周末每天9点, 每天9点(周日除外)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from services.lazy_patterns import lazy_pattern
from services.recurrence import Unit
from services.times.chinese_days import WEEK, weekday_number
from services.times.readings import Found, Reading
from services.times.repeats import Trouble

_LETTERS = "[一二三四五六日天]"
_LISTED = rf"{WEEK}{_LETTERS}(?:(?:[、,和及跟与]|或者?)?(?:{WEEK})?{_LETTERS})*"
_DAYS = rf"(?:{WEEK}末|双休日|{_LISTED}|(?:法定)?节?假日|放假|工作日)"
_LEFT_OUT = lazy_pattern(
    rf"除(?:了|去|开)?\s*(?P<before>{_DAYS})\s*(?:以外|之外|外)?(?:的|都)?|(?P<behind>{_DAYS})除外"
)
_GAP = r"[\s,，、的都(（)）]*"
_WEEKEND, _WORKDAYS = {6, 7}, {1, 2, 3, 4, 5}


def without_exception(text: str, read: Callable[[str], Reading | None]) -> Reading | None:
    """The reading of all of `text`, which leaves days out; None where it leaves out none."""
    left_out = _LEFT_OUT.search(text)
    if left_out is None:
        return None
    rest = f"{text[: left_out.start()]} {text[left_out.end() :]}".strip(" ,，、()（）")
    reading = read(rest) if rest else None
    return None if reading is None else _less(reading, left_out)


def with_exceptions(text: str, find_all: Callable[[str], list[Found]]) -> list[Found]:
    """The times within `text`, those that repeat together with the days that are left out beside them. What repeats and
    has those elsewhere in the sentence is no time that could be told by its own words."""
    left_out = _LEFT_OUT.search(text)
    if left_out is None:
        return find_all(text)
    start, end = left_out.span()
    found = find_all(f"{text[:start]}{' ' * (end - start)}{text[end:]}")
    together = [one if one.reading.repeats is None else _together(text, one, left_out) for one in found]
    return [one for one in together if one is not None]


def _together(text: str, found: Found, left_out: re.Match[str]) -> Found | None:
    start, end = left_out.span()
    gap = text[end : found.start] if end <= found.start else text[found.end : start]
    if not re.fullmatch(_GAP, gap):
        return None
    closes = re.match(r"\s*[)）]", text[end:]) if re.search("[(（]", gap) else None
    end += closes.end() if closes else 0
    return Found(_less(found.reading, left_out), min(start, found.start), max(end, found.end))


def _less(reading: Reading, left_out: re.Match[str]) -> Reading:
    """`reading` without those days; a trouble where no rule can say it."""
    repeats = reading.repeats
    days = _weekdays_of(left_out["before"] or left_out["behind"])
    is_by_weekday = repeats is not None and (repeats.unit is Unit.DAY or repeats.weekdays) and repeats.step == 1
    if repeats is None or not days or not is_by_weekday or repeats.days or repeats.nth:
        return replace(reading, trouble=reading.trouble or Trouble.SEVERAL)
    left = tuple(day for day in repeats.weekdays or range(1, 8) if day not in days)
    if not left:
        return replace(reading, trouble=Trouble.NO_SUCH)
    return replace(reading, repeats=replace(repeats, unit=Unit.WEEK, weekdays=left))


def _weekdays_of(said: str) -> set[int]:
    """The weekdays; none for holidays, which no rule knows."""
    if said.endswith("末") or said == "双休日":
        return _WEEKEND
    if "假" in said:
        return set()
    if said == "工作日":
        return _WORKDAYS
    return {weekday_number(letter) for letter in re.findall(_LETTERS, re.sub(WEEK, "", said))}
