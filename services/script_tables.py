"""The tables of scripts: rows of any fields, kept by bot and chat in the order in which they came.

A row has an id, given or made. Fields are found in any letter case and keep the spelling of who wrote them first. What
a method has done is durable when it returns, all of it or nothing, and stays although the run fails later: a script is
an effect that happens once, and every one of its steps is done when it is done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from services.clock import Clock
from services.json_values import JsonObject, JsonValue
from services.script_conditions import Test, id_asked_for, test_of
from services.script_filters import Condition, Filter
from services.script_row_units import RowUnit, TableFull, TableLimits, id_in, in_slices, like
from services.script_sorting import in_order
from services.script_values import is_nothing, key_of
from services.store import script_rows
from services.store.ids import Ids
from services.store.port import Conflict, Store
from services.store.script_rows import KeptRow, TablePlace

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
            return sum(await self._store.commit([script_rows.clear(place)]))
        fitting = await self._fitting(place, condition, test_of(condition, now))
        return sum(
            await self._store.commit([script_rows.drop(place, kept.row_id, old=kept.fields) for kept in fitting])
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
            (filling,) = await self._store.read(script_rows.filling(unit.place))
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
        found = [await self._store.read(script_rows.one(place, row_id)) for row_id in wanted]
        return [script_rows.kept_row(row) for rows in found for row in rows]

    async def _look_at(
        self, place: TablePlace, condition: Condition | None, is_enough: Callable[[KeptRow], bool]
    ) -> None:
        """Show the rows that may fit, in the order in which they came, until it is enough. Where the condition asks for
        an id, that is one row at the most. Lets others have their turn in between."""
        row_id = id_asked_for(condition)
        if row_id is not None:
            for row in await self._store.read(script_rows.one(place, row_id)):
                is_enough(script_rows.kept_row(row))
            return
        after, size = -1, 0
        while True:
            rows = await self._store.read(script_rows.page(place, after))
            for row in rows:
                if is_enough(script_rows.kept_row(row)):
                    return
                size += len(row["fields"])
                if size > _BYTES_AT_ONCE:
                    size = 0
                    await asyncio.sleep(0)
            if len(rows) < script_rows.PAGE_ROWS:
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
