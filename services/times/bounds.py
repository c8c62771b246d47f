"""What bounds a time: the other end of a range, a deadline, and from when to when something repeats."""

from __future__ import annotations

from services.recurrence import Unit
from services.times.clock_parts import RANGE
from services.times.clocks import clock_at
from services.times.dates import dates_at
from services.times.parts import Part, without
from services.times.recurrences import WEEKEND, repeats_at, weekdays_at
from services.times.repeats import Repeats, Trouble
from services.times.spots import Parts, Spot
from services.times.tokens import NUMBER

_UNTIL = frozenset(("until", "till", "til", "untill", "through", "thru", "ending"))
_EXCEPT = frozenset(("except", "excepting", "excluding", "but", "besides"))
_EXCEPT_OF_TWO = frozenset((("except", "for"), ("apart", "from"), ("other", "than"), ("but", "not"), ("not", "on")))
_FROM = frozenset(("starting", "beginning", "from", "start", "as"))


def range_parts(spot: Spot) -> Parts:
    """The other end of a range, from `to` on."""
    so_far = spot.so_far
    if not so_far or "to" in so_far or spot.word not in RANGE:
        return
    if spot.word == "and" and not ("is_between" in so_far or "repeats" in so_far):
        return
    if spot.word == "but" and spot.ahead() != "before":
        return
    start = spot.at + 1
    while spot.line.words[start] in ("the", "at", "on", "before", "by"):
        start += 1
    if "repeats" in so_far:
        for clock, end, _ in clock_at(spot.line, start, after_at=True):
            yield Part(to=Part(clocks=(clock,))), end
        return
    found = spot.other_end(start)
    if found is None or "repeats" in found[0] or "to" in found[0]:
        return
    if "zone" in found[0] and "zone" not in so_far:
        yield Part(to=without(found[0], "zone"), zone=found[0]["zone"]), found[1]
    else:
        yield Part(to=found[0]), found[1]


def deadline_parts(spot: Spot) -> Parts:
    """`by`, `no later than`, `before`, `until`; `after` and `later than` before a time of day."""
    word, so_far = spot.word, spot.so_far
    if word == "between" and "to" not in so_far:
        yield Part(is_between=True), spot.at + 1
    is_last = word == "no" and (spot.ahead(), spot.ahead(2)) == ("later", "than")
    if word in ("by", "before") or is_last or (word in _UNTIL and not so_far):
        if not so_far.keys() & {"deadline", "lasts"}:
            yield Part(deadline=True), spot.at + (3 if is_last else 1)
    elif so_far:
        return
    elif word in ("after", "past", "since"):
        found = spot.inner(spot.at + 1)
        if found is not None and found[0].keys() & {"clocks", "weekday"}:
            yield found[0], found[2]
    elif word == "later" and spot.ahead() == "than":
        found = spot.inner(spot.at + 2)
        if found is not None:
            yield found[0], found[2]


def repeat_parts(spot: Spot) -> Parts:
    """How often, and the weekdays and bounds of what repeats."""
    line, at, today, so_far = spot.line, spot.at, spot.moment.today, spot.so_far
    if "repeats" not in so_far:
        yield from repeats_at(line, at, today)
    if "repeats" in so_far or "weekdays" in so_far:
        yield from _bounds(spot)
    if "weekdays" not in so_far:
        yield from weekdays_at(line, at)
        if "repeats" in so_far:
            for part, end in repeats_at(line, at, today):
                if "weekdays" in part and part.get("repeats") == Repeats(Unit.WEEK):
                    yield Part(weekdays=part["weekdays"]), end


def _bounds(spot: Spot) -> Parts:
    """`until June`, `starting Monday`, `for 10 times`, `except Sundays`."""
    line, word, start, so_far = spot.line, spot.word, spot.at + 1, spot.so_far
    if word in _UNTIL and "until" not in so_far:
        start += line.words[start] in ("on", "at")
        found = spot.inner(start)
        if found is not None and "repeats" not in found[0]:
            yield Part(until=found[0]), found[2]
    elif word in _FROM and "first" not in so_far:
        while line.words[start] in ("on", "of", "from", "in"):
            start += 1
        found = spot.inner(start)
        if found is not None and not found[0].keys() & {"repeats", "to"}:
            yield Part(first=found[0]), found[2]
    elif "but" not in so_far and (word in _EXCEPT or (word, line.words[start]) in _EXCEPT_OF_TWO):
        yield from _except(spot, start if word in _EXCEPT else start + 1)
    elif word == "for" and line.kinds[start] == NUMBER and line.words[start + 1] == "times":
        yield Part(count=line.values[start]), start + 2


def _except(spot: Spot, at: int) -> Parts:
    """Not on the weekdays that follow; not on holidays is more than a rule can hold."""
    line, today = spot.line, spot.moment.today
    while line.words[at] in ("on", "for", "the"):
        at += 1
    if line.words[at] in ("weekends", "weekend"):
        yield Part(but=WEEKEND), at + 1
        return
    if line.words[at] in ("public", "bank", "school", "national"):
        at += 1
    if line.words[at] in ("holidays", "holiday"):
        yield Part(trouble=Trouble.SEVERAL), at + 1
        return
    named = [(part["weekdays"], end) for part, end in weekdays_at(line, at)]
    named += [((part["weekday"],), end) for part, end in dates_at(line, at, today) if "weekday" in part]
    for days, end in named[:1]:
        yield Part(but=days), end
