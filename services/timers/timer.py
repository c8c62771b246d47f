"""Timer: a function to run at a time, once or repeatedly, and what follows from each occurrence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson

from services.refs import ChatRef, JsonObject, MemberRef
from services.store.port import Row
from services.times.recurrence import (
    Occurrence,
    Once,
    Rule,
    missed,
    next_after,
    occurrence_of,
    occurrence_text,
    rule_from_json,
    rule_to_json,
)


class TimerKind(StrEnum):
    """What people call it. Each kind has its own numbers in a chat."""

    REMINDER = "reminder"
    SCHEDULE = "schedule"


class TimerState(StrEnum):
    """Where a timer is in its life."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"  # its last moment is over
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Draft:
    """A timer as it is asked for."""

    kind: TimerKind
    bot: str
    chat: ChatRef
    is_group: bool
    private_to: MemberRef | None
    """Nobody else is shown it, nor what it says."""
    owner: MemberRef
    """It runs with this member's rights, as they are when it does."""
    owner_name: str
    members: tuple[tuple[MemberRef, str], ...]
    """Whom it is for, with their names; empty: everybody in the chat."""
    function: str
    arguments: JsonObject
    """As the function takes them raw; checked when it runs."""
    title: str
    rule: Rule
    zone: str
    """The IANA name of the zone that the rule's wall times are in."""
    source: str = ""
    """What of the settings declares it, as `schedules.NAME`; empty where a member asked for it."""


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer as it is kept."""

    id: int
    number: int
    """What people call it by: small, given once in a chat to one of each kind."""
    state: TimerState
    kind: TimerKind
    bot: str
    chat: ChatRef
    is_group: bool
    private_to: MemberRef | None
    owner: MemberRef
    owner_name: str
    members: tuple[tuple[MemberRef, str], ...]
    function: str
    arguments: JsonObject
    title: str
    rule: Rule
    zone: str
    source: str
    done: int
    """How many of its moments are over."""
    created_at: datetime
    """UTC, as all instants here."""
    next_at: datetime | None
    """The next moment of its rule; None while it is paused and once it has ended."""
    snoozed_until: datetime | None
    """The moment to which the last one was put off."""

    @property
    def soonest(self) -> datetime | None:
        """When it speaks next."""
        return min((at for at in (self.next_at, self.snoozed_until) if at is not None), default=None)

    @property
    def timezone(self) -> ZoneInfo:
        """The zone of its wall times; UTC where this machine does not know it."""
        try:
            return ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError):
            return ZoneInfo("UTC")

    def concerns(self, member: MemberRef) -> bool:
        """Whether it is the member's own, or is for them."""
        return member == self.owner or any(member == one for one, _ in self.members)


def draft_values(draft: Draft) -> dict[str, Any]:
    """The columns of the draft's row."""
    return {
        "kind": draft.kind.value,
        "bot": draft.bot,
        "chat": draft.chat.key,
        "is_group": int(draft.is_group),
        "private_to": draft.private_to.key if draft.private_to else None,
        "owner": draft.owner.key,
        "owner_name": draft.owner_name,
        "members": json_text([[*member[:3], name] for member, name in draft.members]),
        "function": draft.function,
        "arguments": json_text(draft.arguments),
        "title": draft.title,
        "rule": json_text(rule_to_json(draft.rule)),
        "zone": draft.zone,
        "source": draft.source,
    }


def timer_of(row: Row) -> Timer:
    """The timer in a row, which has `next_ms` and `snoozed_ms` beside its columns."""
    return Timer(
        id=row["id"],
        number=row["number"],
        state=TimerState(row["state"]),
        kind=TimerKind(row["kind"]),
        bot=row["bot"],
        chat=ChatRef.parse(row["chat"]),
        is_group=bool(row["is_group"]),
        private_to=MemberRef.parse(row["private_to"]) if row["private_to"] else None,
        owner=MemberRef.parse(row["owner"]),
        owner_name=row["owner_name"],
        members=tuple((MemberRef(*one[:3]), one[3]) for one in orjson.loads(row["members"])),
        function=row["function"],
        arguments=orjson.loads(row["arguments"]),
        title=row["title"],
        rule=rule_from_json(orjson.loads(row["rule"])),
        zone=row["zone"],
        source=row["source"],
        done=row["done"],
        created_at=at_ms(row["created_ms"]),
        next_at=None if row["next_ms"] is None else at_ms(row["next_ms"]),
        snoozed_until=None if row["snoozed_ms"] is None else at_ms(row["snoozed_ms"]),
    )


def at_ms(ms: int) -> datetime:
    """The instant of that many milliseconds since 1970, in UTC."""
    return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)


def ms_of(at: datetime) -> int:
    """The milliseconds from 1970 to the instant `at`."""
    whole = int(at.replace(microsecond=0).timestamp())
    return whole * 1000 + at.microsecond // 1000


def json_text(value: object) -> str:
    """`value` as it stands in a column."""
    return orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a timer, as it is kept."""

    wall: str
    due_ms: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a moment that has come."""

    says: bool
    """False: it is missed."""
    moment: Moment
    """The moment that is over with it: of several that were missed the latest."""
    passed: int
    """How many of its rule's moments are over with it."""
    next: Moment | None
    """The next one of its rule; None where there is none, or it stands beside this one."""


def decide(
    row: Mapping[str, Any], now: datetime, recurring_late: timedelta, been: Collection[str] = frozenset()
) -> Decision:
    """What becomes of the moment in `row` (a row of `services.store.turns.due.row`), which is due at `now`. What
    happens once and what was put off is always said; of what happens again and again the latest moment, when it is no
    longer ago than `recurring_late`. `been`: moments of the rule from the row's on that are over already. Raises
    ZoneInfoNotFoundError and ValueError for a zone or a rule that this machine does not know."""
    moment = Moment(row["wall"], row["due_ms"])
    if row["snoozed"]:
        return Decision(True, moment, 0, None)
    rule = rule_from_json(orjson.loads(row["rule"]))
    if isinstance(rule.when, Once):
        return Decision(True, moment, 1, None)
    zone = ZoneInfo(row["zone"])
    first = Occurrence(occurrence_of(moment.wall, zone).wall, at_ms(moment.due_ms))
    left = None if rule.count is None else rule.count - row["done"]
    latest, passed = missed(rule, zone, first, now, left=left)
    wall = moment.wall if latest is first else occurrence_text(rule, latest)
    says = now - latest.at <= recurring_late and wall not in been
    following = next_moment(rule, zone, latest.at, row["done"] + passed, been)
    return Decision(says, Moment(wall, ms_of(latest.at)), passed, following)


def next_moment(
    rule: Rule, zone: ZoneInfo, after: datetime, done: int, been: Collection[str] = frozenset()
) -> Moment | None:
    """The first moment of `rule` after `after` that is not among those that have been; None when there is none."""
    found = next_after(rule, zone, after, done=done)
    while found is not None and (wall := occurrence_text(rule, found)) in been:
        found = next_after(rule, zone, found.at, done=done)
    return None if found is None else Moment(wall, ms_of(found.at))
