"""Reminders: list, change and delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.reminder_results import (
    OTHER_FORM,
    WHEN,
    WHICH,
    Cron,
    End,
    Repeated,
    Start,
    asked,
    asker_of,
    choose,
    data_of,
    failed,
    lines_of,
    mark_outside,
    needs_exact_time,
    question,
    time_choices,
)
from function_calls.spec import FunctionResult
from services.chats.member_links import MemberLinks
from services.patterns import one_line
from services.timers.reminders import (
    Reminders,
    Requester,
    SeveralReminders,
    confirmation,
    is_in_own_words,
    is_own_affair,
    means_all,
    only,
    require_mine,
)
from services.timers.timer import Timer
from services.timers.timetable import Removed
from services.times.recurrence import BadRule
from services.times.requested_times import RequestedTime, TimeNotUnderstood, requested_time

_ON_A_PAGE = 12
_DIGITS = 4
_changes = partial(tool_function, tags="reminder", effect="idempotent")
_About = Annotated[str | None, Field(description="Only those with these words", max_length=300)]
_Which = Annotated[str, Field(description="Numbers, or words of what it says, or `all`", min_length=1, max_length=300)]


class ChangeArguments(BaseModel, frozen=True, extra="forbid"):
    which: str = Field(description=WHICH, min_length=1, max_length=300)
    text: str | None = Field(default=None, description="What it is to say now", max_length=500)
    when: str | None = Field(default=None, description=f"Its new time, {WHEN}", max_length=300)
    start: Start = None
    repeat: Repeated = None
    every: int | None = Field(
        default=None, description="Every so many of these", ge=1, le=525_600, json_schema_extra=OTHER_FORM
    )
    cron: Cron = None
    end: End = None

    @property
    def time(self) -> RequestedTime:
        """The requested new time, not yet parsed."""
        return requested_time(self.when, self.start, self.repeat, self.every, self.cron, self.end)


@tool_function(
    description="Show the asker's reminders in this chat",
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
    context: MessageContext, about: _About = None, *, reminders: Reminders, links: MemberLinks, call: Call
) -> FunctionResult:
    """List the member's own reminders and those for everybody, soonest first, twelve per page; in a private chat also
    those in private chats of linked accounts. A number in `about` is the page, or a search word if there is no such
    page."""
    asker = asker_of(context, call)
    timers = await reminders.of(asker)
    elsewhere = [] if context.is_group or about else await _elsewhere(asker, reminders, links, call)
    words = (about or "").strip()
    page = int(words) if words.isascii() and words.isdigit() and len(words) < _DIGITS else 0
    first = max(page - 1, 0) * _ON_A_PAGE
    if words and not (page and first < len(timers)):
        page = first = 0
        folded = words.casefold()
        timers = [timer for timer in timers if folded in timer.title.casefold()]
    if not timers:
        text = call.say("reminders.none_like", words=words) if words else call.say("reminders.none")
        return FunctionResult.say("\n".join([text, *elsewhere]), data=[])
    shown = timers if words and not page else timers[first : first + _ON_A_PAGE]
    lines = [call.say("reminders.title", count=len(timers)), *await lines_of(shown, asker, reminders, call)]
    rest = len(timers) - first - len(shown)
    if rest:
        lines.append(call.say("reminder_pages.more", count=rest, command=f"/reminders {max(page, 1) + 1}"))
    lines += elsewhere
    return FunctionResult.say("\n".join(lines), data=[data_of(timer) for timer in timers])


async def _elsewhere(asker: Requester, reminders: Reminders, links: MemberLinks, call: Call) -> list[str]:
    """Lines for the first reminders in the private chats of the asker's linked accounts; empty if there are none."""
    lines: list[str] = []
    for account in await links.others_of(asker.member):
        theirs = replace(asker, chat=account.chat, member=account.member)
        timers = [one for one in await reminders.of(theirs) if is_in_own_words(one, account.member)]
        if timers:
            lines.append(call.say("reminders.elsewhere", name=account.name, member=account.member.key))
            lines += await lines_of(timers[:_ON_A_PAGE], theirs, reminders, call)
    return lines


@_changes(
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
    ask={"which": "@reminders.ask_which"},
)
async def reminder_change(
    context: MessageContext, args: ChangeArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Change the text or the time of a reminder; times are interpreted in the reminder's time zone."""
    asker = asker_of(context, call, is_time_new=call.answered == "when")
    if args.time.is_empty and not (args.text or "").strip():
        known = {"which": args.which}
        return question(call, "reminder_change", "reminders.nothing_to_change", "when", known)
    try:
        timer = only(await reminders.select(asker, args.which))
    except SeveralReminders as problem:
        return await choose(problem, args.which, asker, reminders, call)
    if not is_own_affair(timer, asker.member):
        require_mine(timer, asker)
        return await call.invoke("reminder_change_of_others", _raw(args, timer))
    return await _changed(asker, timer, args, reminders, call)


@_changes(
    description="Change a reminder that is for others or for everybody in the group",
    touches="reaches_out",
    offered_to=[],
)
async def reminder_change_of_others(
    context: MessageContext, args: ChangeArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Change a reminder for others. Only called by `reminder_change`, so that settings can restrict it separately."""
    asker = asker_of(context, call)
    return await _changed(asker, only(await reminders.select(asker, args.which)), args, reminders, call)


async def _changed(
    asker: Requester, timer: Timer, args: ChangeArguments, reminders: Reminders, call: Call
) -> FunctionResult:
    """Result of the change, or the question for an exact time."""
    try:
        changed, plan = await reminders.change(asker, timer, one_line(args.text or ""), args.time, call_key=call.key)
    except (TimeNotUnderstood, BadRule) as problem:
        result = failed(problem, reminders, call)
        if result.error is None or not needs_exact_time(problem):
            return result
        now = (await reminders.now_of(asker)).astimezone(timer.timezone)
        known = {"which": args.which, "text": args.text}
        choices = time_choices(problem, now, reminders, call)
        return asked(result.error.text, "reminder_change", "when", known, choices)
    if plan is None:
        line = (await lines_of([changed], asker, reminders, call))[0]
    else:
        now, texts = reminders.now(), call.profile.texts
        line = confirmation("reminders.changed", changed, plan, by=asker.member, now=now, texts=texts)
    return mark_outside([timer, changed], asker, FunctionResult.say(line, data=data_of(changed)))


def _raw(args: ChangeArguments, timer: Timer) -> dict[str, Any]:
    """Raw arguments for exactly this reminder: those given, with its number as `which`."""
    return {**args.model_dump(mode="json", exclude_defaults=True), "which": str(timer.number)}


class DeleteAllArguments(BaseModel, frozen=True, extra="forbid"):
    """No arguments."""


@_changes(
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
    ask={"which": "@reminders.ask_which"},
)
async def reminder_delete(
    context: MessageContext, which: _Which, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Delete reminders by number or text: all matching ones, or none on an error."""
    if means_all(which):
        return await call.invoke("reminder_delete_all", {})
    asker = asker_of(context, call)
    before = await reminders.removed_by(context.chat, call.key, f"{call.key}.0")
    if before:
        return _removed(before, asker, call)
    try:
        timers = await reminders.select(asker, which)
    except SeveralReminders as problem:
        return await choose(problem, which, asker, reminders, call)
    for timer in timers:
        require_mine(timer, asker)
    if not all(is_own_affair(timer, asker.member) for timer in timers):
        numbers = " ".join(str(timer.number) for timer in timers)
        return await call.invoke("reminder_delete_of_others", {"which": numbers})
    return _removed(await reminders.remove(asker, timers, call_key=call.key), asker, call)


@_changes(
    description="Delete reminders that are for others or for everybody in the group",
    touches="reaches_out",
    offered_to=[],
)
async def reminder_delete_of_others(
    context: MessageContext, which: _Which, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Delete reminders for others. Only called by `reminder_delete`, so that settings can restrict it separately."""
    asker = asker_of(context, call)
    removed = await reminders.remove(asker, await reminders.select(asker, which), call_key=call.key)
    return _removed(removed, asker, call)


@_changes(
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
    touches="stays_here",
    confirm="@reminders.confirm_all",
)
async def reminder_delete_all(
    context: MessageContext, args: DeleteAllArguments, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Delete all reminders that the asker has set in this chat"""
    asker = asker_of(context, call)
    before = await reminders.removed_by(context.chat, call.key)
    if before:
        return _removed(before, asker, call)
    timers = [timer for timer in await reminders.of(asker) if timer.owner == asker.member]
    removed = await reminders.remove(asker, timers, call_key=call.key)
    if not removed:
        return FunctionResult.say(call.say("reminders.none"), data=[])
    return _removed(removed, asker, call)


def _removed(removed: Sequence[Removed], asker: Requester, call: Call) -> FunctionResult:
    timers = [one.timer for one in removed]
    being_sent = [one.timer for one in removed if one.is_being_sent]
    if len(timers) > 1:
        numbers = ", ".join(f"#{timer.number} {timer.title}".strip() for timer in timers)
        lines = [call.say("reminders.deleted_all", numbers=numbers)]
    else:
        lines = [call.say("reminders.deleted", number=timer.number, text=timer.title) for timer in timers]
    lines += [call.say("reminders.being_said", number=timer.number, text=timer.title) for timer in being_sent]
    result = FunctionResult.say("\n".join(lines), data={"deleted": [timer.number for timer in timers]})
    return mark_outside(timers, asker, result)
