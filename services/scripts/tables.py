"""Tables of scripts: rows of any fields per bot and chat, changes of one statement, and sorting."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Literal, TypeVar

from services.clock import Clock
from services.refs import JsonObject, JsonValue
from services.scripts.filters import Condition, Filter, Getter, Order, Test, getter_of, id_asked_for, test_of
from services.scripts.values import LAST_KEY, SortKey, as_text, is_nothing, key_of, sort_key, written
from services.store.chats import script_data
from services.store.chats.script_data import KeptRow, TablePlace
from services.store.ids import Ids
from services.store.port import Conflict, Row, Store, Write

LONGEST_ID = 200
_NONE_ADDED = 1 << 62
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

_AT_ONCE = 200
Item = TypeVar("Item")
Overflow = Literal["rows", "bytes", "tables"]


@dataclass(frozen=True, slots=True)
class TableLimits:
    """How much there is room for."""

    rows: int = 10_000
    """Of one table."""
    tables: int = 100
    """Of a bot in one chat, and beside these as many that all its chats have in common."""
    row_bytes: int = 16_000
    table_bytes: int = 8_000_000


class TableFull(Exception):
    """A table would have too many rows or bytes, or there would be too many tables."""

    def __init__(self, of: Overflow) -> None:
        super().__init__(of)
        self.of: Overflow = of


class BadRowId(ValueError):
    """An id that is longer than `LONGEST_ID` characters, holds what cannot be kept, or is no text or number."""


@dataclass(slots=True)
class _Pending:
    """A row as it will be."""

    old: str | None
    """As it lies there; None for a new one."""
    number: int
    fields: JsonObject


class RowUnit:
    """Changes of one table that are done together. Knows the rows that it was given, and those that it has added."""

    def __init__(self, place: TablePlace, there: Sequence[KeptRow], ids: Ids, now_ms: int, limits: TableLimits) -> None:
        self.place = place
        self._limits = limits
        self._ids = ids
        self._now_ms = now_ms
        self._there = {kept.row_id: kept for kept in there}
        self._pending: dict[str, _Pending] = {}
        self._first = 0
        """The number of the first row that was added."""

    def __contains__(self, row_id: str) -> bool:
        return row_id in self._there or row_id in self._pending

    def save(self, row: JsonObject) -> str:
        """Change the row of this id, or add it; its id. Raises BadRowId."""
        row_id = id_in(row)
        if row_id is not None and row_id in self:
            self.change(row_id, row)
            return row_id
        number = self._ids.next()
        self._first = self._first or number
        row_id = row_id or made_id(number)
        fields = {name: value for name, value in row.items() if name.lower() != "id" or not is_nothing(value)}
        self._pending[row_id] = _Pending(None, number, merged({}, fields))
        return row_id

    def change(self, row_id: str, changes: Mapping[str, JsonValue]) -> None:
        """Give the row of that id, which is known, these fields. Its id stays."""
        pending = self._pending.get(row_id)
        if pending is None:
            kept = self._there[row_id]
            pending = self._pending[row_id] = _Pending(kept.fields, kept.number, json.loads(kept.fields))
        others = {name: value for name, value in changes.items() if name.lower() != "id"}
        pending.fields = merged(pending.fields, others)

    async def writes(self) -> list[Write]:
        """All of it, and last the check of the limits. Raises TableFull, TooLarge and NotKeepable. Others have their
        turn in between."""
        if len(self._pending) > self._limits.rows:
            raise TableFull("rows")
        writes: list[Write] = []
        last = ""
        async for row_id, pending in in_slices(self._pending.items()):
            new, size = written(pending.fields, self._limits.row_bytes)
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

    def overflow(self, filling: Row) -> Overflow | None:
        """What there would be too much of beside what the table has now; None when the reason lay elsewhere."""
        added = [pending for pending in self._pending.values() if pending.old is None]
        growth = sum(
            written(pending.fields, self._limits.row_bytes)[1] - len((pending.old or "").encode())
            for pending in self._pending.values()
        )
        if filling["rows"] + len(added) > self._limits.rows:
            return "rows"
        if filling["bytes"] + growth > self._limits.table_bytes:
            return "bytes"
        return "tables" if added and not filling["rows"] and filling["tables"] >= self._limits.tables else None


async def in_slices(items: Iterable[Item]) -> AsyncIterator[Item]:
    """The items, with a turn for others after every so many."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)


def id_in(row: JsonObject) -> str | None:
    """The id that a row was given; None where it has none. Raises BadRowId."""
    value = like(row, "id")
    if is_nothing(value):
        return None
    text = key_of(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    if not 0 < len(text) <= LONGEST_ID or not text.isprintable():
        raise BadRowId(as_text(value)[:LONGEST_ID])
    return text


def made_id(number: int) -> str:
    """An id that no other row has: short, and in letters that can be said."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def like(row: Mapping[str, JsonValue], field: str) -> JsonValue:
    """What stands in the field, whatever its letter case; None where there is none."""
    if field in row:
        return row[field]
    folded = field.casefold()
    return next((value for name, value in row.items() if name.casefold() == folded), None)


def merged(fields: JsonObject, changes: Mapping[str, JsonValue]) -> JsonObject:
    """`fields` with `changes` among them; a field that is there keeps its place and its spelling."""
    spelled = {name.casefold(): name for name in fields}
    result = dict(fields)
    for name, value in changes.items():
        result[spelled.setdefault(name.casefold(), name)] = value
    return result


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


LONGEST_NAME = 100
MOST_RESULTS = 10_000
_ATTEMPTS = 5
_BYTES_AT_ONCE = 65_536
_READ_SINGLY = 50
Result = TypeVar("Result")


class BadTableName(ValueError):
    """A name of a table that is empty, longer than `LONGEST_NAME` characters, or holds what cannot be kept."""


class RowExists(Exception):
    """The table has a row of that id."""

    def __init__(self, row_id: str) -> None:
        super().__init__(row_id)
        self.row_id = row_id


class NoKey(ValueError):
    """A row that is to be merged has nothing in the field by which rows are told apart."""

    def __init__(self, number: int, field: str) -> None:
        super().__init__(number, field)
        self.number = number
        """From 1."""
        self.field = field


class Busy(Exception):
    """Others changed the same rows each time that it was tried."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was looked for."""

    rows: list[JsonObject]
    """Each with its `id`."""
    is_cut: bool
    """There are more."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of rows that were merged into a table."""

    inserted: int
    updated: int


def table_place(bot: str, chat_key: str, name: str) -> TablePlace:
    """The table of that name; `chat_key` is empty for one that all chats of the bot have in common. Raises
    BadTableName."""
    stripped = name.strip()
    if not 0 < len(stripped) <= LONGEST_NAME or not stripped.isprintable():
        raise BadTableName(name[:LONGEST_NAME])
    return TablePlace(bot, chat_key, stripped.lower())


class ScriptTables:
    """The rows of all bots. Where two runs change the same rows in one moment, the later one begins anew with what the
    other has left; Busy when that happens over and over."""

    def __init__(self, store: Store, ids: Ids, clock: Clock, limits: TableLimits | None = None) -> None:
        self._limits = limits or TableLimits()
        self._store = store
        self._ids = ids
        self._clock = clock

    async def find(self, place: TablePlace, wanted: Filter, now: datetime, most: int) -> Found:
        """The rows that fit, at most `most`. `now`: the moment in the zone of the chat."""
        test = test_of(wanted.condition, now)
        limit = most if wanted.limit is None else min(wanted.limit, most)
        rows: list[JsonObject] = []

        def is_enough(kept: KeptRow) -> bool:
            row = _shown(kept)
            if test(row):
                rows.append(row)
            return not wanted.orders and len(rows) > limit

        await self._look_at(place, wanted.condition, is_enough)
        ordered = await in_order(rows, wanted.orders, now) if wanted.orders else rows
        return Found(ordered[:limit], len(ordered) > limit and (wanted.limit is None or wanted.limit > most))

    async def save(self, place: TablePlace, rows: Sequence[JsonObject]) -> list[str]:
        """Keep each row: one whose id is there gets these fields beside those that it has, any other is a new one.
        Their ids, in the order of `rows`. Raises TableFull, TooLarge, NotKeepable, BadRowId and Busy."""

        async def attempt() -> list[str]:
            unit = self._unit(place, await self._those(place, [id_in(row) for row in rows]))
            ids = [unit.save(row) async for row in in_slices(rows)]
            await self._commit(unit)
            return ids

        return await self._tried(attempt)

    async def insert(self, place: TablePlace, rows: Sequence[JsonObject]) -> list[str]:
        """Add each row as a new one. Raises as `save` does, and RowExists."""

        async def attempt() -> list[str]:
            unit = self._unit(place, await self._those(place, [id_in(row) for row in rows]))
            ids = []
            for row in rows:
                row_id = id_in(row) or ""
                if row_id in unit:
                    raise RowExists(row_id)
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
        """Give every row that fits these fields, or those that `changes` gives for the row as scripts see it, and say
        how many there are. A row's id stays. Raises as `save`, and what `changes` raises: then no row is changed."""
        test = test_of(condition, now)

        async def attempt() -> int:
            fitting = await self._fitting(place, condition, test)
            unit = self._unit(place, fitting)
            async for kept in in_slices(fitting):
                unit.change(kept.row_id, changes(_shown(kept)) if callable(changes) else changes)
            await self._commit(unit)
            return len(fitting)

        return await self._tried(attempt)

    async def delete(self, place: TablePlace, condition: Condition | None, now: datetime) -> int:
        """Delete every row that fits, and say how many that were; without a condition all of them."""
        if condition is None:
            return sum(await self._store.commit([script_data.clear(place)]))
        fitting = await self._fitting(place, condition, test_of(condition, now))
        return sum(
            await self._store.commit([script_data.drop_rows(place, kept.row_id, old=kept.fields) for kept in fitting])
        )

    async def merge(
        self, place: TablePlace, rows: Sequence[JsonObject], keys: Sequence[str], only: Sequence[str] | None
    ) -> Merged:
        """Bring `rows` into the table: where the first row that has the same values in the fields `keys` is found, it
        gets the fields of the new one (those of `only`, where they are given), else the row is added. Raises as `save`,
        and NoKey."""
        for number, row in enumerate(rows, 1):
            for field in keys:
                if is_nothing(like(row, field)):
                    raise NoKey(number, field)

        async def attempt() -> Merged:
            there = await self._fitting(place, None, lambda _: True)
            unit, known = self._unit(place, there), dict[tuple[str, ...], str]()
            async for kept in in_slices(there):
                known.setdefault(_key(_shown(kept), keys), kept.row_id)
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

    def _unit(self, place: TablePlace, there: Sequence[KeptRow]) -> RowUnit:
        return RowUnit(place, there, self._ids, self._clock.now_ms(), self._limits)

    async def _commit(self, unit: RowUnit) -> None:
        """Raises Conflict when the rows have changed meanwhile, and TableFull."""
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
            raise TableFull(full) from None

    async def _tried(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        for _ in range(_ATTEMPTS):
            try:
                return await attempt()
            except Conflict:
                continue
        raise Busy

    async def _fitting(self, place: TablePlace, condition: Condition | None, test: Test) -> list[KeptRow]:
        fitting: list[KeptRow] = []

        def is_enough(kept: KeptRow) -> bool:
            if test(_shown(kept)):
                fitting.append(kept)
            return False

        await self._look_at(place, condition, is_enough)
        return fitting

    async def _those(self, place: TablePlace, ids: Sequence[str | None]) -> list[KeptRow]:
        """The rows of those ids that are there."""
        wanted = dict.fromkeys(one for one in ids if one)
        if len(wanted) > _READ_SINGLY:
            return [kept for kept in await self._fitting(place, None, lambda _: True) if kept.row_id in wanted]
        found = [await self._store.read(script_data.one(place, row_id)) for row_id in wanted]
        return [script_data.kept_row(row) for rows in found for row in rows]

    async def _look_at(
        self, place: TablePlace, condition: Condition | None, is_enough: Callable[[KeptRow], bool]
    ) -> None:
        """Show the rows that may fit, in the order in which they came, until it is enough. Where the condition asks for
        an id, that is one row at the most. Lets others have their turn in between."""
        row_id = id_asked_for(condition)
        if row_id is not None:
            for row in await self._store.read(script_data.one(place, row_id)):
                is_enough(script_data.kept_row(row))
            return
        after, size = -1, 0
        while True:
            rows = await self._store.read(script_data.page(place, after))
            for row in rows:
                if is_enough(script_data.kept_row(row)):
                    return
                size += len(row["fields"])
                if size > _BYTES_AT_ONCE:
                    size = 0
                    await asyncio.sleep(0)
            if len(rows) < script_data.PAGE_ROWS:
                return
            after = rows[-1]["number"]


def _shown(kept: KeptRow) -> JsonObject:
    """The row as scripts see it: with its id, first where the script gave none."""
    fields: JsonObject = json.loads(kept.fields)
    if any(name.lower() == "id" for name in fields):
        return fields
    return {"id": kept.row_id, **fields}


def _key(row: JsonObject, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(key_of(like(row, field)) for field in keys)
