"""Script tables: rows are stored unchanged, found by filters, and separate for each chat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.clock import VirtualClock
from services.refs import JsonObject
from services.scripts.errors import DataError
from services.scripts.filter_texts import filter_of
from services.scripts.filters import Filter
from services.scripts.tables import (
    MOST_RESULTS,
    Merged,
    ScriptTables,
    TableLimits,
    table_place,
)
from services.store.chats.script_data import SCRIPT_ROWS
from services.store.ids import Ids
from tests.fakes.sqlite_store import a_store

PEOPLE = table_place("default", "chat", "people")
CLOCK = VirtualClock()
NOW = CLOCK.now()


@pytest.fixture
async def tables(tmp_path: Path) -> AsyncIterator[ScriptTables]:
    async with a_store(tmp_path, CLOCK, [SCRIPT_ROWS]) as store:
        yield ScriptTables(store, Ids(CLOCK), CLOCK)


async def names(tables: ScriptTables, text: str = "", place: Any = PEOPLE, most: int = MOST_RESULTS) -> list[Any]:
    return [row.get("name") for row in (await tables.find(place, filter_of(text), NOW, most)).rows]


async def test_rows_are_found_in_the_order_in_which_they_came(tables: ScriptTables) -> None:
    for name in ("Zoe", "Ann", "Bob"):
        await tables.save(PEOPLE, [{"name": name}])
    await tables.update(PEOPLE, filter_of("name=Zoe").condition, {"age": 3}, NOW)
    assert await names(tables) == ["Zoe", "Ann", "Bob"]


async def test_ids_are_made_where_none_is_given_and_come_with_the_row(tables: ScriptTables) -> None:
    first, second = await tables.save(PEOPLE, [{"name": "Ann"}, {"name": "Bob", "id": None}])
    assert first != second
    (row,) = (await tables.find(PEOPLE, filter_of(f"id='{second}'"), NOW, 5)).rows
    assert row == {"id": second, "name": "Bob"}


async def test_a_row_with_an_id_that_is_there_gets_the_new_fields_beside_its_own(tables: ScriptTables) -> None:
    assert await tables.save(PEOPLE, [{"ID": 7, "Name": "Ann", "age": 3}]) == ["7"]
    assert await tables.save(PEOPLE, [{"id": "7", "name": "Anna", "city": "Oslo"}]) == ["7"]
    assert (await tables.find(PEOPLE, Filter(), NOW, 5)).rows == [{"ID": 7, "Name": "Anna", "age": 3, "city": "Oslo"}]


async def test_an_inserted_row_is_never_one_that_is_there(tables: ScriptTables) -> None:
    await tables.insert(PEOPLE, [{"id": "a", "name": "Ann"}])
    with pytest.raises(DataError, match="row_exists"):
        await tables.insert(PEOPLE, [{"id": "b"}, {"id": "a", "name": "Eve"}])
    with pytest.raises(DataError, match="row_exists"):
        await tables.insert(PEOPLE, [{"id": "c"}, {"id": "c"}])
    assert await names(tables) == ["Ann"]


async def test_nothing_of_one_chat_or_bot_is_seen_in_another(tables: ScriptTables) -> None:
    others = [
        table_place("default", "other chat", "people"),
        table_place("other", "chat", "people"),
        table_place("default", "", "people"),
        table_place("default", "chat", "people2"),
    ]
    await tables.save(PEOPLE, [{"id": "1", "name": "Ann"}])
    for place in others:
        assert await names(tables, place=place) == []
        assert await tables.update(place, None, {"name": "x"}, NOW) == 0
        assert await tables.delete(place, None, NOW) == 0
        await tables.save(place, [{"id": "1", "name": "other"}])
    assert await names(tables) == ["Ann"]


async def test_a_tables_name_is_the_same_in_any_letter_case(tables: ScriptTables) -> None:
    await tables.save(table_place("default", "chat", " People "), [{"name": "Ann"}])
    assert await names(tables) == ["Ann"]


async def test_more_than_asked_for_is_cut_and_said(tables: ScriptTables) -> None:
    await tables.save(PEOPLE, [{"name": str(number), "n": number} for number in range(20)])
    found = await tables.find(PEOPLE, filter_of("n >= 5"), NOW, 10)
    assert ([row["n"] for row in found.rows], found.is_cut) == (list(range(5, 15)), True)
    found = await tables.find(PEOPLE, filter_of("n >= 5 ORDER BY n DESC"), NOW, 10)
    assert ([row["n"] for row in found.rows], found.is_cut) == (list(range(19, 9, -1)), True)
    found = await tables.find(PEOPLE, filter_of("n >= 5 LIMIT 3"), NOW, 10)
    assert ([row["n"] for row in found.rows], found.is_cut) == ([5, 6, 7], False)
    assert not (await tables.find(PEOPLE, filter_of("n >= 10"), NOW, 10)).is_cut


async def test_rows_over_several_pages_are_all_found(tables: ScriptTables) -> None:
    await tables.save(PEOPLE, [{"id": number, "name": number} for number in range(1201)])
    assert await names(tables) == list(range(1201))
    assert await tables.update(PEOPLE, filter_of("name >= 1100").condition, {"old": True}, NOW) == 101
    assert await tables.delete(PEOPLE, filter_of("old = true").condition, NOW) == 101
    assert await names(tables, "name > 1097") == [1098, 1099]


async def test_rows_are_merged_by_the_fields_that_tell_them_apart(tables: ScriptTables) -> None:
    await tables.save(PEOPLE, [{"id": "a", "Email": "ann@x", "city": "Oslo", "age": 3}])
    new: list[JsonObject] = [{"email": "ann@x", "id": "z", "age": 4}, {"email": "bob@x"}, {"email": "bob@x", "age": 9}]
    assert await tables.merge(PEOPLE, new, ["email"], None) == Merged(inserted=1, updated=2)
    rows = (await tables.find(PEOPLE, Filter(), NOW, 5)).rows
    assert rows[0] == {"id": "a", "Email": "ann@x", "city": "Oslo", "age": 4}
    assert {**rows[1], "id": ""} == {"id": "", "email": "bob@x", "age": 9}
    await tables.merge(PEOPLE, [{"email": "ann@x", "age": 5, "city": "Rome"}], ["email"], ["city"])
    assert (await tables.find(PEOPLE, Filter(), NOW, 1)).rows[0]["age"] == 4
    with pytest.raises(DataError, match="no_key"):
        await tables.merge(PEOPLE, [{"email": "eve@x"}, {"email": ""}], ["email"], None)
    assert len(await names(tables)) == 2


async def test_a_unit_with_one_bad_row_changes_nothing(tables: ScriptTables) -> None:
    large = {"name": "x" * 16_000}
    for bad, error in ((large, "too_large"), ({"n": float("nan")}, "not_keepable"), ({"id": []}, "bad_id")):
        with pytest.raises(DataError, match=error):
            await tables.save(PEOPLE, [{"name": "Ann"}, bad])
    with pytest.raises(DataError, match="bad_table"):
        table_place("default", "chat", " ")
    assert await names(tables) == []


async def test_limits_hold_and_leave_what_is_there(tmp_path: Path) -> None:
    async with a_store(tmp_path, CLOCK, [SCRIPT_ROWS]) as store:
        await limits_hold(ScriptTables(store, Ids(CLOCK), CLOCK, TableLimits(rows=5, tables=2, table_bytes=4000)))


async def limits_hold(tables: ScriptTables) -> None:
    async def overflow(place: Any, rows: list[JsonObject]) -> str:
        with pytest.raises(DataError, match="table_full") as raised:
            await tables.save(place, rows)
        return raised.value.problem.value.partition(".")[2]

    await tables.save(PEOPLE, [{"id": number} for number in range(4)])
    assert await overflow(PEOPLE, [{}, {}]) == "rows"
    assert await overflow(PEOPLE, [{} for _ in range(6)]) == "rows"
    assert await overflow(PEOPLE, [{"text": "x" * 4000}]) == "bytes"
    assert await overflow(PEOPLE, [{"id": 0, "text": "x" * 4000}]) == "bytes"
    assert len(await names(tables)) == 4
    await tables.save(table_place("default", "chat", "second"), [{}])
    third = table_place("default", "chat", "third")
    assert await overflow(third, [{}]) == "tables"
    await tables.save(table_place("default", "other chat", "third"), [{}])
    await tables.save(PEOPLE, [{}])
    assert await tables.delete(table_place("default", "chat", "second"), None, NOW) == 1
    await tables.save(third, [{}])


async def test_runs_that_change_the_same_row_at_once_all_count(tables: ScriptTables) -> None:
    await tables.save(PEOPLE, [{"id": "1"}])
    changes = [tables.update(PEOPLE, filter_of("id=1").condition, {f"f{n}": n}, NOW) for n in range(3)]
    merges = [tables.merge(PEOPLE, [{"key": "k", f"g{n}": n}], ["key"], None) for n in range(2)]
    async with asyncio.timeout(10):
        assert await asyncio.gather(*changes) == [1, 1, 1]
        await asyncio.gather(*merges)
    first, *others = (await tables.find(PEOPLE, Filter(), NOW, 10)).rows
    assert first == {"id": "1", "f0": 0, "f1": 1, "f2": 2}
    assert {name for row in others for name in row} == {"id", "key", "g0", "g1"}


async def test_rows_outlive_a_restart(tmp_path: Path) -> None:
    async with a_store(tmp_path, CLOCK, [SCRIPT_ROWS]) as store:
        await ScriptTables(store, Ids(CLOCK), CLOCK).save(PEOPLE, [{"name": "Ann \ud800 \0"}])
    async with a_store(tmp_path, CLOCK, [SCRIPT_ROWS]) as store:
        assert await names(ScriptTables(store, Ids(CLOCK), CLOCK)) == ["Ann \ud800 \0"]


IDS = st.sampled_from(["a", "b", "c", 1, "1", "01"])
FIELDS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([1, 2, "1", "z", None]), max_size=2)
ROWS = st.lists(st.builds(lambda row_id, fields: {"id": row_id, **fields}, IDS, FIELDS), min_size=1, max_size=3)
FILTERS = st.sampled_from(["", "x = 1", "x <> 1", "y = z", "id = 'a'", "id = '1'", "x is null", "x=1 and id='b'"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), ROWS),
        st.tuples(st.just("insert"), ROWS),
        st.tuples(st.just("update"), FILTERS, FIELDS),
        st.tuples(st.just("delete"), FILTERS),
        st.tuples(st.just("merge"), st.lists(FIELDS.filter(lambda one: one.get("y") is not None), max_size=2)),
    ),
    max_size=8,
)


class Model:
    """The same table as a plain list."""

    def __init__(self) -> None:
        self.rows: list[JsonObject] = []

    def fits(self, text: str, row: JsonObject) -> bool:
        x, y, key = row.get("x"), row.get("y"), str(row["id"])
        return {
            "": True,
            "x = 1": x in (1, "1"),
            "x <> 1": x not in (1, "1"),
            "y = z": y == "z",
            "id = 'a'": key == "a",
            "id = '1'": key == "1",
            "x is null": x is None,
            "x=1 and id='b'": x in (1, "1") and key == "b",
        }[text]

    def at(self, key: str) -> JsonObject | None:
        return next((row for row in self.rows if str(row["id"]) == key), None)

    def save(self, rows: list[JsonObject]) -> None:
        for row in rows:
            there = self.at(str(row["id"]))
            if there is None:
                self.rows.append(dict(row))
            else:
                there.update({name: value for name, value in row.items() if name != "id"})


async def step(tables: ScriptTables, model: Model, what: tuple[Any, ...]) -> None:
    match what:
        case ("save", rows):
            model.save(rows)
            assert await tables.save(PEOPLE, rows) == [str(row["id"]) for row in rows]
        case ("insert", rows):
            ids = [str(row["id"]) for row in rows]
            if len(set(ids)) < len(ids) or any(model.at(one) for one in ids):
                with pytest.raises(DataError, match="row_exists"):
                    await tables.insert(PEOPLE, rows)
            else:
                model.save(rows)
                await tables.insert(PEOPLE, rows)
        case ("update", text, fields):
            fitting = [row for row in model.rows if model.fits(text, row)]
            for row in fitting:
                row.update(fields)
            assert await tables.update(PEOPLE, filter_of(text).condition, fields, NOW) == len(fitting)
        case ("delete", text):
            left = [row for row in model.rows if not model.fits(text, row)]
            assert await tables.delete(PEOPLE, filter_of(text).condition, NOW) == len(model.rows) - len(left)
            model.rows = left
        case ("merge", rows):
            await merge_step(tables, model, rows)


async def merge_step(tables: ScriptTables, model: Model, rows: list[JsonObject]) -> None:
    done = await tables.merge(PEOPLE, rows, ["y"], None)
    assert done.inserted + done.updated == len(rows)
    for row in rows:
        there = next((one for one in model.rows if str(one.get("y")) == str(row["y"])), None)
        if there is not None:
            there.update(row)
        else:
            model.rows.append({"id": None, **row})
    kept = (await tables.find(PEOPLE, Filter(), NOW, 1000)).rows
    for made, one in zip(kept, model.rows, strict=True):
        one["id"] = made["id"] if one["id"] is None else one["id"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_a_table_is_a_list_of_rows(tables: ScriptTables, steps: list[tuple[Any, ...]]) -> None:
    await tables.delete(PEOPLE, None, NOW)
    model = Model()
    for what in steps:
        await step(tables, model, what)
        assert (await tables.find(PEOPLE, Filter(), NOW, 1000)).rows == model.rows
