"""Schedules in the settings: validation, reconciliation with the stored timers, and failed runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from zoneinfo import ZoneInfo

import structlog

from bot.chats.chats import Chats
from config.diagnostics import Severity
from config.sections.timers import ScheduleSettings, WhenSettings
from config.terms import WEEKDAYS
from config.texts import Phrases
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.failures import LASTS, REFUSED_BY
from function_calls.profile import ChatProfile
from function_calls.schedule_check import NotSchedulable, ScheduleCheck, ScheduledCall
from function_calls.spec import FunctionError, FunctionResult
from function_calls.turn import Turn
from services.clock import Clock
from services.refs import ChatRef, ErrorCode, MemberRef, Role
from services.timers.schedules import (
    OPERATORS_PLATFORM,
    DeclaredSchedule,
    Schedules,
    UnclearWhen,
    When,
    WhenReader,
    at_clock,
    by_cron,
    every_seconds,
    once_at,
)
from services.timers.timer import Timer
from services.times.recurrence import BadRule, RuleProblem, check

_WHEN_FAULTS = {
    "not_a_time": "is no time that can be read; write it like “every weekday at 8:30”, “每天早上7点” or “0 7 * * 1-5”",
    "past": "is over, so it does not run any more",
    "no_such": "names a day or a time that there is not",
    "ambiguous": "can mean several things; write the date as 2030-12-24 and the time as 18:00",
    "vague": "is no exact time",
    "several": "is more than one schedule; make an entry for each",
    "moves": "means another time each day that it is read; name the day of the week, or the full date with its year",
    "counted": "ends after a number of times, which each reload would restart; give an end date",
    RuleProblem.NO_SUCH_DATE.value: "names a day that there is not",
    RuleProblem.BAD_CRON.value: "is no cron expression: minute, hour, day of the month, month, day of the week",
    RuleProblem.BAD_STEP.value: "has a step that does not fit; it is 1 to 1000, counted from a day",
    RuleProblem.BAD_COUNT.value: "has a number of times that does not fit; it is 1 to 10000",
    RuleProblem.TOO_OFTEN.value: "is too often; once a minute is the most",
    RuleProblem.NEVER.value: "never comes",
    RuleProblem.TOO_FAR.value: "is more than 100 years away",
}
"""Explanations of all reasons of UnclearWhen and BadRule."""


class ScheduleProblem(NamedTuple):
    """A problem of one entry."""

    name: str
    key: str
    """Key within the entry: `when`, `chat`, …"""
    message: str
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Plans:
    """The validated schedules of the settings."""

    declared: Mapping[str, DeclaredSchedule]
    """Valid entries, by name."""
    faults: tuple[ScheduleProblem, ...]
    """Problems; entries with a problem are not in `declared`."""


class SchedulePlans:
    """Validates the section `schedules`."""

    def __init__(
        self, chats: Chats, schedule_check: ScheduleCheck, reader: WhenReader, clock: Clock, english: Phrases
    ) -> None:
        """`english`: texts for problems, which operators read."""
        self._chats = chats
        self._schedule_check = schedule_check
        self._reader = reader
        self._clock = clock
        self._english = english

    def of(self, settings: Mapping[str, ScheduleSettings]) -> Plans:
        """The schedules that enabled entries define, by name, and the problems of invalid entries."""
        declared: dict[str, DeclaredSchedule] = {}
        faults: list[ScheduleProblem] = []
        for name, entry in settings.items():
            if entry.enabled:
                self._add(name, entry, declared, faults)
        return Plans(declared, tuple(faults))

    def _add(
        self, name: str, entry: ScheduleSettings, declared: dict[str, DeclaredSchedule], faults: list[ScheduleProblem]
    ) -> None:
        chat = ChatRef.parse(entry.chat)
        served = self._chats.of(chat)
        profile = replace(served.profile, texts=self._english)
        found: list[ScheduleProblem] = []
        if served.allowed_by is None:
            found.append(ScheduleProblem(name, "chat", f"{entry.chat} is not in chats.allow, so nothing runs there"))
        when = self._when(name, entry, profile, found)
        run = self._run(name, entry, self._context(name, entry, chat, served.settings.bot), profile, found)
        faults += found
        if found or when is None or run is None:
            return
        declared[name] = DeclaredSchedule(
            bot=served.settings.bot,
            chat=chat,
            is_group=entry.group,
            owner=member_of(name),
            owner_name=name,
            function=run.spec.name,
            arguments=run.arguments,
            title=run.line,
            when=when,
        )

    def _when(
        self, name: str, entry: ScheduleSettings, profile: ChatProfile, found: list[ScheduleProblem]
    ) -> When | None:
        zone, now = entry.timezone or profile.timezone.key, self._clock.now()
        when: When | None = None
        severity: Severity
        try:
            when = self._read(entry.when, zone)
            check(when.rule, ZoneInfo(when.zone), now)
        except (UnclearWhen, BadRule) as error:
            why = error.why if isinstance(error, UnclearWhen) else error.reason.value
            is_over = why == "past" or (why == RuleProblem.NEVER and when is not None and when.rule.until is not None)
            why, severity = ("past", "warning") if is_over else (why, "error")
            found.append(ScheduleProblem(name, "when", _WHEN_FAULTS[why], severity))
            return None
        return when

    def _read(self, when: WhenSettings, zone: str) -> When:
        """The rule of the schedule, from the one field that the entry uses. Raises UnclearWhen for words that are not
        understood."""
        now = self._clock.now()
        if when.cron is not None:
            return by_cron(when.cron, zone)
        if when.every_minutes is not None:
            return every_seconds(when.every_minutes * 60, now, zone)
        if when.at is not None:
            return at_clock(when.at, tuple(WEEKDAYS.index(day) + 1 for day in when.on), zone)
        if when.once is not None:
            return once_at(when.once, zone)
        return self._reader.parse_fixed(when.words or "", now, zone)

    def _run(
        self,
        name: str,
        entry: ScheduleSettings,
        context: MessageContext,
        profile: ChatProfile,
        found: list[ScheduleProblem],
    ) -> ScheduledCall | None:
        try:
            if entry.function:
                return self._schedule_check.call(context, entry.function, entry.arguments, profile)
            return self._schedule_check.line(context, entry.run, profile)
        except NotSchedulable as error:
            hint = f" (settings: {error.setting})" if error.setting else ""
            is_about_arguments = error.code in (ErrorCode.BAD_ARGUMENTS, ErrorCode.MISSING_ARGUMENTS)
            key = "run" if entry.run else "arguments" if is_about_arguments and entry.arguments else "function"
            found.append(ScheduleProblem(name, key, f"{' '.join(error.text.split())}{hint}"))
            return None

    def _context(self, name: str, entry: ScheduleSettings, chat: ChatRef, bot: str) -> MessageContext:
        """The context of a run of the schedule."""
        return MessageContext(
            key=MessageKey(chat, name, Kind.TIMER),
            kind=Kind.TIMER,
            chat=chat,
            is_group=entry.group,
            sender=Sender(member_of(name), name, Role(entry.as_role)),
            text="",
            sent_at=self._clock.now(),
            bot=bot,
        )


def member_of(name: str) -> MemberRef:
    """The owner of the entry with that name: no person, and the same after every restart."""
    return MemberRef(OPERATORS_PLATFORM, "settings", name)


ORIGIN = "schedules"
_log = structlog.get_logger("schedules")


class SettingsSchedules:
    """Reconciles the stored timers with the current section `schedules`."""

    def __init__(self, chats: Chats, plans: SchedulePlans, schedules: Schedules) -> None:
        self._chats = chats
        self.plans = plans
        """Validates the section; also used by checks."""
        self._schedules = schedules
        self._seen: object = None

    async def sync(self) -> None:
        """Reconcile if the section, or the time zone or bot of its chats, has changed since the last time; again at the
        next call if storing failed."""
        entries = self._chats.schedules
        seen = (entries, [self._of_chat(ChatRef.parse(entry.chat)) for entry in entries.values()])
        if seen != self._seen and await self._reconcile():
            self._seen = seen

    async def _reconcile(self) -> bool:
        """Returns False if storing failed, so that it is retried. Invalid entries are logged, and the timers under
        their names are left unchanged."""
        plans = self.plans.of(self._chats.schedules)
        for fault in plans.faults:
            log = _log.warning if fault.severity == "warning" else _log.error
            log("schedule_not_usable", setting=f"{ORIGIN}.{fault.name}.{fault.key}", problem=fault.message)
        unread = {fault.name for fault in plans.faults}
        done = await self._schedules.reconcile(ORIGIN, plans.declared, unread=unread)
        if done.added or done.changed or done.removed:
            _log.info("schedules_of_the_settings", added=done.added, changed=done.changed, removed=done.removed)
        return not done.failed

    def _of_chat(self, chat: ChatRef) -> tuple[str, str, bool]:
        served = self._chats.of(chat)
        return served.settings.timezone, served.settings.bot, served.allowed_by is not None


_DO_NOT_FIT = frozenset({ErrorCode.BAD_ARGUMENTS, ErrorCode.MISSING_ARGUMENTS})


class ScheduleEnds:
    """Result of a scheduled run for the chat; called by the router."""

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def ended(self, context: MessageContext, result: FunctionResult, turn: Turn) -> FunctionResult | None:
        """`result` as shown in the chat. A temporary failure is reported once in a row; a permanent one pauses the
        schedule. None (unchanged) for a success, an unknown outcome, and runs without a schedule."""
        called = context.timer
        if called is None or result.ok:
            return None
        if result.error is not None and result.error.code is ErrorCode.UNKNOWN_OUTCOME:
            return None
        timer = await self._schedules.of_id(called.timer_id)
        if timer is None:
            return None
        failure = _as_failure(result, turn)
        if _is_for_good(called.function, failure, turn):
            await self._schedules.pause_if_exists(timer, call_key=f"{turn.input.id}:pause")
            return _notice("schedules.could_not_run", failure, timer, turn)
        if await self._schedules.failed_before(timer.id, int(turn.input.id)):
            # It is in the log and in the list of schedules.
            return failure.with_error_text("")
        return _notice("schedules.failed", failure, timer, turn)


def _as_failure(result: FunctionResult, turn: Turn) -> FunctionResult:
    """`result`, with a question turned into a failure (REFUSED), since a scheduled run has nobody to answer it."""
    if result.question is None:
        return result
    error = FunctionError(ErrorCode.REFUSED, turn.input.profile().texts.say("schedules.would_ask"))
    return replace(result, question=None, error=error, metadata={REFUSED_BY: "schedules", LASTS: True})


def _is_for_good(function: str, failure: FunctionResult, turn: Turn) -> bool:
    """Whether the next run would fail in the same way unless somebody intervenes."""
    error = failure.error
    if error is None or turn.input.functions.find(function) is None:
        return True
    if error.code is ErrorCode.REFUSED:
        return LASTS in failure.metadata
    return error.code in _DO_NOT_FIT


def _notice(key: str, failure: FunctionResult, timer: Timer, turn: Turn) -> FunctionResult:
    reason = failure.error.text if failure.error is not None else ""
    text = turn.input.profile().texts.say(key, line=timer.title, number=timer.number, reason=reason)
    return failure.with_error_text(text)
