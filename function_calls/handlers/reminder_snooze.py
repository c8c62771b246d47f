"""What is done about a reminder that has just spoken: put off, or done with."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.reminding import PROBLEMS, WHICH, asker_of, choose, failed, told_of
from function_calls.spec import FunctionResult
from services.moment_words import distance, moment
from services.refs import ErrorCode
from services.reminder_choice import SeveralReminders
from services.reminders import NotASingleTime, Reminders


class SnoozeArguments(BaseModel):
    """A reminder, and until when it is put off."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    when: str | None = Field(default=None, description="How long, or until when; absent: 10 minutes", max_length=300)
    which: str | None = Field(default=None, description=f"{WHICH}; absent: the last one that was said", max_length=300)


class DoneArguments(BaseModel):
    """A reminder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    which: str | None = Field(default=None, description=f"{WHICH}; absent: the last one that was said", max_length=300)


@tool_function(
    name="reminder_snooze",
    description="Put a reminder off that was just said",
    examples=(
        "snooze for {when}",
        "snooze",
        "snooze that reminder for {when}",
        "remind me again in {when}",
        "snooze the reminder until {when}",
        "snooze reminder {which} for {when}",
        "{when}后再提醒我",
        "稍后提醒我",
        "稍后再提醒",
        "推迟提醒{when}",
    ),
    commands=("snooze", "稍后", "推迟"),
    line="when",
    tags="reminder",
    touches="stays_here",
    effect="idempotent",
)
async def reminder_snooze(
    ctx: MessageContext, args: SnoozeArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Say it once more later; its own times stay as they are."""
    asker = asker_of(ctx, call)
    try:
        timer, until = await reminders.said_or_meant(asker, args.which or "", args.when or "")
        if timer is None:
            return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("reminders.nothing_said"))
        snoozed = await reminders.put_off(asker, timer, until, call_key=call.key)
    except NotASingleTime as problem:
        text = call.say("reminders.snooze_once", said=str(problem))
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["when"])
    except SeveralReminders as problem:
        return await choose(problem, args.which or "", asker, reminders, call)
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    zone, now = await reminders.zone_of(asker.member, asker.home), reminders.now()
    at = snoozed.snoozed_until or now
    text = call.say(
        "reminders.snoozed",
        number=snoozed.number,
        moment=moment(at, zone, now, call.profile.texts),
        distance=distance(at, now, call.profile.texts),
        text=snoozed.title,
    )
    data = {"reminder": snoozed.number, "until": at.astimezone(zone).isoformat()}
    return told_of([snoozed], asker, FunctionResult.say(text, data=data))


@tool_function(
    name="reminder_done",
    description="Note that what a reminder just said is done",
    commands=("reminder done", "提醒 完成"),
    tags="reminder",
    touches="stays_here",
    offered_to=["command"],
    effect="idempotent",
)
async def reminder_done(
    ctx: MessageContext, args: DoneArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Thank for it, and let what was put off of it not come again. What repeats goes on."""
    asker = asker_of(ctx, call)
    try:
        timer, _ = await reminders.said_or_meant(asker, args.which or "", "")
        if timer is None:
            return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("reminders.nothing_said"))
        await reminders.done_with(asker, timer, call_key=call.key)
    except SeveralReminders as problem:
        return await choose(problem, args.which or "", asker, reminders, call)
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    result = FunctionResult.say(call.say("reminders.done", number=timer.number, text=timer.title))
    return told_of([timer], asker, result)
