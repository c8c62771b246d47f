"""Row arguments of keywords: tables, files and lists of maps."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, ParamSpec, TypeVar

from function_calls.basic.codes import RunCode
from function_calls.basic.keyword_modules._service_errors import as_run_errors, fault_of, text_in, wrong_type
from function_calls.basic.keywords import ScriptRun, Value
from function_calls.spec import Message
from services.clock import Clock
from services.refs import JsonObject
from services.scripts.files import LocalScriptFiles, NoSuchScriptFile, csv_rows
from services.scripts.filter_texts import condition_of, filter_of, filter_of_parts
from services.scripts.filters import (
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Constant,
    Field,
    Filter,
    FilterError,
    Problem,
    test_of,
)
from services.scripts.tables import MOST_RESULTS, ScriptTables, in_order, table_place
from services.scripts.values import as_number, as_text
from services.storage import name_matches
from services.store.chats.script_data import TablePlace

MOST_UNASKED = 1000
"""Default limit of FIND."""
_FILES = (".csv", ".tsv")
_SHEETS = (".xlsx", ".xls", ".ods")
_AT_ONCE = 200
_CUT = "data.cut"
_NO_VALUE = re.compile(r"(?:[=<>]|\b(?:LIKE|ILIKE|CONTAINS|IN|BETWEEN|AND|OR))\s*$", re.IGNORECASE)
_RIGHT = "write it like “city = 'Oslo' AND age > 30”"
ALL: Final[Value] = object()
"""Default of a filter parameter, for a statement without filter; NULL may come from an unset variable."""


@dataclass(frozen=True, slots=True)
class RowSources:
    """Services from which keywords read rows."""

    tables: ScriptTables
    files: LocalScriptFiles
    clock: Clock


class Rows:
    """Sources of rows for the keywords of one run."""

    def __init__(self, run: ScriptRun, sources: RowSources) -> None:
        self._run = run
        self._tables = sources.tables
        self._files = sources.files
        self.now = now_of(run, sources.clock)

    async def find(self, table: Value, wanted: Filter) -> list[JsonObject]:
        """Matching rows of a table: of the file with that name next to the script, then the saved rows, unless the
        filter sorts them. At most `MOST_RESULTS`; without a limit `MOST_UNASKED`, and the chat is notified if there are
        more. Saved rows in the result mark the run as having outside text. Raises RunError."""
        name = text_in(self._run, table, "table")
        most = MOST_UNASKED if wanted.limit is None else min(wanted.limit, MOST_RESULTS)
        of_file = await self._of_file(name)
        with as_run_errors(self._run, name):
            place = place_of(self._run, name)
            if of_file:
                rows, own_count = await self._with_file(place, of_file, wanted)
            else:
                found = await self._tables.find(place, wanted, self.now, most)
                rows, own_count = found.rows, len(found.rows)
                if found.is_cut:
                    self._tell_of_cut(name, most)
        if own_count:
            self._run.has_outside_text = True
        elif of_file is None and not (await self._tables.find(place, Filter(), self.now, 1)).rows:
            self._files.missed(self._run.bot, self._run.folder, name)
        if of_file and wanted.limit is None and len(rows) > most:
            self._tell_of_cut(name, most)
        return rows[:most]

    async def of(self, data: Value) -> list[Value]:
        """The rows of `data`: a list, a single map, or the name of a table; none for NULL. Raises RunError for other
        values."""
        if isinstance(data, str):
            return list(await self.find(data, Filter(limit=MOST_RESULTS)))
        if data is None:
            return []
        if isinstance(data, list | dict):
            return data if isinstance(data, list) else [data]
        raise wrong_type(self._run, "rows")

    async def narrowed(self, data: Value, wanted: Filter) -> list[Value]:
        """The matching rows of `data`, in its order. Raises RunError."""
        if isinstance(data, str):
            return list(await self.find(data, wanted if wanted.limit is not None else _unlimited(wanted)))
        with as_run_errors(self._run):
            rows = await self.fitting(await self.of(data), wanted.condition)
            ordered = await in_order(rows, wanted.orders, self.now) if wanted.orders else rows
        return ordered if wanted.limit is None else ordered[: wanted.limit]

    async def fitting(self, rows: Sequence[Value], condition: Condition | None) -> list[Value]:
        """The rows that meet the condition; yields to other tasks in between."""
        test = test_of(condition, self.now)
        found: list[Value] = []
        for first in range(0, len(rows), _AT_ONCE):
            found += [row for row in rows[first : first + _AT_ONCE] if test(row)]
            await asyncio.sleep(0)
        return found

    async def _with_file(
        self, place: TablePlace, of_file: Sequence[JsonObject], wanted: Filter
    ) -> tuple[list[JsonObject], int]:
        """Matching rows of the file followed by those of the table, and the number of the latter."""
        own = (await self._tables.find(place, _unlimited(wanted), self.now, MOST_RESULTS)).rows
        rows = [*await self.fitting(of_file, wanted.condition), *own]
        return (await in_order(rows, wanted.orders, self.now) if wanted.orders else rows), len(own)

    async def _of_file(self, name: str) -> list[JsonObject] | None:
        """Rows of the file next to the script; None if it is missing, empty if `name` is not a file name."""
        if not name.lower().endswith((*_FILES, *_SHEETS)):
            return []
        run, threads = self._run, self._run.call.threads
        with as_run_errors(run, name):
            try:
                content = await threads.run(self._files.read, run.bot, run.folder, name)
            except NoSuchScriptFile:
                return None
            if name.lower().endswith(_SHEETS):
                raise fault_of(run, RunCode.BAD_VALUE, "csv.sheet", name=name)
            return await threads.run(csv_rows, content)

    def _tell_of_cut(self, name: str, most: int) -> None:
        """Notify the chat, once for each table."""
        run = self._run
        told_of = run.stored_data.setdefault(_CUT, [])
        if name not in told_of:
            told_of.append(name)
            run.say(Message(run.call.say("script_data.cut", most=most, name=name[:60])))


def now_of(run: ScriptRun, clock: Clock) -> datetime:
    """The current time in the chat's time zone."""
    return clock.now().astimezone(run.call.profile.timezone)


def place_of(run: ScriptRun, table: Value) -> TablePlace:
    """The table as seen by this run: the chat's, or the bot's if the operator shares that name. Raises RunError and
    DataError (BAD_TABLE)."""
    name = text_in(run, table, "table")
    folded = name.strip().casefold()
    is_shared = any(name_matches(pattern.casefold(), folded) for pattern in run.grants.shared_tables)
    return table_place(run.bot, "" if is_shared else run.context.chat.key, name)


def filter_in(run: ScriptRun, given: Value) -> Filter:
    """Parse a filter argument: a text, its parts, a WHERE condition, a map of fields to compare for equality, or a
    row's id. NULL matches nothing, so that an unknown id finds no row. Raises RunError."""
    with as_run_errors(run):
        if given is ALL:
            return Filter()
        if given is None:
            return Filter(AnyOf(()))
        match given:
            case ["id", str() as row_id]:
                return Filter(_equal("id", row_id))
            case ["filter", *parts]:
                return filter_of_parts(parts) if is_filter(parts) else Filter(_equal("id", _written(parts)))
            case [*_]:
                return Filter(condition_of(given))
        if isinstance(given, dict):
            return Filter(AllOf(tuple(_equal(name, one) for name, one in given.items())))
        if not isinstance(given, str) or not is_filter([given]):
            return Filter(_equal("id", given))
        return filter_of(given)


def no_filter(given: Value) -> str:
    """Compile-time check of a literal filter: the problem for its author, or empty."""
    if not isinstance(given, str) or not is_filter([given]):
        return ""
    try:
        filter_of(given)
    except FilterError as fault:
        where = f" at character {fault.position}" if fault.position else ""
        return f"invalid filter{where}; {_RIGHT}"
    return f"this filter ends before a value; {_RIGHT}" if _NO_VALUE.search(given) else ""


def selective_filter_in(run: ScriptRun, given: Value) -> Filter:
    """Like `filter_in`, for statements that change rows: an empty filter, which would match all rows, and a LIMIT are
    rejected."""
    wanted = filter_in(run, given)
    if given is not ALL and (wanted.condition in (None, AllOf(())) or given is None):
        raise wrong_type(run, "no_filter")
    if wanted.limit is not None:
        raise wrong_type(run, "no_limit_here")
    return wanted


def field_in(given: Value) -> str | None:
    """The field name in `given`; None if it is a filter."""
    match given:
        case str() if not is_filter([given]):
            return given.strip()
        case ["id", str() as name]:
            return name
        case ["filter", *parts] if not is_filter(parts):
            return _written(parts)
    return None


def is_filter(parts: Sequence[Value]) -> bool:
    """Whether a text in parts is, or is meant as, a filter; otherwise it is a name or an id."""
    try:
        filter_of_parts(parts)
    except FilterError as fault:
        own = "".join(part for part in parts if isinstance(part, str))
        return bool(set(own) & set("=<>")) or (fault.problem is Problem.VALUE_HERE and is_filter([_written(parts)]))
    return True


def _written(parts: Sequence[Value]) -> str:
    return "".join(as_text(part[-1]) if isinstance(part, list) else as_text(part) for part in parts)


def limit_in(run: ScriptRun, limit: Value) -> int | None:
    """The maximum number of rows; None for no limit. Raises RunError for negative numbers and other values."""
    if limit is None:
        return None
    number = as_number(limit)
    if number is None or number < 0:
        raise wrong_type(run, "limit")
    return int(number)


def _equal(field: str, value: Value) -> Comparison:
    return Comparison(Field(field), "=", (Constant(value),))


def _unlimited(wanted: Filter) -> Filter:
    return Filter(wanted.condition, wanted.orders, MOST_RESULTS)


MANY = 1000
"""Number of values from which work runs in a thread. Below it, starting a thread takes longer than the work."""
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


async def in_thread_if_large(
    run: ScriptRun, size: int, work: Callable[Arguments, Result], *args: Arguments.args, **named: Arguments.kwargs
) -> Result:
    """Run `work`, in a thread if `size` is `MANY` or more. Its processor time is charged to the run, even if it
    raises."""
    if size < MANY:
        return work(*args, **named)

    def measured() -> Result:
        began = time.thread_time()
        try:
            return work(*args, **named)
        finally:
            run.thread_seconds += time.thread_time() - began

    return await run.call.threads.run(measured)
