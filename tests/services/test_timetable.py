"""The timetable: timers are stored completely or not at all, once per call, and for their chat only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

from services.chats.members import MemberZones
from services.clock import VirtualClock
from services.refs import ChatRef
from services.store.ids import Ids
from services.store.port import Store
from services.timers.timetable import NoSuchTimer, Timer, TimerKind, TimerState, Timetable, TooMany
from services.times.recurrence import BadRule, Calendar, Rule, RuleProblem
from tests.fakes.drafts import ANN, BOB, DAILY, FAMILY, a_draft, every, later
from tests.fakes.failing_store import Crashed, FailingStore, raise_crashed
from tests.fakes.sqlite_store import a_store

WORK = ChatRef("test", "bot", "work")
REMINDER = TimerKind.REMINDER
MOST = 100


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Store]:
    async with a_store(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def timetable(store: Store, clock: VirtualClock) -> Timetable:
    return Timetable(store, clock, Ids(clock))


async def add(timetable: Timetable, title: str, rule: Rule | datetime, key: str = "", **changes: object) -> Timer:
    draft = a_draft(title, rule, **changes)
    (timer,) = await timetable.add([draft], call_key=key or f"call {title}", most_per_owner=MOST)
    return timer


async def titles(timetable: Timetable, **which: object) -> list[str]:
    which = {"chat": FAMILY, "kind": REMINDER, **which}
    return [one.title for one in await timetable.of_chat(**which)]  # type: ignore[arg-type]  # as the caller says


async def test_a_timer_comes_back_as_it_was_asked_for(timetable: Timetable, clock: VirtualClock) -> None:
    draft = a_draft("tea", DAILY, members=((BOB, "Bob"),), private_to=ANN, zone="Asia/Shanghai", source="schedules.tea")
    (timer,) = await timetable.add([draft], call_key="c", most_per_owner=MOST)
    fields = list(draft.__dataclass_fields__)
    assert [getattr(timer, name) for name in fields] == [getattr(draft, name) for name in fields]
    assert (timer.number, timer.state, timer.created_at) == (1, TimerState.ACTIVE, clock.now())
    assert timer.next_at == datetime(2026, 1, 6, 1, tzinfo=UTC)
    assert await timetable.declared() == [timer]


async def test_what_comes_soonest_stands_first_and_what_is_paused_last(
    timetable: Timetable, clock: VirtualClock
) -> None:
    paused = await add(timetable, "paused", later(clock.now(), hours=1))
    await add(timetable, "later", later(clock.now(), hours=3))
    await add(timetable, "sooner", later(clock.now(), hours=2))
    await timetable.pause(paused, call_key="p")
    assert await titles(timetable) == ["sooner", "later", "paused"]


async def test_numbers_are_given_once_in_each_chat_and_for_each_kind(timetable: Timetable, clock: VirtualClock) -> None:
    at = later(clock.now(), hours=1)
    first = await add(timetable, "first", at)
    second = await add(timetable, "second", at)
    await timetable.remove([second], by=ANN, call_key="r")
    third = await add(timetable, "third", at)
    elsewhere = await add(timetable, "elsewhere", at, chat=WORK)
    schedule = await add(timetable, "schedule", at, kind=TimerKind.SCHEDULE)
    assert [one.number for one in (first, second, third, elsewhere, schedule)] == [1, 2, 3, 1, 1]


async def test_a_chat_sees_its_own_and_a_member_private_ones(timetable: Timetable, clock: VirtualClock) -> None:
    at = later(clock.now(), hours=1)
    await add(timetable, "of ann", at)
    await add(timetable, "for bob", at, members=((BOB, "Bob"),))
    await add(timetable, "of bob", at, owner=BOB)
    await add(timetable, "at work", at, chat=WORK)
    await add(timetable, "private", at, private_to=ANN)
    assert await titles(timetable) == ["of ann", "for bob", "of bob"]
    assert await titles(timetable, chat=WORK) == ["at work"]
    assert await titles(timetable, private_to=BOB) == ["of ann", "for bob", "of bob"]
    assert await titles(timetable, private_to=ANN) == ["of ann", "for bob", "of bob", "private"]


async def test_nothing_is_added_when_one_of_several_cannot_be(timetable: Timetable, clock: VirtualClock) -> None:
    good, bad = a_draft("good", later(clock.now(), hours=1)), a_draft("bad", later(clock.now(), hours=-1))
    with pytest.raises(BadRule) as refused:
        await timetable.add([good, bad], call_key="c", most_per_owner=MOST)
    assert (refused.value.index, refused.value.reason) == (1, RuleProblem.PAST)
    assert await titles(timetable) == []


async def test_a_member_has_no_more_than_the_limit_in_all_chats(timetable: Timetable, clock: VirtualClock) -> None:
    at = later(clock.now(), hours=1)
    await timetable.add([a_draft("one", at), a_draft("two", at, chat=WORK)], call_key="c1", most_per_owner=3)
    with pytest.raises(TooMany) as refused:
        await timetable.add([a_draft("three", at), a_draft("four", at)], call_key="c2", most_per_owner=3)
    assert refused.value.most == 3
    assert await titles(timetable) == ["one"]
    await timetable.add([a_draft("of bob", at, owner=BOB)], call_key="c3", most_per_owner=3)
    await timetable.add([a_draft("three", at)], call_key="c4", most_per_owner=3)
    assert await titles(timetable) == ["one", "of bob", "three"]


@pytest.mark.requirement("D41")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_while_timers_are_added_leaves_all_or_none_and_the_repeated_call_has_them_once(
    store: Store, clock: VirtualClock, when: Literal["before", "after"]
) -> None:
    ids = Ids(clock)
    drafts = [a_draft(f"t{number}", later(clock.now(), hours=1)) for number in range(3)]
    crashing = Timetable(FailingStore(store, 1, when, raise_crashed), clock, ids)
    with pytest.raises(Crashed):
        await crashing.add(drafts, call_key="c", most_per_owner=3)
    timetable = Timetable(store, clock, ids)
    assert await titles(timetable) == ([] if when == "before" else ["t0", "t1", "t2"])
    await clock.advance(7200 if when == "after" else 0)
    again = await timetable.add(drafts, call_key="c", most_per_owner=3)
    assert [one.title for one in again] == await titles(timetable) == ["t0", "t1", "t2"]
    assert again == await timetable.added_by("c")


@pytest.mark.requirement("D41")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_while_timers_are_removed_leaves_all_or_none(
    store: Store, clock: VirtualClock, when: Literal["before", "after"]
) -> None:
    ids = Ids(clock)
    timetable = Timetable(store, clock, ids)
    both = [await add(timetable, title, later(clock.now(), hours=1)) for title in ("one", "two")]
    crashing = Timetable(FailingStore(store, 1, when, raise_crashed), clock, ids)
    with pytest.raises(Crashed):
        await crashing.remove(both, by=ANN, call_key="r")
    assert await titles(timetable) == (["one", "two"] if when == "before" else [])
    removed = await timetable.remove(both, by=ANN, call_key="r")
    assert [(one.timer.title, one.is_being_sent) for one in removed] == [("one", False), ("two", False)]
    assert [one.timer.title for one in await timetable.removed_by(FAMILY, "r")] == ["one", "two"]


async def test_what_somebody_else_removed_is_gone(timetable: Timetable, clock: VirtualClock) -> None:
    timer = await add(timetable, "tea", later(clock.now(), hours=1))
    await timetable.remove([timer], by=BOB, call_key="r1")
    await timetable.remove([timer], by=ANN, call_key="r2")
    assert await timetable.removed_by(FAMILY, "r2") == []
    assert await timetable.get(FAMILY, 1, REMINDER) is None
    for change in (timetable.pause(timer, call_key="p"), timetable.change(timer, call_key="c", title="x")):
        with pytest.raises(NoSuchTimer):
            await change


async def test_a_change_takes_the_place_of_what_was_and_is_made_once(timetable: Timetable, clock: VirtualClock) -> None:
    timer = await add(timetable, "tea", later(clock.now(), hours=1))
    changed = await timetable.change(timer, call_key="c", title="coffee", arguments={}, rule=DAILY, zone="Asia/Tokyo")
    assert (changed.title, changed.arguments, changed.next_at) == (
        "coffee",
        {},
        datetime(2026, 1, 6, 0, tzinfo=UTC),
    )
    assert await timetable.change(timer, call_key="c", title="milk") == changed
    with pytest.raises(BadRule):
        await timetable.change(changed, call_key="d", rule=Rule(Calendar("nonsense")))
    assert await timetable.get(FAMILY, 1, REMINDER) == changed


async def test_a_snoozed_moment_stands_beside_the_rule_and_only_the_last_one_counts(
    timetable: Timetable, clock: VirtualClock
) -> None:
    timer = await add(timetable, "tea", DAILY)
    at = later(clock.now(), minutes=10)
    await timetable.snooze(timer, later(clock.now(), minutes=5), call_key="s1")
    snoozed = await timetable.snooze(timer, at, call_key="s2")
    assert (snoozed.snoozed_until, snoozed.next_at, snoozed.soonest) == (at, timer.next_at, at)
    assert await timetable.snooze(timer, later(clock.now(), hours=1), call_key="s2") == snoozed
    with pytest.raises(BadRule):
        await timetable.snooze(timer, clock.now(), call_key="s3")


async def test_what_is_paused_is_silent_until_it_goes_on_with_its_rule(
    timetable: Timetable, clock: VirtualClock
) -> None:
    timer = await add(timetable, "tea", every(3600, clock.now()))
    paused = await timetable.pause(timer, call_key="p")
    assert (paused.state, paused.next_at) == (TimerState.PAUSED, None)
    await clock.advance(2.5 * 3600)
    assert (await timetable.change(paused, call_key="c", title="milk")).next_at is None
    resumed = await timetable.resume(paused, call_key="r")
    assert (resumed.state, resumed.next_at) == (TimerState.ACTIVE, later(clock.now(), minutes=30))


async def test_a_moment_that_went_by_in_a_pause_is_not_made_up_for(timetable: Timetable, clock: VirtualClock) -> None:
    timer = await add(timetable, "tea", later(clock.now(), hours=1))
    await timetable.pause(timer, call_key="p")
    await clock.advance(7200)
    with pytest.raises(BadRule) as refused:
        await timetable.resume(timer, call_key="r")
    assert refused.value.reason is RuleProblem.PAST


async def test_it_knows_when_something_is_due_next(timetable: Timetable, clock: VirtualClock) -> None:
    assert timetable.soonest_ms is None
    await add(timetable, "later", later(clock.now(), hours=2))
    timer = await add(timetable, "sooner", later(clock.now(), hours=1))
    assert timetable.soonest_ms == clock.now_ms() + 3_600_000
    await timetable.snooze(timer, clock.now() + timedelta(seconds=90), call_key="s")
    assert timetable.soonest_ms == clock.now_ms() + 90_000


async def test_a_member_has_one_zone_everywhere_until_it_is_taken_back(store: Store, clock: VirtualClock) -> None:
    zones = MemberZones(store, clock)
    assert await zones.of(ANN) is None
    await zones.set(ANN, "Europe/Oslo")
    await zones.set(ANN, "Asia/Tokyo")
    await zones.set(BOB, "Europe/Oslo")
    assert (await zones.of(ANN), await zones.of(BOB)) == ("Asia/Tokyo", "Europe/Oslo")
    await zones.clear(ANN)
    assert await zones.of(ANN) is None
