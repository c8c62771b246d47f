"""Settings of timers, reminders and schedules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from config.terms import BotName, ChatKey, ClockTime, Count, Number, RoleName, Section, Timezone, Weekday, Word, fault


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


class RemindersSettings(Section):
    """What members may be reminded of, and when where they do not say."""

    most_per_member: Count = Field(default=50, ge=1, le=10_000)
    """Reminders of one member that may wait, in all chats together."""
    default_time: ClockTime = "09:00"
    """The time of day for what was said without one."""
    snooze_minutes: Count = Field(default=10, ge=1, le=1440)
    """How long a reminder is put off where nobody says how long."""


_CLOCK = re.compile(r"([01]?\d|2[0-3]):[0-5]\d")
_DAY_AND_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[ T]([01]?\d|2[0-3]):[0-5]\d")
_FORMS = ("words", "cron", "every_minutes", "at", "once")


class WhenSettings(Section):
    """When a schedule runs: words, a cron expression, or one of the exact forms."""

    words: Word | None = None
    """As a person would say it, in English or Chinese: `every weekday at 8:30`, `每天早上7点`; or a cron expression. A
    plain text in place of the mapping is the same."""
    cron: Word | None = None
    """Minute, hour, day of the month, month, day of the week."""
    every_minutes: Count | None = Field(default=None, ge=1, le=525_600)
    """Every so many minutes, whatever clocks on walls do."""
    at: Word | None = None
    """The time of day, as `07:00`; every day, or `on` some."""
    on: tuple[Weekday, ...] = Field(default=(), max_length=7)
    """The days of the week for `at`. Left out: every day."""
    once: Word | None = None
    """One moment, as `2030-12-24 18:00`."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [name for name in _FORMS if getattr(self, name) is not None]
        if len(given) != 1:
            raise fault(f"needs exactly one of {', '.join(_FORMS)}")
        if self.on and self.at is None:
            raise fault("has `on` without `at`: the days of the week belong to a time of day")
        if self.at is not None and not _CLOCK.fullmatch(self.at):
            raise fault("has an `at` that is no time of day; write it as 07:00")
        if self.once is not None and not _DAY_AND_CLOCK.fullmatch(self.once):
            raise fault("has a `once` that is no moment; write it as 2030-12-24 18:00")
        return self


def _words_are_a_form(value: object) -> object:
    if isinstance(value, str):
        return {"words": value}
    if not isinstance(value, Mapping | WhenSettings):
        raise fault('has to be words such as "every day at 07:00", a cron expression, or a mapping')
    return value


class ScheduleSettings(Section):
    """One function that runs in a chat again and again."""

    chat: ChatKey
    """The chat it runs in and says its result to, as `platform:account:chat`; `chats.allow` has to allow it."""
    group: bool = True
    """False: the chat is a private one, which functions that are for groups alone need to know."""
    when: Annotated[WhenSettings, BeforeValidator(_words_are_a_form, json_schema_input_type=str | WhenSettings)]
    """When it runs."""
    timezone: Timezone | None = None
    """The IANA time zone of `when`. Left out: the chat's."""
    run: Annotated[str, Field(max_length=2000)] = ""
    """What runs, as a command line: `weather Oslo`."""
    function: Annotated[str, Field(max_length=128)] = ""
    """What runs, by the name of the function; instead of `run`."""
    arguments: Mapping[Word, JsonValue] = Field(default_factory=dict)
    """The arguments of `function`."""
    enabled: bool = True
    """False: as though it were not here."""
    as_role: RoleName = "admin"
    """What it may do: what a member of this role may."""

    @model_validator(mode="after")
    def _names_one_thing(self) -> Self:
        if bool(self.run.strip()) == bool(self.function.strip()):
            raise fault('needs either `run` (a command line such as "weather Oslo") or `function`')
        if self.arguments and not self.function:
            raise fault("has `arguments`, which belong to `function`; in `run` they stand behind the command")
        return self


SchedulesSettings = Mapping[BotName, ScheduleSettings]
"""The schedules by their names."""
