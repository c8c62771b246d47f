"""Timer: a function to run once or repeatedly, and the decision on each due occurrence."""

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
    """Kind of a timer. Each kind has its own numbers in a chat."""

    REMINDER = "reminder"
    SCHEDULE = "schedule"


class TimerState(StrEnum):
    """Lifecycle state of a timer."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"  # its last occurrence is over
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Draft:
    """A timer to be created, without number and state."""

    kind: TimerKind
    bot: str
    chat: ChatRef
    is_group: bool
    private_to: MemberRef | None
    """The only member who may see it and its messages."""
    owner: MemberRef
    """Member whose current rights the run has."""
    owner_name: str
    members: tuple[tuple[MemberRef, str], ...]
    """Recipients with their names; empty: everybody in the chat."""
    function: str
    arguments: JsonObject
    """Raw arguments of the function; validated when it runs."""
    title: str
    rule: Rule
    zone: str
    """IANA name of the zone of the rule's wall times."""
    source: str = ""
    """Declaration in the settings, as `schedules.NAME`; empty if a member requested it."""


@dataclass(frozen=True, slots=True)
class Timer:
    """A stored timer, as read from its row; a change does not update it."""

    id: int
    number: int
    """Number shown to members; unique for a kind in a chat."""
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
    """Number of its occurrences that are over."""
    created_at: datetime
    """In UTC, as all times here."""
    next_at: datetime | None
    """The next occurrence of its rule; None if it is paused or has ended."""
    snoozed_until: datetime | None
    """Time until which the last occurrence was snoozed."""

    @property
    def soonest(self) -> datetime | None:
        """Its next time, by rule or snoozed, the earlier one; None if it has no next occurrence."""
        return min((at for at in (self.next_at, self.snoozed_until) if at is not None), default=None)

    @property
    def timezone(self) -> ZoneInfo:
        """The zone of its wall times; UTC if this machine does not know it."""
        try:
            return ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError):
            return ZoneInfo("UTC")

    def concerns(self, member: MemberRef) -> bool:
        """Whether the member owns it or is a recipient."""
        return member == self.owner or any(member == one for one, _ in self.members)


def draft_values(draft: Draft) -> dict[str, Any]:
    """The columns of the draft's row by name, without id, number, state and times."""
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
    """The Timer in a row, which also has `next_ms` and `snoozed_ms`."""
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
    """`ms` milliseconds since 1970 as a datetime in UTC."""
    return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)


def ms_of(at: datetime) -> int:
    """`at` (aware) in milliseconds since 1970 UTC."""
    whole = int(at.replace(microsecond=0).timestamp())
    return whole * 1000 + at.microsecond // 1000


def json_text(value: object) -> str:
    """`value` as JSON for a column."""
    return orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class OccurrenceTime:
    """One occurrence of a timer, as stored: the text of its wall time, and its due time in milliseconds since 1970
    UTC."""

    wall: str
    due_ms: int


@dataclass(frozen=True, slots=True)
class OccurrenceDecision:
    """Decision on a due occurrence: dispatch it or count it as missed, and the next one."""

    dispatches: bool
    """False: it was missed."""
    occurrence: OccurrenceTime
    """The occurrence that is over; of several missed ones the latest."""
    passed: int
    """Number of occurrences of the rule that are over with it."""
    next: OccurrenceTime | None
    """The rule's next occurrence; None if there is none or it has its own row."""


def decide(
    row: Mapping[str, Any], now: datetime, recurring_late: timedelta, over: Collection[str] = frozenset()
) -> OccurrenceDecision:
    """Decide on the occurrence in `row` (of `services.store.turns.due.row`), which is due at `now`. Single and snoozed
    occurrences are always dispatched; of a recurring timer only the latest, if it is at most `recurring_late` late.
    `over`: occurrences of the rule from this one on that are over. Raises ZoneInfoNotFoundError and ValueError for a
    zone or rule unknown to this machine."""
    moment = OccurrenceTime(row["wall"], row["due_ms"])
    if row["snoozed"]:
        return OccurrenceDecision(True, moment, 0, None)
    rule = rule_from_json(orjson.loads(row["rule"]))
    if isinstance(rule.when, Once):
        return OccurrenceDecision(True, moment, 1, None)
    zone = ZoneInfo(row["zone"])
    first = Occurrence(occurrence_of(moment.wall, zone).wall, at_ms(moment.due_ms))
    left = None if rule.count is None else rule.count - row["done"]
    latest, passed = missed(rule, zone, first, now, left=left)
    wall = moment.wall if latest is first else occurrence_text(rule, latest)
    dispatches = now - latest.at <= recurring_late and wall not in over
    following = next_occurrence(rule, zone, latest.at, row["done"] + passed, over)
    return OccurrenceDecision(dispatches, OccurrenceTime(wall, ms_of(latest.at)), passed, following)


def next_occurrence(
    rule: Rule, zone: ZoneInfo, after: datetime, done: int, over: Collection[str] = frozenset()
) -> OccurrenceTime | None:
    """The first occurrence of `rule` after `after` that is not in `over`; None after the last, or if the rule's count
    is reached with `done` past ones."""
    found = next_after(rule, zone, after, done=done)
    while found is not None and (wall := occurrence_text(rule, found)) in over:
        found = next_after(rule, zone, found.at, done=done)
    return None if found is None else OccurrenceTime(wall, ms_of(found.at))
