"""Rows put in order, with a turn for others in between: however many they are, nobody waits long."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter

from services.json_values import JsonValue
from services.script_conditions import Getter, getter_of
from services.script_filters import Order
from services.script_values import LAST_KEY, SortKey, sort_key

_KEYS_AT_ONCE = 500
_SORTED_AT_ONCE = 2000
_Keyed = tuple[SortKey, JsonValue]


async def in_order(rows: Sequence[JsonValue], orders: Sequence[Order], now: datetime) -> list[JsonValue]:
    """The rows, sorted by the first of `orders`, and where they are equal in it by the next. `now`: aware, in the zone
    of the chat."""
    ordered = list(rows)
    for one in reversed(orders):
        ordered = await _sorted_by(ordered, getter_of(one.by, now), descending=one.descending)
    return ordered


async def _sorted_by(rows: Sequence[JsonValue], value: Getter, *, descending: bool) -> list[JsonValue]:
    """The rows in the order of a value of theirs: numbers, dates and times, texts without regard to capitals, and then
    all else; those without one stand last either way. Rows that are equal in it keep their order."""
    there: list[_Keyed] = []
    without: list[JsonValue] = []
    for first in range(0, len(rows), _KEYS_AT_ONCE):
        for row in rows[first : first + _KEYS_AT_ONCE]:
            key = sort_key(value(row))
            if key == LAST_KEY:
                without.append(row)
            else:
                there.append((key, row))
        await asyncio.sleep(0)
    return await _merged(there, descending=descending) + without


async def _merged(keyed: Sequence[_Keyed], *, descending: bool) -> list[JsonValue]:
    """The rows in the order of their keys: parts are sorted one by one, since sorting itself cannot be interrupted."""
    parts: list[list[_Keyed]] = []
    for first in range(0, len(keyed), _SORTED_AT_ONCE):
        parts.append(sorted(keyed[first : first + _SORTED_AT_ONCE], key=itemgetter(0), reverse=descending))
        await asyncio.sleep(0)
    if len(parts) == 1:
        return [row for _, row in parts[0]]
    ordered: list[JsonValue] = []
    for _, row in heapq.merge(*parts, key=itemgetter(0), reverse=descending):
        ordered.append(row)
        if len(ordered) % _KEYS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return ordered
