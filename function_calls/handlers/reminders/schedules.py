"""Schedules of a chat, which run functions at set times and are managed by admins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field, JsonValue

from function_calls.call import Call
from function_calls.context import Kind, MessageContext
from function_calls.declaration import tool_function
from function_calls.schedule_check import ScheduleCheck, ScheduledCall
from function_calls.spec import FunctionResult
from services.clock import Clock
from services.refs import ErrorCode, JsonObject, MemberRef
from services.timers.schedules import Listed, Schedules, When, is_of_a_script, script_of
from services.timers.timer import Draft, Timer, TimerKind
from services.times.recurrence import BadRule
from services.times.time_formatting import in_words, moment

_ASIDE = ["command", "model", "mcp", "api"]
"""All paths except timers: schedules cannot create or change schedules."""
_changes = partial(tool_function, tags="schedules", offered_to=_ASIDE, roles="admin", effect="idempotent")
_Plan = Annotated[
    str | None, Field(description="When, and the command to run then: daily 07:00 weather Oslo", max_length=2000)
]
_Number = Annotated[int, Field(description="The schedule's number, as the list shows it", ge=1)]


class CreateArguments(BaseModel, frozen=True, extra="forbid"):
    when: str = Field(
        description="When it is to run, as the user said it: every weekday at 8:00", min_length=1, max_length=300
    )
    function: str = Field(description="The name of the function that is to run", min_length=1, max_length=128)
    arguments: dict[str, JsonValue] = Field(default_factory=dict, description="The arguments of that function")


@_changes(
    description="Run a command in this chat by the clock, such as daily 07:00 weather Oslo.",
    commands=("schedule", "定时"),
    offered_to=["command"],
)
async def schedule(
    context: MessageContext,
    plan: _Plan = None,
    *,
    schedules: Schedules,
    check: ScheduleCheck,
    clock: Clock,
    call: Call,
) -> FunctionResult:
    """Schedule a command line; without arguments, list the schedules."""
    if not (plan or "").strip():
        shown = _listing(await schedules.of_chat(context.chat, private_to=_private_to(context)), clock, call)
        return FunctionResult.say(f"{shown}\n{call.say('schedules.how')}")
    zone = call.profile.timezone.key
    when, line = schedules.reader.head(plan or "", clock.now(), zone, lambda rest: check.is_command(context, rest))
    run = check.line(context, line, call.profile)
    return await _created(context, when, run, schedules, clock, call)


@_changes(
    description="Let a function run in this chat by itself at set times: every morning, each Friday, daily, weekly, "
    "hourly, or once. To remind people there are other functions",
    examples=(
        "schedule {function} for {when}",
        "run {function} here {when}",
        "post {function} in this chat {when}",
        "let {function} run automatically {when}",
        "定时运行{function}：{when}",
        "{when}在这里自动运行{function}",
    ),
    offered_to=["model", "mcp", "api"],
)
async def schedule_create(
    context: MessageContext,
    args: CreateArguments,
    *,
    schedules: Schedules,
    check: ScheduleCheck,
    clock: Clock,
    call: Call,
) -> FunctionResult:
    """Schedule a function with arguments."""
    when = schedules.reader.parse_as_of(args.when, clock.now(), call.profile.timezone.key)
    run = check.call(context, args.function, args.arguments, call.profile)
    return await _created(context, when, run, schedules, clock, call)


@tool_function(
    description="Show what runs in this chat by the clock: numbers, times, and how it went the last time.",
    examples=(
        "what runs here by the clock",
        "show the schedules of this chat",
        "list the schedules",
        "what is scheduled in this chat",
        "which functions are scheduled here",
        "这里有哪些定时任务",
        "看看定时任务",
    ),
    commands=("schedule list", "schedules", "定时 列表"),
    tags="schedules",
    touches="reads_outside",
    offered_to=_ASIDE,
)
async def schedule_list(context: MessageContext, *, schedules: Schedules, clock: Clock, call: Call) -> FunctionResult:
    """List the chat's schedules, next one first."""
    found = await schedules.of_chat(context.chat, private_to=_private_to(context))
    return FunctionResult.say(_listing(found, clock, call), data=[_data(one.timer) for one in found])


@_changes(
    description="Pause a schedule of this chat; its number is in the list.",
    examples=(
        "pause schedule {number}",
        "put schedule {number} on hold",
        "suspend schedule {number}",
        "don't run schedule {number} for a while",
        "stop schedule number {number} for now",
        "暂停定时任务{number}",
        "先停一下定时任务{number}",
    ),
    commands=("schedule pause", "定时 暂停"),
    ask={"number": "@schedules.ask_number"},
)
async def schedule_pause(
    context: MessageContext, number: _Number, *, schedules: Schedules, call: Call
) -> FunctionResult:
    """Pause a schedule, including those of the settings."""
    timer = await schedules.pause(context.chat, number, private_to=_private_to(context), call_key=call.key)
    return FunctionResult.say(call.say("schedules.paused", number=timer.number, line=timer.title), data=_data(timer))


@_changes(
    description="Resume a paused schedule of this chat.",
    examples=(
        "resume schedule {number}",
        "start schedule {number} again",
        "continue schedule {number}",
        "unpause schedule {number}",
        "let schedule number {number} go on",
        "继续定时任务{number}",
        "恢复定时任务{number}",
    ),
    commands=("schedule resume", "定时 继续", "定时 恢复"),
    ask={"number": "@schedules.ask_number"},
)
async def schedule_resume(
    context: MessageContext, number: _Number, *, schedules: Schedules, clock: Clock, call: Call
) -> FunctionResult:
    """Resume a schedule from its next time on."""
    try:
        timer = await schedules.resume(context.chat, number, private_to=_private_to(context), call_key=call.key)
    except BadRule as error:
        return _bad_rule(error, call)
    text = call.say("schedules.resumed", number=timer.number, line=timer.title, next=_next(timer, clock, call))
    return FunctionResult.say(text, data=_data(timer))


@_changes(
    description="Delete a schedule of this chat.",
    examples=(
        "delete schedule {number}",
        "get rid of schedule {number}",
        "i no longer need schedule {number}",
        "remove schedule number {number}",
        "cancel schedule {number}",
        "删除定时任务{number}",
        "取消定时任务{number}",
    ),
    commands=("schedule remove", "schedule delete", "定时 删除"),
    ask={"number": "@schedules.ask_number"},
)
async def schedule_remove(
    context: MessageContext, number: _Number, *, schedules: Schedules, call: Call
) -> FunctionResult:
    """Delete a schedule. Those of the settings must be deleted there."""
    timer = await schedules.remove(
        context.chat, number, by=context.sender.ref, private_to=_private_to(context), call_key=call.key
    )
    return FunctionResult.say(call.say("schedules.removed", number=timer.number, line=timer.title))


async def _created(
    context: MessageContext, when: When, run: ScheduledCall, schedules: Schedules, clock: Clock, call: Call
) -> FunctionResult:
    if context.kind is Kind.TIMER:
        # A scheduled function may call this one.
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("schedules.not_from_a_schedule"))
    draft = Draft(
        kind=TimerKind.SCHEDULE,
        bot=context.bot,
        chat=context.chat,
        is_group=context.is_group,
        private_to=_private_to(context),
        owner=context.sender.ref,
        owner_name=context.sender.name,
        members=(),
        function=run.spec.name,
        arguments=run.arguments,
        title=run.line,
        rule=when.rule,
        zone=when.zone,
    )
    try:
        timer = await schedules.create(draft, call_key=call.key)
    except BadRule as error:
        return _bad_rule(error, call)
    rule_text = in_words(timer.rule, timer.timezone, clock.now(), call.profile.texts)
    text = call.say(
        "schedules.created",
        rule=rule_text[:1].upper() + rule_text[1:],
        zone=timer.zone,
        line=timer.title,
        number=timer.number,
        next=_next(timer, clock, call),
    )
    return FunctionResult.say(text, data=_data(timer))


def _listing(found: Sequence[Listed], clock: Clock, call: Call) -> str:
    if not found:
        return call.say("schedules.none")
    return "\n".join([call.say("schedules.title"), *(_line(one, clock, call) for one in found)])


def _line(one: Listed, clock: Clock, call: Call) -> str:
    """A schedule as a line: number, command, times and status."""
    timer, zone = one.timer, one.timer.timezone
    rule = in_words(timer.rule, zone, clock.now(), call.profile.texts)
    if zone.key != call.profile.timezone.key:
        rule = f"{rule} ({zone.key})"
    parts = [rule]
    if timer.next_at is None:
        parts.append(call.say("schedules.is_paused"))
    else:
        parts.append(call.say("schedules.next", next=_next(timer, clock, call)))
    if one.failing_since is not None:
        parts.append(call.say("schedules.failing", since=_here(one.failing_since, clock, call)))
    elif one.last_at is not None:
        parts.append(call.say("schedules.ran", at=_here(one.last_at, clock, call)))
    if timer.source:
        parts.append(_origin(timer.source, call))
    return call.say("schedules.line", number=timer.number, line=timer.title, facts="; ".join(parts))


def _next(timer: Timer, clock: Clock, call: Call) -> str:
    """Next time as text, in the schedule's time zone; `–` if there is none."""
    if timer.next_at is None:
        return "–"
    return moment(timer.next_at, timer.timezone, clock.now(), call.profile.texts)


def _here(at: datetime, clock: Clock, call: Call) -> str:
    """A time in the chat's time zone."""
    return moment(at, call.profile.timezone, clock.now(), call.profile.texts)


def _bad_rule(error: BadRule, call: Call) -> FunctionResult:
    return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say(f"schedules.when.{error.reason.value}"), ["when"])


def _private_to(context: MessageContext) -> MemberRef | None:
    return context.sender.ref if context.private else None


def _data(timer: Timer) -> JsonObject:
    return {
        "number": timer.number,
        "runs": timer.title,
        "function": timer.function,
        "zone": timer.zone,
        "next": timer.next_at.astimezone(UTC).isoformat() if timer.next_at else None,
    }


def _origin(source: str, call: Call) -> str:
    """Origin of a schedule that no member created."""
    if is_of_a_script(source):
        return call.say("schedules.of_a_script", script=script_of(source.partition(".")[2])[1])
    return call.say("schedules.of_the_settings", source=source)
