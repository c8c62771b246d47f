"""Schema upgrades of a database on a server: complete or not at all, and never backwards."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from services.store.all_tables import all_tables
from services.store.migrations.transaction import VERSIONS, DatabaseTooNew, Upgraded, read_revisions
from services.store.port import StoreError
from services.store.postgres.upgrade import upgrade
from tests.harness.postgres_server import PostgresServer

FIRST = "03300af6cec5"
HEAD = read_revisions(VERSIONS).head
COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, collation_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name <> 'alembic_version' ORDER BY table_name, column_name
"""
INDEXES = r"""
    SELECT tablename, regexp_replace(indexdef, '_pkey\d*', '_pkey') FROM pg_indexes
    WHERE schemaname = current_schema() AND tablename <> 'alembic_version' ORDER BY tablename, indexname
"""
HISTORY = "INSERT INTO history VALUES (%s, 'chat', %s, %s, 'name', 'words', 0, %s, NULL, '', '')"


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as database:
        return database.execute(query.encode()).fetchall()


@pytest.fixture
def empty(postgres_server: PostgresServer) -> str:
    return postgres_server.new_database()


@pytest.fixture
def of_first_release(empty: str, tmp_path: Path) -> str:
    """A database at the first migration: a message of a member, and one of the bot."""
    (file,) = VERSIONS.glob(f"{FIRST}_*.py")
    (tmp_path / "first").mkdir()
    shutil.copy(file, tmp_path / "first")
    upgrade(empty, versions=tmp_path / "first")
    with psycopg.connect(empty) as database:
        database.execute(HISTORY, (1, "m1", "platform:account:ann", 0))
        database.execute(HISTORY, (2, "b1", "", 1))
    return empty


def test_all_migrations_make_what_a_new_database_is_made_of(postgres_server: PostgresServer, empty: str) -> None:
    made_at_once = postgres_server.new_database()
    assert upgrade(made_at_once, tables=all_tables()) == Upgraded(None, str(HEAD), None)
    assert upgrade(empty) == Upgraded(None, str(HEAD), None)
    assert rows(empty, COLUMNS) == rows(made_at_once, COLUMNS)
    assert rows(empty, INDEXES) == rows(made_at_once, INDEXES)


def test_text_is_compared_by_code_point_whatever_the_database_does(new_postgres_database: str) -> None:
    texts = [collation for *_, kind, _, collation in rows(new_postgres_database, COLUMNS) if kind == "text"]
    assert set(texts) == {"C"}
    with psycopg.connect(new_postgres_database) as database:
        for name in ("b", "B", "ä", "a", "~", "\n"):
            database.execute("INSERT INTO cursors VALUES (%s, '', 0)", (name,))
    found = [name for (name,) in rows(new_postgres_database, "SELECT name FROM cursors ORDER BY name")]
    assert found == sorted(found)


def test_an_old_database_keeps_its_rows(of_first_release: str) -> None:
    assert upgrade(of_first_release, tables=all_tables()) == Upgraded(FIRST, str(HEAD), None)
    assert rows(of_first_release, "SELECT id, asked_by, thread FROM history ORDER BY id") == [
        (1, "platform:account:ann", "m1"),
        (2, None, None),
    ]
    assert upgrade(of_first_release, tables=all_tables()) is None


def test_of_two_that_upgrade_at_once_one_does_it_and_the_other_finds_it_done(of_first_release: str) -> None:
    with ThreadPoolExecutor(2) as both:
        done = list(both.map(lambda _: upgrade(of_first_release), range(2)))
    assert sorted(done, key=str) == [None, Upgraded(FIRST, str(HEAD), None)]


def test_a_migration_that_fails_leaves_the_database_as_it_was(of_first_release: str, tmp_path: Path) -> None:
    versions = tmp_path / "first"
    (versions / "next.py").write_text(
        f"from alembic import op\nrevision = 'next'\ndown_revision = {FIRST!r}\n\n\ndef upgrade() -> None:\n"
        "    op.execute('DROP TABLE todos')\n    op.execute('nonsense')\n"
    )
    with pytest.raises(StoreError, match="to next failed, and was undone"):
        upgrade(of_first_release, versions=versions)
    assert rows(of_first_release, "SELECT version_num FROM alembic_version") == [(FIRST,)]
    assert rows(of_first_release, "SELECT * FROM todos") == []


def test_a_database_of_a_newer_version_is_refused(new_postgres_database: str) -> None:
    with psycopg.connect(new_postgres_database) as database:
        database.execute("UPDATE alembic_version SET version_num = 'of tomorrow'")
    with pytest.raises(DatabaseTooNew, match="has schema version of tomorrow"):
        upgrade(new_postgres_database, tables=all_tables())


def test_tables_of_others_are_left_alone(empty: str) -> None:
    with psycopg.connect(empty) as database:
        database.execute("CREATE TABLE customers (id bigint)")
    with pytest.raises(StoreError, match=r"has tables but no schema version.* a schema of its own"):
        upgrade(empty, tables=all_tables())
    with psycopg.connect(empty) as database:
        database.execute("CREATE SCHEMA rollcall")
    in_a_schema = f"{empty}&options=-csearch_path%3Drollcall"
    assert upgrade(in_a_schema, tables=all_tables()) == Upgraded(None, str(HEAD), None)
    assert upgrade(in_a_schema, tables=all_tables()) is None
    assert rows(empty, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [("customers",)]
