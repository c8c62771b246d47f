"""SET SCHEDULE: the script runs by the clock in this chat."""

from __future__ import annotations

import re
from collections.abc import Mapping

import structlog

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from function_calls.rehearsal import Rehearsal, Unfit
from services.clock import Clock
from services.recurrence import BadRule
from services.refs import Role
from services.schedule_times import UnclearWhen, When
from services.schedules import SCRIPTS, Schedules, Wanted, script_name

KEYWORD = "SET SCHEDULE"
"""What a script bears that keeps its schedules."""
_SECONDS_FIRST = re.compile(r"\d+\s+(\S+(?:\s+\S+){4})")
_WORDS = {
    "business hours": "0 9-17 * * 1-5",
    "weekdays": "0 9 * * 1-5",
    "weekends": "0 9 * * 0,6",
}
_FROM_TO = re.compile(r"every\s+hour\s+from\s+(\d{1,2})\s+to\s+(\d{1,2})", re.IGNORECASE)
_log = structlog.get_logger("scripts")


@basic_keyword("SET SCHEDULE {when} [, {tool} [, {arguments}]]", effect="idempotent", touches=("stays_here",))
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
    words = " ".join(text.split())
    hours = _FROM_TO.fullmatch(words)
    if hours is not None:
        words = f"0 {int(hours[1])}-{int(hours[2])} * * *"
    seconds = _SECONDS_FIRST.fullmatch(words)
    words = seconds[1] if seconds is not None else _WORDS.get(words.casefold(), words)
    try:
        return schedules.reader.written(words, clock.now(), zone)
    except UnclearWhen:
        raise RunFault(
            RunCode.BAD_VALUE,
            f"“{text}” is no time of a schedule; write it like “every day at 7:30”, “every 5 minutes” or “0 7 * * 1-5”",
        ) from None
