"""How it is said that something comes later than it should: in one place, for reminders and schedules alike."""

from __future__ import annotations

from config.texts import Phrases
from services.moment_words import rough_amount


def late_note(seconds: int, texts: Phrases, *, was_away: bool) -> str:
    """What stands before something that comes `seconds` late. `was_away`: because the bot was not there."""
    key = "timers.late_away" if was_away else "timers.late"
    return texts.say(key, duration=rough_amount(seconds, texts))
