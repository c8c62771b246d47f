"""The tables of scripts: FIND, SAVE, INSERT, UPDATE, DELETE, MERGE, SAVE FROM UNSTRUCTURED.

A table belongs to the chat, unless the operator shares it among the chats of the bot. Each statement is atomic, and
durable when it returns; it is not rolled back if the run fails later."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import SystemRandom

from function_calls.basic.codes import RunCode
from function_calls.basic.keyword_modules._rows import (
    ALL,
    Rows,
    RowSources,
    field_in,
    filter_in,
    limit_in,
    no_filter,
    now_of,
    place_of,
    selective_filter_in,
)
from function_calls.basic.keyword_modules._service_errors import as_run_errors, fault_of, text_in, wrong_type
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.machine.machine import changes_of
from function_calls.basic.run.model import ModelOfScripts
from function_calls.basic.run.session import ChatWorld
from function_calls.basic.run.web import WebOfScripts
from function_calls.basic.values import text_of
from services.clock import Clock
from services.refs import JsonObject
from services.scripts.filter_texts import read_operand
from services.scripts.filters import Filter, Order
from services.scripts.tables import ScriptTables, like, merged

_OWN = ("stays_here",)
_MOST_EXAMPLES = 20
_PAIR = 2


@basic_keyword(
    "FIND [ALL] {table:name} [WHERE {filter:condition}] [ORDER BY {order:word} [{direction=ASC|DESC}]"
    " [, {then:word} [{then_direction=ASC|DESC}]]] [LIMIT {limit}] [{pick=FIRST}]",
    "FIND [ALL] {table:name} ( , | WITH ) {filter:filter} [, {limit}]",
    check={"filter": no_filter},
)
async def find(
    run: ScriptRun,
    table: Value,
    filter: Value = ALL,  # noqa: A002 - the slot's name, which authors see
    limit: Value = None,
    order: Value = None,
    direction: Value = None,
    then: Value = None,
    then_direction: Value = None,
    pick: Value = None,
    *,
    sources: RowSources,
) -> Value:
    """The matching rows of a table as maps: `FIND "people", "age > 30 ORDER BY name LIMIT 5"`, `FIND people WHERE age >
    30`, `FIND "people", "email", address`, `FIND "people", id`. For a name such as "people.csv", also those of the file
    next to the script."""
    field = None if limit is None else field_in(filter)
    wanted = filter_in(run, filter if field is None else {field: limit})
    with as_run_errors(run):
        orders = [
            Order(read_operand(text_in(run, by, "field")), how == "DESC")
            for by, how in ((order, direction), (then, then_direction))
            if by is not None
        ]
    most = 1 if pick is not None else None if field is not None else limit_in(run, limit)
    found = Filter(wanted.condition, (*orders, *wanted.orders), wanted.limit if most is None else most)
    return await Rows(run, sources).find(table, found)


_SELECT = re.compile(
    r"\s*SELECT\s+(?P<columns>.+?)\s+FROM\s+(?P<table>[\w.-]+)(?:\s+WHERE\s+)?", re.IGNORECASE | re.DOTALL
)


@basic_keyword("QUERY {sql:filter}")
async def query(run: ScriptRun, sql: Value, *, sources: RowSources) -> Value:
    """The rows of a table that match a SELECT: `QUERY "SELECT name, age FROM people WHERE city = '${city}'"`. The table
    and the columns are written in the text itself; inserted values are compared as values. Joins are not available."""
    parts = list(sql[1:]) if isinstance(sql, list) and sql[:1] == ["filter"] else [sql]
    found = _SELECT.match(parts[0]) if parts and isinstance(parts[0], str) else None
    if found is None:
        raise fault_of(run, RunCode.BAD_VALUE, "query")
    rest = [parts[0][found.end() :], *parts[1:]]
    wanted = filter_in(run, ["filter", *rest] if any(rest) else ALL)
    rows = await Rows(run, sources).find(found["table"], wanted)
    columns = [] if found["columns"].strip() == "*" else [one.strip() for one in found["columns"].split(",")]
    return [{one: like(row, one) for one in columns} if columns else row for row in rows]


@basic_keyword(
    "SAVE {table:name}, {fields:named}",
    "SAVE {table:name} WITH {assigned:assignments}",
    effect="once",
    touches=_OWN,
)
async def save(
    run: ScriptRun, table: Value, fields: Value = None, assigned: Value = None, *, tables: ScriptTables
) -> Value:
    """Store a row and return its id: `SAVE "people", person`, `SAVE "people", id, person`, or variables whose names
    become columns: `SAVE "people", id, name, email`. An existing row with this id is updated. A list stores each of its
    rows."""
    rows, is_list = _given_rows(run, fields if assigned is None else {"row": assigned})
    with as_run_errors(run, _shown(table)):
        ids = await tables.save(place_of(run, table), rows)
    return ids if is_list else ids[0]


@basic_keyword(
    "INSERT [INTO] {table:name} {columns:names} VALUES {values:row}",
    "INSERT [INTO] {table:name} VALUES {row}",
    "INSERT [INTO] {table:name} ( SET | WITH ) {assigned:assignments}",
    "INSERT [INTO] {table:name}, {fields:named}",
    effect="once",
    touches=_OWN,
)
async def insert(
    run: ScriptRun,
    table: Value,
    columns: Value = None,
    values: Value = None,
    row: Value = None,
    assigned: Value = None,
    fields: Value = None,
    *,
    tables: ScriptTables,
) -> Value:
    """Add a row and return its id: `INSERT INTO people (name, age) VALUES ("Ann", 30)`, `INSERT people, person`."""
    if isinstance(columns, list) and isinstance(values, list):
        if len(columns) != len(values):
            raise fault_of(run, RunCode.BAD_VALUE, "columns", columns=len(columns), values=len(values))
        row = dict(zip(map(str, columns), values, strict=True))
    given = {"row": row if assigned is None else assigned} if fields is None else fields
    rows, is_list = _given_rows(run, given)
    with as_run_errors(run, _shown(table)):
        ids = await tables.insert(place_of(run, table), rows)
    return ids if is_list else ids[0]


@basic_keyword(
    "UPDATE {table:name} ( SET | WITH ) {assigned:changes} [WHERE {filter:condition}]",
    "UPDATE {table:name}, {filter:filter}, {fields:named}",
    effect="once",
    touches=_OWN,
    check={"filter": no_filter},
)
async def update(
    run: ScriptRun,
    table: Value,
    assigned: Value = None,
    filter: Value = ALL,  # noqa: A002 - the slot's name, which authors see
    fields: Value = None,
    *,
    tables: ScriptTables,
    clock: Clock,
) -> Value:
    """Change the matching rows and return their number: `UPDATE people SET age = 31 WHERE name = "Ann"`, `UPDATE
    "people", "name='Ann'", changes`, `UPDATE "people", id, "age", 31`. After SET, a name that is not a variable of the
    script is the column of the row: `SET age = age + 1`."""
    changes = (
        changes_of(assigned, ChatWorld(clock, run.call, SystemRandom()))
        if isinstance(assigned, dict)
        else _given_changes(run, fields)
    )
    wanted = selective_filter_in(run, filter)
    with as_run_errors(run, _shown(table)):
        place = place_of(run, table)
        return await tables.update(place, wanted.condition, changes, now_of(run, clock))


@basic_keyword(
    "DELETE FROM {table:name} [WHERE {filter:condition}]",
    "DELETE FROM {table:name}, {filter:filter}",
    effect="once",
    touches=_OWN,
    check={"filter": no_filter},
)
async def delete_from(
    run: ScriptRun,
    table: Value,
    filter: Value = ALL,  # noqa: A002 - the slot's name, which authors see
    *,
    tables: ScriptTables,
    clock: Clock,
) -> Value:
    """Delete the matching rows of a table, or all rows without a condition, and return their number."""
    wanted = selective_filter_in(run, filter)
    with as_run_errors(run, _shown(table)):
        return await tables.delete(place_of(run, table), wanted.condition, now_of(run, clock))


@basic_keyword(
    "DELETE {what:name}, {filter:filter}",
    "DELETE {what:name} WHERE {filter:condition}",
    "DELETE [HTTP] {what}",
    effect="once",
    touches=("reaches_out",),
    check={"filter": no_filter},
)
async def delete(
    run: ScriptRun,
    what: Value,
    filter: Value = ALL,  # noqa: A002 - the slot's name, which authors see
    *,
    tables: ScriptTables,
    web: WebOfScripts,
    clock: Clock,
) -> Value:
    """Delete the matching rows of a table, `DELETE "people", "age < 18"`, or send a DELETE request to a web address. To
    delete all rows write DELETE FROM, for a file DELETE FILE."""
    name = text_in(run, what, "table")
    if filter is ALL and name.strip().lower().startswith(("http://", "https://")):
        return await web.delete(run, name.strip())
    if filter is ALL:
        raise fault_of(run, RunCode.BAD_VALUE, "delete_what", name=name)
    return await delete_from(run, what, filter, tables=tables, clock=clock)


@basic_keyword(
    "MERGE {target:name} WITH {data} BY {key:word}",
    "MERGE {target}, {data} [, {key} [, {columns}]]",
    effect="once",
    touches=_OWN,
)
async def merge(
    run: ScriptRun,
    target: Value,
    data: Value,
    key: Value = None,
    columns: Value = None,
    *,
    tables: ScriptTables,
) -> Value:
    """Insert or update rows of a table: `MERGE "people" WITH list BY "email"` updates the row with the same email and
    adds the others. Returns the numbers `inserted` and `updated`. With two lists or maps, `MERGE a, b`, it combines
    them."""
    if not isinstance(target, str):
        return _together(run, target, data)
    keys = [part.strip() for part in text_in(run, "id" if key is None else key, "field").split(",") if part.strip()]
    only = _names(columns)
    with as_run_errors(run, target):
        done = await tables.merge(place_of(run, target), _maps(run, data), keys, only)
    return {"inserted": done.inserted, "updated": done.updated}


@basic_keyword(
    "SAVE FROM UNSTRUCTURED {table:name}, {text}",
    "SAVE FROM UNSTRUCTURED {table:name}, FORMAT {text} AS JSON",
    effect="once",
    touches=_OWN,
)
async def save_from_unstructured(
    run: ScriptRun,
    table: Value,
    text: Value,
    *,
    tables: ScriptTables,
    sources: RowSources,
    model: ModelOfScripts,
) -> Value:
    """Store the information in a text as a row and return its id. JSON is stored directly; from other text the language
    model extracts values for the columns of the table."""
    row = _as_json(text)
    if row is None:
        known = await Rows(run, sources).find(table, Filter(limit=_MOST_EXAMPLES))
        fields = dict.fromkeys(name for one in known for name in one if name.lower() != "id")
        row = await model.extract(run, text_in(run, text, "text"), tuple(fields))
    return await save(run, table, {"row": row}, tables=tables)


@basic_keyword("CREATE OBJECT", "NEW OBJECT")
async def new_object(run: ScriptRun) -> Value:
    """A new, empty map."""
    return {}


@basic_keyword("CREATE ARRAY", "NEW ARRAY")
async def new_array(run: ScriptRun) -> Value:
    """A new, empty list."""
    return []


def _given_rows(run: ScriptRun, fields: Value) -> tuple[list[JsonObject], bool]:
    """The rows given to a statement, and whether they were a list: a map or a list of maps; an id and a map; or values
    by column name. Raises RunError for other values."""
    values = list(fields.values()) if isinstance(fields, dict) else []
    if len(values) == 1 and isinstance(values[0], dict | list):
        return _maps(run, values[0]), isinstance(values[0], list)
    if len(values) == _PAIR and not isinstance(values[0], dict | list):
        row = _row_of(values[1], values[0], next(iter(fields)))
        if row is not None:
            others = {name: value for name, value in row.items() if name.lower() != "id"}
            row_id = like(row, "id") if values[0] is None else values[0]
            return [{"id": row_id, **others}], False
    if not values or (len(values) == 1 and values[0] is None):
        raise wrong_type(run, "row")
    return [_columns(fields)], False


def _given_changes(run: ScriptRun, fields: Value) -> JsonObject:
    """New values given to UPDATE: a map; a field name and a value; or values by column name. Raises RunError for none
    or other values."""
    entries = list(fields.items()) if isinstance(fields, dict) else []
    if len(entries) == 1 and isinstance(entries[0][1], dict | list):
        changes = _first(entries[0][1])
        if not isinstance(changes, dict):
            raise wrong_type(run, "row")
        return changes
    if len(entries) == _PAIR and entries[0][0].startswith("#") and isinstance(entries[0][1], str):
        return {entries[0][1]: entries[1][1]}
    if not entries or (len(entries) == 1 and entries[0][1] is None):
        raise wrong_type(run, "row")
    return _columns(fields)


def _row_of(value: Value, row_id: Value, name: str) -> JsonObject | None:
    """The row given with an id: a map, or the first of a table's rows; else None. A list is taken as rows, and not as
    the value of a column as in `SAVE "orders", number, items`, if its first row has the same id, or if it has one row
    and the id is given without a name or as `id`."""
    if not isinstance(value, list):
        return value if isinstance(value, dict) else None
    if not all(isinstance(one, dict) and like(one, "id") is not None for one in value):
        return None
    row = _first(value)
    if not isinstance(row, dict):
        return None
    is_same = row_id is not None and text_of(like(row, "id")) == text_of(row_id)
    return row if is_same or (len(value) == 1 and (name.lower() == "id" or name.startswith("#"))) else None


def _first(value: Value) -> Value:
    """The first item of a list; other values unchanged."""
    if isinstance(value, list):
        return value[0] if value else None
    return value


def _columns(fields: JsonObject) -> JsonObject:
    """Rename fields without a name, `#1`, to columns named by position, `column1`; other fields are unchanged."""
    return {f"column{name[1:]}" if name.startswith("#") else name: value for name, value in fields.items()}


def _maps(run: ScriptRun, data: Value) -> list[JsonObject]:
    rows = data if isinstance(data, list) else [] if data is None else [data]
    if not all(isinstance(row, dict) for row in rows):
        raise wrong_type(run, "row")
    return rows


def _together(run: ScriptRun, left: Value, right: Value) -> Value:
    """Merge two maps, with the fields of the second taking precedence; a list merged with a map is its first row. Two
    lists are concatenated without duplicates. Raises RunError for other values."""
    if isinstance(left, dict) or isinstance(right, dict):
        one, other = _first(left) or {}, _first(right) or {}
        if not isinstance(one, dict) or not isinstance(other, dict):
            raise wrong_type(run, "rows")
        return merged(one, other)
    if not isinstance(left, list | None) or not isinstance(right, list | None):
        raise wrong_type(run, "rows")
    both = [*(left or []), *(right or [])]
    return list({json.dumps(one, sort_keys=True, default=str): one for one in reversed(both)}.values())[::-1]


def _names(columns: Value) -> Sequence[str] | None:
    if columns is None:
        return None
    parts = columns if isinstance(columns, list) else str(columns).split(",")
    return [str(part).strip() for part in parts]


def _as_json(text: Value) -> JsonObject | None:
    if isinstance(text, dict):
        return text
    try:
        row = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _shown(table: Value) -> str:
    return table if isinstance(table, str) else ""
