"""Builders of valid timer drafts with typical defaults."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from services.refs import ChatRef, MemberRef
from services.timers.timer import Draft, TimerKind
from services.times.recurrence import Calendar, Every, Once, Rule

ANN = MemberRef("test", "bot", "ann")
BOB = MemberRef("test", "bot", "bob")
FAMILY = ChatRef("test", "bot", "family")
DAILY = Rule(Calendar("0 9 * * *"))


def once(at: datetime) -> Rule:
    """At the instant `at`, in UTC."""
    return Rule(Once(at.replace(tzinfo=None)))


def every(seconds: int, since: datetime) -> Rule:
    """Every `seconds` seconds, starting after `since`."""
    return Rule(Every(seconds, since))


def a_draft(title: str, rule: Rule | datetime, **changes: Any) -> Draft:
    """A draft by Ann in the family group: run `note` with the title as its text."""
    draft = Draft(
        kind=TimerKind.REMINDER,
        bot="default",
        chat=FAMILY,
        is_group=True,
        private_to=None,
        owner=ANN,
        owner_name="Ann",
        members=(),
        function="note",
        arguments={"text": title},
        title=title,
        rule=once(rule) if isinstance(rule, datetime) else rule,
        zone="UTC",
    )
    return replace(draft, **changes)


def later(now: datetime, **by: float) -> datetime:
    """`now` plus some time, such as `hours=1`."""
    return now + timedelta(**by)
