"""Behaviour of the SQLite store beyond the contract: groups of units, damage, locks and unexpected ends."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.clock import VirtualClock
from services.store.port import BadUnit, StoreBroken, StoreDamaged, StoreError, StoreFull
from services.store.sqlite.lock import StoreInUse, StoreLock
from services.store.sqlite.store import SqliteStore
from services.store.sqlite.writer import connect_writer
from tests.contracts.store_engines import ADD, CHANGE, SqliteEngine, create_tables, failing_at, notes


@pytest.fixture
def engine(tmp_path: Path) -> SqliteEngine:
    return SqliteEngine(tmp_path)


async def a_command_turn(store: SqliteStore, number: int) -> None:
    """Three awaited commits and one post."""
    await store.commit([ADD.write(id=2 * number, body="accepted")])
    await store.commit([ADD.write(id=2 * number + 1, body="intent")])
    await store.commit([CHANGE.write_expecting(1, note=2 * number + 1, to="result")])
    store.post([CHANGE.write(note=2 * number, to="sent")])


async def eventually(true: Callable[[], object]) -> None:
    """Poll for an effect of another thread."""
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110  # there is nothing to wait for
            await asyncio.sleep(0)


def writers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "store-writer"}


async def test_a_turn_alone_costs_three_commits(engine: SqliteEngine) -> None:
    store = await engine.open()
    await a_command_turn(store, 0)
    assert store.units.groups == 3
    await store.close()


async def test_turns_at_the_same_time_share_their_commits(engine: SqliteEngine) -> None:
    store = await engine.open()
    async with asyncio.TaskGroup() as turns:
        for number in range(50):
            turns.create_task(a_command_turn(store, number))
    assert store.units.groups <= 50 * 0.1
    await store.close()
    assert len(engine.stored()) == 100


async def test_a_group_has_at_most_512_units(engine: SqliteEngine) -> None:
    store = await engine.open()
    await asyncio.gather(*[store.commit([ADD.write(id=number, body="x")]) for number in range(1025)])
    assert store.units.groups == 3
    await store.close()


async def test_a_bad_unit_costs_its_group_two_more_transactions_not_one_for_each_unit(engine: SqliteEngine) -> None:
    store = await engine.open()
    units = [store.commit([ADD.write(id=number, body="\ud800" if number == 50 else "x")]) for number in range(100)]
    results = await asyncio.gather(*units, return_exceptions=True)
    assert [number for number, result in enumerate(results) if isinstance(result, BadUnit)] == [50]
    assert store.units.groups == 2
    await store.close()


async def test_a_posted_unit_that_fails_is_logged_and_counted(engine: SqliteEngine) -> None:
    store = await engine.open()
    with capture_logs() as logs:
        store.post([ADD.write(id=1, body="secret \ud800")])
        store.post([ADD.write(id=2)])
        store.post([CHANGE.write_expecting(1, note=9, to="x")])
        await store.commit([])
    assert store.units.post_errors == 3
    assert sorted((entry["event"], entry["kind"], tuple(entry["statements"])) for entry in logs) == [
        ("store_post_failed", "BadUnit", ("notes.add",)),
        ("store_post_failed", "BadUnit", ("notes.add",)),
        ("store_post_failed", "Conflict", ("notes.change",)),
    ]
    assert "secret" not in str(logs)
    await store.close()


async def test_a_group_waits_for_the_write_lock_longer_than_the_timeout_and_is_done_whole(engine: SqliteEngine) -> None:
    def connect(path: Path) -> sqlite3.Connection:
        connection = connect_writer(path)
        connection.execute("PRAGMA busy_timeout = 1")
        return connection

    store = await SqliteStore.open(engine.path, clock=VirtualClock(), prepare=create_tables, connect=connect)
    with capture_logs() as logs:
        with engine.held():
            units = [store.commit([ADD.write(id=number, body="x")]) for number in range(5)]
            await eventually(lambda: len(logs) >= 3)
        await asyncio.gather(*units)
    assert {entry["event"] for entry in logs} == {"store_waits_for_lock"}
    assert store.units.groups == 1
    await store.close()


async def test_a_commit_that_finds_no_room_is_tried_again_when_the_log_is_emptied(engine: SqliteEngine) -> None:
    connect = failing_at("COMMIT", sqlite3.SQLITE_FULL)
    store = await SqliteStore.open(engine.path, clock=VirtualClock(), prepare=create_tables, connect=connect)
    assert await store.commit([ADD.write(id=1, body="room after all")]) == [1]
    assert store.health().problem is None
    await store.close()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE])
async def test_a_commit_that_finds_no_room_is_undone_and_the_store_goes_on(engine: SqliteEngine, code: int) -> None:
    connect = failing_at("COMMIT", code, times=2 if code == sqlite3.SQLITE_FULL else 1)
    store = await SqliteStore.open(engine.path, clock=VirtualClock(), prepare=create_tables, connect=connect)
    with pytest.raises(StoreFull):
        await store.commit([ADD.write(id=1, body="no room")])
    assert store.health().problem == "the database cannot be written: as the test wants it"
    assert await store.commit([ADD.write(id=2, body="room")]) == [1]
    assert await notes(store) == {2: "room"}
    assert (store.broken, store.health().problem) == (None, None)
    await store.close()


async def test_what_could_not_be_written_is_tried_again_by_the_routine_check(engine: SqliteEngine) -> None:
    connect = failing_at("BEGIN IMMEDIATE", sqlite3.SQLITE_IOERR_WRITE)
    store = await SqliteStore.open(engine.path, clock=VirtualClock(), prepare=create_tables, connect=connect)
    with pytest.raises(StoreFull):
        await store.commit([ADD.write(id=1, body="x")])
    assert store.health().problem is not None
    await store.check()
    assert store.health().problem is None
    await store.close()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (sqlite3.SQLITE_READONLY, StoreFull),
        (sqlite3.SQLITE_IOERR_WRITE, StoreFull),
        (sqlite3.SQLITE_CORRUPT, StoreBroken),
    ],
)
async def test_an_error_of_the_file_is_told_from_an_error_of_the_unit(
    engine: SqliteEngine, code: int, error: type[StoreError]
) -> None:
    connect = failing_at("BEGIN IMMEDIATE", code)
    store = await SqliteStore.open(engine.path, clock=VirtualClock(), prepare=create_tables, connect=connect)
    with pytest.raises(error):
        await store.commit([ADD.write(id=1, body="x")])
    assert (store.broken is not None) == (error is StoreBroken)
    await store.close()
    assert engine.stored() == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_an_error_that_nobody_foresaw_breaks_the_store_instead_of_hanging_it(engine: SqliteEngine) -> None:
    class Surprised(sqlite3.Connection):
        @property
        def in_transaction(self) -> bool:
            raise LookupError("nobody foresaw this")

    def connect(path: Path) -> sqlite3.Connection:
        connect_writer(path).close()
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Surprised)

    before = writers()
    told: list[StoreBroken] = []
    store = await SqliteStore.open(
        engine.path, clock=VirtualClock(), prepare=create_tables, connect=connect, on_broken=told.append
    )
    with pytest.raises(StoreBroken):
        await store.commit([ADD.write(id=1 << 70, body="has to be undone")])
    with pytest.raises(StoreBroken):
        await store.commit([ADD.write(id=1, body="later")])
    await store.close()
    await eventually(lambda: told and writers() <= before)
    assert len(told) == 1


def test_the_writer_ends_quietly_when_its_loop_is_gone(engine: SqliteEngine) -> None:
    def is_free() -> bool:
        try:
            StoreLock.take(engine.path).release()
        except StoreInUse:
            return False
        return True

    async def forget_to_close(until: ExitStack) -> None:
        store = await engine.open()
        until.enter_context(engine.held())
        store.commit([ADD.write(id=1, body="given")])
        await asyncio.sleep(0)

    with ExitStack() as loop_is_gone:
        asyncio.run(forget_to_close(loop_is_gone))
    asyncio.run(eventually(is_free))
    assert engine.stored() == [(1, "given")]


async def test_a_second_store_on_the_same_file_is_refused_and_told_who_has_it(engine: SqliteEngine) -> None:
    store = await engine.open()
    with pytest.raises(StoreInUse, match=rf"store\.db is in use by process {os.getpid()}\b"):
        await engine.open()
    assert await store.commit([ADD.write(id=1, body="undisturbed")]) == [1]
    await store.close()
    await (await engine.open()).close()


@pytest.mark.parametrize("content", [b"this is no database" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
async def test_a_damaged_file_is_refused_by_name_and_left_as_it_is(engine: SqliteEngine, content: bytes) -> None:
    engine.path.write_bytes(content)
    with pytest.raises(StoreBroken, match=r"store\.db.*damaged"):
        await SqliteStore.open(engine.path, clock=VirtualClock())
    assert engine.path.read_bytes() == content
    StoreLock.take(engine.path).release()


async def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nowhere"):
        await SqliteStore.open(tmp_path / "nowhere" / "store.db", clock=VirtualClock())


async def test_a_place_without_a_write_ahead_log_is_refused(engine: SqliteEngine) -> None:
    def connect(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    with pytest.raises(StoreError, match=r"store\.db cannot have a write-ahead log"):
        await SqliteStore.open(engine.path, clock=VirtualClock(), connect=connect)


async def test_what_the_store_writes_is_for_its_owner_alone(engine: SqliteEngine) -> None:
    store = await engine.open()
    await store.commit([ADD.write(id=1, body="private")])
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in engine.path.parent.iterdir()}
    assert modes == dict.fromkeys(
        ["store.db", "store.db-wal", "store.db-shm", "store.db.lock", "store.db.reserve"], 0o600
    )
    await store.close()


async def test_a_closed_store_has_everything_in_one_file(engine: SqliteEngine) -> None:
    store = await engine.open()
    await store.commit([ADD.write(id=1, body="x")])
    await store.close()
    assert {file.name for file in engine.path.parent.iterdir()} == {"store.db", "store.db.lock", "store.db.reserve"}


async def test_closing_leaves_no_task_and_no_thread_behind(engine: SqliteEngine) -> None:
    before = writers()
    store = await engine.open()
    store.post([ADD.write(id=1, body="lazy")])
    await asyncio.sleep(0)
    await store.close()
    await eventually(lambda: writers() <= before)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert engine.stored() == [(1, "lazy")]


async def test_commits_survive_a_loss_of_power(engine: SqliteEngine) -> None:
    store = await engine.open()
    await store.close()
    with closing(connect_writer(engine.path)) as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000}


async def test_damage_found_by_the_daily_check_breaks_the_store_and_the_file_stays_as_it_is(
    engine: SqliteEngine,
) -> None:
    clock, told = VirtualClock(), list[StoreBroken]()
    store = await SqliteStore.open(engine.path, clock=clock, prepare=create_tables, on_broken=told.append)
    await store.commit([ADD.write(id=number, body="x") for number in range(50)])
    opened_ms = store.health().checked_ms
    await clock.advance(24 * 3600)
    await store.check()
    await eventually(lambda: store.health().checked_ms != opened_ms)
    assert told == []
    hide_rows_from_an_index(engine.path)
    await store.check()
    await asyncio.sleep(0)
    assert told == [], "once a day is enough"
    await clock.advance(24 * 3600)
    await store.check()
    await eventually(lambda: told)
    assert isinstance(told[0], StoreDamaged)
    assert str(told[0]).startswith(f"{engine.path} is damaged: ")
    assert store.health().problem == str(told[0])
    with pytest.raises(StoreDamaged):
        await store.commit([ADD.write(id=99, body="later")])
    log = engine.path.with_name("store.db-wal").read_bytes()
    await store.close()
    assert engine.path.with_name("store.db-wal").read_bytes() == log


async def test_a_read_that_meets_damage_breaks_the_store(engine: SqliteEngine) -> None:
    told: list[StoreBroken] = []
    store = await SqliteStore.open(engine.path, clock=VirtualClock(), prepare=create_tables, on_broken=told.append)
    await store.commit([ADD.write(id=number, body="x" * 900) for number in range(50)])
    await store.close()
    store = await SqliteStore.open(engine.path, clock=VirtualClock(), on_broken=told.append)
    with engine.path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(engine.path.stat().st_size - 4096))
    with pytest.raises(StoreDamaged):
        await notes(store)
    assert store.broken is not None
    with pytest.raises(StoreDamaged):
        await store.commit([ADD.write(id=99, body="later")])
    await eventually(lambda: told)
    await store.close()


def hide_rows_from_an_index(path: Path) -> None:
    """Create an index without entries for some rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE INDEX notes_by_body ON notes (body)")
        row = database.execute("SELECT * FROM sqlite_schema WHERE name = 'notes_by_body'").fetchone()
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_schema WHERE name = 'notes_by_body'")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("INSERT INTO notes VALUES (1000, 'hidden', 1000)")
        database.execute("PRAGMA writable_schema = ON")
        database.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
