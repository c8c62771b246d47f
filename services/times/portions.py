"""Parts of the day: morning, early in the morning, this afternoon, last night, after work."""

from __future__ import annotations

from datetime import timedelta

from services.times.lexicon import HOURS_OF, PORTIONS
from services.times.parts import Part
from services.times.readings import Grain
from services.times.spans import one_day
from services.times.spots import Parts, Spot

_BESIDES = {
    "lunch": "early afternoon",
    "dinner": "late evening",
    "breakfast": "late morning",
    "work": "after work",
    "school": "after school",
}
"""What follows them."""
_DAYS = {"this": 0, "last": -1, "next": 1}


def portion_parts(spot: Spot) -> Parts:
    """The part of the day that begins here."""
    word, then = spot.word, spot.ahead()
    if spot.so_far.get("portion", "tonight") != "tonight":
        return
    if then == "thing" and word in ("first", "last"):
        yield from _thing(spot)
    if word in ("early", "late", "later", "earlier"):
        yield from _early_or_late(spot)
    elif word == "after" and then in _BESIDES:
        yield Part(portion=_BESIDES[then]), spot.at + 2
    elif word in _DAYS and then in PORTIONS:
        yield _of_day(spot, PORTIONS[then], _DAYS[word]), spot.at + 2
    elif word == "this" and then in ("early", "late") and spot.ahead(2) in PORTIONS:
        yield _of_day(spot, f"{then} {PORTIONS[spot.ahead(2)]}", 0), spot.at + 3
    elif word in PORTIONS and "portion" not in spot.so_far:
        yield Part(portion=PORTIONS[word]), spot.at + (2 if then in ("time", "hours") else 1)


def _thing(spot: Spot) -> Parts:
    """`first thing in the morning`, `last thing at night`."""
    end = spot.at + 2
    named = end + 1 if spot.line.words[end] == "at" else end + 2 if spot.ahead(2) == "in" else end
    if spot.line.words[named] in PORTIONS:
        end = named + 1
    yield Part(portion=f"{spot.word} thing"), end


def _early_or_late(spot: Spot) -> Parts:
    """`early morning`, `late in the afternoon`, `early in the day`, `late tonight`."""
    line, end, is_early = spot.line, spot.at + 1, spot.word.startswith("ear")
    if spot.ahead() == "tonight":
        yield _of_day(spot, "evening" if is_early else "late evening", 0), spot.at + 2
    while line.words[end] in ("in", "the", "on", "hours", "of", "this", "-"):
        end += 1
    portion = PORTIONS.get(line.words[end])
    if portion is not None:
        name = f"{'early' if is_early else 'late'} {portion}"
        yield Part(portion=name if name in HOURS_OF else portion), end + 1
    elif line.words[end] == Grain.DAY and line.words[end + 1] != "of":
        yield Part(portion="morning" if is_early else "late afternoon"), end + 1


def _of_day(spot: Spot, portion: str, days: int) -> Part:
    name = portion if portion in HOURS_OF else portion.split(" ", 1)[1]
    if name == "night" and days == 0:
        name = "tonight"
    return Part(portion=name, span=one_day(spot.moment.today + timedelta(days=days)))
