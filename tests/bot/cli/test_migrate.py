"""`rollcall migrate`: the copy is equal to the source, and a daemon answers from it, or nothing is copied."""

from __future__ import annotations

import asyncio
import io
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import select

from bot.cli.migrate import Progress
from bot.database.opening import DATABASE
from bot.testing import a_group
from services.clock import SystemClock, VirtualClock
from services.store.all_tables import all_tables
from services.store.postgres.copying import copy_connection
from services.store.postgres.store import PostgresStore
from services.store.sqlite.lock import StoreLock
from services.store.turns.audit import CHANGES
from tests.bot.cli.running import Printed, a_settings_file, an_environment, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.harness.forked_processes import forked_command
from tests.harness.postgres_server import PostgresServer, as_a_daemon_makes_it

ODD_TEXTS = ("", "🀄 \U0010ffff", "\\N", "\\x00", "a\tb\nc\r\\", "'\"", "\ufeff\u2028\x01\x7f", "\u2028\uffff\ue000")
NULS = ("\0", "a\0b\0")
FAULTS = {
    "cut": "PERFORM pg_terminate_backend(pg_backend_pid())",
    "refused": "RAISE EXCEPTION 'no: %', NEW.text",
}
_MOST_SECONDS = 60.0
Rows = dict[str, list[tuple[Any, ...]]]


def talk(home: Path, *said: str, url: str = "") -> list[str]:
    """First replies of a daemon with the file in `home`, or with the database at `url`."""

    async def scenario() -> list[str]:
        async with a_group(home=home, settings={"store": {"url": url}}) as group:
            return [(await group.say("Ann", text))[0] for text in said]

    return asyncio.run(scenario())


def add_odd_rows(database: Path, *texts: str) -> None:
    """Add a row to each table for each of `texts`, with the largest and smallest integers, and with nulls in turn."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for table in all_tables().sorted_tables:
            for number, text in enumerate(texts):
                value = 2**63 - 1 - number if number % 2 else -(2**63) + number
                row = [
                    None if column.nullable and number % 3 else value if column.type.python_type is int else text
                    for column in table.columns
                ]
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT OR IGNORE INTO {table.name} VALUES ({marks})", row)


def in_file(home: Path) -> Rows:
    with closing(sqlite3.connect(home / DATABASE)) as database:
        return {name: sorted(database.execute(query), key=repr) for name, query in queries().items()}


def on_server(url: str) -> Rows:
    with psycopg.connect(url) as database:
        return {name: sorted(database.execute(query.encode()), key=repr) for name, query in queries().items()}


def queries() -> dict[str, str]:
    tables = all_tables().tables.values()
    return {table.name: f"SELECT {', '.join(table.columns.keys())} FROM {table.name}" for table in tables}


def settings_on(folder: Path, url: str) -> Path:
    folder.mkdir(exist_ok=True)
    return a_settings_file(folder, f"store: {{url: '{url}'}}\n")


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + _MOST_SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Settings with a SQLite file with a message by Ann."""
    talk(tmp_path / "var", "/todo add milk")
    return a_settings_file(tmp_path)


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """A database without tables."""
    return postgres_server.new_database()


@pytest.fixture
def with_tables(postgres_server: PostgresServer) -> str:
    """A database with empty tables."""
    return postgres_server.new_database(as_a_daemon_makes_it)


def test_a_database_is_equal_after_it_was_copied_to_a_server_and_back_and_serves_a_daemon(
    capsys: pytest.CaptureFixture[str], settings: Path, url: str
) -> None:
    home = settings.parent / "var"
    add_odd_rows(home / DATABASE, *ODD_TEXTS)
    before = in_file(home)
    assert all(len(rows) > 3 for rows in before.values())
    there = command(capsys, "migrate", "--to", url.replace("bot@", "bot:hunter2@"), "--config", settings)
    assert (there.status, there.err) == (0, "")
    assert "hunter2" not in there.out
    assert there.out.count(" equal\n") == len(before)
    assert 'url: "${ROLLCALL_STORE_URL}"' in there.out
    assert in_file(home) == on_server(url) == before
    back = settings.parent / "back"
    returned = command(capsys, "migrate", "--to", "sqlite", "--config", settings_on(back, url))
    assert (returned.status, returned.err) == (0, "")
    assert 'url: ""' in returned.out
    assert in_file(back / "var") == before
    assert sorted(file.name for file in (back / "var").iterdir()) == [DATABASE, f"{DATABASE}.lock"]
    assert (back / "var" / DATABASE).stat().st_mode & 0o777 == 0o600


def test_a_daemon_goes_on_with_the_copy(capsys: pytest.CaptureFixture[str], settings: Path, url: str) -> None:
    assert command(capsys, "migrate", "--to", url, "--config", settings).status == 0
    assert "#2" in talk(settings.parent / "other", "/todo add bread", url=url)[0]
    back = settings.parent / "back"
    assert command(capsys, "migrate", "--to", "sqlite", "--config", settings_on(back, url)).status == 0
    (listed,) = talk(back / "var", "/todo")
    assert "milk" in listed
    assert "bread" in listed


def test_nul_characters_are_replaced_and_counted(capsys: pytest.CaptureFixture[str], settings: Path, url: str) -> None:
    home = settings.parent / "var"
    with closing(sqlite3.connect(home / DATABASE)) as database, database:
        database.executemany("INSERT INTO changes VALUES (?, 1)", [(text,) for text in NULS])
        database.executemany("UPDATE todos SET text = ?", [(NULS[1],)])
    printed = command(capsys, "migrate", "--to", url, "--config", settings)
    assert (printed.status, printed.err) == (0, "")
    assert "\n3 texts have a NUL character" in printed.out
    assert on_server(url) == {
        name: sorted(
            (tuple(v.replace("\0", "\ufffd") if isinstance(v, str) else v for v in row) for row in rows), key=repr
        )
        for name, rows in in_file(home).items()
    }


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_copy_that_fails_leaves_the_target_empty_and_can_be_repeated(
    capsys: pytest.CaptureFixture[str], settings: Path, with_tables: str, fault: str
) -> None:
    empty = on_server(with_tables)
    with psycopg.connect(with_tables, autocommit=True) as server:
        server.execute(
            f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {fault}; RETURN NEW; END$$".encode()
        )
        server.execute("CREATE TRIGGER fail BEFORE INSERT ON todos FOR EACH ROW EXECUTE FUNCTION fail()")
    printed = command(capsys, "migrate", "--to", with_tables, "--config", settings)
    assert printed.status == 1
    assert "nothing was copied: " in printed.err
    assert "milk" not in printed.err
    assert on_server(with_tables) == empty
    with psycopg.connect(with_tables, autocommit=True) as server:
        server.execute("DROP FUNCTION fail CASCADE")
    assert command(capsys, "migrate", "--to", with_tables, "--config", settings).status == 0
    assert on_server(with_tables) == in_file(settings.parent / "var")


@pytest.mark.parametrize("change", ["NEW.text := 'cheese'; RETURN NEW", "RETURN NULL"], ids=["changed", "lost"])
def test_a_row_that_differs_in_the_copy_is_found_and_nothing_is_kept(
    capsys: pytest.CaptureFixture[str], settings: Path, with_tables: str, change: str
) -> None:
    with psycopg.connect(with_tables, autocommit=True) as server:
        server.execute(f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {change}; END$$".encode())
        server.execute("CREATE TRIGGER f BEFORE INSERT ON todos FOR EACH ROW EXECUTE FUNCTION f()")
    printed = command(capsys, "migrate", "--to", with_tables, "--config", settings)
    assert (printed.status, printed.err) == (
        1,
        "nothing was copied: the copy differs from the source, and was undone\n",
    )
    assert [line.split()[0] for line in printed.out.splitlines() if line.endswith("DIFFERENT")] == ["todos"]
    assert not any(on_server(with_tables).values())


def test_a_killed_copy_leaves_no_database_file_and_can_be_repeated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Path, url: str
) -> None:
    assert command(capsys, "migrate", "--to", url, "--config", settings).status == 0
    back = tmp_path / "back"
    asked = ("migrate", "--to", "sqlite", "--config", str(settings_on(back, url)))
    with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as looking:
        other.execute("LOCK TABLE todos IN ACCESS EXCLUSIVE MODE")
        with subprocess.Popen([*forked_command("bot"), *asked], cwd=tmp_path, env=an_environment()) as process:
            waiting = "SELECT pid FROM pg_locks WHERE NOT granted"
            until(lambda: looking.execute(waiting).fetchone())
            partial = back / "var" / f"{DATABASE}.migrating"
            assert partial.exists()
            process.kill()
    assert not (back / "var" / DATABASE).exists()
    partial.write_bytes(b"half a database")
    with psycopg.connect(url, autocommit=True) as looking:
        until(lambda: looking.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone() is None)
    assert command(capsys, *asked).status == 0
    assert in_file(back / "var") == on_server(url)


def test_nobody_else_writes_into_the_target_during_the_copy(with_tables: str) -> None:
    insert = "INSERT INTO changes VALUES ('other', 1)"
    with psycopg.connect(with_tables, autocommit=True) as other:
        other.execute("SET lock_timeout = 100")
        with copy_connection(with_tables, is_target=True), pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(insert)
        other.execute(insert)


def test_rows_that_are_written_to_the_source_during_the_copy_are_not_in_it(with_tables: str) -> None:
    with copy_connection(with_tables, is_target=False) as source, psycopg.connect(with_tables) as other:
        assert list(source.select(select(CHANGES))) == []
        other.execute("INSERT INTO changes VALUES ('other', 1)")
        other.commit()
        assert list(source.select(select(CHANGES))) == []


def test_a_target_with_rows_is_refused(capsys: pytest.CaptureFixture[str], settings: Path, url: str) -> None:
    assert command(capsys, "migrate", "--to", url, "--config", settings).status == 0
    before = on_server(url)
    printed = command(capsys, "migrate", "--to", url, "--config", settings)
    assert printed.status == 1
    assert "is not empty, it has rows in " in printed.err
    assert "Name a new database" in printed.err
    assert on_server(url) == before


@pytest.mark.parametrize("name", [DATABASE, f"{DATABASE}-wal"])
def test_a_database_file_in_home_is_not_replaced(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, with_tables: str, name: str
) -> None:
    file = tmp_path / "var" / name
    file.parent.mkdir()
    file.write_bytes(b"of another database")
    printed = command(capsys, "migrate", "--to", "sqlite", "--config", settings_on(tmp_path, with_tables))
    assert printed.status == 1
    assert f"{file} exists. Move it" in printed.err
    assert file.read_bytes() == b"of another database"


def test_a_source_in_use_is_refused_with_the_name_of_its_process(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Path, url: str, with_tables: str
) -> None:
    lock = StoreLock.take(tmp_path / "var" / DATABASE)
    try:
        printed = command(capsys, "migrate", "--to", url, "--config", settings)
    finally:
        lock.release()
    assert (printed.status, printed.out) == (1, "")
    assert f"is in use by process {os.getpid()}" in printed.err

    async def scenario() -> Printed:
        store = await PostgresStore.open(with_tables, clock=SystemClock())
        try:
            asked = ("migrate", "--to", "sqlite", "--config", settings_on(tmp_path / "a", with_tables))
            return await asyncio.to_thread(command, capsys, *asked)
        finally:
            await store.close()

    printed = asyncio.run(scenario())
    assert (printed.status, printed.out) == (1, "")
    assert f"is in use by rollcall {os.getpid()} on " in printed.err


def test_the_database_of_the_settings_is_no_target(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Path, with_tables: str
) -> None:
    on_a_server = settings_on(tmp_path / "a", with_tables)
    same = [("sqlite", settings), (with_tables, on_a_server), (f"{with_tables}&connect_timeout=9", on_a_server)]
    for target, file in same:
        printed = command(capsys, "migrate", "--to", target, "--config", file)
        assert (printed.status, printed.out) == (1, "")
        assert "this is the database of the settings already" in printed.err or "is in use by" in printed.err


@pytest.mark.parametrize(
    ("target", "status", "problem"),
    [
        ("mysql://bot:hunter2@db/x", 2, "expected postgresql://"),
        ("postgresql://bot:hunter2@[db/x", 1, "no address of a PostgreSQL database"),
        ("postgresql://bot:hunter2@127.0.0.1:1/none", 1, "the database none on 127.0.0.1 cannot be opened"),
    ],
)
def test_a_wrong_url_is_reported_without_its_password(
    capsys: pytest.CaptureFixture[str], settings: Path, target: str, status: int, problem: str
) -> None:
    printed = command(capsys, "migrate", "--to", target, "--config", settings)
    assert (printed.status, printed.out) == (status, "")
    assert problem in printed.err
    assert "hunter2" not in printed.err


def test_without_a_database_there_is_nothing_to_copy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> None:
    printed = command(capsys, "migrate", "--to", url, "--config", a_settings_file(tmp_path))
    assert (printed.status, printed.out) == (1, "")
    assert "there is no database" in printed.err
    assert not (tmp_path / "var" / DATABASE).exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "shown"),
    [
        (io.StringIO(), "copied 1,000 of 4,000 rows, 25%\ncompared 3,000 of 4,000 rows, 75%\n"),
        (
            Terminal(),
            "".join(
                f"\r\x1b[K{text}"
                for text in (
                    "copied 1,000 of 4,000 rows, 25%",
                    "copied 2,000 of 4,000 rows, 50%",
                    "compared 3,000 of 4,000 rows, 75%",
                    "",
                )
            ),
        ),
    ],
    ids=["lines", "terminal"],
)
async def test_the_progress_is_one_line_in_a_terminal_and_few_lines_elsewhere(stream: io.StringIO, shown: str) -> None:
    clock = VirtualClock()
    progress = Progress(stream, clock)
    for step, done, seconds in (("copied", 1000, 2.0), ("copied", 2000, 1.0), ("compared", 3000, 1.0)):
        await clock.advance(seconds)
        progress(step, 4000, 500, done - 500)
        progress(step, 4000, 500, done)
    progress.end()
    assert stream.getvalue() == shown
