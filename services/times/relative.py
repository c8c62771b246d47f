"""So long from now: in 20 minutes, two weeks from now, an hour ago, within 3 days, +1 day; and lengths alone."""

from __future__ import annotations

from fractions import Fraction

from services.times.durations import Amount, amount_at, unit_at
from services.times.parts import Part
from services.times.readings import Grain, Length
from services.times.spans import one_day, unit_span, working_days_later
from services.times.spots import Parts, Spot
from services.times.tokens import NUMBER

LATER = frozenset(("hence", "later", "out", "away", "ahead"))
AGO = frozenset(("ago", "back", "earlier"))
_LEADING = frozenset(("in", "within", "after", "+"))
_WHOLE = frozenset(("all", "full", "whole", "entire"))
_COMPARING = frozenset(("more", "less", "over", "under"))
_ABOUT = frozenset(("about", "around", "roughly", "approximately", "the", "next", "exactly", "another", "+"))
_CALENDAR = (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR)
ONE: dict[Grain | str | None, Length] = {
    Grain.MINUTE: Length(seconds=60),
    Grain.HOUR: Length(seconds=3600),
    Grain.DAY: Length(days=1),
    Grain.WEEK: Length(days=7),
    Grain.MONTH: Length(months=1),
    Grain.YEAR: Length(months=12),
}
"""One of each."""
_MOST_MINUTES = 100


def relative_parts(spot: Spot) -> Parts:
    """What a length means here, with what stands before and behind it."""
    word = spot.word
    if word in _LEADING and (word in ("in", "within") or not spot.so_far):
        yield from _led(spot)
    elif word in _WHOLE and not spot.so_far:
        yield from _whole(spot)
    elif word in _COMPARING and not spot.so_far:
        start = spot.at + (2 if spot.ahead() == "than" else 1)
        found = amount_at(spot.line, start)
        if found is not None:
            yield Part(lasts=found[0].length, grain=found[0].grain), found[1]
    elif spot.line.kinds[spot.at] == NUMBER and spot.ahead() in ("upcoming", "coming"):
        unit = unit_at(spot.line, spot.at + 2)
        if unit in _CALENDAR:
            span = unit_span(unit, spot.line.values[spot.at], 1, spot.moment.today)
            yield Part(span=span), spot.at + 3
    else:
        yield from _followed(spot)


def _followed(spot: Spot) -> Parts:
    """A length with what stands behind it."""
    line, at, link, so_far = spot.line, spot.at, spot.link, spot.so_far
    found = amount_at(line, at)
    if found is None:
        is_last = at + 1 >= line.size and line.kinds[at] == NUMBER and line.values[at] < _MOST_MINUTES
        if link == "in" and not so_far and is_last:
            yield Part(length=Length(seconds=60 * line.values[at]), grain=Grain.MINUTE), at + 1
        return
    amount, end = found
    word, then = line.words[end], line.words[end + 1]
    if word in ("from", "since", "after") and then in ("now", "today"):
        yield _from_now(spot, amount), end + 2
    elif word in LATER:
        yield _from_now(spot, amount), end + 1
    elif word in AGO or (word == "before" and not so_far and end + 1 >= line.size):
        yield _from_now(spot, amount, back=True), end + 1
    if link == "in":
        yield _from_now(spot, amount), end + (word in ("time", "more"))
    if word in ("starting", "beginning") or link == "for":
        yield Part(lasts=amount.length, grain=amount.grain), end
    elif not so_far and link in ("", "about", "the", "around"):
        yield Part(lasts=amount.length, grain=amount.grain, is_bare=True), end


def _led(spot: Spot) -> Parts:
    """`in …`, `within …`, `after …`, `+…`."""
    line, word, start = spot.line, spot.word, spot.at + 1
    while line.words[start] in _ABOUT:
        start += 1
    found = amount_at(line, start)
    is_next = line.words[start - 1] == "next"
    if found is None and (is_next or (word == "within" and line.words[start - 1] == "the")):
        found = _one_at(spot, start)
    if found is None or (word == "after" and line.words[found[1]] in ("past", "to")):
        return
    amount, end = found
    if line.words[end] == "'" and line.words[end + 1] == "time":
        end += 2
    elif line.words[end] == "time":
        end += 1
    elif line.words[end] == "from" and line.words[end + 1] in ("now", "today"):
        end += 2
    part = _from_now(spot, amount)
    if (word == "within" or is_next) and "length" in part:
        part["deadline"] = True
    yield part, end


def _whole(spot: Spot) -> Parts:
    """`all day`, `full-week`, `all the year`."""
    start = spot.at + (2 if spot.ahead() in ("-", "the") else 1)
    unit = unit_at(spot.line, start)
    if unit in _CALENDAR and unit in ONE and not spot.line.words[start].endswith("s"):
        yield Part(lasts=ONE[unit], grain=Grain(unit)), start + 1


def _one_at(spot: Spot, start: int) -> tuple[Amount, int] | None:
    """`the next day and 5 hours`: a unit without a number is one of it."""
    unit = unit_at(spot.line, start)
    if unit is None or unit not in ONE:
        return None
    amount, end = Amount(ONE[unit], Grain(unit), unit, Fraction(1)), start + 1
    more = amount_at(spot.line, end + 1) if spot.line.words[end] == "and" else None
    if more is None:
        return amount, end
    return Amount(amount.length + more[0].length, more[0].grain, more[0].unit, more[0].count), more[1]


def _from_now(spot: Spot, amount: Amount, *, back: bool = False) -> Part:
    if amount.unit == "weekday":
        count = int(amount.count) * (-1 if back else 1)
        return Part(span=one_day(working_days_later(spot.moment.today, count)))
    return Part(length=-amount.length if back else amount.length, grain=amount.grain)
