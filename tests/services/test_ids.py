"""Row ids: unique and increasing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.clock import InstantClock, VirtualClock
from services.store.ids import Ids

MOST_IN_A_MILLISECOND = 1 << 14


def test_ids_rise_within_a_millisecond_and_beyond_what_it_holds() -> None:
    ids = Ids(VirtualClock())
    taken = [ids.next() for _ in range(3 * MOST_IN_A_MILLISECOND)]
    assert taken == sorted(set(taken))


async def test_ids_rise_with_time() -> None:
    clock = VirtualClock()
    ids = Ids(clock)
    first = ids.next()
    await clock.advance(1)
    assert ids.next() > first + MOST_IN_A_MILLISECOND


def test_an_id_fits_into_a_signed_64_bit_column_for_generations() -> None:
    assert 0 < Ids(InstantClock(datetime(2094, 1, 1, tzinfo=UTC))).next() < 2**63


def test_ids_rise_although_the_clock_goes_back() -> None:
    start = datetime(2026, 1, 5, tzinfo=UTC)

    class Unsteady(InstantClock):
        def now_ms(self) -> int:
            return super().now_ms() - behind_ms

    behind_ms = 0
    ids = Ids(Unsteady(start))
    first = ids.next()
    behind_ms = round(timedelta(hours=1).total_seconds() * 1000)
    assert ids.next() > first


def test_ids_go_on_after_those_of_an_earlier_process_whose_clock_was_ahead() -> None:
    newest = Ids(InstantClock(datetime(2027, 1, 1, tzinfo=UTC))).next()
    ids = Ids(VirtualClock())
    ids.advance_past(newest)
    ids.advance_past(0)
    assert ids.next() > newest


@pytest.mark.parametrize("node", [0, 1, 255])
def test_ids_go_on_after_those_of_any_other_node(node: int) -> None:
    clock = InstantClock(datetime(2027, 1, 1, tzinfo=UTC))
    others, ids = Ids(clock, 100), Ids(clock, node)
    for _ in range(3):
        newest = others.next()
        ids.advance_past(newest)
        assert newest < ids.next() < ids.next()
