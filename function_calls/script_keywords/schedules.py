"""SET SCHEDULE: the script runs by the clock in this chat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

import structlog

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from function_calls.rehearsal import Rehearsal, Unfit
from services.clock import Clock
from services.recurrence import BadRule, check
from services.refs import Role
from services.schedule_times import UnclearWhen, When, WhenReader
from services.schedules import SCRIPTS, Schedules, Wanted, script_name
from services.times import Times

KEYWORD = "SET SCHEDULE"
"""What a script bears that keeps its schedules."""
_UTC = ZoneInfo("UTC")
_SECONDS_FIRST = re.compile(r"\d+\s+(\S+(?:\s+\S+){4})")
_WORDS = {
    "business hours": "0 9-17 * * 1-5",
    "weekdays": "0 9 * * 1-5",
    "weekends": "0 9 * * 0,6",
}
_FROM_TO = re.compile(r"every\s+hour\s+from\s+(\d{1,2})\s+to\s+(\d{1,2})", re.IGNORECASE)
_SOME_MOMENT = datetime(2027, 1, 1, tzinfo=_UTC)
"""What stands in a file means the same on every day, so that any will do to check it."""
_log = structlog.get_logger("scripts")


def _no_time(when: Value) -> str:
    """What is wrong with a time that is written out: it is read as when the script runs, at some moment."""
    try:
        rule = _read(text_of(when), WhenReader(Times()), _SOME_MOMENT, _UTC.key)
        check(rule.rule, _UTC, _SOME_MOMENT)
    except (BadRule, UnclearWhen):
        return _unclear(text_of(when))
    return ""


@basic_keyword(
    "SET SCHEDULE {when} [, {tool} [, {arguments}]]",
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
    rehearsal: Rehearsal,
    clock: Clock,
) -> Value:
    """Let this script, or another tool, run in this chat by the clock, in the place of what was set for it before. TRUE
    when it is set; FALSE for whoever is no admin, for whom it changes nothing."""
    if run.context.sender.role.rank < Role.ADMIN.rank:
        _log.info("schedule_not_set", script=run.tool, chat=run.context.chat.key, why="only admins set schedules")
        return False
    name = text_of(tool).strip().rpartition("/")[2].removesuffix(".bas") or run.tool
    given = dict(arguments) if isinstance(arguments, Mapping) else {}
    profile = run.call.profile
    rule = _when(text_of(when), schedules, clock, profile.timezone.key)
    context = run.context
    try:
        rehearsed = rehearsal.call(context, name, given, profile)
        await schedules.declare(
            SCRIPTS,
            script_name(run.bot, run.tool, name, run.context.chat),
            Wanted(
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
    except Unfit as error:
        raise RunFault(RunCode.NOT_ALLOWED, error.text) from None
    except BadRule:
        raise RunFault(RunCode.BAD_VALUE, f"“{text_of(when)}” is no time at which something can run") from None
    return True


@basic_keyword("CLEAR SCHEDULE [{tool}]", effect="idempotent", touches=("stays_here",))
async def clear_schedule(run: ScriptRun, tool: Value = None, *, schedules: Schedules) -> Value:
    """Let it run by the clock in this chat no more. FALSE for whoever is no admin."""
    if run.context.sender.role.rank < Role.ADMIN.rank:
        return False
    name = text_of(tool).strip().rpartition("/")[2].removesuffix(".bas") or run.tool
    await schedules.declare(SCRIPTS, script_name(run.bot, run.tool, name, run.context.chat), None)
    return True


def _when(text: str, schedules: Schedules, clock: Clock, zone: str) -> When:
    """Raises RunFault."""
    try:
        return _read(text, schedules.reader, clock.now(), zone)
    except UnclearWhen:
        raise RunFault(RunCode.BAD_VALUE, _unclear(text)) from None


def _read(text: str, reader: WhenReader, now: datetime, zone: str) -> When:
    """Raises UnclearWhen."""
    words = " ".join(text.split())
    hours = _FROM_TO.fullmatch(words)
    if hours is not None:
        words = f"0 {int(hours[1])}-{int(hours[2])} * * *"
    seconds = _SECONDS_FIRST.fullmatch(words)
    words = seconds[1] if seconds is not None else _WORDS.get(words.casefold(), words)
    return reader.written(words, now, zone)


def _unclear(text: str) -> str:
    right = "write it like “every day at 7:30”, “every 5 minutes” or “0 7 * * 1-5”"
    return f"“{text}” is no time of a schedule; {right}"
