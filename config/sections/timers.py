"""Settings of timers, reminders and schedules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from config.terms import (
    BotName,
    ChatKey,
    ClockTime,
    Count,
    Number,
    RoleName,
    Section,
    Timezone,
    Weekday,
    Word,
    settings_error,
)


class TimersSettings(Section):
    """Dispatch of due reminders and schedules, in particular after downtime."""

    late_after_seconds: Number = Field(default=60, ge=1, le=86_400)
    """Reminders that are later than this state their delay."""
    recurring_late_hours: Number = Field(default=12, ge=0, le=8760)
    """For recurring timers the latest missed occurrence is dispatched if it is at most this late, else skipped. Single
    ones are always dispatched, however late."""
    at_once: Count = Field(default=16, ge=1, le=1000)
    """Maximum number of concurrent reminders, and of concurrent schedules, in all chats; in one chat they run one after
    another."""
    per_member: Count = Field(default=100, ge=1, le=100_000)
    """Maximum number of reminders, and of schedules, of one member in all chats."""
    hold_over: Count = Field(default=100, ge=0, le=1_000_000)
    """If the clock has jumped and more than this number are overdue, all are held back until the clock is confirmed. 0:
    never."""
    hold_seconds: Count = Field(default=900, ge=1, le=604_800)
    """Maximum time that they are held back, unless the clock returns to its previous state."""


class RemindersSettings(Section):
    """Defaults and limits of reminders."""

    most_per_member: Count = Field(default=50, ge=1, le=10_000)
    """Maximum number of reminders of one member, in all chats together."""
    default_time: ClockTime = "09:00"
    """Time of day for reminders requested without one."""
    snooze_minutes: Count = Field(default=10, ge=1, le=1440)
    """Default snooze time."""


_CLOCK = re.compile(r"([01]?\d|2[0-3]):[0-5]\d")
_DAY_AND_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[ T]([01]?\d|2[0-3]):[0-5]\d")
_FORMS = ("words", "cron", "every_minutes", "at", "once")


class WhenSettings(Section):
    """When a schedule runs: in words, as a cron expression, or in one of the exact forms."""

    words: Word | None = None
    """In English or Chinese words: `every weekday at 8:30`, `每天早上7点`; or a cron expression. A plain text
    instead of the mapping is equivalent."""
    cron: Word | None = None
    """Cron expression: minute, hour, day of the month, month, day of the week."""
    every_minutes: Count | None = Field(default=None, ge=1, le=525_600)
    """Interval in minutes of elapsed time, independent of clock changes."""
    at: Word | None = None
    """Time of day, as `07:00`; every day, or on the days in `on`."""
    on: tuple[Weekday, ...] = Field(default=(), max_length=7)
    """Days of the week for `at`. Missing: every day."""
    once: Word | None = None
    """A single time, as `2030-12-24 18:00`."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        present = [name for name in _FORMS if getattr(self, name) is not None]
        if len(present) != 1:
            raise settings_error(f"needs exactly one of {', '.join(_FORMS)}")
        if self.on and self.at is None:
            raise settings_error("has `on` without `at`: the days of the week belong to a time of day")
        if self.at is not None and not _CLOCK.fullmatch(self.at):
            raise settings_error("has an `at` that is no time of day; write it as 07:00")
        if self.once is not None and not _DAY_AND_CLOCK.fullmatch(self.once):
            raise settings_error("has a `once` that is no moment; write it as 2030-12-24 18:00")
        return self


def _words_are_a_form(value: object) -> object:
    if isinstance(value, str):
        return {"words": value}
    if not isinstance(value, Mapping | WhenSettings):
        raise settings_error('has to be words such as "every day at 07:00", a cron expression, or a mapping')
    return value


class ScheduleSettings(Section):
    """A function that runs in a chat on a schedule."""

    chat: ChatKey
    """Chat where it runs and posts its result, as `platform:account:chat`; it must be in `chats.allow`."""
    group: bool = True
    """False: the chat is private, which matters for functions limited to groups."""
    when: Annotated[WhenSettings, BeforeValidator(_words_are_a_form, json_schema_input_type=str | WhenSettings)]
    """When it runs."""
    timezone: Timezone | None = None
    """IANA time zone of `when`. Missing: the chat's."""
    run: Annotated[str, Field(max_length=2000)] = ""
    """Command line to run: `weather Oslo`."""
    function: Annotated[str, Field(max_length=128)] = ""
    """Function to run, by name; instead of `run`."""
    arguments: Mapping[Word, JsonValue] = Field(default_factory=dict)
    """Arguments of `function`."""
    enabled: bool = True
    """False: the entry is ignored."""
    as_role: RoleName = "admin"
    """Role with which it runs."""

    @model_validator(mode="after")
    def _names_one_thing(self) -> Self:
        if bool(self.run.strip()) == bool(self.function.strip()):
            raise settings_error('needs either `run` (a command line such as "weather Oslo") or `function`')
        if self.arguments and not self.function:
            raise settings_error("has `arguments`, which belong to `function`; in `run` they follow the command")
        return self


SchedulesSettings = Mapping[BotName, ScheduleSettings]
"""Schedules by name."""
