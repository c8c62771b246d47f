"""Shared code of the reminder handlers: the asker, and results for invalid requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import Field
from pydantic.config import JsonDict

from config.texts import Phrases
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import ArgumentQuestion, Choice, FunctionResult
from services.chats.members import times_mentioned
from services.refs import ErrorCode, JsonObject
from services.timers.reminders import (
    Reminders,
    Requester,
    SeveralReminders,
    in_list,
    is_in_own_words,
)
from services.timers.timer import Timer
from services.times import TimeProblem
from services.times.recurrence import BadRule, Once, Rule
from services.times.requested_times import Repeat, RequestedTime, TimeNotUnderstood, to_rule
from services.times.time_formatting import distance, in_words, moment

_JUST_NOW = timedelta(minutes=1)

BadTime = TimeNotUnderstood | BadRule
"""Problems with a requested time."""
WHICH = "Number, or words of what it says"
"""Description of the argument that selects a reminder."""
WHEN = "in English, Chinese or ISO 8601: 'in 20 minutes', '2026-01-31 17:00', 'every Monday at 9 until 1 March'"
"""Forms of a time, for the descriptions of arguments."""
OTHER_FORM: JsonDict = {"deprecated": True}
"""Marks arguments that state a time in another way than in words. They are accepted, but not offered to models."""
Start = Annotated[str | None, Field(description="That time, or the first", max_length=40, json_schema_extra=OTHER_FORM)]
Repeated = Annotated[Repeat | None, Field(description="How often; absent: once", json_schema_extra=OTHER_FORM)]
Cron = Annotated[
    str | None, Field(description="Cron rule of five fields", max_length=200, json_schema_extra=OTHER_FORM)
]
End = Annotated[str | None, Field(description="ISO date of the last", max_length=40, json_schema_extra=OTHER_FORM)]
_NEEDS_DETAIL = {TimeProblem.VAGUE: "vague", TimeProblem.AMBIGUOUS: "ambiguous"}


def asker_of(context: MessageContext, call: Call, *, is_time_new: bool = False) -> Requester:
    """The requesting member, chat and time. `is_time_new`: this message is the answer that states the time."""
    if is_time_new:
        call.set_request_time(context.sent_at)
    return Requester(
        chat=context.chat,
        is_group=context.is_group,
        is_private=context.private or not context.is_group,
        bot=context.bot,
        member=context.sender.ref,
        name=context.sender.name,
        role=context.sender.role,
        home=call.profile.timezone,
        asked_at=call.asked_at,
    )


def is_mentioned(name: str, context: MessageContext, *, except_in: str) -> bool:
    """Whether the message mentions `name` outside the text `except_in`. A mention inside the reminder's text does not
    select a recipient. Platforms report which members are mentioned, but not under which name."""
    return times_mentioned(name, context.text) > times_mentioned(name, except_in)


def question(call: Call, function: str, key: str, field: str, known: Mapping[str, Any]) -> FunctionResult:
    """Ask for the argument `field` with the text `key`; `known` are the raw arguments so far."""
    return asked(call.say(key), function, field, known)


def asked(
    text: str, function: str, field: str, known: Mapping[str, Any], choices: tuple[Choice, ...] = ()
) -> FunctionResult:
    """Ask for the argument `field` with `text`, which is the error if the argument was already requested."""
    failed = FunctionResult.fail(ErrorCode.MISSING_ARGUMENTS, text, [field])
    raw = {name: value for name, value in known.items() if value is not None}
    return FunctionResult(error=failed.error, question=ArgumentQuestion(text, function, raw, choices, field=field))


def time_choices(problem: BadTime, now: datetime, reminders: Reminders, call: Call) -> tuple[Choice, ...]:
    """Buttons for the possible meanings of an ambiguous time, with values that are not ambiguous. `now` is aware and in
    the zone of the time."""
    if not isinstance(problem, TimeNotUnderstood):
        return ()
    choices: list[Choice] = []
    for rule in problem.choices:
        label = in_words(rule, ZoneInfo(str(now.tzinfo)), now, call.profile.texts)
        value = f"{rule.when.wall:%Y-%m-%d %H:%M:%S}".removesuffix(":00") if isinstance(rule.when, Once) else label
        if isinstance(rule.when, Once) or _means(value, rule, now, reminders):
            choices.append(Choice(label, value))
    return tuple(choices)


def _means(words: str, rule: Rule, now: datetime, reminders: Reminders) -> bool:
    """Whether `words` are read as `rule`."""
    try:
        return to_rule(RequestedTime(words), reminders.times, now, reminders.default_time).rule == rule
    except TimeNotUnderstood:
        return False


def needs_exact_time(problem: BadTime) -> bool:
    """Whether the time was understood but is not exact enough."""
    return isinstance(problem, TimeNotUnderstood) and problem.problem in _NEEDS_DETAIL


def failed(problem: BadTime, reminders: Reminders, call: Call) -> FunctionResult:
    """Failed result that describes `problem`."""
    texts = call.profile.texts
    if isinstance(problem, BadRule):
        text = texts.say(f"reminders.bad.{problem.reason}")
    else:
        text = _time_described(problem, reminders, texts)
    return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["when"])


def _time_described(problem: TimeNotUnderstood, reminders: Reminders, texts: Phrases) -> str:
    words = " ".join(problem.what.split())
    match problem.problem:
        case TimeProblem.PAST if problem.at is not None and problem.at.tzinfo is not None:
            now = reminders.now()
            if now - problem.at < _JUST_NOW:
                return texts.say("reminders.past_words", said=words)
            return texts.say(
                "reminders.past",
                said=words,
                moment=moment(problem.at, problem.at.tzinfo, now, texts),
                distance=distance(problem.at, now, texts),
            )
        case TimeProblem.PAST:
            return texts.say("reminders.past_words", said=words)
        case TimeProblem.NO_SUCH:
            return texts.say("reminders.bad.no_such_date")
        case TimeProblem.SEVERAL:
            return texts.say("reminders.several_times", said=words)
        case TimeProblem.AMBIGUOUS if problem.choices:
            return texts.say("reminders.which_time", said=words)
        case TimeProblem.VAGUE | TimeProblem.AMBIGUOUS:
            return texts.say(f"reminders.{_NEEDS_DETAIL[problem.problem]}", said=words)
        case None:
            return texts.say("reminders.unreadable", said=words)


async def choose(
    problem: SeveralReminders, words: str, asker: Requester, reminders: Reminders, call: Call
) -> FunctionResult:
    """Failed result that lists the matching reminders."""
    lines = [call.say("reminders.several", words=words)]
    lines += await lines_of(problem.candidates[:10], asker, reminders, call)
    failure = FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, "\n".join(lines), ["which"])
    return mark_outside(problem.candidates, asker, failure)


def mark_outside(timers: Sequence[Timer], asker: Requester, result: FunctionResult) -> FunctionResult:
    """`result`, which contains the texts of `timers`, marked as outside unless all are in the asker's own words."""
    return replace(result, outside=not all(is_in_own_words(timer, asker.member) for timer in timers))


async def lines_of(timers: Sequence[Timer], asker: Requester, reminders: Reminders, call: Call) -> list[str]:
    """List entry for each timer, in the asker's time zone."""
    zone, now = await reminders.zone_of(asker.member, asker.home), reminders.now()
    return [in_list(one, of=asker.member, zone=zone, now=now, texts=call.profile.texts) for one in timers]


def data_of(timer: Timer) -> JsonObject:
    """Data of a timer for models: `reminder` (its number), `text`, `next` (ISO 8601 or None), `zone`, `by`."""
    return {
        "reminder": timer.number,
        "text": timer.title,
        "next": timer.next_at.isoformat(timespec="minutes") if timer.next_at else None,
        "zone": timer.zone,
        "by": timer.owner_name,
    }
