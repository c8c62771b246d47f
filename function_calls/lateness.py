"""How it is said that something comes later than it should: in one place, for reminders and schedules alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from config.texts import Phrases
from function_calls.spec import Message
from function_calls.turn import Turn

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_UNITS = ((_DAY, 2 * _DAY, "day"), (_HOUR, _HOUR, "hour"), (_MINUTE, 0, "minute"))


def said_late(messages: Sequence[Message], turn: Turn) -> tuple[Message, ...]:
    """`messages`, with a word in front of the first when they come late."""
    if not messages or not turn.late_seconds:
        return tuple(messages)
    texts = turn.profile().texts
    key = "timers.late_away" if turn.was_away else "timers.late"
    note = texts.say(key, duration=spoken_duration(turn.late_seconds, texts))
    first, *others = messages
    return (replace(first, text=f"{note}\n{first.text}"), *others)


def spoken_duration(seconds: int, texts: Phrases) -> str:
    """`seconds` as people say it, in the one unit that fits: minutes, hours from one on, days from two on."""
    size, name = next((size, name) for size, least, name in _UNITS if seconds >= least)
    count = max(1, round(seconds / size))
    return texts.say(f"timers.{name}") if count == 1 else texts.say(f"timers.{name}s", count=count)
