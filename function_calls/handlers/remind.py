"""What a reminder says when its time has come."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import Choice, FunctionResult
from services.moment_words import amount
from services.refs import Role
from services.reminder_words import reminder_text
from services.reminders import Reminders
from services.timer import Timer


class RemindArguments(BaseModel):
    """What to say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(description="What to remind of", min_length=1, max_length=500)


@tool_function(
    name="remind",
    description="Say a reminder whose time has come",
    tags="reminder",
    offered_to=["timer"],
    touches="stays_here",
    effect="read",
)
async def remind(ctx: MessageContext, args: RemindArguments, *, reminders: Reminders, call: Call) -> FunctionResult:
    """Say it to whom it is for, with what they may do about it; nothing where it was deleted in this very moment."""
    timer = await reminders.of_id(ctx.timer.timer_id) if ctx.timer is not None else None
    if timer is None:
        return FunctionResult()
    may_call_all = ctx.sender.role in Role.at_least(Role.MODERATOR)
    said, mentions = reminder_text(timer, args.text, call.profile.texts, may_call_all=may_call_all)
    data = {"reminder": timer.number, "text": args.text}
    return FunctionResult.say(said, data=data, mentions=mentions, choices=_choices(timer, reminders, call))


def _choices(timer: Timer, reminders: Reminders, call: Call) -> tuple[Choice, ...]:
    """To put it off, or to be done with it."""
    minutes = round(reminders.snooze_for.total_seconds() / 60)
    return (
        Choice(amount(minutes * 60, call.profile.texts), f"/snooze {timer.number} {minutes} minutes"),
        Choice(amount(3600, call.profile.texts), f"/snooze {timer.number} 1 hour"),
        Choice(call.say("reminders.snooze_tomorrow"), f"/snooze {timer.number} tomorrow"),
        Choice(call.say("reminders.done_label"), f"/reminder done {timer.number}"),
    )
