"""Reminders that are set already: looked at, changed, put off, done with, deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.reminding import (
    PROBLEMS,
    RequestProblem,
    asked,
    asker_of,
    failed,
    is_to_be_asked_again,
    question,
    several,
)
from function_calls.spec import FunctionResult
from services.json_values import JsonObject
from services.moment_words import distance, moment
from services.refs import ErrorCode
from services.reminder_choice import SeveralReminders, means_all
from services.reminder_words import in_list, was_set
from services.reminders import Asker, NotASingleTime, Reminders, is_own_affair, require_mine
from services.timer import Timer
from services.timetable import Removed
from services.wished_times import Repeat, WishedTime, wished_time

_WHICH = "Number, or words of what it says"


class ListArguments(BaseModel):
    """Which reminders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: str | None = Field(default=None, description="Only those with these words", max_length=300)


class ChangeArguments(BaseModel):
    """A reminder, and what is to be different."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    which: str = Field(description=_WHICH, min_length=1, max_length=300)
    text: str | None = Field(default=None, description="What it is to say now", max_length=500)
    when: str | None = Field(default=None, description="Its new time in the words that were used", max_length=300)
    start: str | None = Field(default=None, description="That time, or the first: 2026-01-31T17:00", max_length=40)
    repeat: Repeat | None = Field(default=None, description="How often; absent: once")
    every: int | None = Field(default=None, description="Every so many of these", ge=1, le=525_600)
    cron: str | None = Field(default=None, description="Cron rule of five fields", max_length=200)
    end: str | None = Field(default=None, description="ISO date of the last", max_length=40)

    @property
    def time(self) -> WishedTime:
        """Its new time."""
        return wished_time(self.when, self.start, self.repeat, self.every, self.cron, self.end)


class SnoozeArguments(BaseModel):
    """A reminder, and until when it is put off."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    when: str | None = Field(default=None, description="How long, or until when; absent: 10 minutes", max_length=300)
    which: str | None = Field(default=None, description=f"{_WHICH}; absent: the last one that was said", max_length=300)


class DoneArguments(BaseModel):
    """A reminder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    which: str | None = Field(default=None, description=f"{_WHICH}; absent: the last one that was said", max_length=300)


class DeleteArguments(BaseModel):
    """Reminders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    which: str = Field(description="Numbers, or words of what it says, or `all`", min_length=1, max_length=300)


class DeleteAllArguments(BaseModel):
    """All that the asker has set here."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@tool_function(
    name="reminder_list",
    description="Show the reminders of whoever asks in this chat",
    examples=(
        "show my reminders",
        "list my reminders",
        "what are my reminders",
        "what reminders do i have",
        "which reminders have i set",
        "do i have any reminders about {about}",
        "read my reminders to me",
        "what's on my reminder list",
        "tell me my reminders",
        "do i have a reminder for {about}",
        "查看我的提醒",
        "我有哪些提醒",
        "查看提醒",
        "我的提醒列表",
        "有没有关于{about}的提醒",
    ),
    commands=("reminders", "reminder list", "提醒列表", "我的提醒", "查看提醒"),
    tags="reminder",
    touches="reads_outside",
    effect="read",
)
async def reminder_list(
    ctx: MessageContext, args: ListArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Show one's own reminders and those for everybody, soonest first."""
    asker = asker_of(ctx, call)
    timers = await reminders.of(asker)
    words = (args.about or "").strip()
    if words:
        folded = words.casefold()
        timers = [timer for timer in timers if folded in timer.title.casefold()]
    if not timers:
        text = call.say("reminders.none_like", words=words) if words else call.say("reminders.none")
        return FunctionResult.say(text, data=[])
    lines = [call.say("reminders.title", count=len(timers)), *await _lines(timers, asker, reminders, call)]
    return FunctionResult.say("\n".join(lines), data=[_data(timer) for timer in timers])


@tool_function(
    name="reminder_change",
    description="Change the text or the time of a reminder",
    examples=(
        "change reminder {which} to {when}",
        "move reminder {which} to {when}",
        "move my reminder about {which} to {when}",
        "reschedule the {which} reminder to {when}",
        "change the time of reminder {which} to {when}",
        "change the text of reminder {which} to {text}",
        "把提醒{which}改到{when}",
        "提醒{which}改成{when}",
        "把提醒{which}的内容改成{text}",
    ),
    commands=("reminder change", "提醒 修改"),
    tags="reminder",
    touches="stays_here",
    effect="idempotent",
    ask={"which": "@reminders.ask_which"},
)
async def reminder_change(
    ctx: MessageContext, args: ChangeArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Let a reminder say something else, or be at another time; the time is read in the zone that it keeps."""
    asker = asker_of(ctx, call)
    if args.time.is_empty and not (args.text or "").strip():
        known = {"which": args.which}
        return question(call, "reminder_change", "reminders.nothing_to_change", "when", known)
    try:
        timer = _sole(await reminders.meant(asker, args.which))
        if not is_own_affair(timer, asker.member):
            require_mine(timer, asker)
            return await call.invoke("reminder_change_of_others", _raw(args, timer))
        return await _changed(asker, timer, args, reminders, call)
    except SeveralReminders as problem:
        return await _choose(problem, args.which, asker, reminders, call)
    except PROBLEMS as problem:
        return _failed_change(problem, "reminder_change", args, reminders, call)


@tool_function(
    name="reminder_change_of_others",
    description="Change a reminder that is for others or for everybody in the group",
    tags="reminder",
    touches="reaches_out",
    offered_to=[],
    effect="idempotent",
)
async def reminder_change_of_others(
    ctx: MessageContext, args: ChangeArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """The same where others are concerned: only `reminder_change` calls it, and a tainted turn is asked here."""
    asker = asker_of(ctx, call)
    try:
        return await _changed(asker, _sole(await reminders.meant(asker, args.which)), args, reminders, call)
    except PROBLEMS as problem:
        return _failed_change(problem, "reminder_change", args, reminders, call)


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
        return await _choose(problem, args.which or "", asker, reminders, call)
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
    return FunctionResult.say(text, data={"reminder": snoozed.number, "until": at.astimezone(zone).isoformat()})


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
        return await _choose(problem, args.which or "", asker, reminders, call)
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    return FunctionResult.say(call.say("reminders.done", number=timer.number, text=timer.title))


@tool_function(
    name="reminder_delete",
    description="Delete reminders",
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
        return _removed(before, call)
    try:
        timers = await reminders.meant(asker, args.which)
        for timer in timers:
            require_mine(timer, asker)
        if not all(is_own_affair(timer, asker.member) for timer in timers):
            numbers = " ".join(str(timer.number) for timer in timers)
            return await call.invoke("reminder_delete_of_others", {"which": numbers})
        removed = await reminders.remove(asker, timers, call_key=call.key)
    except SeveralReminders as problem:
        return await _choose(problem, args.which, asker, reminders, call)
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    return _removed(removed, call)


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
    return _removed(removed, call)


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
        return _removed(before, call)
    timers = [timer for timer in await reminders.of(asker) if timer.owner == asker.member]
    removed = await reminders.remove(asker, timers, call_key=call.key)
    if not removed:
        return FunctionResult.say(call.say("reminders.none"), data=[])
    return _removed(removed, call)


async def _changed(
    asker: Asker, timer: Timer, args: ChangeArguments, reminders: Reminders, call: Call
) -> FunctionResult:
    changed, plan = await reminders.change(asker, timer, _one_line(args.text or ""), args.time, call_key=call.key)
    if plan is None:
        said = (await _lines([changed], asker, reminders, call))[0]
    else:
        now, texts = reminders.now(), call.profile.texts
        said = was_set("reminders.changed", changed, plan, by=asker.member, now=now, texts=texts)
    return FunctionResult.say(said, data=_data(changed))


def _failed_change(
    problem: RequestProblem, function: str, args: ChangeArguments, reminders: Reminders, call: Call
) -> FunctionResult:
    result = failed(problem, reminders, call)
    if is_to_be_asked_again(problem) and result.error is not None:
        return asked(result.error.text, function, "when", {"which": args.which, "text": args.text})
    return result


def _sole(timers: Sequence[Timer]) -> Timer:
    """The one that is meant. Raises SeveralReminders."""
    if len(timers) > 1:
        raise SeveralReminders(timers)
    return timers[0]


async def _choose(
    problem: SeveralReminders, words: str, asker: Asker, reminders: Reminders, call: Call
) -> FunctionResult:
    return several(words, await _lines(problem.candidates[:10], asker, reminders, call), call)


async def _lines(timers: Sequence[Timer], asker: Asker, reminders: Reminders, call: Call) -> list[str]:
    zone, now = await reminders.zone_of(asker.member, asker.home), reminders.now()
    return [in_list(one, of=asker.member, zone=zone, now=now, texts=call.profile.texts) for one in timers]


def _removed(removed: Sequence[Removed], call: Call) -> FunctionResult:
    gone = [one.timer for one in removed]
    said = [one.timer for one in removed if one.being_said]
    if len(gone) > 1:
        numbers = ", ".join(f"#{timer.number} {timer.title}".strip() for timer in gone)
        lines = [call.say("reminders.deleted_all", numbers=numbers)]
    else:
        lines = [call.say("reminders.deleted", number=timer.number, text=timer.title) for timer in gone]
    lines += [call.say("reminders.being_said", number=timer.number, text=timer.title) for timer in said]
    return FunctionResult.say("\n".join(lines), data={"deleted": [timer.number for timer in gone]})


def _data(timer: Timer) -> JsonObject:
    return {
        "reminder": timer.number,
        "text": timer.title,
        "next": timer.next_at.isoformat(timespec="minutes") if timer.next_at else None,
        "zone": timer.zone,
        "by": timer.owner_name,
    }


def _raw(args: ChangeArguments, timer: Timer) -> dict[str, Any]:
    """The arguments as they were given, for exactly this reminder."""
    return {**args.model_dump(mode="json", exclude_defaults=True), "which": str(timer.number)}


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())
