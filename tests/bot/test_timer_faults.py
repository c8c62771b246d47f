"""Faults of timers: clock jumps, processes that are down for days, a locked database. Due timers are neither lost nor
repeated, and a wrong clock does not fire many timers at once."""

from __future__ import annotations

import asyncio
import importlib.resources
import sqlite3
import zoneinfo
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.database.opening import DATABASE
from bot.platforms.base import Limits
from bot.testing import FAMILY, Group, TestPlatform, a_group
from bot.web.wiring import probes_of
from services.clock import VirtualClock
from services.refs import ChatRef
from services.store.ids import Ids
from services.store.port import Conflict, Query, Row, Store, StoreFull, StoreHealth, Write
from services.store.turns import due, inbox, occurrences
from services.store.turns.occurrences import OCCURRENCES
from services.timers.timetable import TimerKind, Timetable
from services.times.recurrence import Calendar, Once, Rule, wall_of
from tests.fakes.drafts import ANN, DAILY, a_draft, every, later
from tests.fakes.functions import Recorder
from tests.fakes.held import until
from tests.fakes.kept import kept
from tests.fakes.noting import a_note
from tests.fakes.sqlite_store import a_store
from tests.fakes.timers import ask, pass_time, states, tick

HOUR, DAY, YEAR = 3600.0, 86_400.0, 365.25 * 86_400.0
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


async def ask_many(group: Group, count: int, **by: float) -> None:
    at = later(group.clock.now(), **by)
    drafts = [a_draft(f"t{number}", at, chat=ChatRef("test", "bot", f"c{number}")) for number in range(count)]
    await group.daemon.timetable.add(drafts, call_key=f"many {count} {by}", most_per_owner=100_000)


async def test_a_clock_that_is_set_six_hours_ahead_makes_up_for_each_thing_once_and_says_so() -> None:
    async with a_group([a_note().spec]) as group:
        await ask(group, "once", later(group.clock.now(), hours=2))
        await ask(group, "hourly", Rule(Calendar("0 * * * *")))
        await ask(group, "every", every(600, group.clock.now()))
        await ask(group, "later", later(group.clock.now(), hours=7))
        group.clock.jump(6 * HOUR)
        said = await tick(group)
        assert sorted(one.rpartition("\n")[2] for one in said) == ["⏰ every", "⏰ hourly", "⏰ once"]
        assert "(4 hours late: I was away.)\n⏰ once" in said
        assert await pass_time(group, 300, step=30) == []


async def test_a_clock_that_is_set_six_hours_back_says_nothing_twice_and_rules_go_on() -> None:
    async with a_group([a_note().spec]) as group:
        start = group.clock.now()
        await ask(group, "once", later(start, seconds=30))
        await ask(group, "daily", Rule(Calendar("5 9 * * *")))
        await ask(group, "every", every(600, start))
        assert await pass_time(group, 601, step=30) == ["⏰ once", "⏰ daily", "⏰ every"]
        group.clock.jump(-6 * HOUR)
        assert await tick(group) == []
        # Timers by elapsed time continue; local times that have already occurred are not repeated.
        assert await pass_time(group, 6 * HOUR, step=60) == ["⏰ every"] * 36
        assert (await pass_time(group, DAY, step=60)).count("⏰ daily") == 1
        assert (await states(group)).count("fired") == len(group.platform.sent)


async def test_what_a_wrong_clock_made_up_for_does_not_keep_a_rule_silent_once_it_is_right() -> None:
    async with a_group([a_note().spec]) as group:
        await ask(group, "hourly", Rule(Calendar("0 * * * *")))
        group.clock.jump(10 * 24 * HOUR)
        assert len(await tick(group)) == 1
        group.clock.jump(-10 * 24 * HOUR)
        assert await tick(group) == []
        assert await pass_time(group, HOUR, step=60) == ["⏰ hourly"]
        (timer,) = await group.daemon.timetable.of_chat(FAMILY, kind=TimerKind.REMINDER)
        assert timer.next_at == later(group.clock.now(), hours=1)


@pytest.mark.parametrize("count", [1, 101])
async def test_a_clock_that_is_years_ahead_for_a_while_fires_nothing(count: int) -> None:
    async with a_group([a_note().spec]) as group:
        await ask_many(group, count, days=20)
        await ask(group, "daily", DAILY)
        group.clock.jump(10 * YEAR)
        assert await pass_time(group, 2 * HOUR, step=60) == []
        ready = probes_of(group.daemon).ready()
        assert (ready.ok, ready.details["timers"].partition(":")[0]) == (True, "held")
        assert b"rollcall_timers_held 1.0" in group.daemon.metrics.render()
        group.clock.jump(-10 * YEAR)
        assert await tick(group) == []
        assert probes_of(group.daemon).ready().details["timers"] == "ok"
        assert await pass_time(group, DAY, step=600) == ["⏰ daily"]
        assert len(await pass_time(group, 20 * DAY, step=3 * HOUR)) >= count


async def test_a_daemon_that_starts_with_a_clock_years_ahead_fires_nothing(tmp_path: Path) -> None:
    async with a_group([a_note().spec], home=tmp_path) as group:
        await ask_many(group, 150, days=1)
        clock = group.clock
    clock.jump(10 * YEAR)
    async with a_group([a_note().spec], home=tmp_path, clock=clock) as group:
        assert await pass_time(group, HOUR, step=60) == []
        assert group.daemon.timers.is_holding
        clock.jump(-10 * YEAR)
        assert await pass_time(group, 60) == []
        assert not group.daemon.timers.is_holding


async def test_so_many_at_once_after_a_jump_wait_until_the_clock_has_proved_right_and_then_all_are_said() -> None:
    async with a_group([a_note().spec]) as group:
        await ask_many(group, 101, hours=2)
        group.clock.jump(6 * HOUR)
        assert await pass_time(group, 890, step=10) == []
        assert group.daemon.timers.is_holding
        said = await pass_time(group, 20)
        assert len(said) == 101
        assert all(one.startswith("(4 hours late") for one in said)
        assert not group.daemon.timers.is_holding


async def test_an_operator_may_switch_the_hold_off() -> None:
    async with a_group([a_note().spec], settings={"timers": {"hold_over": 0}}) as group:
        await ask_many(group, 101, hours=2)
        group.clock.jump(10 * YEAR)
        assert len(await tick(group)) == 101


async def test_a_process_that_was_stopped_for_hours_says_what_it_missed_once_and_late() -> None:
    async with a_group([a_note().spec]) as group:
        await ask_many(group, 120, hours=1)
        await ask(group, "hourly", Rule(Calendar("30 * * * *")))
        await group.clock.advance(3 * HOUR)  # no tick
        said = await tick(group)
        assert said.count("(2 hours late: I was away.)\n⏰ t7") == 1
        assert [one for one in said if "hourly" in one] == ["(30 minutes late: I was away.)\n⏰ hourly"]
        assert len(said) == 121


async def test_a_job_of_every_five_minutes_runs_once_after_three_days(tmp_path: Path) -> None:
    note = a_note()
    async with a_group([note.spec], home=tmp_path) as group:
        await ask(group, "cron", Rule(Calendar("*/5 * * * *")))
        await ask(group, "every", every(300, group.clock.now()))
        await ask(group, "counted", Rule(Calendar("*/5 * * * *"), count=900))
        clock = group.clock
    await clock.advance(3 * DAY + 130)
    async with a_group([note.spec], home=tmp_path, clock=clock) as group:
        assert len(await tick(group)) == 3
        assert [one.done for one in await group.daemon.timetable.of_chat(FAMILY, kind=TimerKind.REMINDER)].count(
            864
        ) == 1


@pytest.mark.parametrize(("hours", "says"), [(11, True), (13, False)])
async def test_of_a_rule_that_was_missed_too_long_ago_the_next_time_is_awaited(hours: int, says: bool) -> None:
    async with a_group([a_note().spec]) as group:
        await ask(group, "daily", Rule(Calendar("0 10 * * *")))
        await ask(group, "once", later(group.clock.now(), hours=1))
        await group.clock.advance((1 + hours) * HOUR)
        said = [one.rpartition("\n")[2] for one in await tick(group)]
        assert said == (["⏰ daily", "⏰ once"] if says else ["⏰ once"])
        assert group.daemon.timers.outcomes["missed"] == (0 if says else 1)
        assert await pass_time(group, (24 - hours) * HOUR + 60, step=60) == ["⏰ daily"]


async def test_forty_that_were_missed_in_one_group_are_all_said_within_the_networks_rate_and_late(
    tmp_path: Path,
) -> None:
    limits = Limits(text_chars=4000, sends_are_idempotent=True, sends_per_minute=20, choices=True)
    async with a_group([a_note().spec], home=tmp_path) as group:
        for number in range(40):
            await ask(group, f"t{number}", later(group.clock.now(), minutes=number + 1))
        clock = group.clock
    await clock.advance(3 * DAY)
    async with a_group([a_note().spec], home=tmp_path, clock=clock, platform=TestPlatform(limits)) as group:
        sent: list[int] = []
        for _ in range(5 * 60):
            sent.append(len(await pass_time(group, 1)))
        assert max(sum(sent[second : second + 60]) for second in range(240)) <= 20
        said = [one.text for one in group.platform.sent]
        assert [one.rpartition(" ")[2] for one in said] == [f"t{number}" for number in range(40)]
        assert all(one.startswith("(3 days late: I was away.)") for one in said)


@pytest.fixture
def tz_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with time zones of the test."""
    before = zoneinfo.TZPATH
    folder = tmp_path / "zones"
    folder.mkdir()
    zoneinfo.reset_tzpath([folder])
    zoneinfo.ZoneInfo.clear_cache()
    yield folder
    zoneinfo.reset_tzpath(before)
    zoneinfo.ZoneInfo.clear_cache()


def with_rules_of(folder: Path, name: str, other: str) -> None:
    """Give the zone `name` the rules of `other`, as an update of the time zone database would."""
    area, _, city = other.rpartition("/")
    data = importlib.resources.files(f"tzdata.zoneinfo.{area}").joinpath(city).read_bytes()
    (folder / name).write_bytes(data)
    zoneinfo.ZoneInfo.clear_cache()


async def test_when_the_rules_of_a_zone_change_what_is_to_come_keeps_its_time_on_the_wall(
    tmp_path: Path, tz_folder: Path
) -> None:
    with_rules_of(tz_folder, "Nowhere", "Europe/Berlin")
    async with a_group([a_note().spec], home=tmp_path) as group:
        await ask(group, "once", Rule(Once(wall_of("2026-07-01T09:00"))), zone="Nowhere")
        await ask(group, "daily", DAILY, zone="Nowhere")
        await ask(group, "every", every(3600, group.clock.now()), zone="Nowhere")
        await ask(group, "elsewhere", DAILY, zone="Asia/Tokyo")
        before = {
            one.title: one.next_at for one in await group.daemon.timetable.of_chat(FAMILY, kind=TimerKind.REMINDER)
        }
    with_rules_of(tz_folder, "Nowhere", "America/New_York")
    async with a_group([a_note().spec], home=tmp_path) as group:
        after = {
            one.title: one.next_at for one in await group.daemon.timetable.of_chat(FAMILY, kind=TimerKind.REMINDER)
        }
    moved = {title: after[title] - before[title] for title in after}  # type: ignore[operator]  # all of them have one
    six_hours, unmoved = timedelta(hours=6), timedelta(0)
    assert moved == {"once": six_hours, "daily": six_hours, "every": unmoved, "elsewhere": unmoved}


async def test_of_two_that_claim_the_same_moment_one_does_and_the_other_leaves_no_trace(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with a_store(tmp_path, clock) as store:
        ids = Ids(clock)
        (timer,) = await Timetable(store, clock, ids).add([a_draft("tea", DAILY)], call_key="c", most_per_owner=1)
        await clock.advance(DAY)
        (page,) = await store.read(due.page(clock.now_ms(), (-1, 0), 10))
        (row,) = await store.read(due.row(page["id"]))

        def claim(turn_id: int) -> list[Write]:
            """Writes of a process that has read the row: the second process reads before the first one writes."""
            values = {"wall": row["wall"], "due_ms": row["due_ms"], "now_ms": clock.now_ms(), "turn_id": turn_id}
            return [
                inbox.accept(
                    turn_id,
                    inbox.Event(f"by {turn_id}", FAMILY.key, "x", ANN.key, "Ann", "timer"),
                    body="{}",
                    received_ms=0,
                    epoch=1,
                ),
                due.claim(row["occurrence_id"], revision=row["revision"], **values),
                occurrences.add(id=ids.next(), timer_id=timer.id, wall="next", due_ms=1, snoozed=False),
            ]

        results = await asyncio.gather(
            store.commit(claim(1)), store.commit(claim(2)), store.commit(claim(3)), return_exceptions=True
        )
        assert [isinstance(one, Conflict) for one in results] == [False, True, True]
        assert len(await store.read(inbox.WAITING_TURNS)) == 1
        # The claim of a process that was suspended is refused.
        await clock.advance(60)
        with pytest.raises(Conflict):
            await store.commit(claim(4))


async def test_a_timer_that_is_changed_while_it_is_claimed_fires_as_it_is_then() -> None:
    async with a_group([a_note().spec]) as group:
        timer = await ask(group, "tea", later(group.clock.now(), seconds=5))
        await group.clock.advance(6)
        changing = group.daemon.timetable.change(timer, call_key="c", arguments={"text": "coffee"})
        await asyncio.gather(changing, group.daemon.timers.tick())
        await group.settle()
        assert await pass_time(group, 70) in ([], ["⏰ coffee"])
        assert [one.text for one in group.platform.sent] == ["⏰ coffee"]


@pytest.mark.parametrize("removing_first", [True, False])
async def test_removing_in_the_very_moment_says_it_or_cancels_it_and_tells_which(removing_first: bool) -> None:
    async with a_group([a_note().spec]) as group:
        timer = await ask(group, "tea", later(group.clock.now(), seconds=5))
        await group.clock.advance(6)
        removal = asyncio.ensure_future(group.daemon.timetable.remove([timer], by=ANN, call_key="r"))
        if removing_first:
            await asyncio.sleep(0)
        await group.daemon.timers.tick()
        (removed,) = await removal
        await group.settle()
        await pass_time(group, 70, step=10)
        assert len(group.platform.sent) == int(removed.is_being_sent)


async def test_a_database_that_is_locked_by_another_process_only_delays_it(tmp_path: Path) -> None:
    async with a_group([a_note().spec], home=tmp_path) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        await group.clock.advance(6)
        with closing(sqlite3.connect(tmp_path / DATABASE, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await group.daemon.timers.tick()
            await asyncio.sleep(0.2)  # the writer thread waits in real time
            assert group.platform.sent == []
            other.execute("ROLLBACK")
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["⏰ tea"]
        assert await states(group) == ["fired"]


class FullFor:
    """A store without space for the first claims."""

    def __init__(self, store: Store, times: int) -> None:
        self._inner = store
        self.left = times

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        if self.left and any(write.statement.name == "due.claim" for write in writes):
            self.left -= 1
            full: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
            full.set_exception(StoreFull("no room"))
            return full
        return self._inner.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        self._inner.post(writes)

    async def read(self, query: Query) -> list[Row]:
        return await self._inner.read(query)

    def health(self) -> StoreHealth:
        return self._inner.health()

    async def check(self) -> None:
        await self._inner.check()

    async def close(self) -> None:
        await self._inner.close()


async def test_a_full_disk_only_delays_it() -> None:
    around: Callable[[Store], Store] = lambda store: FullFor(store, 2)  # noqa: E731
    async with a_group([a_note().spec], around_store=around) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        assert await pass_time(group, 9) == []
        assert await states(group) == ["due"]
        assert await pass_time(group, 10) == ["⏰ tea"]


async def test_a_function_that_hangs_in_one_chat_keeps_no_other_chat_waiting() -> None:
    hang = Recorder("hang", {"text": {"type": "string"}}, does=_hang, offered_to=["timer"])
    async with a_group([a_note().spec, hang.spec]) as group:
        at = later(group.clock.now(), seconds=5)
        await ask(group, "stuck", at, function="hang", chat=ChatRef("test", "bot", "stuck"))
        await ask(group, "behind", at, chat=ChatRef("test", "bot", "stuck"))
        await ask(group, "tea", at)
        await group.clock.advance(6)
        await group.daemon.timers.tick()
        await until(lambda: bool(group.platform.sent))
        assert [one.text for one in group.platform.sent] == ["⏰ tea"]
        await group.clock.advance(60)
        group.deadlines.expire()
        await group.settle()
        assert group.platform.sent[-1].text == "(1 minute late.)\n⏰ behind"


async def _hang(context: object, arguments: object, call: object) -> str:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def test_what_was_claimed_before_a_crash_is_said_after_it(tmp_path: Path) -> None:
    hang = Recorder("note", {"text": {"type": "string"}}, does=_hang, offered_to=["timer"], effect="idempotent")
    async with a_group([hang.spec], home=tmp_path) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        await group.clock.advance(6)
        await group.daemon.timers.tick()
        await until(lambda: bool(hang.runs))
        clock = group.clock
        await group.crash()
    await clock.advance(2 * HOUR)
    async with a_group([a_note(effect="idempotent").spec], home=tmp_path, clock=clock) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["(2 hours late: I was away.)\n⏰ tea"]
        assert await pass_time(group, 10) == []
        assert await kept(group, OCCURRENCES.c.state) == [("fired",)]
