"""Declared schedules of scripts and settings, and their stored form."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, RequestProblem
from services.store.ids import Ids
from services.store.port import Store
from services.timers.schedules import (
    DeclaredSchedule,
    Schedules,
    When,
    WhenReader,
    by_cron,
    every_seconds,
)
from services.timers.timer import Timer, TimerKind, TimerState
from services.timers.timetable import Timetable
from services.times import Times
from services.times.recurrence import BadRule
from tests.fakes.drafts import ANN, DAILY, FAMILY, a_draft
from tests.fakes.sqlite_store import a_store

SCRIPT = MemberRef("schedules", "scripts", "report.bas")
DAILY_AT_7 = by_cron("0 7 * * *", "Europe/Oslo")


class Kept:
    """Schedules of a store, as used by scripts and settings."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        ids = Ids(clock)
        self.clock = clock
        self.timetable = Timetable(store, clock, ids)
        reader = WhenReader(Times())
        self.schedules = Schedules(self.timetable, reader, store, clock, ids, most_per_chat=2, most_per_member=3)

    async def by_name(self) -> dict[str, Timer]:
        return {timer.source: timer for timer in await self.timetable.declared()}


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    clock = VirtualClock()
    async with a_store(tmp_path, clock) as store:
        yield Kept(store, clock)


def wanted(when: When = DAILY_AT_7, **changes: object) -> DeclaredSchedule:
    """The schedule declared by `SET SCHEDULE "0 7 * * *"` in report.bas."""
    whole = DeclaredSchedule("default", FAMILY, True, SCRIPT, "report.bas", "report", {}, "report", when)
    return replace(whole, **changes)  # type: ignore[arg-type]  # as the caller says


async def test_a_script_sets_its_schedule_and_loses_it(kept: Kept) -> None:
    timer = await kept.schedules.declare("scripts", "report.bas", wanted())
    assert timer is not None
    assert (timer.source, timer.title, timer.zone, timer.number) == ("scripts.report.bas", "report", "Europe/Oslo", 1)
    assert timer.next_at is not None
    assert (timer.next_at - kept.clock.now()) == timedelta(hours=21)
    assert await kept.schedules.declare("scripts", "report.bas", None) is None
    assert await kept.by_name() == {}


async def test_the_same_declaration_again_changes_nothing(kept: Kept) -> None:
    first = await kept.schedules.declare("scripts", "a", wanted(every_seconds(5400, kept.clock.now(), "UTC")))
    await kept.clock.advance(600)
    again = await kept.schedules.declare("scripts", "a", wanted(every_seconds(5400, kept.clock.now(), "UTC")))
    assert again == first


async def test_one_origin_does_not_touch_another(kept: Kept) -> None:
    await kept.schedules.reconcile("settings", {"a": wanted()})
    done = await kept.schedules.reconcile("scripts", {"a": wanted(), "b": wanted()})
    assert (done.added, done.removed) == (["a", "b"], [])
    done = await kept.schedules.reconcile("scripts", {"b": wanted()})
    assert (done.added, done.changed, done.removed) == ([], [], ["a"])
    assert set(await kept.by_name()) == {"settings.a", "scripts.b"}


async def test_another_function_at_the_same_time_keeps_the_next_moment_and_the_pause(kept: Kept) -> None:
    when = every_seconds(5400, kept.clock.now(), "UTC")
    first = await kept.schedules.declare("scripts", "a", wanted(when))
    assert first is not None
    await kept.schedules.pause(FAMILY, first.number, private_to=None, call_key="pause")
    await kept.clock.advance(600)
    later = every_seconds(5400, kept.clock.now(), "UTC")
    second = await kept.schedules.declare("scripts", "a", wanted(later, function="other"))
    assert second is not None
    assert (second.function, second.state, second.rule) == ("other", TimerState.PAUSED, first.rule)


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "two"},
        {"arguments": {"n": 1}},
        {"when": by_cron("0 8 * * *", "Europe/Oslo")},
        {"when": by_cron("0 7 * * *", "Asia/Tokyo")},
    ],
)
async def test_what_is_otherwise_is_changed_in_place(kept: Kept, changes: dict[str, object]) -> None:
    first = await kept.schedules.declare("scripts", "a", wanted())
    other = wanted(**changes)  # type: ignore[arg-type]  # as the case says
    done = await kept.schedules.reconcile("scripts", {"a": other})
    after = (await kept.by_name())["scripts.a"]
    assert first is not None
    assert (done.changed, after.id, after.title, after.arguments) == (["a"], first.id, other.title, other.arguments)
    assert (after.rule, after.zone) == (other.when.rule, other.when.zone)


@pytest.mark.parametrize(
    "changes",
    [{"chat": ChatRef("test", "bot", "work")}, {"is_group": False}, {"bot": "other"}, {"owner": ANN}],
)
async def test_another_chat_bot_or_owner_makes_it_another_one(kept: Kept, changes: dict[str, object]) -> None:
    first = await kept.schedules.declare("scripts", "a", wanted())
    second = await kept.schedules.declare("scripts", "a", wanted(**changes))  # type: ignore[arg-type]  # as the case says
    assert first is not None
    assert second is not None
    assert second.id != first.id
    assert list(await kept.by_name()) == ["scripts.a"]


async def test_what_cannot_be_kept_leaves_what_was(kept: Kept) -> None:
    first = await kept.schedules.declare("scripts", "a", wanted())
    never = wanted(by_cron("0 0 31 2 *", "UTC"))
    done = await kept.schedules.reconcile("scripts", {"a": never, "b": wanted()})
    assert (list(done.refused), done.added) == (["a"], ["b"])
    assert (await kept.by_name())["scripts.a"] == first
    with pytest.raises(BadRule):
        await kept.schedules.declare("scripts", "a", replace(never, function="other"))
    assert (await kept.by_name())["scripts.a"] == first


async def test_what_fails_keeps_nothing_else_from_being_brought_about(kept: Kept) -> None:
    first = await kept.schedules.declare("scripts", "b", wanted())
    mars = wanted(by_cron("0 7 * * *", "Mars/Base"))
    done = await kept.schedules.reconcile("scripts", {"a": mars, "b": mars, "c": wanted()})
    assert (done.failed, done.added) == (["a", "b"], ["c"])
    assert (await kept.by_name())["scripts.b"] == first


async def test_what_was_not_understood_stays(kept: Kept) -> None:
    await kept.schedules.reconcile("scripts", {"a": wanted(), "b": wanted()})
    done = await kept.schedules.reconcile("scripts", {}, unread=["a"])
    assert (done.removed, list(await kept.by_name())) == (["b"], ["scripts.a"])


async def test_a_repeated_call_makes_one_even_where_it_filled_the_chat(kept: Kept) -> None:
    drafts = [a_draft(f"tea {number}", DAILY, kind=TimerKind.SCHEDULE) for number in range(3)]
    for number in (0, 1, 1):
        await kept.schedules.create(drafts[number], call_key=f"call {number}")
    assert len(await kept.schedules.of_chat(FAMILY)) == 2
    with pytest.raises(RequestProblem, match=r"schedules\.full"):
        await kept.schedules.create(drafts[2], call_key="call 2")


async def test_what_files_declare_takes_no_room_of_a_chat(kept: Kept) -> None:
    await kept.schedules.reconcile("schedules", {name: wanted() for name in "abc"})
    await kept.schedules.create(a_draft("tea", DAILY, kind=TimerKind.SCHEDULE), call_key="call")
    assert len(await kept.schedules.of_chat(FAMILY)) == 4


async def test_removing_again_in_the_same_call_gives_what_it_gave(kept: Kept) -> None:
    await kept.schedules.create(a_draft("tea", DAILY, kind=TimerKind.SCHEDULE), call_key="call")
    for _ in range(2):
        removed = await kept.schedules.remove(FAMILY, 1, by=ANN, private_to=None, call_key="remove")
        assert removed.title == "tea"
    with pytest.raises(RequestProblem, match=r"schedules\.no_such"):
        await kept.schedules.remove(FAMILY, 1, by=ANN, private_to=None, call_key="another")


async def test_what_a_file_declares_is_removed_there(kept: Kept) -> None:
    await kept.schedules.declare("schedules", "a", wanted())
    with pytest.raises(RequestProblem, match=r"schedules\.set_elsewhere"):
        await kept.schedules.remove(FAMILY, 1, by=ANN, private_to=None, call_key="remove")
