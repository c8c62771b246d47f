"""An attempt of a turn writes nothing after a later attempt has begun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.clock import SystemClock
from services.store.port import Conflict, Superseded, Write
from services.store.postgres.fenced import Attempt, FencedStore, in_attempt, running
from services.store.postgres.locks import SHARED
from services.store.postgres.store import PostgresStore
from services.store.turns import audit, inbox

EVENT = inbox.Event("key", "chat", "m1", "ann", "Ann", "message")


@pytest.fixture
async def stores(new_postgres_database: str) -> AsyncIterator[list[FencedStore]]:
    """Two processes of a cluster, with one turn that waits."""
    opened = [
        await PostgresStore.open(
            f"{new_postgres_database}&application_name=process{number}", clock=SystemClock(), claims=[SHARED]
        )
        for number in range(2)
    ]
    await opened[0].commit([inbox.accept(1, EVENT, body="{}", received_ms=1, epoch=1)])
    yield [FencedStore(store) for store in opened]
    for store in opened:
        await store.close()


def marked(value: str) -> list[Write]:
    return [audit.advance("mark", value, 1)]


async def mark_of(store: FencedStore) -> str:
    return str((await store.read(audit.get("mark")))[0]["value"])


async def test_units_of_a_superseded_attempt_are_undone_and_raise(stores: list[FencedStore]) -> None:
    first, second = stores
    assert await first.commit([inbox.begin_attempt(1, 11)]) == [1]
    with running(Attempt(1, 11)):
        assert in_attempt()
        assert await first.commit(marked("first")) == [1]
    assert await second.commit([inbox.begin_attempt(1, 12)]) == [1]
    with running(Attempt(1, 11)):
        with pytest.raises(Superseded):
            await first.commit(marked("late"))
        first.post(marked("posted late"))
        assert await asyncio.create_task(superseded(first))
    assert not in_attempt()
    with running(Attempt(1, 12)):
        assert await second.commit(marked("second")) == [1]
    assert await mark_of(first) == "second"


async def superseded(store: FencedStore) -> bool:
    try:
        await store.commit(marked("of a task"))
    except Superseded:
        return True
    return False


async def test_other_conflicts_are_raised_as_they_are(stores: list[FencedStore]) -> None:
    store = stores[0]
    await store.commit([inbox.begin_attempt(1, 11)])
    with running(Attempt(1, 11)), pytest.raises(Conflict):
        await store.commit([inbox.end(2, "chat", "", 1)])


async def test_units_after_the_end_of_the_attempt_are_not_checked(stores: list[FencedStore]) -> None:
    store, attempt = stores[0], Attempt(1, 11)
    with running(attempt):
        later = asyncio.create_task(when_over(store, attempt))
    assert await later == [1]
    assert await store.commit(marked("outside")) == [1]


async def when_over(store: FencedStore, attempt: Attempt) -> list[int]:
    while not attempt.is_over:  # noqa: ASYNC110 - the test ends it at once
        await asyncio.sleep(0)
    return await store.commit(marked("after the end"))


async def test_a_turn_that_has_ended_begins_no_attempt(stores: list[FencedStore]) -> None:
    store = stores[0]
    await store.commit([inbox.begin_attempt(1, 11)])
    await store.commit([inbox.request_stop(1)])
    (row,) = await store.read(inbox.of_attempt(1, 11))
    assert (row["attempts"], row["detail"]) == (1, inbox.STOP_REQUESTED)
    await store.commit([inbox.end(1, "chat", "", 2)])
    assert await store.commit([inbox.begin_attempt(1, 12)]) == [0]
    assert await store.read(inbox.of_attempt(1, 11)) == []
