"""Setting reminders: for oneself, for others, for everybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.reminding import PROBLEMS, asked, asker_of, failed, is_mentioned, is_to_be_asked_again, question
from function_calls.spec import FunctionResult
from services.json_values import JsonObject
from services.known_members import KnownMember, KnownMembers, called
from services.refs import ErrorCode
from services.reminder_lines import ME, US, read_line
from services.reminder_plans import Asker, Plan, Wish, one_line
from services.reminder_words import was_set
from services.reminders import Reminders
from services.timer import Timer
from services.wished_times import Repeat, WishedTime, wished_time


class ReminderItem(BaseModel):
    """One reminder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(description="What to remind of, without the time", min_length=1, max_length=500, pattern=r"\S")
    when: str | None = Field(default=None, description="The time in the words that were used", max_length=300)
    start: str | None = Field(default=None, description="That time, or the first: 2026-01-31T17:00", max_length=40)
    repeat: Repeat | None = Field(default=None, description="How often; absent: once")
    every: int | None = Field(
        default=None, description="Every so many of these; minutes of an interval", ge=1, le=525_600
    )
    cron: str | None = Field(default=None, description="Cron rule of five fields", max_length=200)
    end: str | None = Field(default=None, description="ISO date of the last", max_length=40)
    count: int | None = Field(default=None, description="How many times in all", ge=1, le=10_000)
    who: list[str] | None = Field(
        default=None, description="Names, or `all` for the group; absent: whoever asks", max_length=50
    )

    @property
    def time(self) -> WishedTime:
        """When."""
        return wished_time(self.when, self.start, self.repeat, self.every, self.cron, self.end, self.count)


_FURTHER: JsonObject = {"type": "array", "items": {"type": "object"}}


class CreateArguments(ReminderItem):
    """One reminder, and further ones beside it."""

    more: Annotated[list[ReminderItem], WithJsonSchema(_FURTHER)] | None = Field(
        default=None, description="Further reminders of the same message, each with the fields above", max_length=19
    )

    @property
    def items(self) -> list[ReminderItem]:
        """All of them."""
        return [self, *(self.more or ())]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One reminder that is asked for, and for whom; nobody: everybody in the chat."""

    item: ReminderItem
    members: tuple[KnownMember, ...]

    def is_own(self, asker: Asker) -> bool:
        """Whether it is the asker's own affair."""
        return [one.ref for one in self.members] == [asker.member]


@tool_function(
    name="reminder_create",
    description="Set a reminder, once or again and again",
    examples=(
        "remind me to {text} {when}",
        "remind me {when} to {text}",
        "remind me about {text} {when}",
        "remind me of {text} {when}",
        "remind me that {text} {when}",
        "remind me {when} that {text}",
        "remind {who} to {text} {when}",
        "remind {who} {when} to {text}",
        "set a reminder to {text} {when}",
        "set a reminder for {when} to {text}",
        "create a reminder to {text} {when}",
        "set a reminder for {text} {when}",
        "i need a reminder to {text} {when}",
        "i need to be reminded to {text} {when}",
        "make a reminder for me to {text} {when}",
        "create a reminder",
        "i would like a reminder",
        "please don't let me forget to {text} {when}",
        "{when} remind me to {text}",
        "提醒我{when}{text}",
        "{when}提醒我{text}",
        "提醒我{text}",
        "{when}记得提醒我{text}",
        "设置一个{when}{text}的提醒",
    ),
    commands=("remind", "reminder", "提醒", "提醒我"),
    line="text",
    tags="reminder",
    touches="stays_here",
    effect="idempotent",
    ask={"text": "@reminders.ask_text", "when": "@reminders.ask_when"},
)
async def reminder_create(
    ctx: MessageContext, args: CreateArguments, *, reminders: Reminders, members: KnownMembers, call: Call
) -> FunctionResult:
    """Set one's own reminders; those for others go by way of `reminder_for_others`, where a tainted turn is asked."""
    says_when = call.answered == "when" or (call.answered == "text" and args.time.is_empty)
    asker = asker_of(ctx, call, is_time_new=says_when)
    before = await reminders.added_by(call.key, f"{call.key}.0")
    if before:
        return _told(before, [None] * len(before), asker, reminders, call)
    known = await members.of(ctx.chat) if ctx.is_group else ()
    read = await _taken_apart(args, asker, [one.name for one in known], reminders, call)
    if isinstance(read, FunctionResult):
        return read
    try:
        wanted = [_Asked(item, _for_whom(item, asker, known, ctx)) for item in read]
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    if not all(one.is_own(asker) for one in wanted):
        return await call.invoke("reminder_for_others", _raw(read))
    return await _set(asker, wanted, reminders, call)


@tool_function(
    name="reminder_for_others",
    description="Set reminders for other members or for everybody in the group",
    tags="reminder",
    touches="reaches_out",
    offered_to=[],
    effect="idempotent",
)
async def reminder_for_others(
    ctx: MessageContext, args: CreateArguments, *, reminders: Reminders, members: KnownMembers, call: Call
) -> FunctionResult:
    """Set reminders for others: only `reminder_create` calls it, and settings may keep it for some roles."""
    asker = asker_of(ctx, call)
    known = await members.of(ctx.chat) if ctx.is_group else ()
    items = args.items
    try:
        wanted = [_Asked(item, _for_whom(item, asker, known, ctx)) for item in items]
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    return await _set(asker, wanted, reminders, call)


async def _taken_apart(
    args: CreateArguments, asker: Asker, names: Sequence[str], reminders: Reminders, call: Call
) -> list[ReminderItem] | FunctionResult:
    """Every reminder with its own time, which may stand within the text; or the question for what is missing."""
    now = await reminders.now_of(asker)
    items: list[ReminderItem] = []
    for number, item in enumerate(args.items):
        if not item.time.is_empty:
            items.append(item)
            continue
        line = read_line(item.text, now, reminders.times, names)
        who = item.who if item.who is not None else list(line.who) or None
        taken = item.model_copy(update={"text": line.text or item.text, "when": line.when or None, "who": who})
        items.append(taken)
        if line.text and line.when:
            continue
        if number:
            problem = call.say("reminders.ask_when" if line.text else "reminders.ask_text")
            text = call.say("reminders.in_item", text=item.text, problem=problem)
            return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["more"])
        missing = "when" if line.text else "text"
        raw = {**_raw([taken, *args.items[1:]])}
        raw.pop(missing, None)
        return question(call, "reminder_create", f"reminders.ask_{missing}", missing, raw)
    return items


def _for_whom(
    item: ReminderItem, asker: Asker, known: Sequence[KnownMember], ctx: MessageContext
) -> tuple[KnownMember, ...]:
    """Those whom `item` is for; nobody: everybody in the chat. Raises UnknownMember and SeveralMembers."""
    me = KnownMember(asker.member, asker.name)
    # Who has written before stands in the history under the name of then.
    here = [*(one for one in known if one.ref != me.ref), me]
    found: dict[str, KnownMember] = {}
    for name in item.who or ["me"]:
        folded = " ".join(name.split()).casefold().removeprefix("@")
        if folded in US and asker.is_group and not asker.is_private:
            return ()
        if folded in ME or folded in US:
            one = me
        else:
            one = called(name, here, ctx.mentions, as_mention=is_mentioned(name, ctx, beside=item.text))
        found[one.ref.key] = one
    return tuple(found.values())


async def _set(asker: Asker, wanted: Sequence[_Asked], reminders: Reminders, call: Call) -> FunctionResult:
    """All of them, or none, with what was understood."""
    plans: list[Plan] = []
    for one in wanted:
        try:
            plans += await reminders.plans(asker, Wish(one_line(one.item.text), one.item.time), one.members)
        except PROBLEMS as problem:
            result = failed(problem, reminders, call)
            if len(wanted) > 1 and result.error is not None:
                text = call.say("reminders.in_item", text=one.item.text, problem=result.error.text)
                return result.with_error_text(text)
            if is_to_be_asked_again(problem) and result.error is not None:
                raw = _raw([one.item])
                raw.pop("when", None)
                return asked(result.error.text, "reminder_create", "when", raw)
            return result
    try:
        timers = await reminders.create(asker, plans, call_key=call.key)
    except PROBLEMS as problem:
        return failed(problem, reminders, call)
    return _told(timers, plans, asker, reminders, call)


def _told(
    timers: Sequence[Timer], plans: Sequence[Plan | None], asker: Asker, reminders: Reminders, call: Call
) -> FunctionResult:
    now, texts = reminders.now(), call.profile.texts
    lines = [
        was_set("reminders.set", timer, plan, by=asker.member, now=now, texts=texts)
        for timer, plan in zip(timers, plans, strict=True)
    ]
    if asker.private_to is not None and any(timer.private_to is None for timer in timers):
        lines.append(call.say("reminders.in_the_open"))
    return FunctionResult.say("\n".join(lines), data=[_data(timer) for timer in timers])


def _raw(items: Sequence[ReminderItem]) -> dict[str, Any]:
    """The items as raw arguments."""
    first, *more = (one.model_dump(mode="json", exclude_defaults=True, exclude={"more"}) for one in items)
    return {**first, **({"more": more} if more else {})}


def _data(timer: Timer) -> JsonObject:
    at = timer.next_at.astimezone(timer.timezone).isoformat(timespec="minutes") if timer.next_at else None
    return {"reminder": timer.number, "text": timer.title, "at": at, "zone": timer.zone}
