"""Zones as they are said behind a time of day: EST, UTC+2, Tokyo time, in London."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from services.clock import SystemClock
from services.places import Places
from services.times.tokens import NUMBER, WORD, Line

_OFFSETS = """
-12 aoe
-10 hst
-9 akst
-8 pst akdt
-7 mst pdt
-6 cst mdt
-5 est cdt
-4 edt ast
-3 brt art adt
0 utc gmt wet
1 cet bst west
2 cest eet sast cat
3 msk eest
4 gst
5 pkt
7 ict wib
8 hkt sgt awst pht
9 jst kst
10 aest
11 aedt
12 nzst
13 nzdt
"""
_ZONES = {
    "ist": "Asia/Kolkata",
    "acst": "Australia/Darwin",
    "nst": "America/St_Johns",
    "npt": "Asia/Kathmandu",
    "eastern": "America/New_York",
    "et": "America/New_York",
    "central": "America/Chicago",
    "ct": "America/Chicago",
    "mountain": "America/Denver",
    "mt": "America/Denver",
    "pacific": "America/Los_Angeles",
    "pt": "America/Los_Angeles",
}
_SHORT = frozenset(("et", "ct", "mt", "pt"))
"""These are words too: they count in capitals alone."""
_LONGEST_PLACE = 3


def zone_at(line: Line, index: int) -> tuple[tzinfo, int] | None:
    """The zone that begins at `index`, and where it ends."""
    if line.words[index] == "(":
        inside = zone_at(line, index + 1)
        return (inside[0], inside[1] + 1) if inside and line.words[inside[1]] == ")" else None
    word = line.words[index]
    if word in ("+", "-", "−") and line.glued(index) and _is_iso_offset(line, index):
        return _offset_at(line, index)
    if word in ("utc", "gmt", "z") and (word != "z" or line.glued(index)):
        return _offset_at(line, index + 1) or (ZoneInfo("UTC"), index + 1)
    found = _abbreviations().get(word)
    if found is not None and (word not in _SHORT or line.text[line.starts[index] : line.ends[index]].isupper()):
        end = index + 1
        while line.words[end] in ("standard", "daylight", "time"):
            end += 1
        if word in ("eastern", "central", "mountain", "pacific") and end == index + 1:
            return None
        return found, end
    return _place_at(line, index)


def _is_iso_offset(line: Line, index: int) -> bool:
    """`+02:00` or `+0200` right behind a time of day; with a minus only behind seconds, where it can be no range."""
    digits = len(line.words[index + 1]) if line.is_digits(index + 1) and line.glued(index + 1) else 0
    has_seconds = index > 4 and (line.words[index - 2], line.words[index - 4]) == (":", ":")
    has_form = digits == 4 or (digits == 2 and line.words[index + 2] == ":")
    return has_form and (line.words[index] == "+" or has_seconds)


def _offset_at(line: Line, index: int) -> tuple[tzinfo, int] | None:
    sign = line.words[index]
    if sign not in ("+", "-", "−") or line.kinds[index + 1] != NUMBER:
        return None
    hours, minutes, end = line.values[index + 1], 0, index + 2
    if hours > 99:
        hours, minutes = divmod(hours, 100)
    elif line.words[end] == ":" and line.is_digits(end + 1):
        minutes, end = line.values[end + 1], end + 2
    if hours > 14 or minutes > 59:
        return None
    return fixed_zone((hours * 60 + minutes) * (1 if sign == "+" else -1)), end


def fixed_zone(minutes: int) -> tzinfo:
    """So many minutes ahead of UTC: with the name of a zone where there is one."""
    hours, rest = divmod(minutes, 60)
    if rest or not -12 <= hours <= 14:
        return timezone(timedelta(minutes=minutes))
    return ZoneInfo(f"Etc/GMT{-hours:+d}" if hours else "UTC")


def _place_at(line: Line, index: int) -> tuple[tzinfo, int] | None:
    """`in Tokyo`, `Tokyo time`, `London time`. A place without "time" has to be written as a name."""
    start = index + 1 if line.words[index] == "in" else index
    end = start
    while end < line.size and end - start < _LONGEST_PLACE and line.kinds[end] == WORD:
        end += 1
    for stop in range(end, start, -1):
        timed = line.words[stop] == "time" or line.words[stop - 1] == "time"
        name = line.text[line.starts[start] : line.ends[stop - 1]]
        if line.words[stop - 1] == "time":
            name = name[: -len("time")].strip()
        if name and (timed or (start > index and name[0].isupper())):
            zone = _zone_of(name)
            if zone is not None:
                return zone, stop + 1 if line.words[stop] == "time" else stop
    return None


@lru_cache(maxsize=1)
def _places() -> Places:
    return Places(SystemClock())


@lru_cache(maxsize=256)
def _zone_of(name: str) -> tzinfo | None:
    """The one zone of a place; None where it is not known, or has several."""
    found = _places().known(name)
    return found[0].zone if len(found) == 1 else None


@lru_cache(maxsize=1)
def _abbreviations() -> Mapping[str, tzinfo]:
    zones: dict[str, tzinfo] = {word: ZoneInfo(name) for word, name in _ZONES.items()}
    for row in _OFFSETS.strip().splitlines():
        hours, *words = row.split()
        zones.update(dict.fromkeys(words, fixed_zone(int(hours) * 60)))
    return zones
