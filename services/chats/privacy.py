"""Data about a member: erasure, export, and members whose messages are not recorded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import orjson

from config.settings import StoreSettings
from services.chats import grants, member_links
from services.clock import Clock
from services.refs import ChatRef, MemberRef
from services.scripts.memory import of_member, of_member_in
from services.store import member_data
from services.store.chats import opt_outs
from services.store.port import Row, Store
from services.store.turns import audit as changes

COUNTER = "opt_outs"
"""Change counter of the marks."""
_ERASED = (grants.COUNTER, member_links.COUNTER, "chat_notes")
"""Change counters of erased rows that processes keep in memory."""
Forgotten = Callable[[str, str], Awaitable[None]]
"""Drops what is in memory about a member: the key of the chat, empty for all chats, and of the member."""


class MemberData:
    """Stored data of members. A chat of None stands for all chats of the bot. Call `load` first."""

    def __init__(self, store: Store, clock: Clock, settings: StoreSettings) -> None:
        self._store = store
        self._clock = clock
        self.settings = settings
        """How long data and backups are kept."""
        self._opted_out: dict[str, frozenset[str]] = {}
        self.on_forget: list[Forgotten] = []
        """Called after each erasure."""

    async def load(self) -> None:
        """Load the marks of all members. Raises StoreError."""
        marks: dict[str, frozenset[str]] = {}
        for row in await self._store.read(opt_outs.EVERYTHING):
            marks[row["member"]] = marks.get(row["member"], frozenset()) | {row["chat"]}
        self._opted_out = marks

    def is_opted_out(self, chat: ChatRef, member: MemberRef) -> bool:
        """Whether the member's messages in `chat` are not recorded; from memory."""
        marks = self._opted_out.get(member.key) if self._opted_out else None
        return marks is not None and (opt_outs.EVERYWHERE in marks or chat.key in marks)

    async def may_quote(self, chat: ChatRef, native_id: str, message_key: str) -> bool:
        """Whether a quotation of that message may be used: no member has opted out, or its sender (for a message of the
        bot, the member whom it answers) is known and has not. Raises StoreError."""
        if not any({opt_outs.EVERYWHERE, chat.key} & marks for marks in self._opted_out.values()):
            return True
        rows = await self._store.read(opt_outs.senders_of(chat.key, native_id, message_key))
        senders = [MemberRef.parse(row["sender"]) for row in rows if row["sender"]]
        return bool(senders) and not any(self.is_opted_out(chat, sender) for sender in senders)

    async def opt_in(self, member: MemberRef, chat: ChatRef | None) -> bool:
        """Delete the mark of `chat`, or all marks of the member. Returns whether the member is still opted out, by a
        mark for all chats. Raises StoreError."""
        await self._store.commit([opt_outs.remove(member.key, _key(chat)), changes.touch(COUNTER)])
        await self.load()
        return opt_outs.EVERYWHERE in self._opted_out.get(member.key, frozenset())

    async def erase(
        self, member: MemberRef, chat: ChatRef | None, turn_id: int, *, opts_out: bool = False
    ) -> Mapping[str, int]:
        """Erase the member's data in one unit, except the running turn `turn_id` and what its end needs. `opts_out`:
        mark the member, and erase only recorded messages. Returns the numbers of erased rows by kind. Raises
        StoreError."""
        where, marks = _key(chat), self._opted_out.get(member.key, frozenset())
        erasures = member_data.erasures(self._values(member, chat, turn_id), only_said=opts_out)
        writes = [write for _, write in erasures]
        if opts_out:
            self._opted_out = {**self._opted_out, member.key: marks | {where}}
            writes += [opt_outs.add(member.key, where, self._clock.now_ms()), changes.touch(COUNTER)]
        else:
            writes += map(changes.touch, _ERASED)
        counts: Counter[str] = Counter()
        for (kind, _), rows in zip(erasures, await self._store.commit(writes), strict=False):
            counts[kind] += rows
        for drop in () if opts_out else self.on_forget:
            await drop(where, member.key)
        return {kind: rows for kind, rows in counts.items() if kind and rows}

    async def export(self, member: MemberRef, chat: ChatRef | None, turn_id: int) -> Mapping[str, Sequence[Row]]:
        """The member's rows by table, without tables that have none. Raises StoreError."""
        queries = member_data.exports(self._values(member, chat, turn_id))
        found = {table: await self._store.read(query) for table, query in queries.items()}
        return {table: [dict(row) for row in rows] for table, rows in found.items() if rows}

    @property
    def days_in_backups(self) -> int:
        """Days after which the last scheduled backup with erased rows is deleted; 0 if the daemon schedules none."""
        store = self.settings
        hours = 0 if store.is_on_a_server else store.backup_every_hours * store.backups_kept
        return math.ceil(hours / 24)

    def _values(self, member: MemberRef, chat: ChatRef | None, turn_id: int) -> Mapping[str, Any]:
        owner = of_member(member) if chat is None else of_member_in(member, chat)
        return {
            "of_member": member.key,
            "in_chat": _key(chat),
            "this_turn": turn_id,
            "before_day": (self._clock.now() - timedelta(days=1)).date().isoformat(),
            "native": member.native,
            "sender_json": f'"sender":{{"id":{orjson.dumps(member.native).decode()},',
            "script_owner": owner.key.removesuffix("]"),
        }


def _key(chat: ChatRef | None) -> str:
    return opt_outs.EVERYWHERE if chat is None else chat.key
