"""Housekeeping: old rows are deleted, but message ids are kept as long as networks may deliver them again."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Column, Delete
from structlog.testing import capture_logs

from bot.database.opening import DATABASE
from bot.platforms.base import Accepted
from bot.testing import Group, a_group
from bot.web.wiring import probes_of
from services.clock import VirtualClock
from services.scripts.memory import ScriptMemory, bots_own
from services.store.chats import history, script_data, summaries
from services.store.ids import first_id_at
from services.store.port import Query, Row, Store, StoreBroken, Write
from services.store.turns import audit
from services.store.turns.inbox import INBOX
from services.store.turns.outbox import OUTBOX
from services.store.turns.pending import PENDING
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held
from tests.fakes.kept import heard, kept

DAY_SECONDS = 24 * 3600
SHORT = {"store": {"days_kept": 1}, "chats": {"allow": ["*"]}}


async def rows(group: Group, *columns: Column[str] | Column[int]) -> list[int]:
    return [len(await kept(group, column)) for column in columns]


async def test_what_ended_long_ago_is_deleted_and_so_is_what_was_said() -> None:
    function = Recorder("rain", CITY, commands=["rain"])
    async with a_group([function.spec], settings={"store": {"days_kept": 10}, "chats": {"allow": ["*"]}}) as group:
        await group.say("Ann", "/rain")
        await group.say("Ann", "Oslo")
        everything = (INBOX.c.key, OUTBOX.c.state, PENDING.c.state)
        await group.clock.advance(9 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await rows(group, *everything) == [2, 2, 1]
        assert len(await heard(group)) == 4
        await group.clock.advance(2 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await rows(group, *everything) == [0, 0, 0]
        assert await heard(group) == []


async def test_nothing_is_deleted_for_a_day_after_the_wall_clock_was_set_far_ahead() -> None:
    function = Recorder("rain", CITY, commands=["rain"])
    async with a_group([function.spec], settings=SHORT) as group:
        await group.say("Ann", "/rain")
        group.clock.jump(365 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert len(await heard(group)) == 2
        group.clock.jump(-365 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        await group.clock.advance(DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert len(await heard(group)) == 2
        await group.clock.advance(4 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await heard(group) == []


async def test_summaries_and_what_was_done_to_settings_are_kept_no_longer_than_the_rest() -> None:
    now = 0
    async with a_group(settings={"store": {"days_kept": 10}}) as group:
        for number, days in enumerate((0, 9, 11), start=1):
            await group.clock.advance(days * DAY_SECONDS - now)
            now = days * DAY_SECONDS
            at_ms = group.clock.now_ms()
            said_id = group.daemon.ids.next()
            said = history.add_bot_message(
                id=said_id, chat="c", sender_name="Ann", text="", at_ms=0, reply_to=None, asked_by="a", answers=0
            )
            made = summaries.put(
                "c", f"thread:{days}", "short", after=0, until_id=said_id, unchanged=number, at_ms=at_ms
            )
            done = audit.note(id=days, at_ms=at_ms, actor="a", chat="c", action="set", detail="language")
            await group.daemon.store.commit([said, made, done])
            await group.daemon.housekeeping.forget()
        assert await kept(group, summaries.SUMMARIES.c.part) == [("thread:11",), ("thread:9",)]
        assert await kept(group, audit.AUDIT.c.id) == [(9,), (11,)]


async def test_what_scripts_remember_for_a_time_is_forgotten_then_and_the_rest_stays() -> None:
    async with a_group() as group:
        memory = ScriptMemory(group.daemon.store, group.clock)
        await memory.put(bots_own("default"), "short", 1, seconds=60)
        await memory.put(bots_own("default"), "long", 1)
        await group.clock.advance(61)
        await group.daemon.housekeeping.forget()
        assert await kept(group, script_data.SCRIPT_MEMORY.c.name) == [("long",)]


@pytest.mark.parametrize("hours", [25, 71])
async def test_a_message_that_is_delivered_again_within_three_days_is_known_whatever_is_kept(hours: int) -> None:
    async with a_group(settings=SHORT) as group:
        await group.say("Ann", "/id", id="x1")
        await group.clock.advance(hours * 3600)
        await group.daemon.housekeeping.forget()
        assert await group.hear("Ann", "/id", id="x1") is Accepted.DUPLICATE


async def test_what_is_not_finished_is_never_forgotten(tmp_path: Path) -> None:
    held = Held()
    async with a_group([held.spec], home=tmp_path, settings=SHORT) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        await group.clock.advance(100 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        await group.crash()
    held.let_go()
    async with a_group([held.spec], home=tmp_path, settings=SHORT) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: it"]


async def test_an_open_question_is_never_forgotten() -> None:
    function = Recorder("rain", CITY, commands=["rain"])
    settings = {**SHORT, "questions": {"expires_seconds": 7 * DAY_SECONDS}}
    async with a_group([function.spec], settings=settings) as group:
        await group.say("Ann", "/rain")
        await group.clock.advance(6 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await group.say("Ann", "Oslo") == ["done"]


async def test_the_errands_are_on_the_tickers_list() -> None:
    async with a_group() as group:
        ticker = group.daemon.ticker()
        ticker.start()
        ticker.stop()


async def test_ids_rise_through_a_restart_even_when_the_clock_was_set_back(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await group.clock.advance(3600)
        await group.say("Ann", "before")
        await group.say("Ann", "/id")
    async with a_group(home=tmp_path) as group:
        await group.say("Ann", "after")
        assert [text for _, text in await heard(group)][::3] == ["before", "after"]


async def test_what_is_old_is_forgotten_although_the_clock_was_ahead_once(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await group.clock.advance(1000 * DAY_SECONDS)
        await group.say("Ann", "/id", id="from the future")
    settings = {"store": {"days_kept": 10}, "chats": {"allow": ["*"]}}
    async with a_group(home=tmp_path, settings=settings) as group:
        await group.say("Ann", "/id", id="old")
        await group.clock.advance(9 * DAY_SECONDS)
        await group.say("Ann", "/id", id="young")
        await group.daemon.housekeeping.forget()
        assert await rows(group, INBOX.c.key) == [3]
        await group.clock.advance(2 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await kept(group, INBOX.c.native_id) == [("young",)]


class NotingRows:
    """A store that records the number of deleted rows of each unit."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self._inner: Store | None = None
        self._deleted = asyncio.Event()

    def under(self, store: Store) -> Store:
        self._inner = store
        return self

    async def has_deleted(self) -> None:
        """Wait until the first unit with deleted rows is committed."""
        async with asyncio.timeout(30):
            await self._deleted.wait()

    @property
    def _store(self) -> Store:
        assert self._inner is not None
        return self._inner

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[list[int]]:
        unit = asyncio.ensure_future(self._store.commit(writes))
        deletes = [place for place, one in enumerate(writes) if isinstance(one.statement.clause, Delete)]

        def ended(done: asyncio.Future[list[int]]) -> None:
            if deleted := sum(done.result()[place] for place in deletes):
                self.rows.append(deleted)
                self._deleted.set()

        unit.add_done_callback(ended)
        return unit

    def post(self, writes: Sequence[Write]) -> None:
        self._store.post(writes)

    async def read(self, query: Query) -> list[Row]:
        return await self._store.read(query)

    @property
    def broken(self) -> StoreBroken | None:
        return self._store.broken

    async def close(self) -> None:
        await self._store.close()


def insert_old_rows(home: Path, count: int, at_ms: int) -> None:
    """Add history and events of an inactive chat, starting at that time."""
    first = first_id_at(at_ms)
    with closing(sqlite3.connect(home / DATABASE)) as database, database:
        database.executemany(
            "INSERT INTO history (id, chat, sender, sender_name, text, at_ms, from_bot, reply_to_name, change)"
            " VALUES (?, 'test:bot:quiet', 'test:bot:ann', 'Ann', 'old', ?, 0, '', '')",
            [(first + number, at_ms) for number in range(count)],
        )
        database.executemany(
            "INSERT INTO http_events (id, chat, native_id, body) VALUES (?, 'http:main:quiet', ?, '{}')",
            [(first + number, str(number)) for number in range(count)],
        )


def old_rows(home: Path) -> int:
    with closing(sqlite3.connect(home / DATABASE)) as database:
        rows = database.execute(
            "SELECT (SELECT count(*) FROM history WHERE chat LIKE '%:quiet')"
            " + (SELECT count(*) FROM http_events WHERE chat LIKE '%:quiet')"
        )
        return int(rows.fetchone()[0])


async def test_the_old_messages_of_a_chat_in_which_nobody_writes_any_more_are_deleted(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        insert_old_rows(tmp_path, 10, group.clock.now_ms() - 29 * DAY_SECONDS * 1000)
        await group.daemon.housekeeping.forget()
        assert old_rows(tmp_path) == 20
        await group.clock.advance(2 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert old_rows(tmp_path) == 0


async def test_old_rows_are_deleted_in_small_batches_between_which_messages_are_answered(tmp_path: Path) -> None:
    noting = NotingRows()
    async with a_group(home=tmp_path, around_store=noting.under) as group:
        insert_old_rows(tmp_path, 10_000, group.clock.now_ms() - 50 * DAY_SECONDS * 1000)
        pruning = asyncio.create_task(group.daemon.housekeeping.forget())
        await noting.has_deleted()
        assert await group.say("Ann", "/calc 6*7") == ["6*7 = 42"]
        assert not pruning.done()
        await pruning
        assert old_rows(tmp_path) == 0
    assert max(noting.rows) <= 500


BACKUPS = {"store": {"backup_every_hours": 24, "backups_kept": 2}, "operators": {"chat": "test:bot:ops"}}


async def test_a_backup_is_made_whenever_the_newest_is_a_day_old_also_across_restarts(tmp_path: Path) -> None:
    made = []
    clock = VirtualClock()
    for hours in (0, 23, 2, 12, 13, 25):
        async with a_group(home=tmp_path, settings=BACKUPS, clock=clock) as group:
            await clock.advance(hours * 3600)
            await group.daemon.backups.keep_up()
            made.append(sorted(file.name[9:20] for file in (tmp_path / "backups").iterdir()))
            assert probes_of(group.daemon).ready().details["backup"] == "ok"
    first, second, third, fourth = "20260105T09", "20260106T10", "20260107T11", "20260108T12"
    assert made == [[first], [first], [first, second], [first, second], [second, third], [third, fourth]]


async def test_a_backup_that_fails_is_seen_by_operators_until_one_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.write_text("in the way")
    async with a_group(home=tmp_path, settings=BACKUPS) as group:

        async def told_after_an_attempt() -> tuple[str, str, bool]:
            with capture_logs() as logs:
                await group.daemon.backups.keep_up()
            await group.clock.settle()
            await group.clock.advance(120)
            await group.settle()
            events = [line["event"] for line in logs if line["event"].startswith("backup_")]
            age = re.findall(
                r"^rollcall_backup_age_seconds (\S+)", group.daemon.metrics.render().decode(), re.MULTILINE
            )
            ready = probes_of(group.daemon).ready()
            assert ready.ok
            return events[0], ready.details["backup"], age == ["+Inf"]

        assert probes_of(group.daemon).ready().details["backup"] == "none yet"
        assert await told_after_an_attempt() == ("backup_failed", "failed; the log says why", True)
        [told] = group.platform.sent
        assert told.chat.key == "test:bot:ops"
        assert "I couldn't back up my database" in told.text
        assert str(folder) in told.text
        folder.unlink()
        assert await told_after_an_attempt() == ("backup_made", "ok", False)
        assert group.platform.sent[-1].text.startswith("All is well again")


async def test_without_a_schedule_no_backup_is_made(tmp_path: Path) -> None:
    async with a_group(home=tmp_path, settings={"store": {"backup_every_hours": 0}}) as group:
        await group.daemon.backups.keep_up()
        assert "backup" not in probes_of(group.daemon).ready().details
        assert b"rollcall_backup" not in group.daemon.metrics.render()
    assert not (tmp_path / "backups").exists()
