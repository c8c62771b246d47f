"""Tables of scripts: rows with arbitrary fields by bot and chat, atomic changes, and sorting."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import TypeVar

from services.clock import Clock
from services.refs import JsonObject, JsonValue
from services.scripts.errors import DataError, DataProblem
from services.scripts.filters import Condition, Filter, Getter, Order, Test, getter_of, id_asked_for, test_of
from services.scripts.values import LAST_KEY, SortKey, as_text, is_empty, key_of, sort_key, to_json
from services.store.chats import script_data
from services.store.chats.script_data import StoredRow, TablePlace
from services.store.ids import Ids
from services.store.port import Conflict, Row, Store, Write

LONGEST_ID = 200
_NONE_ADDED = 1 << 62
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

_AT_ONCE = 200
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class TableLimits:
    """Limits on numbers of rows and tables, and on bytes of a row and a table as JSON."""

    rows: int = 10_000
    """Per table."""
    tables: int = 100
    """Per bot and chat, and as many again shared by all chats of a bot."""
    row_bytes: int = 16_000
    table_bytes: int = 8_000_000


@dataclass(slots=True)
class _Pending:
    """A new or changed row of a unit, not yet stored."""

    old: str | None
    """The stored fields; None for a new row."""
    number: int
    fields: JsonObject


class RowUnit:
    """Atomic changes of one table. Knows the rows passed to it and those it has added."""

    def __init__(
        self, place: TablePlace, there: Sequence[StoredRow], ids: Ids, now_ms: int, limits: TableLimits
    ) -> None:
        self.place = place
        self._limits = limits
        self._ids = ids
        self._now_ms = now_ms
        self._there = {stored.row_id: stored for stored in there}
        self._pending: dict[str, _Pending] = {}
        self._first = 0
        """Number of the first added row."""

    def __contains__(self, row_id: str) -> bool:
        return row_id in self._there or row_id in self._pending

    def save(self, row: JsonObject) -> str:
        """Change the row with this id, or add it; returns its id. Raises DataError (BAD_ID)."""
        row_id = id_in(row)
        if row_id is not None and row_id in self:
            self.change(row_id, row)
            return row_id
        number = self._ids.next()
        self._first = self._first or number
        row_id = row_id or made_id(number)
        fields = {name: value for name, value in row.items() if name.lower() != "id" or not is_empty(value)}
        self._pending[row_id] = _Pending(None, number, merged({}, fields))
        return row_id

    def change(self, row_id: str, changes: Mapping[str, JsonValue]) -> None:
        """Set these fields of the known row with that id. The id does not change. Raises KeyError for an unknown id."""
        pending = self._pending.get(row_id)
        if pending is None:
            stored = self._there[row_id]
            pending = self._pending[row_id] = _Pending(stored.fields, stored.number, json.loads(stored.fields))
        others = {name: value for name, value in changes.items() if name.lower() != "id"}
        pending.fields = merged(pending.fields, others)

    async def writes(self) -> list[Write]:
        """All writes, the last one checking the limits. Empty if nothing changes. Raises DataError (TABLE_ROWS,
        TOO_LARGE, NOT_KEEPABLE). Yields to other tasks."""
        if len(self._pending) > self._limits.rows:
            raise DataError(DataProblem.TABLE_ROWS)
        writes: list[Write] = []
        last = ""
        async for row_id, pending in in_slices(self._pending.items()):
            new, size = to_json(pending.fields, self._limits.row_bytes)
            if pending.old == new:
                continue
            last = row_id
            if pending.old is None:
                writes.append(
                    script_data.add(
                        self.place, row_id, number=pending.number, fields=new, size=size, at_ms=self._now_ms
                    )
                )
            else:
                writes.append(
                    script_data.change(self.place, row_id, old=pending.old, new=new, size=size, at_ms=self._now_ms)
                )
        if writes:
            writes.append(
                script_data.within(
                    self.place,
                    last,
                    first=self._first or _NONE_ADDED,
                    most_rows=self._limits.rows,
                    most_bytes=self._limits.table_bytes,
                    most_tables=self._limits.tables,
                )
            )
        return writes

    def overflow(self, filling: Row) -> DataProblem | None:
        """The limit that the changes would exceed, given the table's size; None if the conflict had another cause."""
        added = [pending for pending in self._pending.values() if pending.old is None]
        growth = sum(
            to_json(pending.fields, self._limits.row_bytes)[1] - len((pending.old or "").encode())
            for pending in self._pending.values()
        )
        if filling["rows"] + len(added) > self._limits.rows:
            return DataProblem.TABLE_ROWS
        if filling["bytes"] + growth > self._limits.table_bytes:
            return DataProblem.TABLE_BYTES
        is_new_table = added and not filling["rows"]
        return DataProblem.TABLES if is_new_table and filling["tables"] >= self._limits.tables else None


async def in_slices(items: Iterable[Item]) -> AsyncIterator[Item]:
    """The items; yields to other tasks after each 200."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)


def id_in(row: JsonObject) -> str | None:
    """The id in a row as a text, from its field `id`, ignoring case; None if it has none. Raises DataError (BAD_ID) for
    one that is too long or of another type."""
    value = like(row, "id")
    if is_empty(value):
        return None
    text = key_of(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    if not 0 < len(text) <= LONGEST_ID or not text.isprintable():
        raise DataError(DataProblem.BAD_ID, found=as_text(value)[:LONGEST_ID])
    return text


def made_id(number: int) -> str:
    """`number` (positive) in base 36, as a short id of digits and lower-case letters."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def like(row: Mapping[str, JsonValue], field: str) -> JsonValue:
    """The value of the field, ignoring case; None if missing."""
    if field in row:
        return row[field]
    folded = field.casefold()
    return next((value for name, value in row.items() if name.casefold() == folded), None)


def merged(fields: JsonObject, changes: Mapping[str, JsonValue]) -> JsonObject:
    """`fields` updated by `changes`; existing fields keep their position and spelling."""
    spelled = {name.casefold(): name for name in fields}
    result = dict(fields)
    for name, value in changes.items():
        result[spelled.setdefault(name.casefold(), name)] = value
    return result


_KEYS_AT_ONCE = 500
_SORTED_AT_ONCE = 2000
_Keyed = tuple[SortKey, JsonValue]


async def in_order(rows: Sequence[JsonValue], orders: Sequence[Order], now: datetime) -> list[JsonValue]:
    """The rows sorted by `orders`, most significant first. `now`: aware, in the chat's zone."""
    ordered = list(rows)
    for one in reversed(orders):
        ordered = await _sorted_by(ordered, getter_of(one.by, now), descending=one.descending)
    return ordered


async def _sorted_by(rows: Sequence[JsonValue], value: Getter, *, descending: bool) -> list[JsonValue]:
    """The rows sorted by a value: numbers, dates and times, texts ignoring case, then others; rows without a value are
    always last. The sort is stable."""
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
    """The rows without their keys, sorted by them, stable. Parts are sorted separately and merged, because a sort
    cannot be interrupted."""
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


LONGEST_NAME = 100
MOST_RESULTS = 10_000
_ATTEMPTS = 5
_BYTES_AT_ONCE = 65_536
_READ_SINGLY = 50
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Found:
    """Result of `ScriptTables.find`."""

    rows: list[JsonObject]
    """Rows, each with its `id`."""
    is_cut: bool
    """More rows match."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Numbers of rows that a merge has inserted and updated."""

    inserted: int
    updated: int


def table_place(bot: str, chat_key: str, name: str) -> TablePlace:
    """The table with that name; `chat_key` is empty for a table shared by all chats of the bot. Raises DataError
    (BAD_TABLE)."""
    stripped = name.strip()
    if not 0 < len(stripped) <= LONGEST_NAME or not stripped.isprintable():
        raise DataError(DataProblem.BAD_TABLE, found=name[:LONGEST_NAME])
    return TablePlace(bot, chat_key, stripped.lower())


class ScriptTables:
    """The tables of all bots. On a conflict a change is repeated with the new rows; DataError (BUSY) is raised after
    several attempts."""

    def __init__(self, store: Store, ids: Ids, clock: Clock, limits: TableLimits | None = None) -> None:
        self._limits = limits or TableLimits()
        self._store = store
        self._ids = ids
        self._clock = clock

    async def find(self, place: TablePlace, wanted: Filter, now: datetime, most: int) -> Found:
        """At most `most` matching rows of a table, in the filter's order, else that of insertion; empty if the table
        does not exist. `now`: aware, in the chat's zone."""
        test = test_of(wanted.condition, now)
        limit = most if wanted.limit is None else min(wanted.limit, most)
        rows: list[JsonObject] = []

        def is_enough(stored: StoredRow) -> bool:
            row = _shown(stored)
            if test(row):
                rows.append(row)
            return not wanted.orders and len(rows) > limit

        await self._look_at(place, wanted.condition, is_enough)
        ordered = await in_order(rows, wanted.orders, now) if wanted.orders else rows
        return Found(ordered[:limit], len(ordered) > limit and (wanted.limit is None or wanted.limit > most))

    async def save(self, place: TablePlace, rows: Sequence[JsonObject]) -> list[str]:
        """Store each row: merge its fields into the row with its id, or add it. Returns the ids in the order of `rows`.
        Raises DataError: TABLE_ROWS, TABLE_BYTES, TABLES, TOO_LARGE, NOT_KEEPABLE, BAD_ID or BUSY."""
        return await self._stored(place, rows, are_new=False)

    async def insert(self, place: TablePlace, rows: Sequence[JsonObject]) -> list[str]:
        """Add each row as a new one. Returns the ids in order. Raises the errors of `save`, and ROW_EXISTS; then no
        row is added."""
        return await self._stored(place, rows, are_new=True)

    async def _stored(self, place: TablePlace, rows: Sequence[JsonObject], *, are_new: bool) -> list[str]:
        async def attempt() -> list[str]:
            unit = self._unit(place, await self._those(place, [id_in(row) for row in rows]))
            ids = []
            async for row in in_slices(rows):
                row_id = id_in(row) or ""
                if are_new and row_id in unit:
                    raise DataError(DataProblem.ROW_EXISTS, found=row_id)
                ids.append(unit.save(row))
            await self._commit(unit)
            return ids

        return await self._tried(attempt)

    async def update(
        self,
        place: TablePlace,
        condition: Condition | None,
        changes: Mapping[str, JsonValue] | Callable[[JsonObject], Mapping[str, JsonValue]],
        now: datetime,
    ) -> int:
        """Set fields of every matching row and return their number. `changes`: the fields, or a function of the row
        that returns them. Ids do not change. Raises the errors of `save` and of `changes`; then no row is changed."""
        test = test_of(condition, now)

        async def attempt() -> int:
            fitting = await self._fitting(place, condition, test)
            unit = self._unit(place, fitting)
            async for stored in in_slices(fitting):
                unit.change(stored.row_id, changes(_shown(stored)) if callable(changes) else changes)
            await self._commit(unit)
            return len(fitting)

        return await self._tried(attempt)

    async def delete(self, place: TablePlace, condition: Condition | None, now: datetime) -> int:
        """Delete the matching rows, or all without a condition; returns their number. Rows changed meanwhile are not
        deleted."""
        if condition is None:
            return sum(await self._store.commit([script_data.clear(place)]))
        fitting = await self._fitting(place, condition, test_of(condition, now))
        return sum(
            await self._store.commit(
                [script_data.drop_rows(place, stored.row_id, old=stored.fields) for stored in fitting]
            )
        )

    async def merge(
        self, place: TablePlace, rows: Sequence[JsonObject], keys: Sequence[str], only: Sequence[str] | None
    ) -> Merged:
        """Merge `rows` into the table: the first row with equal values in the fields `keys` is updated by the new row's
        fields (only `only`, if given), else the row is added. Returns how many were added and updated. Raises the
        errors of `save`, and NO_KEY."""
        for number, row in enumerate(rows, 1):
            for field in keys:
                if is_empty(like(row, field)):
                    raise DataError(DataProblem.NO_KEY, number=number, found=field)

        async def attempt() -> Merged:
            there = await self._fitting(place, None, lambda _: True)
            unit, known = self._unit(place, there), dict[tuple[str, ...], str]()
            async for stored in in_slices(there):
                known.setdefault(_key(_shown(stored), keys), stored.row_id)
            updated = 0
            async for row in in_slices(rows):
                of_row = _key(row, keys)
                if of_row in known:
                    unit.change(known[of_row], row if only is None else {name: like(row, name) for name in only})
                    updated += 1
                else:
                    known[of_row] = unit.save(row)
            await self._commit(unit)
            return Merged(len(rows) - updated, updated)

        return await self._tried(attempt)

    def _unit(self, place: TablePlace, there: Sequence[StoredRow]) -> RowUnit:
        return RowUnit(place, there, self._ids, self._clock.now_ms(), self._limits)

    async def _commit(self, unit: RowUnit) -> None:
        """Commit the unit's writes, if any. Raises Conflict if the rows have changed meanwhile, and DataError if
        the table is full."""
        writes = await unit.writes()
        if not writes:
            return
        try:
            await self._store.commit(writes)
        except Conflict:
            (filling,) = await self._store.read(script_data.filling(unit.place))
            full = unit.overflow(filling)
            if full is None:
                raise
            raise DataError(full) from None

    async def _tried(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        for _ in range(_ATTEMPTS):
            try:
                return await attempt()
            except Conflict:
                continue
        raise DataError(DataProblem.BUSY)

    async def _fitting(self, place: TablePlace, condition: Condition | None, test: Test) -> list[StoredRow]:
        fitting: list[StoredRow] = []

        def is_enough(stored: StoredRow) -> bool:
            if test(_shown(stored)):
                fitting.append(stored)
            return False

        await self._look_at(place, condition, is_enough)
        return fitting

    async def _those(self, place: TablePlace, ids: Sequence[str | None]) -> list[StoredRow]:
        """The existing rows with those ids; missing and empty ids are skipped."""
        wanted = dict.fromkeys(one for one in ids if one)
        if len(wanted) > _READ_SINGLY:
            return [stored for stored in await self._fitting(place, None, lambda _: True) if stored.row_id in wanted]
        found = [await self._store.read(script_data.one(place, row_id)) for row_id in wanted]
        return [script_data.stored_row(row) for rows in found for row in rows]

    async def _look_at(
        self, place: TablePlace, condition: Condition | None, is_enough: Callable[[StoredRow], bool]
    ) -> None:
        """Pass possibly matching rows to `is_enough` in order of insertion until it returns True; a single row if the
        condition requires an id. Yields to other tasks."""
        row_id = id_asked_for(condition)
        if row_id is not None:
            for row in await self._store.read(script_data.one(place, row_id)):
                is_enough(script_data.stored_row(row))
            return
        after, size = -1, 0
        while True:
            rows = await self._store.read(script_data.page(place, after))
            for row in rows:
                if is_enough(script_data.stored_row(row)):
                    return
                size += len(row["fields"])
                if size > _BYTES_AT_ONCE:
                    size = 0
                    await asyncio.sleep(0)
            if len(rows) < script_data.PAGE_ROWS:
                return
            after = rows[-1]["number"]


def _shown(stored: StoredRow) -> JsonObject:
    """The row as scripts see it: with its id, in first position if the script gave none."""
    fields: JsonObject = json.loads(stored.fields)
    if any(name.lower() == "id" for name in fields):
        return fields
    return {"id": stored.row_id, **fields}


def _key(row: JsonObject, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(key_of(like(row, field)) for field in keys)
