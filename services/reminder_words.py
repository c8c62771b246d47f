"""What is said about reminders: their time in the member's zone, and whatever is worth knowing about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo

from config.texts import Phrases
from services.moment_words import clock, distance, moment
from services.refs import MemberRef
from services.reminder_plans import Plan
from services.rule_words import in_words
from services.timer import Timer, TimerState
from services.wished_times import is_once

_CALLS_TO_ALL = re.compile(
    r"[@＠](?=(?:everyone|everybody|here|all|channel|room|group|team|online|所有人|全体|大家)(?![a-z0-9_]))",
    re.IGNORECASE,
)


def reminder_text(timer: Timer, text: str, texts: Phrases, *, may_call_all: bool) -> tuple[str, tuple[MemberRef, ...]]:
    """What the reminder says when its time has come, `text` being what it is about, and whom it mentions."""
    text = text if may_call_all else without_calls_to_all(text)
    if [ref for ref, _ in timer.members] != [timer.owner]:
        text = texts.say("reminders.said_by", text=text, name=without_calls_to_all(timer.owner_name))
    names = names_of([name for _, name in timer.members], texts)
    said = texts.say("reminders.say" if timer.is_group and names else "reminders.say_all", names=names, text=text)
    return said, tuple(ref for ref, _ in timer.members) if timer.is_group else ()


def was_set(key: str, timer: Timer, plan: Plan | None, *, by: MemberRef, now: datetime, texts: Phrases) -> str:
    """`key` of the texts with when, for whom and what, and what `plan` knows of how the time was understood."""
    said = texts.say(
        key,
        number=timer.number,
        whom=_whom(timer.members, by, texts),
        when=_when(timer, now, texts),
        text=without_calls_to_all(timer.title),
    )
    return "\n".join([said, *(_notes(plan, texts) if plan is not None else ())])


def _when(timer: Timer, now: datetime, texts: Phrases) -> str:
    at = timer.next_at or now
    values = {
        "moment": moment(at, timer.timezone, now, texts),
        "zone": timer.zone,
        "distance": distance(at, now, texts),
    }
    if is_once(timer.rule):
        return texts.say("reminders.once", **values)
    return texts.say("reminders.again", rule=in_words(timer.rule, timer.timezone, now, texts), **values)


def _notes(plan: Plan, texts: Phrases) -> list[str]:
    notes: list[str] = []
    if plan.time.assumed is not None:
        notes.append(texts.say("reminders.assumed", clock=clock(plan.time.assumed)))
    if plan.moved_to is not None:
        notes.append(texts.say("reminders.moved", clock=clock(plan.first.wall), shown=clock(plan.moved_to)))
    if plan.comes_twice:
        notes.append(texts.say("reminders.twice", clock=clock(plan.first.wall)))
    return notes


def in_list(timer: Timer, *, of: MemberRef, zone: tzinfo, now: datetime, texts: Phrases) -> str:
    """One line for the list of the member `of`, who keeps `zone`."""
    whom = (
        _whom(timer.members, of, texts)
        if timer.owner == of
        else texts.say("reminders.by", name=without_calls_to_all(timer.owner_name))
    )
    return texts.say(
        "reminders.line",
        number=timer.number,
        when=_when_next(timer, zone, now, texts),
        text=without_calls_to_all(timer.title),
        whom=whom,
    )


def _when_next(timer: Timer, zone: tzinfo, now: datetime, texts: Phrases) -> str:
    """When it comes next: in the reader's own zone, and which one it keeps where that is another."""
    kept = timer.timezone
    marks = texts.say("reminders.other_zone", zone=kept.key) if kept.key != str(zone) else ""
    if timer.snoozed_until is not None:
        marks += texts.say("reminders.snoozed_until", moment=moment(timer.snoozed_until, kept, now, texts))
    rule = in_words(timer.rule, kept, now, texts)
    if timer.state is TimerState.PAUSED:
        return texts.say("reminders.line_paused", rule=rule) + marks
    if timer.next_at is None:
        return texts.say("reminders.line_ended") + marks
    next_one = moment(timer.next_at, kept, now, texts)
    if is_once(timer.rule):
        away = distance(timer.next_at, now, texts)
        return texts.say("reminders.line_once", moment=next_one, distance=away) + marks
    return texts.say("reminders.line_again", rule=rule, moment=next_one) + marks


def _whom(members: Sequence[tuple[MemberRef, str]], owner: MemberRef, texts: Phrases) -> str:
    """For whom, unless it is for the one who is told alone."""
    if not members:
        return texts.say("reminders.for_all")
    if [ref for ref, _ in members] == [owner]:
        return ""
    return texts.say("reminders.for_members", names=names_of([name for _, name in members], texts))


def without_calls_to_all(text: str) -> str:
    """`text` in which no network finds a call to everybody in the chat."""
    return _CALLS_TO_ALL.sub("＠", text)


def names_of(names: Sequence[str], texts: Phrases) -> str:
    """`Ann`, `Ann and Bob`, `Ann, Bob and Cy`; a name calls nobody, whatever it is."""
    names = [without_calls_to_all(name) for name in names]
    if len(names) < 2:
        return "".join(names)
    return texts.say("reminders.and").join([texts.say("rules.comma").join(names[:-1]), names[-1]])
