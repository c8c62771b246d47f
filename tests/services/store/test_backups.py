"""Backups of a database: complete, verified, and limited in number."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from services.clock import VirtualClock
from services.store.port import StoreBroken, StoreError
from services.store.sqlite.upgrade import back_up, damage, restore
from tests.contracts.store_engines import ADD, ADD_ONCE, SqliteEngine


async def test_a_copy_taken_under_load_has_every_unit_whole(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path)
    store = await engine.open()
    stop = asyncio.Event()

    async def write(chat: int) -> None:
        number = 0
        while not stop.is_set():
            first = 2 * (chat * 1_000_000 + number)
            await store.commit([ADD.write(id=first, body="call"), ADD.write(id=first + 1, body="reply")])
            number += 1

    async with asyncio.TaskGroup() as chats:
        for chat in range(10):
            chats.create_task(write(chat))
        acknowledged = (await asyncio.gather(*[store.commit([ADD.write(id=-1, body="before the copy")])]))[0]
        copy = await asyncio.to_thread(
            back_up, engine.path, tmp_path / "backups", label="x", clock=VirtualClock(), keep=2
        )
        stop.set()
    await store.close()
    assert acknowledged == [1]
    with closing(sqlite3.connect(copy)) as database:
        ids = {number for (number,) in database.execute("SELECT id FROM notes")}
    assert -1 in ids
    assert {number // 2 for number in ids if number >= 0 and number % 2 == 0} == {
        number // 2 for number in ids if number >= 0 and number % 2
    }
    assert [file.name for file in copy.parent.iterdir()] == ["store-20260105T090000Z-x.db"]


async def test_the_newest_copies_stay(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path)
    await (await engine.open()).close()
    clock = VirtualClock()
    backups = tmp_path / "backups"
    backups.mkdir()
    left = backups / "store-20260101T090000Z-x.db.1.partial"
    left.write_text("left by a process that was killed")
    os.utime(left, (0, 0))
    (backups / "unrelated.db").touch()
    for _ in range(4):
        back_up(engine.path, backups, label="x", clock=clock, keep=2)
        await clock.advance(60)
    assert sorted(file.name for file in backups.iterdir()) == [
        "store-20260105T090200Z-x.db",
        "store-20260105T090300Z-x.db",
        "unrelated.db",
    ]


async def test_a_damaged_database_replaces_no_good_copy(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path)
    store = await engine.open()
    await store.commit([ADD.write(id=number, body="x" * 500) for number in range(200)])
    await store.close()
    good = back_up(engine.path, tmp_path / "backups", label="good", clock=VirtualClock(), keep=1)
    assert damage(engine.path) is None
    with engine.path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 3 * 4096)
    assert damage(engine.path) is not None
    clock = VirtualClock()
    await clock.advance(60)
    with pytest.raises(StoreBroken, match=r"store\.db is damaged"):
        back_up(engine.path, tmp_path / "backups", label="bad", clock=clock, keep=1)
    assert list(good.parent.iterdir()) == [good]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file"):
        back_up(tmp_path / "store.db", tmp_path / "file" / "backups", label="x", clock=VirtualClock(), keep=1)


async def test_the_share_that_is_done_is_told(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path)
    store = await engine.open()
    await store.commit([ADD_ONCE.write(id=number, body="x" * 100) for number in range(40_000)])
    await store.close()
    shares: dict[str, list[float]] = {"backup": [], "restore": []}
    clock = VirtualClock()
    backup = back_up(engine.path, tmp_path, label="x", clock=clock, keep=None, progress=shares["backup"].append)
    restore(backup, engine.path, clock=clock, progress=shares["restore"].append)
    for told in shares.values():
        assert len(told) > 1
        assert told == sorted(told)
        assert 0 <= told[0] < told[-1] <= 1
    assert len(engine.stored()) == 40_000
