"""Contract of all store engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from services.clock import VirtualClock
from services.store.port import BadUnit, Conflict, Statement, Store, StoreBroken, StoreClosed, StoreFull, Write
from services.store.schema import BATCH_ROWS
from services.store.statements import DialectName, compile_statement
from tests.contracts.store_engines import (
    ADD,
    ADD_ONCE,
    ADD_ROW,
    ALL,
    CHANGE,
    CHANGE_LATEST,
    CHANGE_RETURNING,
    ENGINES,
    FIND,
    GRANT,
    REMOVE,
    REMOVE_BATCH,
    STATEMENTS,
    TAKE,
    StoreEngine,
    engine_named,
    notes,
)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> StoreEngine:
    return engine_named(request.param, tmp_path, lambda: request.getfixturevalue("postgres_server"))


@pytest.fixture
async def store(engine: StoreEngine) -> AsyncIterator[Store]:
    store = await engine.open()
    yield store
    await store.close()


async def outcomes(*units: Awaitable[list[int]]) -> list[object]:
    """Row counts of each unit, or the type of its error."""
    async with asyncio.timeout(10):
        results = await asyncio.gather(*units, return_exceptions=True)
    return [type(result) if isinstance(result, BaseException) else result for result in results]


async def test_a_commit_is_durable_when_it_returns(engine: StoreEngine, store: Store) -> None:
    await store.commit([ADD.write(id=1, body="milk")])
    assert engine.stored() == [(1, "milk")]


async def test_a_commit_returns_the_rows_that_each_write_touched(store: Store) -> None:
    await store.commit([ADD.write(id=1, body="a"), ADD.write(id=2, body="b")])
    counts = await store.commit(
        [
            ADD.write(id=3, body="c"),
            CHANGE.write(note=1, to="A"),
            CHANGE.write(note=99, to="nobody"),
            CHANGE_RETURNING.write(first=2),
            CHANGE_LATEST.write(),
            REMOVE.write(note=1),
        ]
    )
    assert counts == [1, 1, 0, 2, 1, 1]
    assert await notes(store) == {2: "changed", 3: "latest"}


async def test_a_row_is_written_as_named_values_are(store: Store) -> None:
    await store.commit([ADD_ROW.write_row((1, "a")), ADD_ROW.write(body="b", id=2), ADD_ROW.write_row((3, "c"), 1)])
    assert await notes(store) == {1: "a", 2: "b", 3: "c"}


async def test_a_batch_deletes_no_more_rows_than_its_limit_and_no_others(store: Store) -> None:
    old = [ADD_ONCE.write(id=number, body="old") for number in range(BATCH_ROWS + 3)]
    await store.commit([*old, ADD_ONCE.write(id=-1, body="new")])
    batches = [await store.commit([REMOVE_BATCH.write(body="old")]) for _ in range(3)]
    assert batches == [[BATCH_ROWS], [3], [0]]
    assert await notes(store) == {-1: "new"}


async def test_a_unit_without_writes_is_done(store: Store) -> None:
    assert await store.commit([]) == []


async def test_a_duplicate_touches_no_row_and_changes_nothing(store: Store) -> None:
    assert await store.commit([ADD_ONCE.write(id=1, body="first")]) == [1]
    assert await store.commit([ADD_ONCE.write(id=1, body="second")]) == [0]
    assert await notes(store) == {1: "first"}


async def test_a_unit_that_touches_as_many_rows_as_it_expects_is_done(store: Store) -> None:
    assert await store.commit([ADD.write_expecting(1, id=1, body="a"), CHANGE.write_expecting(0, note=9, to="x")]) == [
        1,
        0,
    ]


async def test_a_unit_that_touches_other_rows_than_it_expects_is_undone_whole(store: Store) -> None:
    with pytest.raises(Conflict, match=r"notes\.change: touched 0 rows, expected 1"):
        await store.commit(
            [ADD.write(id=1, body="a"), CHANGE.write_expecting(1, note=99, to="x"), ADD.write(id=2, body="b")]
        )
    assert await notes(store) == {}


async def test_a_budget_is_never_overdrawn_by_units_that_share_a_commit(engine: StoreEngine, store: Store) -> None:
    await store.commit([GRANT.write(id=1, left=2)])
    with engine.held():
        taken = [
            store.commit([TAKE.write_expecting(1, budget=1, amount=1), ADD.write(id=number, body="taken")])
            for number in range(5)
        ]
        await asyncio.sleep(0)
    assert await outcomes(*taken) == [[1, 1], [1, 1], Conflict, Conflict, Conflict]
    assert list(await notes(store)) == [0, 1]


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param([ADD.write(id=7, body="lone \ud800 surrogate")], id="lone surrogate"),
        pytest.param([ADD.write(id=1 << 63, body="too big")], id="integer over 64 bits"),
        pytest.param([ADD.write(id="seven", body="text for a number")], id="text for an integer"),
        pytest.param([ADD.write(id=7, body=None)], id="nothing for a text"),
        pytest.param([ADD.write(id=7, body=["list"])], id="no value of a database"),
        pytest.param([ADD.write(id=0, body="the id of another")], id="constraint"),
        pytest.param([ADD.write(id=7)], id="missing value"),
        pytest.param([ADD.write(id=7, body="x", mood="y")], id="value too many"),
        pytest.param([ADD.write_row((7, "x"))], id="a row for a statement that takes none"),
        pytest.param([ADD_ROW.write_row((7,))], id="a row that is too short"),
        pytest.param([ADD_ROW.write_row(("x", 7))], id="a row with a text for a number"),
        pytest.param([Write(ALL, {})], id="a read"),
    ],
)
async def test_a_bad_unit_is_refused_alone_among_twenty(engine: StoreEngine, store: Store, unit: list[Write]) -> None:
    await store.commit([ADD.write(id=0, body="there before")])
    good = [[ADD.write(id=100 + number, body="good")] for number in range(19)]
    bad = [ADD.write(id=50, body="undone with the bad one"), *unit]
    with engine.held():
        done = [store.commit(each) for each in (*good[:9], bad, *good[9:])]
        await asyncio.sleep(0)
    assert await outcomes(*done) == [[1]] * 9 + [BadUnit] + [[1]] * 10
    assert list(await notes(store)) == [0, *range(100, 119)]


async def test_several_bad_units_among_good_ones_each_get_their_own_error(engine: StoreEngine, store: Store) -> None:
    with engine.held():
        done = [
            store.commit([ADD.write(id=1, body="\udfff")]),
            store.commit([ADD.write(id=2, body="good")]),
            store.commit([CHANGE.write_expecting(1, note=9, to="x")]),
            store.commit([ADD.write(id=3, body="good")]),
            store.commit([ADD.write(id=2, body="again")]),
        ]
        await asyncio.sleep(0)
    assert await outcomes(*done) == [BadUnit, [1], Conflict, [1], BadUnit]
    assert list(await notes(store)) == [2, 3]


async def test_units_are_done_in_the_order_of_the_calls_whether_committed_or_posted(store: Store) -> None:
    waiting = []
    for number in range(30):
        if number % 3:
            store.post([ADD.write(id=number, body="posted")])
        else:
            waiting.append(store.commit([ADD.write(id=number, body="committed")]))
    await asyncio.gather(*waiting)
    await store.commit([ADD.write(id=30, body="last")])
    assert list(await notes(store)) == list(range(31))


async def test_a_unit_has_its_place_before_it_is_awaited(store: Store) -> None:
    first = store.commit([ADD.write(id=1, body="first")])
    second = store.commit([ADD.write(id=2, body="second")])
    await second
    await first
    assert list(await notes(store)) == [1, 2]


async def test_a_posted_unit_waits_for_the_next_commit(engine: StoreEngine, store: Store) -> None:
    store.post([ADD.write(id=1, body="posted")])
    await store.commit([])
    assert engine.stored() == [(1, "posted")]


async def test_a_posted_unit_is_done_after_50_milliseconds_without_a_commit(engine: StoreEngine) -> None:
    clock = VirtualClock()
    store = await engine.open(clock=clock)
    store.post([ADD.write(id=1, body="posted")])
    await clock.settle()
    await clock.advance(0.049)
    assert engine.stored() == []
    await clock.advance(0.002)
    async with asyncio.timeout(5):
        while not await notes(store):  # noqa: ASYNC110  # a posted unit tells nobody
            await asyncio.sleep(0)
    await store.close()


async def test_a_posted_unit_that_fails_does_no_harm_to_the_others(store: Store) -> None:
    store.post([ADD.write(id=1, body="good")])
    store.post([ADD.write(id=2, body="\ud800")])
    store.post([ADD.write(id=3)])
    store.post([ADD.write(id=4, body="good")])
    assert await store.commit([ADD.write(id=5, body="good")]) == [1]
    assert list(await notes(store)) == [1, 4, 5]


async def test_cancelling_the_waiter_does_not_take_the_unit_back(engine: StoreEngine, store: Store) -> None:
    async def wait() -> None:
        await store.commit([ADD.write(id=1, body="cancelled")])

    with engine.held():
        waiter = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
    assert await store.commit([ADD.write(id=2, body="next")]) == [1]
    assert list(await notes(store)) == [1, 2]


async def test_a_read_sees_every_unit_whose_commit_returned(store: Store) -> None:
    for number in range(20):
        await store.commit([ADD.write(id=number, body="seen")])
        assert len(await notes(store)) == number + 1


async def test_a_row_is_a_mapping_by_column_name(store: Store) -> None:
    await store.commit([ADD.write(id=1, body="milk")])
    assert await store.read(ALL.query()) == [{"id": 1, "body": "milk"}]


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(BadUnit, match=r"notes\.remove"):
        await store.read(REMOVE.query(note=1))


@pytest.mark.parametrize("values", [{"body": "\ud800"}, {}, {"body": "x", "mood": "y"}])
async def test_a_read_with_values_that_do_not_fit_is_refused(store: Store, values: dict[str, str]) -> None:
    with pytest.raises(BadUnit, match=r"notes\.find"):
        await store.read(FIND.query(**values))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\0b", id="NUL"),
        pytest.param("\0", id="NUL alone"),
        pytest.param("".join(map(chr, range(1, 0x3000))), id="controls, marks, letters"),
        pytest.param("".join(map(chr, [0xD7FF, 0xE000, *range(0xFFF0, 0x1_0010), 0x10_FFFF])), id="edges"),
    ],
)
async def test_whatever_utf_8_has_is_kept_and_found(store: Store, text: str) -> None:
    """NUL may be returned unchanged or as a replacement."""
    assert await store.commit([ADD.write(id=1, body=text)]) == [1]
    kept = (await notes(store))[1]
    assert kept in (text, text.replace("\0", "\ufffd"))
    assert [row["id"] for row in await store.read(FIND.query(body=text))] == [1]
    assert [row["id"] for row in await store.read(FIND.query(body=kept))] == [1]


async def test_closing_finishes_what_was_given_and_refuses_the_rest(engine: StoreEngine) -> None:
    store = await engine.open()
    with engine.held():
        given = [store.commit([ADD.write(id=number, body="given")]) for number in range(600)]
        store.post([ADD.write(id=600, body="given")])
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        late = store.commit([ADD.write(id=700, body="late")])
        store.post([ADD.write(id=701, body="late")])
    await closing
    assert await outcomes(*given, late) == [[1]] * 600 + [StoreClosed]
    with pytest.raises(StoreClosed):
        await store.read(ALL.query())
    await store.close()
    assert [number for number, _ in engine.stored()] == list(range(601))


async def test_a_full_disk_refuses_what_has_no_room_and_is_used_again_once_there_is_room(engine: StoreEngine) -> None:
    store = await engine.open_with_little_room()
    await store.commit([ADD.write(id=1, body="x" * 50_000)])
    with engine.held():
        done = [
            store.commit([ADD.write(id=2, body="small")]),
            store.commit([ADD.write(id=3, body="x" * 200_000)]),
            store.commit([ADD.write(id=4, body="small")]),
        ]
        await asyncio.sleep(0)
    assert await outcomes(*done) == [[1], StoreFull, [1]]
    await store.commit([REMOVE.write(note=1)])
    assert await store.commit([ADD.write(id=5, body="x" * 40_000)]) == [1]
    await store.close()


async def test_a_commit_that_fails_breaks_the_store_for_its_group_and_all_that_follows(engine: StoreEngine) -> None:
    told: list[StoreBroken] = []
    store = await engine.open_with_failing_commit(told.append)
    with engine.held():
        group = [store.commit([ADD.write(id=number, body="unknown")]) for number in range(3)]
        await asyncio.sleep(0)
        behind = store.commit([ADD.write(id=3, body="behind")])
        store.post([ADD.write(id=4, body="behind")])
    assert await outcomes(*group, behind) == [StoreBroken] * 4
    assert await outcomes(store.commit([ADD.write(id=5, body="later")])) == [StoreBroken]
    assert len(told) == 1
    await store.close()


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_statement_is_defined_once_for_all_dialects(statement: Statement, dialect: DialectName) -> None:
    compiled = compile_statement(statement, dialect)
    assert compiled.sql.count({"sqlite": "?", "postgresql": "%s"}[dialect]) == len(compiled.order)
