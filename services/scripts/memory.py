"""Values that scripts store for a bot, chat or member, with an optional expiry."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NamedTuple

from services.clock import Clock
from services.refs import ChatRef, JsonValue, MemberRef
from services.scripts.errors import DataError, DataProblem
from services.scripts.values import to_json
from services.store.chats import script_data
from services.store.port import Store

MOST_NAMES = 10_000
MOST_BYTES = 4_000_000
MOST_VALUE_BYTES = 64_000
LONGEST_NAME = 200


class Owner(NamedTuple):
    """Owner of stored values: bot and key of a chat or member."""

    bot: str
    """Empty for a member's values that all bots share."""
    key: str


def bots_own(bot: str) -> Owner:
    """Owner of the values of a bot in all its chats."""
    return Owner(bot, "")


def bots_in(bot: str, chat: ChatRef) -> Owner:
    """Owner of the values of a bot itself in one chat; distinct from `of_chat`."""
    return Owner(bot, json.dumps(["bot", chat.key]))


def of_chat(bot: str, chat: ChatRef) -> Owner:
    """Owner of the values of a chat for one bot, shared by its members."""
    return Owner(bot, json.dumps(["chat", chat.key]))


def of_member(member: MemberRef) -> Owner:
    """Owner of the values of a member in all chats, shared by all bots."""
    return Owner("", json.dumps(["member", member.key]))


def of_member_in(member: MemberRef, chat: ChatRef, *, private: bool = False) -> Owner:
    """Owner of the values of a member in one chat, shared by all bots. `private`: not visible to others in the chat."""
    return Owner("", json.dumps(["member", member.key, chat.key, *(["private"] if private else [])]))


@dataclass(frozen=True, slots=True)
class Remembered:
    """A stored value and whether others may have influenced it."""

    value: JsonValue
    from_outside: bool
    """Text from others went into it."""


class ScriptMemory:
    """The values of all owners. Expired values are not returned."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(self, owner: Owner, name: str) -> Remembered | None:
        """The value of this name; None if it is missing or expired. Raises DataError (BAD_NAME)."""
        rows = await self._store.read(script_data.get(owner.bot, owner.key, _checked(name), self._clock.now_ms()))
        if not rows:
            return None
        return Remembered(json.loads(rows[0]["value"]), bool(rows[0]["from_outside"]))

    async def put(
        self,
        owner: Owner,
        name: str,
        value: JsonValue,
        *,
        from_outside: bool = False,
        seconds: float | None = None,
    ) -> None:
        """Store `value`, replacing an earlier one, for `seconds` or without an expiry. Raises
        DataError (BAD_NAME, MEMORY_FULL, TOO_LARGE, NOT_KEEPABLE); then the earlier value stays."""
        text, size = to_json(value, MOST_VALUE_BYTES)
        now_ms = self._clock.now_ms()
        put = script_data.put(
            owner.bot,
            owner.key,
            _checked(name),
            value=text,
            size=size,
            from_outside=from_outside,
            at_ms=now_ms,
            expires_ms=None if seconds is None else now_ms + round(seconds * 1000),
            most_names=MOST_NAMES,
            most_bytes=MOST_BYTES,
        )
        _, count = await self._store.commit([script_data.forget_of(owner.bot, owner.key, now_ms), put])
        if not count:
            raise DataError(DataProblem.MEMORY_FULL)

    async def forget(self, owner: Owner, name: str) -> bool:
        """Delete the value of this name; returns whether there was one. Raises DataError (BAD_NAME)."""
        _, count = await self._store.commit(
            [
                script_data.forget_of(owner.bot, owner.key, self._clock.now_ms()),
                script_data.drop_value(owner.bot, owner.key, _checked(name)),
            ]
        )
        return bool(count)


def _checked(name: str) -> str:
    stripped = name.strip()
    if not 0 < len(stripped) <= LONGEST_NAME or not stripped.isprintable():
        raise DataError(DataProblem.BAD_NAME, found=name[:LONGEST_NAME])
    return stripped


LONGEST_SECONDS = 100 * 365 * 86_400

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s{0,5}([^\W\d]*)")
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "分钟"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "小时", "个小时"), 3600),
    **dict.fromkeys(("", "d", "day", "days", "天"), 86_400),
    **dict.fromkeys(("w", "week", "weeks", "周", "星期", "个星期"), 7 * 86_400),
    **dict.fromkeys(("month", "months", "个月"), 30 * 86_400),
    **dict.fromkeys(("y", "year", "years", "年"), 365 * 86_400),
}
_FOREVER = frozenset({"", "forever", "permanent", "always", "永远", "永久"})


def seconds_of(value: JsonValue) -> float | None:
    """Duration in seconds, at most a hundred years; None for no expiry. A number is in days. Raises DataError
    (BAD_DURATION)."""
    if value is None:
        return None
    text = str(value).strip().casefold()
    if text in _FOREVER:
        return None
    found = None if isinstance(value, bool | list | dict) else _SPAN.fullmatch(text)
    if found is None or found[2] not in _SECONDS or not float(found[1]):
        raise DataError(DataProblem.BAD_DURATION, found=text)
    return min(float(found[1]) * _SECONDS[found[2]], LONGEST_SECONDS)
