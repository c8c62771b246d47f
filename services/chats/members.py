"""Members of a chat by name, and the time zones they have set for themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from services.clock import Clock
from services.refs import ChatRef, ErrorCode, MemberRef, RequestProblem
from services.store.chats import history, members
from services.store.port import Store

_NEWEST = 2**62
_LINES = 1000


@dataclass(frozen=True, slots=True)
class KnownMember:
    """A member known in a chat, by identity and name."""

    ref: MemberRef
    name: str
    """The latest display name."""
    last_ms: int = field(default=0, compare=False)
    """Time of the latest message in milliseconds since 1970; 0 if unknown."""


class UnknownMember(RequestProblem):
    """No member with that name has spoken in the chat; `similar` are close names of those who have."""

    def __init__(self, name: str, similar: Sequence[str]) -> None:
        key = "reminders.unknown_member_similar" if similar else "reminders.unknown_member"
        super().__init__(key, ErrorCode.NOT_FOUND, fields=["who"], name=name, similar=", ".join(similar))
        self.name = name
        self.similar = tuple(similar)


class SeveralMembers(RequestProblem):
    """More than one member has that name: `names` are their full names."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        key, shown = "reminders.several_members", ", ".join(names)
        super().__init__(key, ErrorCode.BAD_ARGUMENTS, fields=["who"], name=name, names=shown)
        self.name = name
        self.names = tuple(names)


class KnownMembers:
    """Members who have spoken in a chat, read from its history."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, chat: ChatRef) -> Sequence[KnownMember]:
        """Members with one of the last 1000 messages, latest first."""
        rows = await self._store.read(history.recent(chat.key, _NEWEST, _LINES))
        found: dict[str, KnownMember] = {}
        for row in rows:
            if not row["from_bot"] and row["sender"] not in found:
                found[row["sender"]] = KnownMember(MemberRef.parse(row["sender"]), row["sender_name"], row["at_ms"])
        return list(found.values())


def called(
    name: str, members: Sequence[KnownMember], mentioned: Sequence[MemberRef] = (), *, as_mention: bool = False
) -> KnownMember:
    """The member called `name`: the whole name or its first word, ignoring case. Members mentioned in the message have
    precedence. With `as_mention`, a single mentioned member who never spoke is accepted under that name. Raises
    UnknownMember and SeveralMembers."""
    wanted = _folded(name)
    for candidates in ([one for one in members if one.ref in mentioned], members):
        same = [one for one in candidates if _folded(one.name) == wanted]
        found = same or [one for one in candidates if _folded(one.name).split()[:1] == [wanted]]
        if len(found) > 1:
            raise SeveralMembers(name, [one.name for one in found])
        if found:
            return found[0]
    strangers = [ref for ref in mentioned if all(one.ref != ref for one in members)]
    if as_mention and len(strangers) == 1:
        return KnownMember(strangers[0], name.lstrip("@"))
    near = get_close_matches(wanted, {_folded(one.name): one.name for one in members}, n=3, cutoff=0.6)
    raise UnknownMember(name.lstrip("@"), [one.name for one in members if _folded(one.name) in near])


def times_mentioned(name: str, text: str) -> int:
    """Number of `@name` in `text`, ignoring case; not counted within a longer word, as `@ann` in `@anna`."""
    return len(re.findall(rf"@{re.escape(_folded(name))}(?![a-z0-9_])", " ".join(text.split()).casefold()))


def _folded(name: str) -> str:
    return " ".join(name.removeprefix("@").split()).casefold()


class MemberZones:
    """Time zones that members have set, read from the store each time. Linked accounts share the latest one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of(self, member: MemberRef) -> str | None:
        """IANA name of the member's zone; None if it is unknown or reset, so that the chat's applies."""
        rows = await self._store.read(members.one(member.key))
        return rows[0]["timezone"] or None if rows else None

    async def is_known(self, member: MemberRef) -> bool:
        """Whether the member has set or reset a zone, or a platform has suggested one, for any linked account."""
        return bool(await self._store.read(members.one(member.key)))

    async def set(self, member: MemberRef, zone: str) -> None:
        """Set the member's zone, an IANA name known to this machine. Existing timers are not changed."""
        await self._store.commit([members.set_zone(member.key, zone, self._clock.now_ms())])

    async def suggest(self, member: MemberRef, zone: str) -> None:
        """Set the zone that a platform knows, an IANA name known to this machine, unless `is_known`."""
        await self._store.commit([members.suggest_zone(member.key, zone)])

    async def clear(self, member: MemberRef) -> None:
        """Reset the member's zone, so that the chat's applies; also against suggestions."""
        await self._store.commit([members.set_zone(member.key, "", self._clock.now_ms())])
