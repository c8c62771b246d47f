"""The time zones that members have set for themselves: they hold wherever the member writes."""

from __future__ import annotations

from services.clock import Clock
from services.refs import MemberRef
from services.store import members
from services.store.port import Store


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
