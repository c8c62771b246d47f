"""Reminders: set them, send them when due, snooze and complete them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema

from config.chat_settings import DEFAULT_LAYER
from config.terms import is_timezone
from function_calls.call import Call, Path
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
    failed,
    is_mentioned,
    mark_outside,
    needs_exact_time,
    question,
    time_choices,
)
from function_calls.spec import Choice, FunctionResult, Resumed
from services.chats.members import KnownMember, KnownMembers, called
from services.patterns import one_line
from services.refs import ErrorCode, JsonObject, Role
from services.timers.reminders import (
    Plan,
    ReminderRequest,
    Reminders,
    Requester,
    SeveralReminders,
    confirmation,
    reminder_text,
)
from services.timers.timer import Timer
from services.times.places import Places, UnknownPlace
from services.times.recurrence import BadRule
from services.times.reminder_lines import ME, US, read_line
from services.times.requested_times import RequestedTime, TimeNotUnderstood, requested_time
from services.times.time_formatting import amount, distance, moment

_changes = partial(tool_function, tags="reminder", touches="stays_here", effect="idempotent")
_Due = Annotated[str, Field(description="What to remind of", min_length=1, max_length=500)]
_Snooze = Annotated[str | None, Field(description="How long, or until when; absent: 10 minutes", max_length=300)]
_Which = Annotated[str | None, Field(description=f"{WHICH}; absent: the last one that was said", max_length=300)]


@tool_function(
    description="Say a reminder whose time has come",
    tags="reminder",
    offered_to=["timer"],
    touches="stays_here",
    effect="read",
)
async def remind(context: MessageContext, text: _Due, *, reminders: Reminders, call: Call) -> FunctionResult:
    """Send a due reminder to its recipients, with buttons to snooze or complete it. Empty if it is deleted by now."""
    timer = await reminders.of_id(context.timer.timer_id) if context.timer is not None else None
    if timer is None:
        return FunctionResult()
    may_call_all = context.sender.role in Role.at_least(Role.MODERATOR)
    said, mentions = reminder_text(timer, text, call.profile.texts, may_call_all=may_call_all)
    data = {"reminder": timer.number, "text": text}
    return FunctionResult.say(said, data=data, mentions=mentions, choices=_choices(timer, reminders, call))


def _choices(timer: Timer, reminders: Reminders, call: Call) -> tuple[Choice, ...]:
    """Buttons to snooze the reminder for the default time, an hour or until tomorrow, or to complete it."""
    minutes = round(reminders.snooze_for.total_seconds() / 60)
    return (
        Choice(amount(minutes * 60, call.profile.texts), f"/snooze {timer.number} {minutes} minutes"),
        Choice(amount(3600, call.profile.texts), f"/snooze {timer.number} 1 hour"),
        Choice(call.say("reminders.snooze_tomorrow"), f"/snooze {timer.number} tomorrow"),
        Choice(call.say("reminders.done_label"), f"/reminder done {timer.number}"),
    )


@_changes(
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
)
async def reminder_snooze(
    context: MessageContext, when: _Snooze = None, which: _Which = None, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Repeat a reminder later, without changing its schedule."""
    asker, timer = asker_of(context, call), None
    try:
        timer, until = await reminders.selected_or_last(asker, which or "", when or "")
        if timer is None:
            return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("reminders.nothing_said"))
        snoozed = await reminders.snooze(asker, timer, until, call_key=call.key)
    except SeveralReminders as problem:
        return await choose(problem, which or "", asker, reminders, call)
    except (TimeNotUnderstood, BadRule) as problem:
        result = failed(problem, reminders, call)
        choices = time_choices(problem, await reminders.now_of(asker), reminders, call)
        if not choices or result.error is None or timer is None:
            return result
        return asked(result.error.text, "reminder_snooze", "when", {"which": str(timer.number)}, choices)
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
    return mark_outside([snoozed], asker, FunctionResult.say(text, data=data))


@_changes(
    description="Note that what a reminder just said is done",
    commands=("reminder done", "提醒 完成"),
    offered_to=["command"],
)
async def reminder_done(
    context: MessageContext, which: _Which = None, *, reminders: Reminders, call: Call
) -> FunctionResult:
    """Complete a reminder and cancel its snooze. Repeating reminders continue."""
    asker = asker_of(context, call)
    try:
        timer, _ = await reminders.selected_or_last(asker, which or "", "")
        if timer is None:
            return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("reminders.nothing_said"))
        await reminders.finish(asker, timer, call_key=call.key)
    except SeveralReminders as problem:
        return await choose(problem, which or "", asker, reminders, call)
    result = FunctionResult.say(call.say("reminders.done", number=timer.number, text=timer.title))
    return mark_outside([timer], asker, result)


class ReminderItem(BaseModel, frozen=True, extra="forbid"):
    """A reminder to create."""

    text: str = Field(description="What to remind of, without the time", min_length=1, max_length=500, pattern=r"\S")
    when: str | None = Field(default=None, description=f"When, and how often, {WHEN}", max_length=300)
    start: Start = None
    repeat: Repeated = None
    every: int | None = Field(
        default=None,
        description="Every so many of these; minutes of an interval",
        ge=1,
        le=525_600,
        json_schema_extra=OTHER_FORM,
    )
    cron: Cron = None
    end: End = None
    count: int | None = Field(default=None, description="How many times in all", ge=1, le=10_000)
    who: list[str] | None = Field(
        default=None, description="Names, or `all` for the group; absent: the asker", max_length=50
    )

    @property
    def time(self) -> RequestedTime:
        """The requested time of the reminder, not yet parsed."""
        return requested_time(self.when, self.start, self.repeat, self.every, self.cron, self.end, self.count)


_MOST_ZONES = 8
_FURTHER: JsonObject = {"type": "array", "items": {"type": "object"}}


class CreateArguments(ReminderItem):
    more: Annotated[list[ReminderItem], WithJsonSchema(_FURTHER)] | None = Field(
        default=None, description="Further reminders of the same message, each with the fields above", max_length=19
    )

    @property
    def items(self) -> list[ReminderItem]:
        """All requested reminders: this one and `more`."""
        return [self, *(self.more or ())]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A requested reminder and its recipients; an empty tuple means everybody in the chat."""

    item: ReminderItem
    members: tuple[KnownMember, ...]

    def is_own(self, asker: Requester) -> bool:
        """Whether the asker is the only recipient."""
        return [one.ref for one in self.members] == [asker.member]


@_changes(
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
    ask={"text": "@reminders.ask_text", "when": "@reminders.ask_when"},
)
async def reminder_create(
    context: MessageContext,
    args: CreateArguments,
    *,
    reminders: Reminders,
    members: KnownMembers,
    places: Places,
    call: Call,
) -> FunctionResult:
    """Set reminders for the member, and for others with `reminder_for_others`, which a model may call only on the
    asker's words. The first one with a wall time asks for the member's time zone if neither the chat nor a platform
    knows it."""
    says_when = call.answered == "when" or (call.answered == "text" and args.time.is_empty)
    asker = asker_of(context, call, is_time_new=says_when)
    before = await reminders.added_by(call.key, f"{call.key}.0")
    if before:
        return _result_texts(before, [None] * len(before), asker, reminders, call)
    if call.resumed is not None:
        unclear = await _take_zone(call.resumed, asker, reminders, places, call)
        if unclear is not None:
            return unclear
    known = await members.of(context.chat) if context.is_group else ()
    read = await _parsed_items(args, asker, [one.name for one in known], reminders, call)
    if isinstance(read, FunctionResult):
        return read
    items = [_Asked(item, _for_whom(item, asker, known, context)) for item in read]
    if not all(one.is_own(asker) for one in items):
        return await call.invoke("reminder_for_others", _raw(read))
    has_default_zone = call.profile.layers.get("timezone", DEFAULT_LAYER) == DEFAULT_LAYER
    can_ask = has_default_zone and call.path in (Path.COMMAND, Path.MODEL)
    if can_ask and any([await reminders.needs_zone(asker, one.time) for one in read]):
        return _zone_question("reminders.ask_zone", asker, call, (str(asker.home),))
    return await _set(asker, items, reminders, call)


def _zone_question(key: str, asker: Requester, call: Call, zones: Sequence[str], place: str = "") -> FunctionResult:
    """Ask the member for a time zone, with buttons for `zones`."""
    text = call.say(key, place=place, zone=str(asker.home))
    return FunctionResult.ask(text, choices=[Choice(zone, zone) for zone in zones[:_MOST_ZONES]])


async def _take_zone(
    resumed: Resumed, asker: Requester, reminders: Reminders, places: Places, call: Call
) -> FunctionResult | None:
    """Set the member's time zone to the answered one; None if that is done. Asks again if the answer names no place or
    several zones, and fails if the question was cancelled or expired."""
    if resumed.kind != "answered":
        return FunctionResult.fail(ErrorCode.CANCELLED, call.say("reminders.no_zone"))
    try:
        zones = list(dict.fromkeys(str(one.zone) for one in places.find(resumed.answer)))
    except UnknownPlace:
        zones = []
    if len(zones) == 1 and is_timezone(zones[0]):
        await reminders.set_zone(asker.member, zones[0])
        return None
    return _zone_question("reminders.which_zone", asker, call, zones or (str(asker.home),), resumed.answer)


@_changes(
    description="Set reminders for other members or for everybody in the group", touches="reaches_out", offered_to=[]
)
async def reminder_for_others(
    context: MessageContext, args: CreateArguments, *, reminders: Reminders, members: KnownMembers, call: Call
) -> FunctionResult:
    """Set reminders for others. Only called by `reminder_create`; settings may restrict it to some roles."""
    asker = asker_of(context, call)
    known = await members.of(context.chat) if context.is_group else ()
    items = [_Asked(item, _for_whom(item, asker, known, context)) for item in args.items]
    return await _set(asker, items, reminders, call)


async def _parsed_items(
    args: CreateArguments, asker: Requester, names: Sequence[str], reminders: Reminders, call: Call
) -> list[ReminderItem] | FunctionResult:
    """Each reminder with its time, extracted from its text if necessary; or the question for a missing part."""
    now = await reminders.now_of(asker)
    items: list[ReminderItem] = []
    for number, item in enumerate(args.items):
        if not item.time.is_empty:
            items.append(item)
            continue
        line = read_line(item.text, now, reminders.times, names)
        who = item.who if item.who is not None else list(line.who) or None
        parsed = item.model_copy(update={"text": line.text or item.text, "when": line.when or None, "who": who})
        items.append(parsed)
        if line.text and line.when:
            continue
        if number:
            problem = call.say("reminders.ask_when" if line.text else "reminders.ask_text")
            text = call.say("reminders.in_item", text=item.text, problem=problem)
            return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["more"])
        missing = "when" if line.text else "text"
        raw = {**_raw([parsed, *args.items[1:]])}
        raw.pop(missing, None)
        return question(call, "reminder_create", f"reminders.ask_{missing}", missing, raw)
    return items


def _for_whom(
    item: ReminderItem, asker: Requester, known: Sequence[KnownMember], context: MessageContext
) -> tuple[KnownMember, ...]:
    """Recipients of `item`, by default the asker; an empty tuple means everybody in the chat. Raises UnknownMember for
    a name that nobody has, and SeveralMembers for an ambiguous one."""
    me = KnownMember(asker.member, asker.name)
    # The history may have the asker under a former name.
    here = [*(one for one in known if one.ref != me.ref), me]
    found: dict[str, KnownMember] = {}
    for name in item.who or ["me"]:
        folded = " ".join(name.split()).casefold().removeprefix("@")
        if folded in US and asker.is_group and not asker.is_private:
            return ()
        if folded in ME or folded in US:
            one = me
        else:
            one = called(name, here, context.mentions, as_mention=is_mentioned(name, context, except_in=item.text))
        found[one.ref.key] = one
    return tuple(found.values())


async def _set(asker: Requester, items: Sequence[_Asked], reminders: Reminders, call: Call) -> FunctionResult:
    """Create all reminders, or none, and report their times. Problems become failed results, or a question if an exact
    time is needed."""
    plans: list[Plan] = []
    for one in items:
        try:
            plans += await reminders.plans(asker, ReminderRequest(one_line(one.item.text), one.item.time), one.members)
        except (TimeNotUnderstood, BadRule) as problem:
            result = failed(problem, reminders, call)
            if len(items) > 1 and result.error is not None:
                text = call.say("reminders.in_item", text=one.item.text, problem=result.error.text)
                return result.with_error_text(text)
            if needs_exact_time(problem) and result.error is not None:
                raw = _raw([one.item])
                for name in ("when", "start"):
                    raw.pop(name, None)
                choices = time_choices(problem, await reminders.now_of(asker), reminders, call)
                return asked(result.error.text, "reminder_create", "when", raw, choices)
            return result
    try:
        timers = await reminders.create(asker, plans, call_key=call.key)
    except (TimeNotUnderstood, BadRule) as problem:
        return failed(problem, reminders, call)
    return _result_texts(timers, plans, asker, reminders, call)


def _result_texts(
    timers: Sequence[Timer], plans: Sequence[Plan | None], asker: Requester, reminders: Reminders, call: Call
) -> FunctionResult:
    now, texts = reminders.now(), call.profile.texts
    lines = [
        confirmation("reminders.set", timer, plan, by=asker.member, now=now, texts=texts)
        for timer, plan in zip(timers, plans, strict=True)
    ]
    if asker.private_to is not None and any(timer.private_to is None for timer in timers):
        lines.append(call.say("reminders.in_the_open"))
    undo = call.undo(f"/unremind {timers[0].number}") if len(timers) == 1 else ()
    return FunctionResult.say("\n".join(lines), data=[_data(timer) for timer in timers], choices=undo)


def _raw(items: Sequence[ReminderItem]) -> dict[str, Any]:
    """The items as raw arguments: those of the first, with the others as `more`."""
    first, *more = (one.model_dump(mode="json", exclude_defaults=True, exclude={"more"}) for one in items)
    return {**first, **({"more": more} if more else {})}


def _data(timer: Timer) -> JsonObject:
    at = timer.next_at.astimezone(timer.timezone).isoformat(timespec="minutes") if timer.next_at else None
    return {"reminder": timer.number, "text": timer.title, "at": at, "zone": timer.zone}
