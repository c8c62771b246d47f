"""Timer: a function that is to run at its time, once or again and again; as it is asked for, and as it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson

from services.json_values import JsonObject
from services.recurrence import Rule, rule_from_json, rule_to_json
from services.refs import ChatRef, MemberRef
from services.store.port import Row


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
