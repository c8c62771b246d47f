"""Script keywords for tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keyword_modules import tables
from function_calls.basic.keyword_modules._rows import RowSources
from function_calls.basic.keywords import Grants, ScriptRun
from function_calls.basic.run.model import ModelOfScripts
from function_calls.basic.run.web import WebOfScripts
from function_calls.basic.values import set_member
from services.clock import Clock, VirtualClock
from services.refs import ChatRef, JsonObject
from services.scripts.files import LocalScriptFiles, ScriptFolder
from services.scripts.tables import ScriptTables
from services.store.chats.script_data import SCRIPT_ROWS
from services.store.ids import Ids
from tests.fakes.builders import a_message
from tests.fakes.script_runs import Heard, a_run
from tests.fakes.sqlite_store import a_store
from tests.function_calls.script_keywords.saying import Saying

WORK = ChatRef("test", "bot", "work")
PEOPLE = "id;Name;age\n1;Ann;31\n2;Bob;29\n3;Zoë;31\n"


class Web:
    """Records web deletions."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def delete(self, run: ScriptRun, url: str) -> JsonObject:
        self.deleted.append(url)
        return {"status": 204}


class Model:
    """A model that extracts a name from each text."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def extract(self, run: ScriptRun, text: str, fields: Sequence[str]) -> JsonObject:
        self.asked.append((text, tuple(fields)))
        return {"name": text.split()[0]}


WEB, MODEL = Web(), Model()


@pytest.fixture
async def say(tmp_path: Path) -> AsyncIterator[Saying]:
    clock = VirtualClock()
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "people.csv").write_text(PEOPLE)
    (scripts / "sheet.xlsx").write_bytes(b"PK")
    (scripts / "bad.csv").write_bytes(b"a,b\n\0")
    async with a_store(tmp_path, clock, [SCRIPT_ROWS]) as store:
        services: dict[type, object] = {
            ScriptTables: (script_tables := ScriptTables(store, Ids(clock), clock)),
            RowSources: RowSources(script_tables, LocalScriptFiles([ScriptFolder(scripts, "default")]), clock),
            WebOfScripts: WEB,
            ModelOfScripts: MODEL,
            Clock: clock,
        }
        yield Saying([tables], services)


async def names(say: Saying, statement: str = 'FIND "people"', **variables: Any) -> list[Any]:
    return [row.get("name", row.get("Name")) for row in await say(a_run(), statement, **variables)]


async def fill(say: Saying) -> None:
    for number, (name, age) in enumerate((("Ann", 31), ("Bob", 29), ("Eve", 40)), 1):
        await say(a_run(), 'SAVE "people", number, row', number=number, row={"name": name, "age": age})


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ('SAVE "people", person', {"name": "Ann", "age": 31}),
        ("SAVE people, person", {"name": "Ann", "age": 31}),
        ('SAVE "people", { "name": "Ann", "age": 30 + 1 }', {"name": "Ann", "age": 31}),
        ('SAVE "people", "x1", person', {"id": "x1", "name": "Ann", "age": 31}),
        ('SAVE "people", nothing, person', {"name": "Ann", "age": 31}),
        ('SAVE "people", id, name, age', {"id": 7, "name": "Ann", "age": 31}),
        (
            'SAVE "people", person.name, person["age"], "active", 5',
            {"name": "Ann", "age": 31, "column3": "active", "column4": 5},
        ),
        ('SAVE "people", person.name, other.name', {"name": "Ann", "name_2": "Bob"}),
        ('INSERT INTO people (name, age) VALUES ("Ann", 31)', {"name": "Ann", "age": 31}),
        ('INSERT INTO "people" VALUES person', {"name": "Ann", "age": 31}),
        ('INSERT "people", person', {"name": "Ann", "age": 31}),
        ('INSERT INTO "people", name, age, "x"', {"name": "Ann", "age": 31, "column3": "x"}),
        ('INSERT people SET name = "Ann", age = 31', {"name": "Ann", "age": 31}),
        ('SAVE "people" WITH name AS name, age AS 30 + 1', {"name": "Ann", "age": 31}),
        ('SAVE_FROM_UNSTRUCTURED "people", FORMAT person AS JSON', {"name": "Ann", "age": 31}),
        ('SAVE_FROM_UNSTRUCTURED "people", text', {"name": "Ann", "age": 31}),
    ],
)
async def test_a_row_is_kept_in_every_form(say: Saying, statement: str, row: JsonObject) -> None:
    made = await say(
        a_run(), statement, person={"name": "Ann", "age": 31}, other={"name": "Bob"}, id=7, name="Ann", age=31,
        text='{"name": "Ann", "age": 31}',
    )  # fmt: skip
    (kept,) = await say(a_run(), 'FIND "people"')
    assert {**kept, "id": row.get("id")} == {"id": None, **row}
    assert made == str(kept["id"])


async def test_a_list_is_kept_row_by_row(say: Saying) -> None:
    ids = await say(a_run(), 'SAVE "people", list', list=[{"name": "Ann"}, {"name": "Bob"}])
    assert len(ids) == 2
    assert await names(say) == ["Ann", "Bob"]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ('SAVE "people", rec.id, rec', "Ada"),
        ('SAVE "people", "1", rec', "Ada"),
        ('SAVE "people", rec', "Ada"),
        ('UPDATE "people", "id = 1", rec', "Ada"),
        ('UPDATE "people", rec.id, rec', "Ada"),
        ('MERGE "people", rec, "id"', "Ada"),
    ],
)
async def test_of_the_rows_that_were_found_the_first_one_is_the_row_that_is_meant(
    say: Saying, statement: str, name: str
) -> None:
    await fill(say)
    found = await say(a_run(), 'FIND "people", "name = \'Ann\'"')
    await say(a_run(), statement, rec=set_member(found, "name", "Ada"))
    assert await names(say, 'FIND "people", "ORDER BY id"') == [name, "Bob", "Eve"]


async def test_a_list_that_is_no_row_of_a_table_stays_the_value_of_its_column(say: Saying) -> None:
    await say(a_run(), 'SAVE "orders", number, items', number=7, items=[{"id": "pear", "count": 2}])
    (order,) = await say(a_run(), 'FIND "orders"')
    assert (order["number"], order["items"]) == (7, [{"id": "pear", "count": 2}])


async def test_a_row_that_was_found_can_be_merged_with_a_map(say: Saying) -> None:
    rows = [{"id": "1", "a": 1}, {"id": "2"}]
    assert await say(a_run(), "MERGE { z: 1 }, rec", rec=rows) == {"z": 1, "id": "1", "a": 1}
    assert await say(a_run(), "MERGE rec, { z: 1 }", rec=rows) == {"id": "1", "a": 1, "z": 1}
    assert await say(a_run(), "MERGE { z: 1 }, rec", rec=[]) == {"z": 1}


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ('FIND "people"', ["Ann", "Bob", "Eve"]),
        ("FIND people", ["Ann", "Bob", "Eve"]),
        ('FIND ALL "people"', ["Ann", "Bob", "Eve"]),
        ('FIND "people", "age > 30"', ["Ann", "Eve"]),
        ('FIND "people", "age > 30", 1', ["Ann"]),
        ('FIND "people", "name=" + name', ["Bob"]),
        ('FIND "people", "name", name', ["Bob"]),
        ('FIND "people" WITH "name = \'" + name + "\'"', ["Bob"]),
        ('FIND "people", id', ["Bob"]),
        ('FIND "people", "2"', ["Bob"]),
        ('FIND "people", nothing', []),
        ('FIND "people", { "age": 29, "name": "Bob" }', ["Bob"]),
        ('FIND "people", "age > 20 ORDER BY age DESC LIMIT 2"', ["Eve", "Ann"]),
        ('FIND "people" WHERE name = name', ["Bob"]),
        ('FIND people WHERE age >= 31 AND NOT name = "Eve"', ["Ann"]),
        ('FIND "people" WHERE name LIKE "%" + part + "%"', ["Bob"]),
        ('FIND "people" WHERE name IS NULL OR age IN [29, 40]', ["Bob", "Eve"]),
        ('FIND "people" WHERE age > 20 ORDER BY age', ["Bob", "Ann", "Eve"]),
        ('FIND "people" ORDER BY age DESC LIMIT 2', ["Eve", "Ann"]),
        ('FIND "people" WHERE id = 1 OR name LIKE "Ann" FIRST', ["Ann"]),
        ('FIND "nobody"', []),
    ],
)
async def test_rows_are_found_in_every_form(say: Saying, statement: str, found: list[str]) -> None:
    await fill(say)
    assert await names(say, statement, name="Bob", id=2, part="o") == found


@pytest.mark.parametrize(
    ("statement", "count", "ages"),
    [
        ('UPDATE "people" SET age = 5 WHERE name = "Ann"', 1, [5, 29, 40]),
        ("UPDATE people SET age = 5", 3, [5, 5, 5]),
        ('UPDATE "people" WITH age AS 5, city AS city WHERE id = id', 1, [31, 5, 40]),
        ('UPDATE "people" SET age = age + 1 WHERE name = "Nobody"', 0, [31, 29, 40]),
        ('UPDATE "people", "age > 30", changes', 2, [5, 29, 5]),
        ('UPDATE "people", 2, changes', 1, [31, 5, 40]),
        ('UPDATE "people", id, "age", 5', 1, [31, 5, 40]),
        ('UPDATE "people", "name=Eve", age, city', 1, [31, 29, 5]),
        ("DELETE FROM people WHERE age > 30", 2, [29]),
        ('DELETE FROM "people", "age > 30"', 2, [29]),
        ('DELETE "people", "age > 30"', 2, [29]),
        ("DELETE people WHERE age > 30", 2, [29]),
        ("DELETE FROM people", 3, []),
        ('DELETE "people", 2', 1, [31, 40]),
    ],
)
async def test_rows_are_changed_in_every_form(say: Saying, statement: str, count: int, ages: list[int]) -> None:
    await fill(say)
    assert await say(a_run(), statement, changes={"age": 5}, id="2", age=5, city="Oslo") == count
    assert [row["age"] for row in await say(a_run(), 'FIND "people"')] == ages


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE "people", nothing, changes',
        'UPDATE "people", "", changes',
        'DELETE "people", nothing',
        'DELETE FROM "people", " "',
        'DELETE "people", {}',
    ],
)
async def test_an_id_that_is_not_known_never_means_all_rows(say: Saying, statement: str) -> None:
    await fill(say)
    with pytest.raises(RunError, match="nothing was changed"):
        await say(a_run(), statement, changes={"age": 5})
    assert [row["age"] for row in await say(a_run(), 'FIND "people"')] == [31, 29, 40]


@pytest.mark.parametrize(
    "statement",
    ['MERGE "people" WITH list BY "name"', "MERGE people WITH list BY name", 'MERGE "people", list, "name"'],
)
async def test_rows_are_merged_in_every_form(say: Saying, statement: str) -> None:
    await fill(say)
    done = await say(a_run(), statement, list=[{"name": "Bob", "age": 30}, {"name": "Zoe"}])
    assert done == {"inserted": 1, "updated": 1}
    assert await names(say) == ["Ann", "Bob", "Eve", "Zoe"]


async def test_two_lists_or_maps_are_merged_to_one(say: Saying) -> None:
    merged = await say(a_run(), "MERGE a, b", a=[{"id": 1}, {"id": 2}], b=[{"id": 2}, {"id": 3}])
    assert merged == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert await say(a_run(), "MERGE a, b", a={"x": 1, "y": 1}, b={"Y": 2, "z": 3}) == {"x": 1, "y": 2, "z": 3}
    assert await say(a_run(), "MERGE a, b", b=[1]) == [1]


async def test_a_table_belongs_to_its_chat_unless_the_operator_shares_it(say: Saying) -> None:
    shared = Grants(shared_tables=("products*",))
    elsewhere = a_run(a_message(chat=WORK), grants=shared)
    for table in ("people", "products_new"):
        await say(a_run(grants=shared), f'SAVE "{table}", row', row={"name": "x"})
    assert await say(elsewhere, 'FIND "people"') == []
    assert len(await say(elsewhere, 'FIND "Products_New"')) == 1
    assert await say(a_run(a_message(chat=WORK), grants=shared, bot="other"), 'FIND "products_new"') == []


async def test_found_rows_count_as_words_of_others(say: Saying) -> None:
    run = a_run()
    await say(run, 'FIND "people"')
    assert not run.has_outside_text
    await fill(say)
    await say(run, 'FIND "people"')
    assert run.has_outside_text


async def test_a_file_beside_the_script_is_a_table_too(say: Saying) -> None:
    run = a_run()
    assert await say(run, 'FIND "people.csv", "age = 31 ORDER BY name DESC"') == [
        {"id": "3", "Name": "Zoë", "age": "31"},
        {"id": "1", "Name": "Ann", "age": "31"},
    ]
    assert not run.has_outside_text
    assert (await say(run, 'FIND "people.csv" WHERE id = 2'))[0]["Name"] == "Bob"
    assert len(await say(run, 'FIND "people.csv" LIMIT 2')) == 2
    assert len(await say(run, 'FIND "people.csv" LIMIT 10001')) == 3
    await say(run, 'SAVE "people.csv", row', row={"id": 4, "name": "New", "age": 31})
    assert await names(say, 'FIND "people.csv", "age = 31"') == ["Ann", "Zoë", "New"]
    assert await names(say, 'FIND "deals.csv"') == []


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ('FIND "people", "age > 30 AND"', RunCode.BAD_VALUE, r"at character 13: a field name is missing"),
        ('FIND "people", "age = 1 x = 2"', RunCode.BAD_VALUE, "at character 9: x = doesn't belong here"),
        ('FIND "people", "age > 1", "many"', RunCode.WRONG_TYPE, "whole number"),
        ('FIND ""', RunCode.WRONG_TYPE, "name of a table"),
        ('FIND "sheet.xlsx"', RunCode.BAD_VALUE, "Save the sheet as CSV"),
        ('FIND "bad.csv"', RunCode.BAD_VALUE, "can't read the file bad.csv as a table"),
        ('SAVE "people", nothing', RunCode.WRONG_TYPE, r'#\{name: "Ann"\}'),
        ('SAVE "people", [1]', RunCode.WRONG_TYPE, "a list of them"),
        ('SAVE "people", { "id": [1] }', RunCode.BAD_VALUE, "A row's id"),
        ('SAVE "people", { "x": large }', RunCode.NOT_ALLOWED, "“people” is too large to save: the limit is 16 kB"),
        ('INSERT "people", { "id": 1 }', RunCode.BAD_VALUE, "row with the id “1”"),
        ("INSERT INTO people (a, b) VALUES (1)", RunCode.BAD_VALUE, "2 columns but 1 values"),
        ('UPDATE "people", "age = 1 LIMIT 2", { "x": 1 }', RunCode.WRONG_TYPE, "LIMIT only works with FIND"),
        ('MERGE "people", { "name": "x" }, "email"', RunCode.BAD_VALUE, "Row 1 has nothing in “email”"),
        ('DELETE "people"', RunCode.BAD_VALUE, "Write DELETE FROM people"),
    ],
)
async def test_what_cannot_be_done_is_said_plainly(say: Saying, statement: str, code: RunCode, words: str) -> None:
    await fill(say)
    with pytest.raises(RunError, match=words) as raised:
        await say(a_run(), statement, large="x" * 16_000)
    assert raised.value.code is code


async def test_no_more_than_a_thousand_rows_come_unasked_and_the_chat_is_told_once(say: Saying) -> None:
    await say(a_run(), 'SAVE "many", list', list=[{"id": number} for number in range(1002)])
    heard = Heard()
    run = a_run(heard=heard)
    assert len(await say(run, 'FIND "many"')) == 1000
    assert len(await say(run, 'FIND "many"')) == 1000
    assert heard.texts == ["I only took the first 1000 rows of “many”; there are more."]
    assert len(await say(run, 'FIND "many" LIMIT 1001')) == 1001
    assert len(await say(run, 'FIND "many", "id >= 2"')) == 1000
    assert len(heard.texts) == 1


async def test_an_address_of_the_web_goes_to_the_web(say: Saying) -> None:
    assert await say(a_run(), 'DELETE "https://example.com/x"') == {"status": 204}
    assert await say(a_run(), 'DELETE HTTP "https://example.com/" + x', x="y") == {"status": 204}
    assert WEB.deleted.pop() == "https://example.com/y"
    assert WEB.deleted[-1] == "https://example.com/x"


async def test_a_text_in_words_is_read_by_the_model_in_the_columns_of_the_table(say: Saying) -> None:
    await fill(say)
    await say(a_run(), 'SAVE FROM UNSTRUCTURED "people", text', text="Zoe wants tea")
    assert MODEL.asked[-1] == ("Zoe wants tea", ("name", "age"))
    assert await names(say, 'FIND "people", "name = Zoe"') == ["Zoe"]


async def test_new_maps_and_lists_are_empty(say: Saying) -> None:
    for statement, value in (("CREATE OBJECT", {}), ("NEW OBJECT", {}), ("NEW ARRAY", []), ("CREATE ARRAY", [])):
        assert await say(a_run(), statement) == value
