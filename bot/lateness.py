"""How it is said that something comes later than it should: in one place, for reminders and schedules alike."""

from __future__ import annotations

from config.texts import Phrases

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_UNITS = ((_DAY, 2 * _DAY, "day"), (_HOUR, _HOUR, "hour"), (_MINUTE, 0, "minute"))


def late_note(seconds: int, texts: Phrases, *, was_away: bool) -> str:
    """What stands before something that comes `seconds` late. `was_away`: because the bot was not there."""
    key = "timers.late_away" if was_away else "timers.late"
    return texts.say(key, duration=spoken_duration(seconds, texts))


def spoken_duration(seconds: int, texts: Phrases) -> str:
    """`seconds` as people say it, in the one unit that fits: minutes, hours from one on, days from two on."""
    size, name = next((size, name) for size, least, name in _UNITS if seconds >= least)
    count = max(1, round(seconds / size))
    return texts.say(f"timers.{name}") if count == 1 else texts.say(f"timers.{name}s", count=count)
