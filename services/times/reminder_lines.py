"""Parser of typed reminders such as `me tomorrow at 5pm to call mum`: for whom, text, and words for the time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.patterns import lazy_pattern
from services.text_index import listed
from services.times import Found, Grain, Kind, Times
from services.times.recurrence import Unit

ME = frozenset({"me", "myself", "i", "我", "我自己", "自己"})
US = frozenset(
    listed(
        """
        us everyone everybody all here group team 我们 咱们 大家 所有人 全体 全体成员 全员 群里 群 全部
        """
    )
) | {"all of us", "the group", "the team", "this group", "the chat"}
"""Words for everybody in the chat."""

_SPACE = r"[\s\u3000]*"
_AND = rf"(?:{_SPACE}(?:,|，|、|&|\+|\band\b|和|跟|还有){_SPACE})"
_NAME = r"@[^\s,，、@]+?(?=[和跟与]@|[\s,，、@]|$)"
_OWN = r"(?:myself|me|us|everyone|everybody|all of us|the group|the team)\b"
_OWN_CHINESE = "我自己|我们|咱们|大家|所有人|全体成员|我"
_ONE = rf"(?:{_NAME}|{_OWN}|{_OWN_CHINESE})"
_WHO = lazy_pattern(rf"{_ONE}(?:(?:{_AND}|\s+(?=@)){_ONE})*", re.IGNORECASE)
_PARTS = lazy_pattern(rf"{_NAME}|{_OWN}|{_OWN_CHINESE}", re.IGNORECASE)
_KNOWN_NAME_ENDS = lazy_pattern(r"\s+(?=(?:to|that|about|of)\b)", re.IGNORECASE)
_JOINS = lazy_pattern(r"^(?:(?:to|that|about|of)\b|：|:|,|，|、|-|–|。|\.|;|；)+\s*", re.IGNORECASE)
_TOPIC = lazy_pattern(r"\b(?:about|of|regarding|that)\s*$|关于$", re.IGNORECASE)
_BEGINNING = lazy_pattern(r"[\s,，、]*(?:and|then|starting|beginning|from|开始|起)?[\s,，、]*", re.IGNORECASE)
_MEALS = "(?:breakfast|brunch|lunch|dinner|supper|tea)"
_MEAL_FIRST = lazy_pattern(rf"{_MEALS}\s+", re.IGNORECASE)
_MEAL_LAST = lazy_pattern(rf"\s+{_MEALS}\W*$", re.IGNORECASE)
_LOOSE_ENDS = " \t\n\u3000,，、:：;；-–"
_DANGLING = lazy_pattern(r"(?:^|\s)(?:at|on|in|by|for|and)$", re.IGNORECASE)
_POLITE = lazy_pattern(r"\s*\b(?:please|thanks|thank you)\b[.!]*$|[，,]?(?:谢谢|吧|好吗)[。！!]?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """The parts of a typed reminder: text, words for the time, and names of recipients; empty if missing."""

    text: str
    when: str
    who: tuple[str, ...] = ()


def read_line(line: str, now: datetime, times: Times, names: Collection[str] = ()) -> Line:
    """Parse `line`, typed at `now` (aware, in the author's zone). `names`: members' names; a name without @ is
    recognised only at the beginning, before `to` and the like or directly before the time. Raises nothing; the time may
    still be unreadable."""
    who, rest = _who(line.strip(), names)
    if not who:
        who, rest = _named_before_the_time(rest, now, times, names)
    when, text = _split(rest, now, times)
    if not who:
        # After the time only a mention is a person: `明天大家一起吃饭` is the text.
        late, behind = _who(text.strip(), ())
        if late and behind and text.strip().startswith("@"):
            who, text = late, behind
    return Line(_tidy(text), when, who)


def _who(text: str, names: Collection[str]) -> tuple[tuple[str, ...], str]:
    found = _WHO.match(text)
    if found:
        after = text[found.end() :]
        return tuple(part.removeprefix("@") for part in _PARTS.findall(found[0])), after.strip(_LOOSE_ENDS)
    cut = _KNOWN_NAME_ENDS.search(text)
    if cut:
        name = text[: cut.start()].strip()
        if name.casefold() in {one.casefold() for one in names}:
            return (name,), text[cut.end() :]
    return (), text


def _named_before_the_time(
    text: str, now: datetime, times: Times, names: Collection[str]
) -> tuple[tuple[str, ...], str]:
    """Known name at the start of `text`, if a time follows, and the rest; else no name and `text`. `Ben tomorrow 9am
    bring cake` is for Ben; `Ben's birthday tomorrow` is a text."""
    known = {part for name in names for part in (name, name.split(maxsplit=1)[0]) if part.strip()}
    for name in sorted(known, key=len, reverse=True):
        rest = text[len(name) :]
        if text[: len(name)].casefold() != name.casefold() or (name.isascii() and not rest[:1].isspace()):
            continue
        rest = rest.lstrip(_LOOSE_ENDS)
        if any(one.start == 0 for one in times.find_all(rest, now)):
            return (text[: len(name)],), rest
    return (), text


def _split(text: str, now: datetime, times: Times) -> tuple[str, str]:
    """The words for the time in `text` (empty if none), and the rest. The time is expected at the beginning or the end;
    a day at one end and a time of day at the other are combined."""
    joins = _JOINS.match(text)
    text = text[joins.end() :] if joins else text
    is_topic = joins is not None and _TOPIC.search(joins[0]) is not None
    # `about Friday` belongs to the text.
    found = [_without_meal(text, one, now, times) for one in times.find_all(text, now) if not _is_topic(text, one)]
    if not found:
        return "", text
    begins = None if is_topic else _begins_in(text, found, now, times)
    if begins is not None:
        return begins
    first = found[0] if not (is_topic or text[: found[0].start].strip(_LOOSE_ENDS)) else None
    last = found[-1] if not _POLITE.sub("", text[found[-1].end :]).strip(_LOOSE_ENDS + ".!。！") else None
    if first is not None and last is not None and first is not last:
        together = _together(text, first, last, now, times)
        if together:
            return together, text[first.end : last.start]
        first = min(first, last, key=_coarseness)
    chosen = first or last or max(found, key=lambda one: one.end - one.start)
    if is_topic and not text[: chosen.start].strip(_LOOSE_ENDS):
        return "", text
    return text[chosen.start : chosen.end].strip(), f"{text[: chosen.start]} {text[chosen.end :]}"


def _without_meal(text: str, found: Found, now: datetime, times: Times) -> Found:
    """Split off a meal: `at 7pm dinner` is a time and a text, but `after dinner` is a time."""
    phrase = text[found.start : found.end]
    begins, ends = _MEAL_FIRST.match(phrase), _MEAL_LAST.search(phrase)
    start = found.start + (begins.end() if begins else 0)
    end = found.start + (ends.start() if ends else len(phrase))
    shorter = times.read(text[start:end], now) if begins or ends else None
    return found if shorter is None else Found(shorter, start, end)


def _is_topic(text: str, found: Found) -> bool:
    before, phrase = text[: found.start], text[found.start : found.end]
    is_about = before.endswith("关") and phrase.startswith("于")
    return is_about or _TOPIC.search(before) is not None or _TOPIC.fullmatch(phrase.split(maxsplit=1)[0]) is not None


def _coarseness(found: Found) -> int:
    """Rank of how imprecise a time is; a recurrence ranks as most precise."""
    return -1 if found.reading.kind is Kind.RECURRENCE else list(Grain).index(found.reading.grain)


def _together(text: str, first: Found, last: Found, now: datetime, times: Times) -> str:
    """The words of both if one is a day or a rule and the other the time of day for it, else empty."""
    clocks = [one.reading.has_clock for one in (first, last)]
    if clocks not in ([True, False], [False, True]):
        return ""
    with_clock, without = (first, last) if clocks[0] else (last, first)
    if with_clock.reading.kind is not Kind.TIME_OF_DAY or without.reading.kind is Kind.DURATION:
        return ""
    texts = [text[one.start : one.end].strip() for one in (without, with_clock)]
    for gap in (" ", ""):
        joined = gap.join(texts)
        if times.read(joined, now) is not None:
            return joined
    return ""


def _begins_in(text: str, found: list[Found], now: datetime, times: Times) -> tuple[str, str] | None:
    """For `in 2 hours every day tea`: the rule with the time of day of its first occurrence, and the rest. None for
    other texts, or if no such rule begins then."""
    for one, two in itertools.pairwise(found):
        if not _BEGINNING.fullmatch(text[one.end : two.start]):
            continue
        is_rule_first = one.reading.kind is Kind.RECURRENCE
        rule, moment = (one, two) if is_rule_first else (two, one)
        is_so_long = moment.reading.kind is Kind.INSTANT and moment.reading.length is not None
        if rule.reading.kind is not Kind.RECURRENCE or rule.reading.has_clock or not is_so_long:
            continue
        before, behind = text[: one.start], text[two.end :]
        if before.strip(_LOOSE_ENDS) and _POLITE.sub("", behind).strip(_LOOSE_ENDS + ".!。！"):
            continue
        phrase, clock = text[rule.start : rule.end].strip(), f"{moment.reading.start:%H:%M}"
        when = f"{phrase} at {clock}" if phrase.isascii() else f"{phrase}{clock}"
        together = times.read(when, now)
        # The first occurrence of a rule that is not daily may be at another time than was typed.
        repeats = rule.reading.repeats
        is_daily = repeats is not None and repeats.unit is Unit.DAY and repeats.step == 1
        is_soon = moment.reading.start - now.replace(tzinfo=None) <= timedelta(days=1)
        if is_daily and is_soon and together is not None:
            return when, f"{before} {behind}"
    return None


def _tidy(text: str) -> str:
    """`text` on one line, without polite words and words that only connected it to the time."""
    text = " ".join(text.split())
    text = _POLITE.sub("", text).strip(_LOOSE_ENDS)
    while (shorter := _DANGLING.sub("", _JOINS.sub("", text)).strip(_LOOSE_ENDS)) != text:
        text = shorter
    return text
