"""Leadership in one process: acquire, keep, lose and release the lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from bot.database.leadership import Leading
from services.clock import VirtualClock
from services.store.port import StoreError, StoreFenced, Write
from services.store.turns import leases
from services.store.turns.leases import Held, Unreachable

SECONDS = 15.0


class OneRow:
    """The row of the lease, with its own clock."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.holder = ""
        self.token = 0
        self.until = 0.0
        self.is_reachable = True
        self.refuses: Exception | None = None
        self.silent_seconds = 0.0

    def lease(self, holder: str) -> OneLease:
        return OneLease(self, holder)


class OneLease:
    """The lease as seen by one process."""

    def __init__(self, row: OneRow, holder: str) -> None:
        self._row = row
        self._holder = holder
        self.renewals = 0
        self.is_closed = False

    async def take(self) -> int | Held:
        row = self._reached()
        if row.until > row.clock.monotonic() and row.holder != self._holder:
            return Held(row.holder, round((row.until - row.clock.monotonic()) * 1000))
        row.holder, row.token, row.until = self._holder, row.token + 1, row.clock.monotonic() + SECONDS
        return row.token

    async def renew(self, token: int) -> bool:
        await self._row.clock.sleep(self._row.silent_seconds)
        row = self._reached()
        if row.refuses is not None:
            raise row.refuses
        if row.token != token:
            return False
        self.renewals += 1
        row.until = row.clock.monotonic() + SECONDS
        return True

    async def release(self) -> None:
        row = self._reached()
        if row.holder == self._holder:
            row.until = 0.0

    def guard(self, token: int) -> Write:
        return leases.guard(token)

    async def close(self) -> None:
        self.is_closed = True

    def _reached(self) -> OneRow:
        if not self._row.is_reachable:
            raise Unreachable("the database cannot be reached")
        return self._row


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def row(clock: VirtualClock) -> OneRow:
    return OneRow(clock)


@pytest.fixture
async def first(row: OneRow, clock: VirtualClock) -> AsyncIterator[Leading]:
    """A leading daemon."""
    leading = Leading(row.lease("first"), clock, SECONDS)
    assert await leading.try_to_begin() is None
    yield leading
    row.is_reachable = True
    await leading.end()


async def test_a_lease_is_renewed_every_third_of_its_time(row: OneRow, clock: VirtualClock, first: Leading) -> None:
    for _ in range(30):
        await clock.advance(SECONDS / 3)
        assert first.holds()
    assert (row.holder, row.token) == ("first", 1)
    assert row.until == clock.monotonic() + SECONDS


async def test_a_second_one_is_told_who_leads(row: OneRow, clock: VirtualClock, first: Leading) -> None:
    second = Leading(row.lease("second"), clock, SECONDS)
    held = await second.try_to_begin()
    assert held == Held("first", 15_000)
    await second.end()
    assert row.until > clock.monotonic()


async def test_a_standby_reports_itself_once_and_leads_immediately_when_the_leader_ends(
    row: OneRow, clock: VirtualClock, first: Leading
) -> None:
    told: list[Held] = []
    second = Leading(row.lease("second"), clock, SECONDS)
    beginning = asyncio.create_task(second.begin(told.append))
    await clock.advance(60)
    assert [held.holder for held in told] == ["first"]
    await first.end()
    await clock.advance(1)
    assert beginning.done()
    assert (row.holder, row.token) == ("second", 2)
    assert second.guard == leases.guard(2)
    await second.end()


async def test_who_stands_by_names_the_next_leader_too(row: OneRow, clock: VirtualClock, first: Leading) -> None:
    told: list[Held] = []
    second = Leading(row.lease("second"), clock, SECONDS)
    beginning = asyncio.create_task(second.begin(told.append))
    await clock.settle()
    row.holder, row.token = "third", 2
    row.until = clock.monotonic() + 60
    await clock.advance(30)
    assert [held.holder for held in told] == ["first", "third"]
    beginning.cancel()
    await second.end()


async def test_who_stands_by_waits_for_a_database_that_is_away(
    row: OneRow, clock: VirtualClock, first: Leading
) -> None:
    second = Leading(row.lease("second"), clock, SECONDS)
    beginning = asyncio.create_task(second.begin(lambda _: None))
    await clock.settle()
    row.is_reachable = False
    await clock.advance(SECONDS * 2)
    assert not beginning.done()
    row.is_reachable, row.until = True, 0.0
    row.token += 1  # a process must not mistake another one for the first
    await clock.advance(1)
    assert beginning.done()
    await second.end()


async def test_a_database_that_stays_away_at_the_beginning_is_told(row: OneRow, clock: VirtualClock) -> None:
    row.is_reachable = False
    leading = Leading(row.lease("first"), clock, SECONDS)
    beginning = asyncio.create_task(leading.begin(lambda _: None))
    await clock.settle()
    await clock.advance(14)
    assert not beginning.done()
    await clock.advance(2)
    with pytest.raises(Unreachable, match="cannot be reached"):
        await beginning
    await leading.end()


async def test_a_database_that_starts_together_with_the_daemon_is_waited_for(row: OneRow, clock: VirtualClock) -> None:
    row.is_reachable = False
    leading = Leading(row.lease("first"), clock, SECONDS)
    beginning = asyncio.create_task(leading.begin(lambda _: None))
    await clock.settle()
    await clock.advance(5)
    row.is_reachable = True
    await clock.advance(1)
    assert beginning.done()
    await leading.end()


async def test_a_leader_that_cannot_renew_is_not_sure_until_it_has(
    row: OneRow, clock: VirtualClock, first: Leading
) -> None:
    row.is_reachable = False
    await clock.advance(SECONDS - 0.001)
    assert first.holds()
    await clock.advance(0.001)
    assert not first.holds()
    sure = asyncio.create_task(first.sure())
    await clock.advance(10)
    assert not sure.done()
    row.is_reachable = True
    await clock.advance(1)
    assert sure.done()
    assert first.holds()


async def test_two_renewals_may_fail_also_where_each_takes_all_its_patience(
    row: OneRow, clock: VirtualClock, first: Leading
) -> None:
    row.is_reachable, row.silent_seconds = False, SECONDS / 6
    await clock.advance(SECONDS / 3 + 2 * row.silent_seconds + 1.5)
    row.is_reachable, row.silent_seconds = True, 0.0
    for _ in range(30):
        assert first.holds()
        await clock.advance(0.5)
    assert row.token == 1


@pytest.mark.parametrize("problem", [StoreError("there are no leases any more"), RuntimeError("a fault of ours")])
async def test_whatever_else_keeps_a_leader_from_renewing_is_told_once(
    row: OneRow, clock: VirtualClock, problem: Exception
) -> None:
    told: list[Exception] = []
    leading = Leading(row.lease("first"), clock, SECONDS, told.append)
    await leading.try_to_begin()
    await clock.settle()
    row.refuses = problem
    with capture_logs() as logs:
        await clock.advance(SECONDS)
    assert told == [problem]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("lease_cannot_be_kept", "critical")]
    await leading.end()
    assert told == [problem]


async def test_a_leader_whose_machine_was_suspended_is_not_sure(clock: VirtualClock, first: Leading) -> None:
    clock.jump(60)
    assert not first.holds()
    await first.sure()
    assert first.holds()


async def test_a_clock_that_was_set_back_does_not_make_a_lease_longer(
    row: OneRow, clock: VirtualClock, first: Leading
) -> None:
    row.is_reachable = False
    clock.jump(-3600)
    await clock.advance(SECONDS)
    assert not first.holds()


async def test_who_was_taken_over_from_hears_of_it_once_and_is_never_sure_again(
    row: OneRow, clock: VirtualClock
) -> None:
    lost: list[Exception] = []
    leading = Leading(row.lease("first"), clock, SECONDS, lost.append)
    await leading.try_to_begin()
    await clock.settle()
    row.holder, row.token, row.until = "second", 2, 1e9
    await clock.advance(SECONDS)
    assert len(lost) == 1
    assert not leading.holds()
    with pytest.raises(StoreFenced):
        await leading.sure()
    await clock.advance(SECONDS)
    await leading.end()
    assert len(lost) == 1
    assert (row.holder, row.until) == ("second", 1e9)
