"""SET SCHEDULE: scheduled runs of scripts in this chat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

import structlog

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.script_calls import function_called, may_call, named_arguments
from function_calls.basic.run.session import translated_error
from function_calls.basic.values import text_of
from function_calls.schedule_check import NotSchedulable, ScheduleCheck
from function_calls.spec import FunctionSpec, Message
from services.clock import Clock
from services.refs import RequestProblem, Role
from services.timers.schedules import (
    SCRIPTS,
    DeclaredSchedule,
    Schedules,
    UnclearWhen,
    When,
    WhenReader,
    script_name,
)
from services.times import Times
from services.times.recurrence import BadRule, check

KEYWORD = "SET SCHEDULE"
"""Keyword that marks scripts with schedules."""
_UTC = ZoneInfo("UTC")
_SECONDS_FIRST = re.compile(r"\d+\s+(\S+(?:\s+\S+){4})")
_WORDS = {
    "business hours": "0 9-17 * * 1-5",
    "weekdays": "0 9 * * 1-5",
    "weekends": "0 9 * * 0,6",
}
_FROM_TO = re.compile(r"every\s+hour\s+from\s+(\d{1,2})\s+to\s+(\d{1,2})", re.IGNORECASE)
_SOME_MOMENT = datetime(2027, 1, 1, tzinfo=_UTC)
"""Reference time for checking literal times, whose meaning does not depend on the date."""
_TOLD = "schedule.told"
_log = structlog.get_logger("scripts")


def _no_time(when: Value) -> str:
    """Compile-time check of a literal time: the problem, or empty."""
    try:
        rule = _read(text_of(when), WhenReader(Times()), _SOME_MOMENT, _UTC.key)
        check(rule.rule, _UTC, _SOME_MOMENT)
    except (BadRule, UnclearWhen):
        right = "write it like “every day at 7:30”, “every 5 minutes” or “0 7 * * 1-5”"
        return f"“{text_of(when)}” is not a schedule; {right}"
    return ""


@basic_keyword(
    "SET SCHEDULE {when} [[,] {tool} [[,] {arguments...}]]",
    effect="idempotent",
    touches=("stays_here",),
    check={"when": _no_time},
)
async def set_schedule(
    run: ScriptRun,
    when: Value,
    tool: Value = None,
    arguments: Value = None,
    *,
    schedules: Schedules,
    rehearsal: ScheduleCheck,
    clock: Clock,
) -> Value:
    """Run this script with the arguments of this run, or another tool that it may call, in this chat on a schedule,
    replacing its previous schedule; another tool with values for its parameters, in order or by name. Returns TRUE if
    the schedule was set, and FALSE if the caller is not an admin, who is notified."""
    name = text_of(tool).strip().rpartition("/")[2].removesuffix(".bas") or run.tool
    if not await _is_admin(run):
        _log.info("schedule_not_set", script=run.tool, chat=run.context.chat.key, why="only admins set schedules")
        await _tell_who_may(run, name, schedules)
        return False
    given = run.arguments if tool is None else _arguments(run, name, arguments)
    profile = run.call.profile
    rule = _when(run, text_of(when), schedules, clock)
    context = run.context
    try:
        rehearsed = rehearsal.call(context, name, dict(given), profile)
        _check(run, rehearsed.spec, given)
        await schedules.declare(
            SCRIPTS,
            script_name(run.bot, run.tool, name, run.context.chat),
            DeclaredSchedule(
                bot=context.bot,
                chat=context.chat,
                is_group=context.is_group,
                owner=context.sender.ref,
                owner_name=context.sender.name,
                function=rehearsed.spec.name,
                arguments=rehearsed.arguments,
                title=rehearsed.line,
                when=rule,
            ),
        )
    except NotSchedulable as error:
        raise RunError(RunCode.NOT_ALLOWED, error.text) from None
    except RequestProblem as full:
        raise translated_error(run, RunCode.NOT_ALLOWED, "schedule.full", **full.values) from None
    except BadRule:
        raise translated_error(run, RunCode.BAD_VALUE, "schedule.never", text=text_of(when)) from None
    return True


@basic_keyword("CLEAR SCHEDULE [{tool}]", effect="idempotent", touches=("stays_here",))
async def clear_schedule(run: ScriptRun, tool: Value = None, *, schedules: Schedules) -> Value:
    """Stop running it on a schedule in this chat. Returns FALSE if the caller is not an admin."""
    if not await _is_admin(run):
        return False
    name = text_of(tool).strip().rpartition("/")[2].removesuffix(".bas") or run.tool
    await schedules.declare(SCRIPTS, script_name(run.bot, run.tool, name, run.context.chat), None)
    return True


def _arguments(run: ScriptRun, name: str, given: Value) -> Mapping[str, Value]:
    """Arguments of the scheduled tool by name, from a single map (without NULL) or from values in the order of its
    parameters. Raises RunError for an unknown tool or arguments that do not match."""
    values = given if isinstance(given, list) else []
    if len(values) == 1 and isinstance(values[0], Mapping):
        return {key: value for key, value in values[0].items() if value is not None}
    if not values:
        return {}
    return named_arguments(run, function_called(run, name).spec, values)


async def _is_admin(run: ScriptRun) -> bool:
    """Whether the caller is an admin, both by the message and by the current role."""
    least = Role.ADMIN.rank
    return run.context.sender.role.rank >= least and (await run.call.role_now()).rank >= least


async def _tell_who_may(run: ScriptRun, name: str, schedules: Schedules) -> None:
    """Explain once per run that only admins set schedules, unless the schedule exists or the run has no caller."""
    is_set = script_name(run.bot, run.tool, name, run.context.chat) in await schedules.declared(SCRIPTS)
    if not is_set and not run.begins and run.context.timer is None and not run.stored_data.get(_TOLD):
        run.stored_data[_TOLD] = True
        run.say(Message(run.call.say("basic.schedule.admins")))


def _check(run: ScriptRun, spec: FunctionSpec, given: Mapping[str, Value]) -> None:
    """Check that the script may call `spec` without an approval, which nobody could give in a scheduled run. Raises
    RunError (NOT_ALLOWED) if it may not. The script itself needs no check without arguments: an admin has called it."""
    if spec.name == run.tool and not given:
        return
    if spec.name != run.tool and not may_call(spec, run.grants):
        raise RunError(RunCode.NOT_ALLOWED, run.call.say("basic.call.not_granted", name=spec.name))


def _when(run: ScriptRun, text: str, schedules: Schedules, clock: Clock) -> When:
    """Parse the schedule `text` in the chat's time zone. Raises RunError if it is not understood."""
    try:
        return _read(text, schedules.reader, clock.now(), run.call.profile.timezone.key)
    except UnclearWhen:
        raise translated_error(run, RunCode.BAD_VALUE, "schedule.no_time", text=text) from None


def _read(text: str, reader: WhenReader, now: datetime, zone: str) -> When:
    """Parse a schedule such as `every day at 7:30` or a cron expression; a cron field for seconds is dropped. Raises
    UnclearWhen."""
    words = " ".join(text.split())
    hours = _FROM_TO.fullmatch(words)
    if hours is not None:
        words = f"0 {int(hours[1])}-{int(hours[2])} * * *"
    seconds = _SECONDS_FIRST.fullmatch(words)
    words = seconds[1] if seconds is not None else _WORDS.get(words.casefold(), words)
    return reader.parse_fixed(words, now, zone)
