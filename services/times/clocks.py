"""Times of day: 3pm, 15:30, 8.30 pm, 19h30, half past six, a quarter to 9, 9 o'clock, noon, 715 am."""

from __future__ import annotations

from services.times.durations import unit_at
from services.times.parts import Clock
from services.times.readings import Grain
from services.times.tokens import NUMBER, Line

_PAST = frozenset(("past", "after"))
_TO = frozenset(("to", "before", "till", "til", "of"))
NOON = Clock(12, half="24")
MIDNIGHT = Clock(24, half="24")
_MARKS = {"am": "am", "a": "am", "pm": "pm", "p": "pm"}


def clock_at(line: Line, index: int, *, after_at: bool = False) -> list[tuple[Clock, int, bool]]:
    """The times of day that begin at `index`: each with where it ends, and whether it can be nothing else (3 alone can
    be a number). `after_at`: "at" stands before it."""
    word = line.words[index]
    if line.kinds[index] == NUMBER:
        return _counted_at(line, index, after_at=after_at)
    if word in ("noon", "midday", "noontime"):
        return [(NOON, index + 1, True)]
    if word == "midnight":
        return [(MIDNIGHT, index + 1, True)]
    if word == "noonish":
        return [(NOON, index + 1, True)]
    if word in ("midmorning", "midafternoon"):
        return [(Clock(10 if word == "midmorning" else 14, half="24"), index + 1, True)]
    if word == "mid":
        after = index + 2 if line.words[index + 1] == "-" else index + 1
        if line.words[after] in ("night", "day"):
            return [(MIDNIGHT if line.words[after] == "night" else NOON, after + 1, True)]
        if line.words[after] in ("morning", "afternoon"):
            return [(Clock(10 if line.words[after] == "morning" else 14, half="24"), after + 1, True)]
    if word in ("a", "quarter", "half"):
        return _fraction_of_hour_at(line, index)
    return []


def _fraction_of_hour_at(line: Line, index: int) -> list[tuple[Clock, int, bool]]:
    """`half past six`, `half six`, `a quarter to 9`."""
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
    """A full hour: 6, 6pm, 6 o'clock, noon."""
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
    if hour > 24 or (len(digits) > 2 and digits.isdigit()):
        return []
    half, end = half_at(line, index + 1)
    if not half and line.words[end] in ("o'clock", "oclock", "o"):
        end = _behind_oclock(line, end)
        half, end = half_at(line, end)
        return [(_whole(hour, half), end, True)]
    if half:
        return [(_whole(hour, half), end, True)] if half != "24" or end > index + 1 else []
    found: list[tuple[Clock, int, bool]] = []
    spoken = _spoken_minutes(line, index, after_at=after_at)
    if spoken is not None:
        found.append(spoken)
    if line.words[index + 1] == "h" or unit_at(line, index + 1) is None or not line.glued(index + 1):
        found.append((_whole(hour, ""), index + 1, False))
    return found


def _spoken_minutes(line: Line, index: int, *, after_at: bool) -> tuple[Clock, int, bool] | None:
    """`six forty-three`, `seven-thirty am`, `at 3 15`."""
    is_word = not line.is_digits(index)
    at = index + 2 if is_word and line.words[index + 1] == "-" else index + 1
    minute, is_short = line.values[at], len(line.words[at]) == 1
    if line.kinds[at] != NUMBER or line.glued(index + 1) != (at > index + 1) or not 10 <= minute < 60 or is_short:
        return None
    if line.words[at + 1] in ("/", ":", "th"):
        return None
    half, end = half_at(line, at + 1)
    if line.words[end] in ("minutes", "minute"):
        end += 1
    if not (half or after_at or is_word):
        return None
    hour = line.values[index]
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
    """8:30, 08:30:15, 8.30pm, 3:20p."""
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
    return Clock(hour, minute, second, half or exact, grain), after if half else end, True


def _with_h(line: Line, index: int, after_at: bool) -> tuple[Clock, int, bool] | None:
    """19h, 19h30, 9 h 15."""
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
    # 3h alone lasts three hours; 15h is a time of day.
    is_clock = line.glued(index + 1) and (hour > 12 or after_at or end < line.size)
    return (Clock(hour, half="24"), end, True) if is_clock else None


def _packed(line: Line, index: int, after_at: bool) -> tuple[Clock, int, bool] | None:
    """715 am, 1430 hours, 0800."""
    digits = line.words[index]
    if not digits.isdigit() or len(digits) not in (3, 4):
        return None
    hour, minute = divmod(line.values[index], 100)
    half, end = half_at(line, index + 1)
    if half or line.words[end] == "ampm":
        return Clock(hour, minute, half=half, grain=Grain.MINUTE), end if half else end + 1, True
    if line.words[end] in ("hours", "hrs", "hr", "h") and len(digits) == 4:
        return Clock(hour, minute, half="24", grain=Grain.MINUTE), end + 1, True
    if after_at and len(digits) == 4 and hour < 24 and minute < 60 and (digits[0] == "0" or hour < 19):
        return Clock(hour, minute, half="24", grain=Grain.MINUTE), index + 1, False
    if after_at and len(digits) == 3 and minute < 60:
        return Clock(hour, minute, half=_evident(hour), grain=Grain.MINUTE), index + 1, False
    return None


def _minutes_past(line: Line, index: int, after_at: bool) -> tuple[Clock, int, bool] | None:
    """`20 past 3`, `ten minutes to nine`, `5 to 7` behind "at"."""
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
    if has_unit and not is_sure and not after_at and word not in _PAST:
        return None
    return _moved(clock, minutes if word in _PAST else -minutes), end, True


def half_at(line: Line, index: int, *, short: bool = False) -> tuple[str, int]:
    """`am`, `pm`, or empty, and where it ends: am, a.m., p . m ., p (where `short`), ampm (either)."""
    word = line.words[index]
    if word in ("am", "pm"):
        after = index + 1
        if line.words[after] == "." and line.glued(after) and line.kinds[after + 1] != NUMBER:
            return word, after
        return word, after
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
        if short and line.glued(index):
            return _MARKS[word], index + 1
    return "", index
