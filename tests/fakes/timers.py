"""Timers of a whole daemon: asking for them, and letting time pass with its clock ticking."""

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
    """Ann asks for it in the family group, unless `changes` to the draft say otherwise."""
    draft = a_draft(title, rule, **changes)
    (timer,) = await group.daemon.timetable.add([draft], call_key=f"call {title}", most_per_owner=100_000)
    return timer


async def tick(group: Group) -> list[str]:
    """One look at what is due; what the bot said for it, as far as its pace allows."""
    before = len(group.platform.sent)
    await group.daemon.timers.tick()
    await group.settle()
    return [one.text for one in group.platform.sent[before:]]


async def pass_time(group: Group, seconds: float, step: float = 1.0) -> list[str]:
    """Let `seconds` pass, looking every `step`; what the bot said meanwhile."""
    said: list[str] = []
    while seconds > 0:
        await group.clock.advance(min(step, seconds))
        seconds -= step
        said += await tick(group)
    return said


async def states(group: Group) -> list[str]:
    """The state of every moment that is kept, in the order in which they were."""
    return [state for (state,) in await kept(group, OCCURRENCES.c.state)]
