"""Keywords for rows in a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keyword_modules import records, tables
from function_calls.basic.keyword_modules._rows import RowSources
from function_calls.basic.run.model import ModelOfScripts
from function_calls.basic.run.web import WebOfScripts
from services.clock import Clock, VirtualClock
from services.scripts.files import LocalScriptFiles
from services.scripts.tables import ScriptTables
from services.store.chats.script_data import SCRIPT_ROWS
from services.store.ids import Ids
from tests.fakes.script_runs import a_run
from tests.fakes.sqlite_store import a_store
from tests.function_calls.script_keywords.saying import Saying

ORDERS = [
    {"id": 1, "customer": "a", "city": "Oslo", "total": 10, "day": "2026-01-02"},
    {"id": 2, "customer": "b", "city": "Rome", "total": "2.5", "day": "2026-01-10"},
    {"id": 3, "customer": "a", "city": "Oslo", "total": None, "day": "2026-02-01"},
    {"id": 4, "customer": "c", "city": "", "total": 0.1, "day": ""},
]
CUSTOMERS = [{"customer": "a", "name": "Ann", "city": "Bergen"}, {"customer": "b", "name": "Bob"}, {"customer": "z"}]


@pytest.fixture
async def say(tmp_path: Path) -> AsyncIterator[Saying]:
    clock = VirtualClock()
    async with a_store(tmp_path, clock, [SCRIPT_ROWS]) as store:
        services: dict[type, object] = {
            ScriptTables: (script_tables := ScriptTables(store, Ids(clock), clock)),
            RowSources: RowSources(script_tables, LocalScriptFiles([]), clock),
            LocalScriptFiles: LocalScriptFiles([]),
            WebOfScripts: None,
            ModelOfScripts: None,
            Clock: clock,
        }
        yield Saying([records, tables], services)


async def done(say: Saying, statement: str, **variables: Any) -> Any:
    return await say(a_run(), statement, orders=ORDERS, customers=CUSTOMERS, **variables)


def ids(rows: Any) -> list[Any]:
    return [row["id"] for row in rows]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ('FILTER orders, "total >= 1"', [1, 2]),
        ('FILTER(orders, "city = Oslo")', [1, 3]),
        ('FILTER orders WHERE city = "Oslo" AND total > 1', [1]),
        ('FILTER orders, "total > 0 ORDER BY total LIMIT 2"', [4, 2]),
        ('SORT orders BY "total"', [4, 2, 1, 3]),
        ("SORT orders BY total DESC", [1, 2, 4, 3]),
        ('SORT orders, "day", "desc"', [3, 2, 1, 4]),
        ("FIRST orders, 2", [1, 2]),
        ("LAST orders, 2", [3, 4]),
        ("FIRST orders, 0", []),
        ("LAST orders, 0", []),
    ],
)
async def test_rows_are_chosen_and_put_in_order(say: Saying, statement: str, found: list[int]) -> None:
    assert ids(await done(say, statement)) == found


@pytest.mark.parametrize(
    ("statement", "total"),
    [
        ('AGGREGATE "SUM", orders, "total"', 12.6),
        ('AGGREGATE "sum", orders, "id"', 10),
        ('AGGREGATE "AVG", orders, "total"', 4.2),
        ('AGGREGATE "AVERAGE", nothing, "total"', 0),
        ('AGGREGATE "COUNT", orders, "total"', 3),
        ('AGGREGATE "COUNT", orders', 4),
        ('AGGREGATE "MIN", orders, "total"', 0.1),
        ('AGGREGATE "MAX", orders, "day"', "2026-02-01"),
        ('AGGREGATE "SUM", orders, "total", "city = Oslo"', 10),
        ("AGGREGATE orders SUM total", 12.6),
        ('AGGREGATE orders COUNT WHERE city = "Oslo"', 2),
        ("AGGREGATE orders AVERAGE total WHERE total > 1", 6.25),
    ],
)
async def test_a_total_is_made_of_a_field(say: Saying, statement: str, total: Any) -> None:
    expected = pytest.approx(total) if isinstance(total, float) else total
    assert await done(say, statement) == expected


PRICES = [{"what": "tea", "price": "12,50"}, {"what": "cake", "price": "1.234,50 €"}, {"what": "gift", "price": ""}]


async def test_amounts_of_a_sheet_are_read_as_people_write_them(say: Saying) -> None:
    for how, total in {"SUM": 1247, "AVG": 623.5, "MIN": 12.5, "MAX": 1234.5}.items():
        assert await say(a_run(), f'AGGREGATE "{how}", prices, "price"', prices=PRICES) == total
    [group, *_] = await say(a_run(), 'GROUP BY prices, "what", sums', prices=PRICES, sums={"total": "SUM(price)"})
    assert group["total"] == 12.5
    thousands = [{"n": "1.500"}, {"n": "2,50"}]
    assert await say(a_run(), 'AGGREGATE "SUM", rows, "n"', rows=thousands) == 1502.5


@pytest.mark.parametrize("how", ["SUM", "AVG"])
async def test_a_total_of_what_is_no_number_names_the_row_and_the_column(say: Saying, how: str) -> None:
    rows = [*PRICES, {"what": "secret-canary", "price": "free-canary"}]
    with pytest.raises(RunError) as caught:
        await say(a_run(), f'AGGREGATE "{how}", rows, "price"', rows=rows)
    assert caught.value.detail == "In row 4, the column price has a text instead of a number."


@pytest.mark.parametrize("how", ["SUM", "AVG", "MIN", "MAX", "COUNT"])
async def test_a_total_of_a_column_that_no_row_has_names_those_that_there_are(say: Saying, how: str) -> None:
    with pytest.raises(RunError) as caught:
        await say(a_run(), f'AGGREGATE "{how}", prices, "pricse"', prices=PRICES)
    assert caught.value.detail == "No row has a column pricse. The columns are: what, price."


@pytest.mark.parametrize(
    "statement",
    [
        'AGGREGATE "orders", "COUNT", "id", "city = Oslo"',
        'AGGREGATE "COUNT", "orders", "id", "city = Oslo"',
        'AGGREGATE "orders" COUNT WHERE city = "Oslo"',
    ],
)
async def test_the_name_of_a_table_stands_for_its_rows(say: Saying, statement: str) -> None:
    await done(say, 'SAVE "orders", orders')
    assert await say(a_run(), statement) == 2
    assert ids(await say(a_run(), 'SORT "orders" BY total')) == [4, 2, 1, 3]
    assert ids(await say(a_run(), 'FILTER "orders", "total > 5"')) == [1]


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ('MAP rows, "a->x"', [{"x": 1, "b": 2}]),
        ('MAP rows, "A -> x, b->y"', [{"x": 1, "y": 2}]),
        ('MAP rows, "b, c"', [{"b": 2, "c": None}]),
        ('MAP rows, "b, a->x"', [{"b": 2, "x": 1}]),
        ('FILL rows, { "text": "{{a}} and {{ B }}{{c}}", "n": 5 }', [{"text": "1 and 2", "n": 5}]),
        ('FILL "Hello {{a}}!", row', "Hello 1!"),
        ('FILL row, "Hello {{a}}!"', "Hello 1!"),
        ('JOIN names, "; "', "Ann; 5"),
        ("JOIN(names)", "Ann, 5"),
        ("FIRST names", "Ann"),
        ("LAST names", 5),
        ("FIRST nothing_at_all", ""),
        ('FIRST "Ann Smith"', "Ann"),
        ('LAST rows, "b"', 2),
    ],
)
async def test_rows_are_turned_into_others(say: Saying, statement: str, rows: Any) -> None:
    row = {"a": 1, "b": 2}
    assert await done(say, statement, rows=[row], row=row, names=["Ann", 5]) == rows
    assert row == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("kind", "pairs"),
    [
        ("inner", [(1, "Ann"), (2, "Bob"), (3, "Ann")]),
        ("left", [(1, "Ann"), (2, "Bob"), (3, "Ann"), (4, None)]),
        ("RIGHT", [(1, "Ann"), (2, "Bob"), (3, "Ann"), (None, None)]),
        ("full", [(1, "Ann"), (2, "Bob"), (3, "Ann"), (4, None), (None, None)]),
    ],
)
async def test_lists_are_joined_by_a_field(say: Saying, kind: str, pairs: list[Any]) -> None:
    rows = await done(say, 'JOIN orders, customers, "customer", kind', kind=kind)
    assert [(row.get("id"), row.get("name")) for row in rows] == pairs
    assert rows[0]["city"] == "Oslo"
    other = [{"CUSTOMER_ID": "a", "x": 1}]
    assert [row["x"] for row in await done(say, 'JOIN orders, other, "customer=customer_id"', other=other)] == [1, 1]


async def test_rows_are_grouped_with_totals(say: Saying) -> None:
    groups = await done(say, 'GROUP BY orders, "customer", { "sum": "SUM(total)", "n": "COUNT(*)" }')
    assert [(group["key"], group["customer"], group["count"], group["sum"], group["n"]) for group in groups] == [
        ("a", "a", 2, 10, 2),
        ("b", "b", 1, 2.5, 1),
        ("c", "c", 1, 0.1, 1),
    ]
    assert ids(groups[0]["items"]) == [1, 3]
    assert [group["key"] for group in await done(say, 'GROUP BY orders, "customer, city"')] == [
        "a, Oslo",
        "b, Rome",
        "c, ",
    ]


async def test_rows_are_turned_into_columns(say: Saying) -> None:
    rows = await done(say, 'PIVOT orders, "customer", "city", "total"')
    assert rows[0] == {"customer": "a", "row_header": "a", "Oslo": 10, "Rome": 0, "": 0}
    assert await done(say, 'PIVOT orders, "city", "id"') == [
        {"city": "Oslo", "row_header": "Oslo", "id": 4},
        {"city": "Rome", "row_header": "Rome", "id": 2},
        {"city": "", "row_header": "", "id": 4},
    ]


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ('AGGREGATE "MEDIAN", orders, "total"', RunCode.BAD_VALUE, "“MEDIAN” is not a total"),
        ('PIVOT orders, "a", "b", "c", "x"', RunCode.BAD_VALUE, "“x” is not a total"),
        ('GROUP BY orders, "a", { "x": "SUM" }', RunCode.BAD_VALUE, "“SUM” is not a total"),
        ('JOIN orders, customers, "customer", "cross"', RunCode.BAD_VALUE, "inner, left, right or full"),
        ('MAP orders, "a->"', RunCode.BAD_VALUE, "names no fields"),
        ('FILL 5, "x"', RunCode.WRONG_TYPE, "FILL needs"),
        ('FILTER 5, "a=1"', RunCode.WRONG_TYPE, "Rows are needed"),
        ('GROUP BY orders, ""', RunCode.WRONG_TYPE, "name of a field"),
        ('JOIN long, long, "x"', RunCode.MEMORY, "too many values"),
        ('PIVOT long, "x", "n", "n"', RunCode.MEMORY, "too many values to be columns"),
        ("FILL long, text", RunCode.MEMORY, "too large"),
    ],
)
async def test_what_cannot_be_done_is_said_plainly(say: Saying, statement: str, code: RunCode, words: str) -> None:
    long = [{"x": 1, "n": number} for number in range(300)]
    with pytest.raises(RunError, match=words) as raised:
        await done(say, statement, long=long, text="{{x}}" * 5000)
    assert raised.value.code is code


MANY_ROWS: list[Any] = [{"a": f"g{number}", "b": f"c{number % 190}", "n": number} for number in range(6000)]


@pytest.mark.parametrize(
    "statement",
    [
        'PIVOT many, "a", "b", "n"',
        'JOIN many, many, "b"',
        'GROUP BY many, "a", #{a1: "SUM(n)", a2: "SUM(n)", a3: "MAX(n)", a4: "MIN(n)", a5: "AVG(n)", a6: "COUNT(*)", '
        'b1: "SUM(n)", b2: "SUM(n)", b3: "MAX(n)", b4: "MIN(n)", b5: "AVG(n)", b6: "COUNT(*)", c1: "SUM(n)"}',
    ],
)
async def test_what_would_make_too_much_is_refused_before_it_is_made(say: Saying, statement: str) -> None:
    with pytest.raises(RunError, match="too many values") as raised:
        await done(say, statement, many=MANY_ROWS)
    assert raised.value.code is RunCode.MEMORY


@pytest.mark.parametrize(
    "statement",
    [
        'GROUP BY many, "b"',
        'PIVOT many, "b", "c", "n"',
        'JOIN many, few, "b"',
        'SORT many BY "a" DESC',
        'AGGREGATE "SUM", many, "n"',
        'MAP many, "a->x"',
    ],
)
async def test_while_many_rows_are_worked_on_others_have_their_turn(say: Saying, statement: str) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await done(say, statement, many=MANY_ROWS, few=[{"b": "c1", "x": 1}])
    task.cancel()
    assert turns


async def test_many_rows_are_sorted_as_few_are_and_those_that_are_equal_keep_their_order(say: Saying) -> None:
    rows = [{"id": number, "by": number * 7919 % 50} for number in range(5000)]
    up = await done(say, 'SORT many BY "by"', many=rows)
    assert up == sorted(rows, key=lambda row: row["by"])
    down = await done(say, 'SORT many BY "by" DESC', many=rows)
    assert down == sorted(rows, key=lambda row: row["by"], reverse=True)
