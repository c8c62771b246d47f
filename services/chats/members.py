"""Members of a chat by name, and the time zones they have set for themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from services.clock import Clock
from services.refs import ChatRef, MemberRef
from services.store.chats import history, members
from services.store.port import Store

_NEWEST = 2**62
_LINES = 1000


@dataclass(frozen=True, slots=True)
class KnownMember:
    """Somebody in a chat."""

    ref: MemberRef
    name: str
    """The display name that was used last."""


class UnknownMember(LookupError):
    """Nobody of that name has spoken in the chat; `similar` are names of those who have."""

    def __init__(self, name: str, similar: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.similar = tuple(similar)


class SeveralMembers(LookupError):
    """More than one member goes by that name."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.names = tuple(names)


class KnownMembers:
    """Who has spoken in which chat, read from its history."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, chat: ChatRef) -> Sequence[KnownMember]:
        """Those who spoke in the last 1000 messages, latest first."""
        rows = await self._store.read(history.recent(chat.key, _NEWEST, _LINES))
        names: dict[str, str] = {}
        for row in rows:
            if not row["from_bot"]:
                names.setdefault(row["sender"], row["sender_name"])
        return [KnownMember(MemberRef.parse(key), name) for key, name in names.items()]


def called(
    name: str, members: Sequence[KnownMember], mentioned: Sequence[MemberRef] = (), *, as_mention: bool = False
) -> KnownMember:
    """The one of `members` who goes by `name`: by all of it or by the first word, whatever the case. Those whom the
    message mentions come before others. Where the name is written `as_mention`, a sole mention of somebody who never
    spoke is taken at its word. Raises UnknownMember and SeveralMembers."""
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
    """How often `text` has `name` written as a mention: with an @ before it."""
    return len(re.findall(rf"@{re.escape(_folded(name))}(?![a-z0-9_])", " ".join(text.split()).casefold()))


def _folded(name: str) -> str:
    return " ".join(name.removeprefix("@").split()).casefold()


class MemberZones:
    """Asked for each time a member names a time of the day."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of(self, member: MemberRef) -> str | None:
        """The IANA name of the member's zone; None when they have set none, and the chat's holds."""
        rows = await self._store.read(members.one(member.key))
        return rows[0]["timezone"] if rows else None

    async def set(self, member: MemberRef, zone: str) -> None:
        """From now on the member lives in `zone`, an IANA name that this machine knows. Timers that there are keep
        theirs."""
        await self._store.commit([members.set_zone(member.key, zone, self._clock.now_ms())])

    async def clear(self, member: MemberRef) -> None:
        """The zone of each chat holds again."""
        await self._store.commit([members.clear(member.key)])
