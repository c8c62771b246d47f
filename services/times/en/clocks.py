"""English times of day: 3pm, 15:30, half past six, noon; parts of the day; bare hours in context."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from config.word_tables import word_tables
from services.clock import SystemClock
from services.times.en.durations import ONE, unit_at
from services.times.places import Places
from services.times.words.lexicon import HOURS_OF, MONTHS, PORTIONS, TODAY, WEEKDAYS, WHICH
from services.times.words.parts import Clock, Part, Parts, RuleContext, one_day
from services.times.words.readings import Grain
from services.times.words.tokens import NUMBER, WORD, Line

_PAST = frozenset(("past", "after"))
_TO = frozenset(("to", "before", "till", "til", "of"))
NOON = Clock(12, half="24")
MIDNIGHT = Clock(24, half="24")
_MARKS = {"am": "am", "a": "am", "pm": "pm", "p": "pm"}
_TWELVES = {"noon": NOON, "midday": NOON, "noontime": NOON, "noonish": NOON, "midnight": MIDNIGHT}
_MIDDLES = {"night": MIDNIGHT, "day": NOON, "morning": Clock(10, half="24"), "afternoon": Clock(14, half="24")}
_CLOSE_OF_BUSINESS = Clock(17, half="24")


def clock_at(line: Line, index: int, *, after_at: bool = False) -> list[tuple[Clock, int, bool]]:
    """Times of day that start at `index`, each with its end and whether it is unambiguous (a bare 3 may be a number).
    `after_at`: "at" precedes it. Empty if there are none; they may be invalid (25:00)."""
    word = line.words[index]
    if line.kinds[index] == NUMBER:
        return _counted_at(line, index, after_at=after_at)
    if word in _TWELVES:
        is_doubled = line.is_digits(index + 1) and line.values[index + 1] == 12 and line.words[index + 2] != ":"
        return [(_TWELVES[word], index + 1 + is_doubled, True)]
    if word in ("cob", "eob", "close", "end"):
        return _close_of_business_at(line, index)
    if word in ("midmorning", "midafternoon"):
        return [(_MIDDLES[word.removeprefix("mid")], index + 1, True)]
    if word == "mid":
        after = index + 2 if line.words[index + 1] == "-" else index + 1
        if line.words[after] in _MIDDLES:
            return [(_MIDDLES[line.words[after]], after + 1, True)]
    if word in ("a", "quarter", "half"):
        return _fraction_of_hour_at(line, index)
    return []


def _close_of_business_at(line: Line, index: int) -> list[tuple[Clock, int, bool]]:
    """`COB`, `EOB` or `close of business` at `index`, as in `clock_at`; at most one."""
    if line.words[index] in ("cob", "eob"):
        return [(_CLOSE_OF_BUSINESS, index + 1, True)]
    is_spelled = line.words[index + 1] == "of" and line.words[index + 2] in ("business", "play")
    return [(_CLOSE_OF_BUSINESS, index + 3, True)] if is_spelled else []


def _fraction_of_hour_at(line: Line, index: int) -> list[tuple[Clock, int, bool]]:
    """Time of day at `index` such as `half past six`, `half six` or `a quarter to 9`, as in `clock_at`; at most one."""
    start = index + 1 if line.words[index] == "a" else index
    word, link = line.words[start], line.words[start + 1]
    if word not in ("quarter", "half"):
        return []
    minutes = 15 if word == "quarter" else 30
    if link == "-" and line.words[start + 2] in _PAST:
        start, link = start + 1, line.words[start + 2]
    if link in _PAST or (link in _TO and word == "quarter"):
        return [
            (_moved(clock, minutes if link in _PAST else -minutes), end, True)
            for clock, end, _ in _hour_at(line, start + 2)
        ][:1]
    if word == "half" and start == index:
        return [(_moved(clock, 30), end, True) for clock, end, _ in _hour_at(line, start + 1)][:1]
    return []


def _hour_at(line: Line, index: int) -> list[tuple[Clock, int, bool]]:
    """Full hours at `index`, such as 6, 6pm, 6 o'clock or noon, as in `clock_at`."""
    return [found for found in clock_at(line, index, after_at=True) if found[0].minute == 0]


def _moved(clock: Clock, minutes: int) -> Clock:
    hours, minute = divmod(clock.hour * 60 + minutes, 60)
    if clock.half == "24":
        return Clock(hours % 24, minute, half="24", grain=Grain.MINUTE)
    hour = hours or 12
    return Clock(
        hour,
        minute,
        half="am" if clock.half == "pm" and clock.hour == 12 and minutes < 0 else clock.half,
        grain=Grain.MINUTE,
    )


def _counted_at(line: Line, index: int, *, after_at: bool) -> list[tuple[Clock, int, bool]]:
    for rule in (_with_colon, _with_h, _packed, _minutes_past):
        sure = rule(line, index, after_at)
        if sure is not None:
            return [sure]
    hour, digits = line.values[index], line.words[index]
    hundreds = _hundreds(line, index, after_at=after_at)
    if hundreds is not None:
        return [hundreds]
    if hour > 24 or (len(digits) > 2 and digits.isdigit()):
        return []
    half, end = half_at(line, index + 1, short=hour <= 12)
    if not half and line.words[end] in ("o'clock", "oclock", "o"):
        end = _behind_oclock(line, end)
        half, end = half_at(line, end)
        return [_named_twelve(line, _whole(hour, half), end)]
    if hour == 12 and line.words[end] in _TWELVES:
        return [_named_twelve(line, _whole(hour, half), end)]
    if half:
        return [(_whole(hour, half), end, True)] if half != "24" or end > index + 1 else []
    found: list[tuple[Clock, int, bool]] = []
    minutes = _spoken_minutes(line, index, after_at=after_at)
    if minutes is not None:
        found.append(minutes)
    if line.words[index + 1] == "h" or unit_at(line, index + 1) is None or not line.glued(index + 1):
        found.append((_whole(hour, ""), index + 1, False))
    return found


def _hundreds(line: Line, index: int, *, after_at: bool) -> tuple[Clock, int, bool] | None:
    """Full hour on the 24-hour clock at `index` in hundreds (`nineteen hundred`, `19 hundred hours`), as in
    `clock_at`; None otherwise."""
    hour, end = line.values[index], index + 1
    if line.is_digits(index) and line.words[end] == "hundred":
        end += 1
    elif not line.is_digits(index) and hour % 100 == 0:
        hour //= 100
    else:
        return None
    is_named = line.words[end] in ("hours", "hrs")
    return (Clock(hour, half="24"), end + is_named, True) if hour <= 24 and (is_named or after_at) else None


def _spoken_minutes(line: Line, index: int, *, after_at: bool) -> tuple[Clock, int, bool] | None:
    """Time of day without a colon at `index`, such as `six forty-three`, `seven-thirty am` or, with `after_at`, `3 15`;
    None otherwise."""
    is_word = not line.is_digits(index)
    at = index + 2 if is_word and line.words[index + 1] == "-" else index + 1
    minute, is_short = line.values[at], len(line.words[at]) == 1
    hour = line.values[index]
    if line.words[at] in ("oh", "o") and line.kinds[at + 1] == NUMBER and 0 < line.values[at + 1] < 10:
        half, end = half_at(line, at + 2)
        return Clock(hour, line.values[at + 1], half=half or _evident(hour), grain=Grain.MINUTE), end, True
    if line.kinds[at] != NUMBER or line.glued(index + 1) != (at > index + 1) or not 10 <= minute < 60 or is_short:
        return None
    if line.words[at + 1] in ("/", ":", "th"):
        return None
    half, end = half_at(line, at + 1)
    if line.words[end] in ("minutes", "minute"):
        end += 1
    if not (half or after_at or is_word):
        return None
    return Clock(hour, minute, half=half or _evident(hour), grain=Grain.MINUTE), end, bool(half)


def _behind_oclock(line: Line, index: int) -> int:
    if line.words[index] != "o":
        return index + 1
    return index + 2 if line.words[index + 1] == "clock" else index + 3


def _whole(hour: int, half: str) -> Clock:
    return Clock(hour, half=half or _evident(hour))


def _evident(hour: int) -> str:
    return "24" if hour > 12 or hour == 0 else ""


def _with_colon(line: Line, index: int, after_at: bool) -> tuple[Clock, int, bool] | None:
    """Time of day with a colon or point at `index` (8:30, 08:30:15, 8.30pm, 3:20p), as in `clock_at`; None
    otherwise."""
    sign = line.words[index + 1]
    if sign not in (":", ".", "：") or not line.is_digits(index + 2) or not line.is_digits(index):
        return None
    if not (line.glued(index + 1) and line.glued(index + 2)) or len(line.words[index + 2]) != 2:
        return None
    hour, minute, second, end, grain = line.values[index], line.values[index + 2], 0, index + 3, Grain.MINUTE
    if line.words[end] == ":" and line.is_digits(end + 1) and len(line.words[end + 1]) == 2:
        second, end, grain = line.values[end + 1], end + 2, Grain.SECOND
        if line.words[end] == "." and line.glued(end) and line.is_digits(end + 1) and line.glued(end + 1):
            end += 2
    half, after = half_at(line, end, short=True)
    if sign == "." and not half and not after_at:
        return None
    if not half and line.words[end] in ("o'clock", "oclock", "h", "hrs", "hours", "uhr"):
        end += 1
    exact = "24" if len(line.words[index]) == 2 and line.words[index][0] == "0" else _evident(hour)
    return _named_twelve(line, Clock(hour, minute, second, half or exact, grain), after if half else end)


def _named_twelve(line: Line, clock: Clock, end: int) -> tuple[Clock, int, bool]:
    """`clock` as in `clock_at`, with the word after a twelve that tells which it is: `12 noon`, `12:00 midnight`."""
    name = _TWELVES.get(line.words[end]) if clock.hour in (0, 12, 24) and not clock.minute else None
    return (clock, end, True) if name is None else (name, end + 1, True)


def _with_h(line: Line, index: int, after_at: bool) -> tuple[Clock, int, bool] | None:
    """Time of day with `h` at `index` (19h, 19h30, 9 h 15), as in `clock_at`; None otherwise."""
    if line.words[index + 1] != "h" or not line.is_digits(index) or line.values[index] > 24:
        return None
    hour, end = line.values[index], index + 2
    if (
        line.is_digits(end)
        and line.glued(end)
        and len(line.words[end]) == 2
        and line.words[end + 1] not in ("m", "min")
    ):
        return Clock(hour, line.values[end], half="24", grain=Grain.MINUTE), end + 1, True
    # A bare 3h is a duration of three hours; 15h is a time of day.
    is_clock = line.glued(index + 1) and (hour > 12 or after_at or end < line.size)
    return (Clock(hour, half="24"), end, True) if is_clock else None


def _packed(line: Line, index: int, after_at: bool) -> tuple[Clock, int, bool] | None:
    """Time of day in three or four digits at `index` (715 am, 1430 hours, 0800), as in `clock_at`; None otherwise."""
    digits = line.words[index]
    if not digits.isdigit() or len(digits) not in (3, 4):
        return None
    hour, minute = divmod(line.values[index], 100)
    half, end = half_at(line, index + 1)
    if half or line.words[end] == "ampm":
        return Clock(hour, minute, half=half, grain=Grain.MINUTE), end if half else end + 1, True
    if line.words[end] in ("hours", "hrs", "hr", "h") and len(digits) == 4:
        return Clock(hour, minute, half="24", grain=Grain.MINUTE), end + 1, True
    if after_at and len(digits) == 4 and hour < 24 and minute < 60:
        return (
            Clock(hour, minute, half="24" if digits[0] == "0" else _evident(hour), grain=Grain.MINUTE),
            index + 1,
            False,
        )
    if after_at and len(digits) == 3 and minute < 60:
        return Clock(hour, minute, half=_evident(hour), grain=Grain.MINUTE), index + 1, False
    return None


def _minutes_past(line: Line, index: int, after_at: bool) -> tuple[Clock, int, bool] | None:
    """Time of day relative to an hour at `index`, such as `20 past 3`, `ten minutes to nine` or, after "at", `5 to 7`;
    None otherwise."""
    minutes, link, has_unit = line.values[index], index + 1, False
    if line.words[link] in ("minutes", "minute", "mins", "min"):
        link, has_unit = link + 1, True
    word = line.words[link]
    if not 0 < minutes < 60 or not (word in _PAST or word in _TO):
        return None
    is_spelled = minutes > 12 and not line.is_digits(link + 1)
    likely = has_unit or after_at or (minutes % 5 == 0 and minutes >= 10) or is_spelled
    if word in _TO and not (likely and (minutes <= 30 or has_unit)):
        return None
    hours = [found for found in _hour_at(line, link + 1) if found[1] > link + 1]
    if not hours:
        return None
    clock, end, is_sure = hours[0]
    if has_unit and not is_sure and not after_at and word not in _PAST and word != "before":
        return None
    return _moved(clock, minutes if word in _PAST else -minutes), end, True


def half_at(line: Line, index: int, *, short: bool = False) -> tuple[str, int]:
    """`am`, `pm` or empty at `index`, and its end (`index` if empty): am, a.m., p . m ., p (only if `short`)."""
    word = line.words[index]
    if word in ("am", "pm"):
        return word, index + 1
    if word in ("a", "p"):
        after = index + 1
        dotted = line.words[after] == "."
        if dotted:
            after += 1
        if line.words[after] == "m":
            after += 1
            if dotted and line.words[after] == ".":
                after += 1
            return _MARKS[word], after
        if short and (line.glued(index) or word == "p"):
            return _MARKS[word], index + 1
    return "", index


_SHORT = frozenset(("et", "ct", "mt", "pt"))
"""Also ordinary words: recognised only in capitals."""
_BEHIND_ZONES = frozenset(("", ",", "to", "on", "today", "tomorrow"))
_LONGEST_PLACE = 3


def zone_at(line: Line, index: int) -> tuple[tzinfo, int] | None:
    """Time zone that starts at `index`, an offset, abbreviation or place, with its end; None without a zone."""
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
        is_alone = end == index + 1 and line.words[end] not in _BEHIND_ZONES
        if word in ("eastern", "central", "mountain", "pacific") and is_alone:
            return None
        return found, end
    return _place_at(line, index)


def _is_iso_offset(line: Line, index: int) -> bool:
    """Whether the sign at `index` begins `+02:00` or `+0200` directly after a time; a minus only after seconds, where
    it cannot be a range."""
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
    """Zone at a fixed UTC offset in minutes; an IANA zone if one exists."""
    hours, rest = divmod(minutes, 60)
    if rest or not -12 <= hours <= 14:
        return timezone(timedelta(minutes=minutes))
    return ZoneInfo(f"Etc/GMT{-hours:+d}" if hours else "UTC")


def _place_at(line: Line, index: int) -> tuple[tzinfo, int] | None:
    """Zone of a place at `index`, such as `in Tokyo` or `London time`, with its end. Without "time" the place must be
    capitalised."""
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
    """Zone of a place; None if it is unknown or ambiguous."""
    found = _places().known(name)
    return found[0].zone if len(found) == 1 else None


@lru_cache(maxsize=1)
def _abbreviations() -> Mapping[str, tzinfo]:
    zones: dict[str, tzinfo] = {}
    for row in word_tables("places")["abbreviations"]:
        name, *words = row.split()
        zones |= dict.fromkeys(words, ZoneInfo(name) if "/" in name else fixed_zone(int(name) * 60))
    return zones


RANGE = frozenset(("to", "-", "–", "—", "until", "untill", "till", "til", "through", "thru", "and", "but"))
"""Words before the end of a range."""
_AT = frozenset(("at", "@", "around", "about", "for"))
_BEFORE_HOURS = _AT | {"by", "until", "till"}
_DAYS = frozenset(
    ("year", "month", "day", "weekday", "weekdays", "span", "nth", "holiday", "length", "edge", "repeats", "portion")
)
_BEHIND_HOURS = frozenset(("in", "at", "this", "tonight", "tomorrow", "on", "today"))
_MOST_LISTED = 6


def clock_parts(spot: RuleContext) -> Parts:
    """Rule for unambiguous times of day, and for the zone after a time."""
    line, so_far = spot.line, spot.parsed
    if spot.word in ("this", "same") and spot.ahead() == "time" and "clocks" not in so_far:
        unit = unit_at(line, spot.at + 3) if spot.ahead(2) == "next" else None
        if unit in ONE and not so_far:
            yield Part(length=ONE[unit], grain=Grain.DAY), spot.at + 4
        wall = spot.moment.wall
        yield Part(clocks=(Clock(wall.hour, wall.minute, wall.second, "24", Grain.MINUTE),)), spot.at + 2
    if "clocks" in so_far:
        zone = zone_at(line, spot.at) if "zone" not in so_far else None
        if zone is not None:
            yield Part(zone=zone[0]), zone[1]
        if spot.word == "midnight":
            yield Part(portion="early morning"), spot.at + 1
        return
    at = spot.at
    if spot.word == "t" and "day" in so_far and line.glued(at) and line.glued(at + 1):  # 2030-01-02T03:04
        at += 1
    if line.kinds[at] != NUMBER or "lasts" not in so_far or "repeats" in so_far:
        for clock, end, is_sure in clock_at(line, at, after_at=spot.link in _AT):
            if is_sure and not (
                line.kinds[at] == NUMBER and line.words[end - 1] in ("a", "p") and _is_letter(spot, end)
            ):
                yield from _listed(spot, clock, end)


def _is_letter(spot: RuleContext, end: int) -> bool:
    """Whether the `a` or `p` before `end` may be a letter, as in `class 4a`: nothing else makes it a time of day."""
    line = spot.line
    has_minutes = line.kinds[spot.at + 1] != WORD
    return not (
        spot.link or spot.parsed or has_minutes or line.words[end] in _BEHIND_HOURS or line.words[end] in WEEKDAYS
    )


def number_parts(spot: RuleContext) -> Parts:
    """Rule for numbers that are an hour, a day of the month or the end of a range only by their context."""
    line, at, so_far = spot.line, spot.at, spot.parsed
    if line.kinds[at] != NUMBER:
        return
    value, then = line.values[at], spot.ahead()
    is_day = 1 <= value <= 31
    if is_day and then == "of" and (spot.ahead(2) in WHICH or spot.ahead(2) in ("the", "every", "each")):
        yield Part(day=value), at + 1
    if "clocks" not in so_far and ("lasts" not in so_far or "repeats" in so_far):
        yield from _hours(spot)
    is_named = spot.link == "on" or spot.has_the or then in ("at", "@")
    if is_day and is_named and line.is_digits(at) and not so_far.keys() & {"day", "month"}:
        yield Part(day=value), at + 1
    in_range = spot.in_range or spot.link == "from" or "is_between" in so_far or then in RANGE
    if in_range and value < 60 and not so_far.keys() & {"number", "clocks", "day"}:
        yield Part(number=value), at + 1


def _hours(spot: RuleContext) -> Parts:
    """Parts that take the number at this position as an hour, if the context permits it."""
    line, at = spot.line, spot.at
    is_dated = not _DAYS.isdisjoint(spot.parsed)
    then = spot.ahead()
    is_hour = then == "ish" or (then == "-" and spot.ahead(2) == "ish") or then in _BEHIND_HOURS or then in PORTIONS
    is_hour = is_hour or then in WEEKDAYS
    if _is_bare_day(spot):
        part = Part(day=line.values[at])
        if line.values[at] < 24:
            part["or_clock"] = Clock(line.values[at], half="24")
        yield part, at + 1
        return
    if spot.link == "in" or not (spot.link in _BEFORE_HOURS or is_dated or is_hour or not line.is_digits(at)):
        return
    for clock, end, is_sure in clock_at(line, at, after_at=spot.link in ("at", "@") or is_dated):
        is_spelled = clock.minute >= 10 and not line.is_digits(at)
        is_loose = not (spot.link or is_hour or is_spelled or line.is_digits(at))
        if is_loose and end < line.size:  # not alone in the phrase
            continue
        if not is_sure and line.words[end] not in MONTHS and (spot.link or spot.parsed or is_hour or is_spelled):
            yield from _listed(spot, clock, end)


def _is_bare_day(spot: RuleContext) -> bool:
    """Whether the number follows a weekday and may be a day of the month, as in `Monday 21`; up to 12 it is an hour."""
    line, at, so_far = spot.line, spot.at, spot.parsed
    is_after_weekday = "weekday" in so_far and so_far.keys() <= {"weekday", "which", "deadline"}
    is_alone = spot.ahead() not in (":", "h", "-", "/", "to", ".") or not line.is_digits(at + 2)
    return (
        is_after_weekday
        and spot.link in ("", ",", "the")
        and line.is_digits(at)
        and 12 < line.values[at] < 32
        and is_alone
    )


def _listed(spot: RuleContext, clock: Clock, end: int) -> Parts:
    """Parts for the time of day that ends at `end`, and for a list of times that it starts (`8am and 8pm`), which comes
    first."""
    line, clocks, after = spot.line, [clock], end
    while line.words[after] in ("and", ",", "&") and len(clocks) < _MOST_LISTED:
        start = after + 1
        while line.words[start] in ("and", "at"):
            start += 1
        more = [found for found in clock_at(line, start, after_at=True) if found[2] or clock.grain == Grain.HOUR]
        if not more or line.words[more[0][1]] in ("minutes", "days", "weeks", "/"):
            break
        clocks.append(more[0][0])
        after = more[0][1]
    if line.words[end] == "or" and "repeats" not in spot.parsed:
        start = end + 1 + (line.words[end + 1] == "at")
        others = clock_at(line, start, after_at=True)
        if others:
            other, after = others[0][0], others[0][1]
            half = clock.half or (other.half if other.half in ("am", "pm") else "")
            first = Clock(clock.hour, clock.minute, clock.second, half, clock.grain)
            yield Part(either=(Part(clocks=(first,)), Part(clocks=(other,)))), after
    if len(clocks) > 1:
        half = next((one.half for one in clocks if one.half in ("am", "pm")), "")
        shared = tuple(Clock(one.hour, one.minute, one.second, one.half or half, one.grain) for one in clocks)
        yield Part(clocks=shared), after
    yield Part(clocks=(clock,)), end


_BESIDES = {
    "lunch": "early afternoon",
    "dinner": "late evening",
    "breakfast": "late morning",
    "work": "after work",
    "school": "after school",
}
"""Parts of the day after a meal or event."""
_PORTIONS_DAYS = {"this": 0, "last": -1, "next": 1}


_THINGS = {"first thing": "morning", "last thing": "night"}
"""Portions that may be followed by their part of the day: `first thing monday morning`."""


def portion_parts(spot: RuleContext) -> Parts:
    """Rule for parts of the day (morning, tonight) that start here."""
    word, then = spot.word, spot.ahead()
    if spot.parsed.get("portion", "tonight") not in ("tonight", *_THINGS):
        return
    is_day_alone = not spot.parsed.keys().isdisjoint(("weekday", "span", "day")) and "clocks" not in spot.parsed
    if word in ("am", "pm") and is_day_alone and not spot.link and spot.line.kinds[spot.at - 1] == WORD:
        yield Part(portion="morning" if word == "am" else "afternoon"), spot.at + 1
    if then == "thing" and word in ("first", "last"):
        yield from _thing(spot)
    if word in ("early", "late", "later", "earlier"):
        yield from _early_or_late(spot)
    elif word == "after" and then in _BESIDES:
        yield Part(portion=_BESIDES[then]), spot.at + 2
    elif word in _PORTIONS_DAYS and then in PORTIONS:
        yield _of_day(spot, PORTIONS[then], _PORTIONS_DAYS[word]), spot.at + 2
    elif word == "this" and then in ("early", "late") and spot.ahead(2) in PORTIONS:
        yield _of_day(spot, f"{then} {PORTIONS[spot.ahead(2)]}", 0), spot.at + 3
    elif (
        word in PORTIONS and spot.parsed.get("portion") in _THINGS and PORTIONS[word] == _THINGS[spot.parsed["portion"]]
    ):
        yield Part(), spot.at + 1
    elif word in PORTIONS and "portion" not in spot.parsed:
        yield Part(portion=PORTIONS[word]), spot.at + (2 if then in ("time", "hours") else 1)


def _thing(spot: RuleContext) -> Parts:
    """Part for `first thing in the morning` or `last thing at night`."""
    end = spot.at + 2
    named = end + 1 if spot.line.words[end] == "at" else end + 2 if spot.ahead(2) == "in" else end
    if spot.line.words[named] in PORTIONS:
        end = named + 1
    yield Part(portion=f"{spot.word} thing"), end


def _early_or_late(spot: RuleContext) -> Parts:
    """Parts for `early morning`, `late in the afternoon`, `early in the day` or `late tonight`."""
    line, end, is_early = spot.line, spot.at + 1, spot.word.startswith("ear")
    which = "early" if is_early else "late"
    if spot.ahead() in ("today", "tomorrow") and spot.ahead(2) in PORTIONS:
        name = f"{which} {PORTIONS[spot.ahead(2)]}"
        yield _of_day(spot, name, TODAY[spot.ahead()]), spot.at + 3
    elif spot.ahead() in WEEKDAYS and spot.ahead(2) in PORTIONS:
        name = f"{which} {PORTIONS[spot.ahead(2)]}"
        yield (
            Part(weekday=WEEKDAYS[spot.ahead()], portion=name if name in HOURS_OF else PORTIONS[spot.ahead(2)]),
            spot.at + 3,
        )
    if spot.ahead() == "tonight":
        yield _of_day(spot, "evening" if is_early else "late evening", 0), spot.at + 2
    while line.words[end] in ("in", "the", "on", "hours", "of", "this", "-"):
        end += 1
    portion = PORTIONS.get(line.words[end])
    if portion is not None:
        name = f"{which} {portion}"
        yield Part(portion=name if name in HOURS_OF else portion), end + 1
    elif line.words[end] == Grain.DAY and line.words[end + 1] != "of":
        yield Part(portion="morning" if is_early else "late afternoon"), end + 1


def _of_day(spot: RuleContext, portion: str, days: int) -> Part:
    name = portion if portion in HOURS_OF else portion.split(" ", 1)[1]
    if name == "night" and days == 0:
        name = "tonight"
    return Part(portion=name, span=one_day(spot.moment.today + timedelta(days=days)))
