"""Settings of what happens at its time: reminders and schedules."""

from __future__ import annotations

from pydantic import Field

from config.terms import Count, Number, Section


class TimersSettings(Section):
    """How reminders and schedules are fired, above all when the bot was away."""

    late_after_seconds: Number = Field(default=60, ge=1, le=86_400)
    """What comes later than this says by how much."""
    recurring_late_hours: Number = Field(default=12, ge=0, le=8760)
    """Of what happens again and again, the latest time that was missed is made up for when it is no longer ago than
    this; else the next one is awaited. What happens once is always said, however late."""
    at_once: Count = Field(default=16, ge=1, le=1000)
    """How many reminders, and as many schedules, may run at the same time, in all chats; in one chat they run one after
    another."""
    per_member: Count = Field(default=100, ge=1, le=100_000)
    """Reminders, and as many schedules, that one member may have in all chats."""
    hold_over: Count = Field(default=100, ge=0, le=1_000_000)
    """When the clock has jumped and more than so many are overdue at once, all are held back until the clock has proved
    right. 0: nothing is ever held back."""
    hold_seconds: Count = Field(default=900, ge=1, le=604_800)
    """How long they are held back, unless the clock returns to where it was before."""
