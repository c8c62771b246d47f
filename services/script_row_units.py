"""What one statement of a script does to the rows of a table, gathered before it is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from services.json_values import JsonObject, JsonValue
from services.script_values import as_text, is_nothing, key_of, written
from services.store import script_rows
from services.store.ids import Ids
from services.store.port import Row, Write
from services.store.script_rows import KeptRow, TablePlace

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
                    script_rows.add(
                        self.place, row_id, number=pending.number, fields=new, size=size, at_ms=self._now_ms
                    )
                )
            else:
                writes.append(
                    script_rows.change(self.place, row_id, old=pending.old, new=new, size=size, at_ms=self._now_ms)
                )
        if writes:
            writes.append(
                script_rows.within(
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
