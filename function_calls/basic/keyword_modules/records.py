"""Transformations of rows: FILTER, SORT, MAP, FILL, JOIN, GROUP BY, PIVOT, AGGREGATE, FIRST, LAST. Each takes a list of
maps, or the name of a table or of a file next to the script, and returns a new list; its arguments are not modified."""

from __future__ import annotations

from contextlib import suppress

from function_calls.basic.codes import RunCode
from function_calls.basic.functions.texts import joined_text
from function_calls.basic.keyword_modules._rows import (
    ALL,
    MANY,
    Rows,
    RowSources,
    filter_in,
    in_thread_if_large,
    limit_in,
    no_filter,
)
from function_calls.basic.keyword_modules._service_errors import as_run_errors, fault_of, text_in, wrong_type
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from services.scripts.errors import DataError, DataProblem
from services.scripts.files import LocalScriptFiles, NoSuchScriptFile
from services.scripts.filter_texts import read_operand
from services.scripts.filters import Filter, Order, field_getter
from services.scripts.records import (
    filled,
    grouped,
    joined,
    named_totals,
    pivoted,
    renamed,
    total_named,
    total_of,
)


@basic_keyword("FILTER {data} WHERE {filter:condition}", "FILTER {data}, {filter:filter}", check={"filter": no_filter})
async def filter_rows(
    run: ScriptRun,
    data: Value,
    filter: Value,  # noqa: A002 - the slot's name, which authors see
    *,
    sources: RowSources,
) -> Value:
    """The matching rows of a list: `FILTER orders, "total > 100"`, `FILTER orders WHERE total > 100`."""
    return await Rows(run, sources).narrowed(data, filter_in(run, filter))


@basic_keyword(
    "AGGREGATE {data} {how=SUM|COUNT|AVG|AVERAGE|MIN|MAX} [{field:word}] [WHERE {filter:condition}]",
    "AGGREGATE {how}, {data} [, {field} [, {filter:filter}]]",
    check={"filter": no_filter},
)
async def aggregate(
    run: ScriptRun,
    how: Value,
    data: Value,
    field: Value = None,
    filter: Value = ALL,  # noqa: A002 - the slot's name, which authors see
    *,
    sources: RowSources,
) -> Value:
    """The SUM, AVG, COUNT, MIN or MAX of a column: `AGGREGATE "SUM", orders, "total"`, `AGGREGATE "orders", "COUNT",
    "id", "status = 'open'"`."""
    total = total_named(how)
    if total is None:
        total, data = total_named(data), how
    if total is None:
        raise fault_of(run, RunCode.BAD_VALUE, "records.no_total", found=text_of(how))
    rows = await Rows(run, sources).narrowed(data, filter_in(run, filter))
    with as_run_errors(run):
        return await in_thread_if_large(run, len(rows), total_of, total, rows, text_of(field).strip())


@basic_keyword("SORT {data} BY {field:word} [{direction=ASC|DESC}]", "SORT {data} [, {field} [, {direction}]]")
async def sort(
    run: ScriptRun, data: Value, field: Value = None, direction: Value = None, *, sources: RowSources
) -> Value:
    """Rows sorted by a column, numbers by value; in descending order with DESC: `SORT tips BY "priority" DESC`."""
    word = text_of(field if direction is None else direction).strip().upper()
    is_word = word in ("ASC", "ASCENDING", "DESC", "DESCENDING")
    name = "item" if field is None or (is_word and direction is None) else text_in(run, field, "field")
    rows = Rows(run, sources)
    with as_run_errors(run):
        order = Order(read_operand(name), is_word and word.startswith("DESC"))
    return await rows.narrowed(data, Filter(None, (order,)))


@basic_keyword("MAP {data}, {fields}")
async def map_rows(run: ScriptRun, data: Value, fields: Value, *, sources: RowSources) -> Value:
    """Rows with renamed columns, `MAP orders, "customerName->customer, total->amount"`, or with some columns only, `MAP
    files, "name, size"`."""
    rows = await Rows(run, sources).of(data)
    with as_run_errors(run):
        return await in_thread_if_large(run, len(rows), renamed, rows, fields)


@basic_keyword("FILL {data}, {template}", "FILL {data} [WITH {values}]")
async def fill(
    run: ScriptRun, data: Value, template: Value = None, values: Value = None, *, files: LocalScriptFiles
) -> Value:
    """A text or map with the values of a row in place of `{{field}}`, once for each row of a list. The template may
    also be the first argument, or be a text file next to the script: `FILL "letter.txt" WITH person`."""
    if template is None:
        return await template_text(run, files, text_in(run, data, "text"), values)
    if isinstance(data, str):
        data, template = template, data
    if not isinstance(data, dict | list) or not isinstance(template, str | dict | list):
        raise wrong_type(run, "fill")
    with as_run_errors(run):
        return await in_thread_if_large(run, MANY, filled, template, data)


async def template_text(run: ScriptRun, files: LocalScriptFiles, name: str, data: Value) -> str:
    """The text file `name`, with or without `.txt`, next to the script, with the values of a map in place of
    `{{field}}`. Raises RunError if there is no such file."""
    for file in (name.strip(), f"{name.strip()}.txt"):
        with as_run_errors(run, file), suppress(NoSuchScriptFile):
            content = await run.call.threads.run(files.read, run.bot, run.folder, file)
            text = content.decode("utf-8-sig", "replace")
            return text_of(await in_thread_if_large(run, MANY, filled, text, data)) if data else text
    raise fault_of(run, RunCode.NO_SUCH_THING, "no_template", name=name)


@basic_keyword("JOIN {left} [, {right} [, {key} [, {kind}]]]")
async def join(
    run: ScriptRun, left: Value, right: Value = ", ", key: Value = None, kind: Value = "inner", *, sources: RowSources
) -> Value:
    """Each row of a list combined with the rows of another list that have the same value in a column: `JOIN orders,
    customers, "customer_id", "left"`. Without a column, the items of a list joined to a text: `JOIN(names, ", ")`."""
    if key is None:
        if not isinstance(left, list):
            raise wrong_type(run, "rows")
        return joined_text(left, text_of(right))
    rows = Rows(run, sources)
    first, second = await rows.of(left), await rows.of(right)
    with as_run_errors(run):
        field, how = text_in(run, key, "field"), text_of(kind)
        return await in_thread_if_large(run, len(first) * len(second), joined, first, second, field, how)


@basic_keyword("GROUP BY {data}, {field} [, {totals}]")
async def group_by(run: ScriptRun, data: Value, field: Value, totals: Value = None, *, sources: RowSources) -> Value:
    """A map for each value of a column, with `key`, `count`, `items` and optional totals: `GROUP BY orders, "city", #{
    total: "SUM(amount)" }`."""
    fields = [part.strip() for part in text_in(run, field, "field").split(",") if part.strip()]
    rows = await Rows(run, sources).of(data)
    with as_run_errors(run):
        wanted = named_totals(totals if isinstance(totals, dict) else {})
        return await in_thread_if_large(run, len(rows) * (1 + len(wanted)), grouped, rows, fields, wanted)


@basic_keyword("PIVOT {data}, {down}, {across} [, {field} [, {how}]]")
async def pivot(
    run: ScriptRun,
    data: Value,
    down: Value,
    across: Value,
    field: Value = None,
    how: Value = "SUM",
    *,
    sources: RowSources,
) -> Value:
    """A map for each value of one column, with a column for each value of another: `PIVOT sales, "region", "quarter",
    "amount"`. The total is the sum unless another one is named. `PIVOT sales, "region", "amount"` has only the sums."""
    total = total_named(how)
    names = [text_in(run, name, "field").strip() for name in (down, across, field) if name is not None]
    rows = await Rows(run, sources).of(data)
    with as_run_errors(run):
        if total is None:
            raise DataError(DataProblem.NO_TOTAL, found=text_of(how))
        if field is None:
            return await in_thread_if_large(run, len(rows), pivoted, rows, names[0], "", names[1], total)
        return await in_thread_if_large(run, MANY, pivoted, rows, names[0], names[1], names[2], total)


@basic_keyword("FIRST {data} [, {count}]")
async def first(run: ScriptRun, data: Value, count: Value = None) -> Value:
    """The first item of a list, or with a count a list of the first items; for a text, its first word."""
    return _end(run, data, count, is_last=False)


@basic_keyword("LAST {data} [, {count}]")
async def last(run: ScriptRun, data: Value, count: Value = None) -> Value:
    """The last item of a list, or with a count a list of the last items; for a text, its last word."""
    return _end(run, data, count, is_last=True)


def _end(run: ScriptRun, data: Value, count: Value, *, is_last: bool) -> Value:
    if isinstance(data, dict):
        raise wrong_type(run, "rows")
    items = data if isinstance(data, list) else text_of(data).split()
    field = count if isinstance(count, str) and not count.strip().isdigit() else None
    if count is None or field is not None:
        item = (items[-1] if is_last else items[0]) if items else None if isinstance(data, list) else ""
        return item if field is None else field_getter(field)(item)
    most = limit_in(run, count) or 0
    return (items[-most:] if most else []) if is_last else items[:most]
