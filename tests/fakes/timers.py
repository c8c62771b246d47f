"""Timers of a whole daemon: create them, and advance the clock with ticks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.testing import Group
from services.store.turns.occurrences import OCCURRENCES
from services.timers.timer import Timer
from services.times.recurrence import Rule
from tests.fakes.drafts import a_draft
from tests.fakes.kept import kept


async def ask(group: Group, title: str, rule: Rule | datetime, **changes: Any) -> Timer:
    """Create a timer by Ann in the family group; `changes` are fields of the draft."""
    draft = a_draft(title, rule, **changes)
    (timer,) = await group.daemon.timetable.add([draft], call_key=f"call {title}", most_per_owner=100_000)
    return timer


async def tick(group: Group) -> list[str]:
    """One tick; returns the bot's messages, as far as its rate limit allows."""
    before = len(group.platform.sent)
    await group.daemon.timers.tick()
    await group.settle()
    return [one.text for one in group.platform.sent[before:]]


async def pass_time(group: Group, seconds: float, step: float = 1.0) -> list[str]:
    """Advance the clock by `seconds`, with a tick every `step`. Returns the bot's messages."""
    said: list[str] = []
    while seconds > 0:
        await group.clock.advance(min(step, seconds))
        seconds -= step
        said += await tick(group)
    return said


async def states(group: Group) -> list[str]:
    """State of every stored occurrence, in order."""
    return [state for (state,) in await kept(group, OCCURRENCES.c.state)]
