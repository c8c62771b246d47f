"""docs/postgresql.md: its settings are valid, its database works, and its log lines are those of the log."""

from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from bot.database.opening import open_store
from config.loader import check_settings
from services.clock import VirtualClock
from tests.docs.documents import Block, Page
from tests.docs.terminal import Terminal
from tests.harness.postgres_server import PostgresServer

PAGE = Page("docs/postgresql.md")
ROOT = Path(__file__).resolve().parents[2]


async def test_the_database_and_the_settings_of_the_page_serve_a_daemon(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    [making] = PAGE.of("sql")
    with psycopg.connect(postgres_server.url, autocommit=True) as operator:
        for statement in making.text.split(";\n"):
            if statement.strip():
                operator.execute(statement.encode())
    [settings] = PAGE.of("yaml")
    file = tmp_path / "bot.yaml"
    file.write_text(f"home: {tmp_path / 'var'}\n{settings.text}", encoding="utf-8")
    url = postgres_server.url_of("rollcall").replace("bot@", "rollcall:password@")
    loaded, found = check_settings(file, {"ROLLCALL_STORE_URL": url})
    assert list(found) == []
    assert loaded is not None
    await (await open_store(loaded, VirtualClock())).close()
    with psycopg.connect(url) as database:
        assert database.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)


def test_the_commands_of_the_page_move_the_database_there_and_back(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    with psycopg.connect(postgres_server.url, autocommit=True) as operator:
        operator.execute("CREATE DATABASE rollcall_moved")
    terminal = Terminal(tmp_path)
    made = Block("made.md", 1, "", "console", '$ ./run call todo_add --json \'{"text": "water the plants"}\'')
    url = shlex.quote(postgres_server.url_of("rollcall_moved"))
    terminal.follow([made, *PAGE.of("console")], {"postgresql://rollcall@db.example:5432/rollcall": url})
    for name in ("before.sqlite", "var/rollcall.sqlite"):
        with closing(sqlite3.connect(terminal.house / name)) as database:
            assert database.execute("SELECT text FROM todos").fetchall() == [("water the plants",)]


def test_an_address_of_another_engine_is_a_fault_that_names_the_key(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text("store:\n  url: mysql://u:hunter2@db/x\n", encoding="utf-8")
    _, found = check_settings(file, {})
    [fault] = [str(one) for one in found]
    assert "store.url has to begin with postgresql://" in fault
    assert "hunter2" not in fault


def test_the_page_names_what_the_store_logs() -> None:
    events = set(re.findall(r"`(store_\w+)`", PAGE.text))
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "services/store").rglob("*.py"))
    assert events == {event for event in events if f'"{event}"' in code}
    assert set(re.findall(r'"(store_\w+)"', (ROOT / "services/store/postgres/store.py").read_text())) - events == {
        "store_unlock_failed"
    }
