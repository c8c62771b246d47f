"""Reminders taken away: by number, by what they say, or all of one's own."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.reminding import PROBLEMS, asker_of, choose, failed, told_of
from function_calls.spec import FunctionResult
from services.reminder_choice import SeveralReminders, means_all
from services.reminder_plans import Asker
from services.reminders import Reminders, is_own_affair, require_mine
from services.timetable import Removed


class DeleteArguments(BaseModel):
    """Reminders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    which: str = Field(description="Numbers, or words of what it says, or `all`", min_length=1, max_length=300)


class DeleteAllArguments(BaseModel):
    """All that the asker has set here."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@tool_function(
    name="reminder_delete",
    description="Delete one or more reminders",
    examples=(
        "delete reminder {which}",
        "cancel reminder {which}",
        "remove the {which} reminder",
        "cancel my reminder about {which}",
        "delete the reminder to {which}",
        "cancel the {which} reminder",
        "forget the reminder about {which}",
        "删除提醒{which}",
        "取消提醒{which}",
        "取消{which}的提醒",
        "删除关于{which}的提醒",
    ),
    commands=("reminder delete", "unremind", "提醒 删除", "删除提醒", "取消提醒"),
    tags="reminder",
    touches="stays_here",
    effect="idempotent",
    ask={"which": "@reminders.ask_which"},
)
async def reminder_delete(
    ctx: MessageContext, args: DeleteArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Delete reminders by number or by description, all of those that are named or none."""
    if means_all(args.which):
        return await call.invoke("reminder_delete_all", {})
    asker = asker_of(ctx, call)
    before = await reminders.removed_by(ctx.chat, call.key, f"{call.key}.0")
    if before:
        return _removed(before, asker, call)
    try:
        timers = await reminders.meant(asker, args.which)
        for timer in timers:
            require_mine(timer, asker)
        if not all(is_own_affair(timer, asker.member) for timer in timers):
            numbers = " ".join(str(timer.number) for timer in timers)
            return await call.invoke("reminder_delete_of_others", {"which": numbers})
        removed = await reminders.remove(asker, timers, call_key=call.key)
    except SeveralReminders as problem:
        return await choose(problem, args.which, asker, reminders, call)
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    return _removed(removed, asker, call)


@tool_function(
    name="reminder_delete_of_others",
    description="Delete reminders that are for others or for everybody in the group",
    tags="reminder",
    touches="reaches_out",
    offered_to=[],
    effect="idempotent",
)
async def reminder_delete_of_others(
    ctx: MessageContext, args: DeleteArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """The same where others are concerned: only `reminder_delete` calls it, and a tainted turn is asked here."""
    asker = asker_of(ctx, call)
    try:
        removed = await reminders.remove(asker, await reminders.meant(asker, args.which), call_key=call.key)
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    return _removed(removed, asker, call)


@tool_function(
    name="reminder_delete_all",
    description="Delete all reminders that whoever asks has set in this chat",
    examples=(
        "delete all my reminders",
        "clear all reminders",
        "cancel all my reminders",
        "remove all of my reminders",
        "erase every reminder",
        "删除我的全部提醒",
        "取消所有提醒",
        "清空我的提醒",
    ),
    commands=("reminder clear", "提醒 清空"),
    tags="reminder",
    touches="stays_here",
    effect="idempotent",
    confirm="@reminders.confirm_all",
)
async def reminder_delete_all(
    ctx: MessageContext, args: DeleteAllArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Delete what the asker has set, nobody else's."""
    asker = asker_of(ctx, call)
    before = await reminders.removed_by(ctx.chat, call.key)
    if before:
        return _removed(before, asker, call)
    timers = [timer for timer in await reminders.of(asker) if timer.owner == asker.member]
    removed = await reminders.remove(asker, timers, call_key=call.key)
    if not removed:
        return FunctionResult.say(call.say("reminders.none"), data=[])
    return _removed(removed, asker, call)


def _removed(removed: Sequence[Removed], asker: Asker, call: Call) -> FunctionResult:
    gone = [one.timer for one in removed]
    said = [one.timer for one in removed if one.being_said]
    if len(gone) > 1:
        numbers = ", ".join(f"#{timer.number} {timer.title}".strip() for timer in gone)
        lines = [call.say("reminders.deleted_all", numbers=numbers)]
    else:
        lines = [call.say("reminders.deleted", number=timer.number, text=timer.title) for timer in gone]
    lines += [call.say("reminders.being_said", number=timer.number, text=timer.title) for timer in said]
    result = FunctionResult.say("\n".join(lines), data={"deleted": [timer.number for timer in gone]})
    return told_of(gone, asker, result)
