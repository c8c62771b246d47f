"""A daemon on the database of the first release continues all its work."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from bot.database.opening import DATABASE
from bot.platforms.base import Accepted
from bot.testing import a_group
from function_calls.context import Kind, MessageContext, context_to_json
from services.clock import VirtualClock
from services.store.all_tables import all_tables
from services.store.migrations.transaction import VERSIONS
from services.store.sqlite.upgrade import upgrade
from tests.fakes.builders import a_message
from tests.fakes.functions import Recorder
from tests.fakes.kept import heard, reasons

FIRST_RELEASE = "03300af6cec5"
CHAT = "test:bot:family"


def insert(database: sqlite3.Connection, table: str, **values: Any) -> None:
    """A row with `values`; all other columns have empty values."""
    columns = database.execute(f"SELECT name, type, \"notnull\" FROM pragma_table_info('{table}')").fetchall()
    emptiest = {"INTEGER": 0, "TEXT": ""}
    row = [values.get(name, emptiest[kind] if is_required else None) for name, kind, is_required in columns]
    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def arrived(database: sqlite3.Connection, row_id: int, context: MessageContext, reason: str, key: str = "") -> None:
    native_id = context.key.native_id
    insert(
        database,
        "inbox",
        id=row_id,
        key=key or f"{CHAT}\n{native_id}",
        chat=CHAT,
        native_id=native_id,
        sender="test:bot:ann",
        sender_name="Ann",
        kind=context.kind.value,
        body=orjson.dumps(context_to_json(context)).decode() if reason == "waiting" else "",
        reason=reason,
        turn_id=row_id,
    )
    insert(database, "turns", id=row_id, chat=CHAT, state="queued" if reason == "waiting" else "done")
    if context.kind is Kind.MESSAGE:
        insert(
            database,
            "history",
            id=row_id,
            chat=CHAT,
            native_id=native_id,
            sender="test:bot:ann",
            sender_name="Ann",
            text=context.text,
        )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Data of the first release after a kill: a message that was answered and edited, a waiting one, and one whose
    effect has run."""
    versions = tmp_path / "versions"
    versions.mkdir()
    (first,) = VERSIONS.glob(f"{FIRST_RELEASE}_*.py")
    shutil.copy(first, versions)
    path = tmp_path / "home" / DATABASE
    path.parent.mkdir()
    upgrade(path, backups=tmp_path / "backups", clock=VirtualClock(), versions=versions)
    with closing(sqlite3.connect(path)) as database, database:
        arrived(database, 1, a_message("/rain Oslo", native_id="answered"), "command")
        edit = a_message("/rain Rome", native_id="answered", kind=Kind.EDIT)
        arrived(database, 2, edit, "edit_too_late", key=f"{CHAT}\nanswered\nedit\n7")
        arrived(database, 3, a_message("/rain Bergen", native_id="waits"), "waiting")
        arrived(database, 4, a_message("/pay Oslo", native_id="paid"), "waiting")
        insert(
            database,
            "ledger",
            key="4:0",
            turn_id=4,
            function="pay",
            effect="once",
            code="ok",
            result=orjson.dumps(
                {
                    "handled": True,
                    "messages": [{"text": "Paid."}],
                    "data": None,
                    "error": None,
                    "context_updates": {},
                    "metadata": {},
                }
            ).decode(),
        )
    return path.parent


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def test_what_waited_is_answered_and_an_effect_that_has_run_is_not_repeated(home: Path) -> None:
    rain = Recorder("rain", CITY, commands=["rain"])
    pay = Recorder("pay", CITY, commands=["pay"], effect="once")
    async with a_group([rain.spec, pay.spec], home=home) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done", "Paid."]
        assert (rain.runs, pay.runs) == ([{"city": "Bergen"}], [])


async def test_what_was_delivered_to_it_is_known(home: Path) -> None:
    async with a_group(home=home) as group:
        await group.settle()
        assert await group.hear("Ann", "/rain Oslo", id="answered") is Accepted.DUPLICATE
        changed = {"id": "answered", "kind": Kind.EDIT}
        assert await group.hear("Ann", "/rain Rome", revision="7", **changed) is Accepted.DUPLICATE
        assert await group.hear("Ann", "/rain Paris", revision="8", **changed) is Accepted.NEW
        assert (await heard(group))[0] == ("Ann", "/rain Paris")
        assert (await reasons(group))[0] == ("command", "")


def test_an_upgraded_database_has_the_tables_of_a_new_one(home: Path, tmp_path: Path) -> None:
    new, old = tmp_path / "new.sqlite", home / DATABASE
    for path in (new, old):
        upgrade(path, backups=tmp_path / "backups", clock=VirtualClock(), tables=all_tables())
    assert schema(old) == schema(new)


def schema(path: Path) -> dict[str, object]:
    with closing(sqlite3.connect(path)) as database:
        names = [
            name
            for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if name != "alembic_version"
        ]
        columns = {
            name: sorted(database.execute(f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{name}')"))
            for name in names
        }
        kinds = sorted(
            database.execute("SELECT name, strict, wr FROM pragma_table_list WHERE name NOT LIKE 'sqlite%'").fetchall()
        )
        indexes = sorted(
            (name, " ".join(sql.replace('"', "").split()))
            for name, sql in database.execute(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
            )
        )
    return {"columns": columns, "kinds": kinds, "indexes": indexes}
