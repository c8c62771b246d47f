"""Settings of reminders."""

from __future__ import annotations

from pydantic import Field

from config.terms import ClockTime, Count, Section


class RemindersSettings(Section):
    """What members may be reminded of, and when where they do not say."""

    most_per_member: Count = Field(default=50, ge=1, le=10_000)
    """Reminders of one member that may wait, in all chats together."""
    default_time: ClockTime = "09:00"
    """The time of day for what was said without one."""
    snooze_minutes: Count = Field(default=10, ge=1, le=1440)
    """How long a reminder is put off where nobody says how long."""
