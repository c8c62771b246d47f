"""When a schedule runs: from words, a cron expression or exact facts to a rule of time; and which rules are alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from services.recurrence import Calendar, Every, Once, Rule
from services.times import Reading, Times, UnclearTime

_NINE = time(9)
MOST_HEAD_WORDS = 14
"""So many words at the beginning of a line are tried as a time."""
_CRON = re.compile(r"[\d*/,\-]+(?:\s+[\dA-Za-z*/,\-#?]+){4}")
_CRON_HEAD = re.compile(rf"{_CRON.pattern}(?=\s|$)")
_SOME_OTHER_DAY = timedelta(days=401)
"""Another year, month, day and weekday: what is the same from there does not hang on the day it is said."""
_SPACES = re.compile(r"\s+")
_BETWEEN = " ,，:：、\t\n"
"""What may stand between a time and what follows it."""


class UnclearWhen(ValueError):
    """No rule of time. `why`: not_a_time, past, no_such, ambiguous, vague, several, moves, counted."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class When:
    """A rule of time as it was read at some moment."""

    rule: Rule
    zone: str
    """The IANA name of the zone that the rule's wall times are in."""
    floats: bool = False
    """Where its count begins is only the moment at which it was read: every 90 minutes, every other day."""

    def is_like(self, kept: Rule, zone: str) -> bool:
        """Whether `kept` in `zone`, read at another moment, is the same rule."""
        if zone != self.zone:
            return False
        return _without_beginning(kept) == _without_beginning(self.rule) if self.floats else kept == self.rule


def is_cron(text: str) -> bool:
    """Whether `text` has the five fields of a cron expression."""
    return _CRON.fullmatch(text.strip()) is not None


def by_cron(text: str, zone: str) -> When:
    """By a cron expression of five fields; whether it means any moment is seen when it is computed."""
    return When(Rule(Calendar(" ".join(text.split()))), zone)


def every_seconds(seconds: int, now: datetime, zone: str) -> When:
    """By elapsed time, counted from `now` (aware)."""
    return When(Rule(Every(seconds, now.astimezone(UTC))), zone, floats=True)


def at_clock(clock: str, weekdays: tuple[int, ...], zone: str) -> When:
    """At `HH:MM` on these days of the week (1 is Monday, 7 is Sunday); with none, every day."""
    hour, minute = (int(part) for part in clock.split(":"))
    days = ",".join(str(day) for day in sorted({day % 7 for day in weekdays})) or "*"
    return When(Rule(Calendar(f"{minute} {hour} * * {days}")), zone)


def once_at(wall: str, zone: str) -> When:
    """At `YYYY-MM-DD HH:MM`, one time. Raises UnclearWhen for a day that there is not."""
    day, _, clock = wall.replace("T", " ").partition(" ")
    try:
        return When(Rule(Once(datetime.fromisoformat(f"{day} {clock:0>5}"))), zone)
    except ValueError:
        raise UnclearWhen("no_such") from None


class WhenReader:
    """Reads when in words."""

    def __init__(self, times: Times, usual_time: time = _NINE) -> None:
        """`usual_time`: the time of day for what was said without one."""
        self._times = times
        self._usual_time = usual_time

    def said_now(self, text: str, now: datetime, zone: str) -> When:
        """What a person means who says `text` at `now` (aware) in `zone`: words or a cron expression. Raises
        UnclearWhen."""
        if is_cron(text):
            return by_cron(text, zone)
        reading, here = self._reading(text, now, zone)
        return self._when(reading, here, zone)

    def written(self, text: str, now: datetime, zone: str) -> When:
        """The same for what stands in a file and is read again and again: it has to mean the same on every day. Raises
        UnclearWhen, with `moves` or `counted` for what does not."""
        if is_cron(text):
            return by_cron(text, zone)
        reading, here = self._reading(text, now, zone)
        if reading.trouble is not None:
            raise UnclearWhen(reading.trouble.value)
        later, there = self._reading(text, now + _SOME_OTHER_DAY, zone)
        if reading.repeats is None:
            if reading.moment(self._usual_time) != later.moment(self._usual_time):
                raise UnclearWhen("moves")
            return self._when(reading, here, zone)
        one, other = self._when(reading, here, zone), self._when(later, there, zone)
        if one.rule.count is not None:
            # Nobody could tell whether the count is over or is to begin.
            raise UnclearWhen("counted")
        if one.rule == other.rule:
            return one
        floating = replace(one, floats=True)
        if not floating.is_like(other.rule, other.zone):
            raise UnclearWhen("moves")
        return floating

    def head(self, line: str, now: datetime, zone: str, may_follow: Callable[[str], bool]) -> tuple[When, str]:
        """The time that `line` begins with, and what follows it: as many words as can be read as a time, of those after
        which something comes that `may_follow`. Raises UnclearWhen."""
        line = line.strip()
        cron = _CRON_HEAD.match(line)
        if cron is not None:
            return by_cron(cron[0], zone), line[cron.end() :].strip()
        ends = self._head_ends(line, now.astimezone(ZoneInfo(zone)))
        if not ends:
            raise UnclearWhen("not_a_time")
        splits = [(line[:end], line[end:].strip(_BETWEEN)) for end in ends]
        said, rest = next((one for one in splits if may_follow(one[1])), splits[0])
        return self.said_now(said, now, zone), rest

    def _head_ends(self, line: str, here: datetime) -> list[int]:
        """After how many characters a time at the beginning of `line` may end, the longest first: after a word, or
        where words are not set apart wherever one is found."""
        ends = [gap.start() for gap in _SPACES.finditer(line)][: MOST_HEAD_WORDS - 1]
        ends += [len(line)] if len(ends) < MOST_HEAD_WORDS - 1 else []
        found = {end for end in ends if self._times.read(line[:end], here) is not None}
        found |= {one.end for one in self._times.find_all(line, here) if one.start == 0}
        return sorted(found, reverse=True)

    def _reading(self, text: str, now: datetime, zone: str) -> tuple[Reading, datetime]:
        here = now.astimezone(ZoneInfo(zone))
        reading = self._times.read(text, here)
        if reading is None:
            raise UnclearWhen("not_a_time")
        return reading, here

    def _when(self, reading: Reading, here: datetime, zone: str) -> When:
        try:
            rule = reading.rule(here, self._usual_time)
        except UnclearTime as error:
            raise UnclearWhen(error.trouble.value) from None
        said = getattr(reading.zone, "key", None) if reading.zone is not None else zone
        if said is None:
            # An offset ("+02:00") that no place has a name for cannot be kept over a change of clocks.
            raise UnclearWhen("ambiguous")
        return When(rule, said)


def _without_beginning(rule: Rule) -> Rule:
    """`rule` without what only says where its count begins."""
    when = rule.when
    if isinstance(when, Every):
        return replace(rule, when=replace(when, since=datetime(1970, 1, 1, tzinfo=UTC)))
    return replace(rule, when=replace(when, first=None)) if isinstance(when, Calendar) else rule
