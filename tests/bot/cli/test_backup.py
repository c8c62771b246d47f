"""`rollcall backup` and `rollcall restore`: a restored backup contains everything acknowledged before it."""

from __future__ import annotations

import asyncio
import itertools
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from bot.database.opening import DATABASE
from bot.housekeeping import backups_of
from bot.testing import a_group
from config.settings import Settings
from services.clock import VirtualClock
from services.store.sqlite.lock import StoreLock
from services.store.sqlite.upgrade import back_up
from tests.bot.cli.running import a_settings_file, an_environment, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.harness.forked_processes import forked
from tests.harness.real_daemon import RealDaemon, a_real_daemon

KEY = Path("keys", "page_members.key")
BACKUPS = 10


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
async def settings(tmp_path: Path) -> Path:
    """Settings of a daemon with a database with a message by Ann, and with a key."""
    file = a_settings_file(tmp_path)
    async with a_group(home=tmp_path / "var") as group:
        await group.say("Ann", "/todo add milk")
    key = tmp_path / "var" / KEY
    key.parent.mkdir()
    key.write_bytes(b"of the backup")
    return file


def backup_of(printed: str) -> Path:
    return Path(printed.split()[1])


@asynccontextmanager
async def talking(daemon: RealDaemon, chats: int) -> AsyncIterator[list[str]]:
    """Send messages concurrently; yields a list that receives the ids of acknowledged messages."""
    acknowledged: list[str] = []
    numbers = itertools.count()

    async def talk(chat: str) -> None:
        while True:
            native_id = f"m{next(numbers)}"
            await daemon.say(chat, native_id, f"/todo add {native_id}")
            acknowledged.append(native_id)

    tasks = [asyncio.create_task(talk(f"chat-{number}")) for number in range(chats)]
    try:
        yield acknowledged
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def problems(restored: Path, acknowledged: set[str]) -> list[str]:
    """Problems of a restored database. `acknowledged`: ids that it must contain."""
    found = [str(row[0]) for row in rows(restored, "PRAGMA integrity_check") if row[0] != "ok"]
    missing = acknowledged - {str(row[0]) for row in rows(restored, "SELECT native_id FROM inbox")}
    checks = {
        "accepted without history": "SELECT id FROM inbox WHERE id NOT IN (SELECT id FROM history)",
        "answered without a reply": "SELECT id FROM inbox WHERE reason = 'command'"
        " AND id NOT IN (SELECT turn_id FROM outbox)",
        "a reply without its turn": "SELECT id FROM outbox WHERE turn_id NOT IN (SELECT id FROM inbox)",
        "a run without its turn": "SELECT turn_id FROM ledger WHERE turn_id NOT IN (SELECT id FROM inbox)",
        "to-dos beyond their runs": "SELECT call_key FROM todos"
        " WHERE (SELECT count(*) FROM todos) > (SELECT count(*) FROM ledger WHERE function = 'todo_add')",
        "keys in the database": "SELECT name FROM sqlite_schema WHERE name = 'backup_files'",
    }
    found += [f"{what}: {len(bad)}" for what, query in checks.items() if (bad := rows(restored, query))]
    return [*found, *(["missing: " + ", ".join(sorted(missing))] if missing else [])]


async def test_every_backup_made_under_load_restores_what_was_acknowledged_before_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    home, environment = tmp_path / "daemon", an_environment()
    home.mkdir()
    made: list[tuple[Path, set[str]]] = []
    async with a_real_daemon(home, "http://127.0.0.1:9/v1") as daemon, talking(daemon, chats=4) as acknowledged:
        for number in range(BACKUPS):
            before = set(acknowledged)
            to = tmp_path / f"to-{number}"
            done = await forked("bot", "backup", "--to", str(to), "--config", str(home / "bot.yaml"), env=environment)
            assert done.status == 0, done
            made.append((backup_of(done.out), before))
    assert len(made[-1][1]) > BACKUPS
    for number, (backup, before) in enumerate(made):
        folder = tmp_path / f"restored-{number}"
        folder.mkdir()
        settings = a_settings_file(folder)
        assert command(capsys, "restore", backup, "--yes", "--config", settings).status == 0
        assert problems(folder / "var" / DATABASE, before) == []
        assert (folder / "var" / KEY).read_bytes() == (home / KEY).read_bytes()
    assert rows(folder / "var" / DATABASE, "SELECT count(*) FROM todos") > [(BACKUPS,)]


async def test_a_daemon_on_a_restored_database_goes_on_with_what_it_holds(
    capsys: pytest.CaptureFixture[str], settings: Path
) -> None:
    var = settings.parent / "var"
    backup = backup_of(command(capsys, "backup", "--config", settings).out)
    async with a_group(home=var) as group:
        await group.say("Ann", "/todo add bread")
    (var / KEY).write_bytes(b"of another database")
    printed = command(capsys, "restore", "--yes", "--config", settings)
    assert (printed.status, printed.err) == (0, "")
    assert str(backup) in printed.out
    async with a_group(home=var) as group:
        assert "milk" in (said := (await group.say("Ann", "/todo"))[0])
        assert "bread" not in said
    assert (var / KEY).read_bytes() == b"of the backup"
    [replaced] = var.glob("rollcall-replaced-*.sqlite")
    assert str(replaced) in printed.out
    assert rows(replaced, "SELECT text FROM todos ORDER BY number") == [("milk",), ("bread",)]
    [key] = var.joinpath("keys").glob("*-replaced-*")
    assert key.read_bytes() == b"of another database"


async def test_what_a_killed_daemon_left_in_its_log_is_kept_with_the_database_that_is_replaced(
    capsys: pytest.CaptureFixture[str], settings: Path
) -> None:
    var = settings.parent / "var"
    command(capsys, "backup", "--config", settings)
    with closing(sqlite3.connect(var / DATABASE)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        with writer:
            writer.execute("UPDATE todos SET text = 'in the log'")
        copies = {name: (var / name).read_bytes() for name in (DATABASE, f"{DATABASE}-wal")}
    for name, content in copies.items():
        (var / name).write_bytes(content)
    assert command(capsys, "restore", "--yes", "--config", settings).status == 0
    [replaced] = var.glob("rollcall-replaced-*.sqlite")
    assert rows(replaced, "SELECT text FROM todos") == [("in the log",)]
    assert rows(var / DATABASE, "SELECT text FROM todos") == [("milk",)]


async def test_a_backup_is_for_its_owner_alone_and_old_ones_go(
    capsys: pytest.CaptureFixture[str], settings: Path
) -> None:
    var = settings.parent / "var"
    clock = VirtualClock()
    for _ in range(7):
        back_up(var / DATABASE, var / "backups", label="x", clock=clock, keep=None)
        await clock.advance(60)
    made = backup_of(command(capsys, "backup", "--config", settings).out)
    assert len(list(made.parent.iterdir())) == 5
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700
    for _ in range(2):
        assert command(capsys, "backup", "--to", settings.parent / "usb", "--config", settings).status == 0
    assert command(capsys, "backup", "--keep", "2", "--config", settings).status == 0
    assert len(list(made.parent.iterdir())) == 2


async def test_a_backup_has_no_free_pages(capsys: pytest.CaptureFixture[str], settings: Path) -> None:
    database = settings.parent / "var" / DATABASE
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE large (text TEXT)")
        connection.executemany("INSERT INTO large VALUES (?)", [("x" * 1000,)] * 5000)
        connection.execute("DROP TABLE large")
    made = backup_of(command(capsys, "backup", "--config", settings).out)
    assert made.stat().st_size < 1_000_000 < database.stat().st_size


@pytest.mark.parametrize(
    ("damaged", "problem"),
    [
        (lambda backup: backup.unlink(), "there is no file"),
        (lambda backup: backup.write_bytes(backup.read_bytes()[:20_000]), "is damaged"),
        (lambda backup: backup.write_bytes(b"no database" * 1000), "is damaged"),
        (lambda backup: changed(backup, "UPDATE alembic_version SET version_num = 'x'"), "only a newer version"),
        (lambda backup: changed(backup, "DROP TABLE alembic_version"), "is no backup of this program"),
    ],
    ids=["missing", "cut", "other", "newer", "foreign"],
)
async def test_what_cannot_be_restored_changes_nothing(
    capsys: pytest.CaptureFixture[str], settings: Path, damaged: object, problem: str
) -> None:
    assert callable(damaged)
    var = settings.parent / "var"
    backup = backup_of(command(capsys, "backup", "--config", settings).out)
    damaged(backup)
    before = {file: file.read_bytes() for file in var.rglob("*") if file.is_file() and file.suffix != ".lock"}
    printed = command(capsys, "restore", backup, "--yes", "--config", settings)
    assert (printed.status, printed.out) == (1, "")
    assert printed.err.startswith("nothing was restored: ")
    assert problem in printed.err
    assert before == {file: file.read_bytes() for file in var.rglob("*") if file.is_file() and file.suffix != ".lock"}


def changed(backup: Path, statement: str) -> None:
    with closing(sqlite3.connect(backup)) as database, database:
        database.execute(statement)


async def test_without_a_name_the_newest_good_backup_is_restored(
    capsys: pytest.CaptureFixture[str], settings: Path
) -> None:
    var, clock = settings.parent / "var", VirtualClock()
    good = back_up(var / DATABASE, var / "backups", label="good", clock=clock, keep=None)
    await clock.advance(60)
    back_up(var / DATABASE, var / "backups", label="bad", clock=clock, keep=None).write_bytes(b"bad" * 5000)
    printed = command(capsys, "restore", "--yes", "--config", settings)
    assert printed.status == 0
    assert str(good) in printed.out


async def test_while_a_daemon_runs_and_without_a_yes_nothing_is_restored(
    capsys: pytest.CaptureFixture[str], settings: Path
) -> None:
    backup = backup_of(command(capsys, "backup", "--config", settings).out)
    asked = command(capsys, "restore", backup, "--config", settings)
    assert (asked.status, asked.err) == (1, "Nobody can be asked here; --yes restores it.\n")
    lock = StoreLock.take(settings.parent / "var" / DATABASE)
    try:
        printed = command(capsys, "restore", backup, "--yes", "--config", settings)
    finally:
        lock.release()
    assert (printed.status, printed.out) == (1, "")
    assert f"is in use by process {os.getpid()}" in printed.err


@pytest.mark.parametrize("name", ["backup", "restore"])
def test_of_a_database_on_a_server_its_own_tools_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    settings = a_settings_file(tmp_path, "store: {url: 'postgresql://bot:hunter2@127.0.0.1:1/none'}\n")
    printed = command(capsys, name, "--config", settings)
    assert (printed.status, printed.out) == (1, "")
    assert {"backup": "pg_dump", "restore": "pg_restore"}[name] in printed.err
    assert "hunter2" not in printed.err


def test_without_a_database_or_a_backup_the_command_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = a_settings_file(tmp_path)
    assert "start the daemon once" in command(capsys, "backup", "--config", settings).err
    printed = command(capsys, "restore", "--yes", "--config", settings)
    assert printed.status == 1
    folder = backups_of(Settings.model_validate({"home": str(tmp_path / "var")}))
    assert f"there is no good backup in {folder}" in printed.err
