"""Behaviour of the PostgreSQL store beyond the common contract."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from services.clock import InstantClock, SystemClock, VirtualClock
from services.store.port import BadUnit, Statement, StoreBroken, StoreError, StoreFenced, StoreFull
from services.store.postgres.connections import connect_writer
from services.store.postgres.store import PostgresStore
from services.store.sqlite.lock import StoreInUse
from tests.contracts.store_engines import ADD, ALL, BUDGETS, CHANGE, FIND, TAKE, PostgresEngine, notes
from tests.harness.postgres_server import PostgresServer

OF_THIS_DATABASE = "datname = current_database()"
OF_THE_STORE = f"application_name LIKE 'rollcall%' AND {OF_THIS_DATABASE}"


@pytest.fixture
def engine(postgres_server: PostgresServer) -> PostgresEngine:
    return PostgresEngine(postgres_server)


@contextmanager
def another(engine: PostgresEngine) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(engine.url, autocommit=True) as other:
        yield other


async def eventually(true: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110  # another process is waited for
            await asyncio.sleep(0.005)


def sessions_that_wait(other: psycopg.Connection[Any], which: str = OF_THE_STORE) -> int:
    row = other.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {which} AND wait_event_type = 'Lock'").fetchone()
    assert row is not None
    return int(row[0])


def end_sessions(other: psycopg.Connection[Any]) -> None:
    other.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {OF_THE_STORE}")


async def test_a_connection_lost_before_the_commit_is_reopened_and_the_group_is_committed_once(
    engine: PostgresEngine,
) -> None:
    store = await engine.open(clock=SystemClock())
    with another(engine) as other:
        with engine.held():
            units = [store.commit([ADD.write(id=number, body="x")]) for number in range(5)]
            await eventually(lambda: sessions_that_wait(other))
            end_sessions(other)
        async with asyncio.timeout(10):
            assert await asyncio.gather(*units) == [[1]] * 5
    assert [number for number, _ in engine.stored()] == [0, 1, 2, 3, 4]
    assert store.broken is None
    await store.close()


async def test_a_read_whose_connection_was_lost_is_asked_again(engine: PostgresEngine) -> None:
    store = await engine.open(clock=SystemClock())
    await store.commit([ADD.write(id=1, body="x")])
    assert await notes(store) == {1: "x"}
    with another(engine) as other:
        end_sessions(other)
    assert await notes(store) == {1: "x"}
    await store.close()


async def test_a_database_out_of_reach_for_a_minute_breaks_the_store_and_nothing_was_done(
    engine: PostgresEngine,
) -> None:
    made: list[str] = []

    def connect_once(address: str) -> psycopg.Connection[Any]:
        made.append(address)
        if len(made) > 1:
            raise psycopg.OperationalError("nobody there")
        return connect_writer(address)

    told: list[StoreBroken] = []
    clock = InstantClock()
    store = await PostgresStore.open(engine.url, clock=clock, on_broken=told.append, connect=connect_once)
    with another(engine) as other:
        end_sessions(other)
    before = clock.monotonic()
    with pytest.raises(StoreBroken, match="could not be reached for 60 seconds"):
        await store.commit([ADD.write(id=1, body="x")])
    assert 60 <= clock.monotonic() - before < 70
    with pytest.raises(StoreBroken):
        await store.commit([ADD.write(id=2, body="x")])
    await store.close()
    assert len(told) == 1
    assert engine.stored() == []


async def test_two_that_wait_for_each_other_are_both_done(engine: PostgresEngine) -> None:
    # The session whose `deadlock_timeout` expires while both wait is refused. A session checks once per wait, so the
    # store's last wait starts after the other one's.
    with another(engine) as other:
        other.execute(f"ALTER DATABASE {other.info.dbname} SET deadlock_timeout = '20ms'")
    store = await engine.open(clock=SystemClock())
    await store.commit([ADD.write(id=number, body="a") for number in (1, 2, 3)])
    with another(engine) as other, another(engine) as third, another(engine) as watching, other.transaction():
        other.execute("SET deadlock_timeout = '10min'")
        other.execute("UPDATE notes SET body = 'theirs' WHERE id = 3")
        with third.transaction():
            third.execute("UPDATE notes SET body = 'theirs' WHERE id = 2")
            unit = store.commit([CHANGE.write(note=number, to="ours") for number in (1, 2, 3)])
            await eventually(lambda: sessions_that_wait(watching) == 1)
            waiting = asyncio.create_task(
                asyncio.to_thread(other.execute, "UPDATE notes SET body = 'theirs' WHERE id = 1")
            )
            await eventually(lambda: sessions_that_wait(watching, OF_THIS_DATABASE) == 2)
        await waiting
    assert await unit == [1, 1, 1]
    assert await notes(store) == {1: "ours", 2: "ours", 3: "ours"}
    await store.close()


async def test_a_guard_that_touches_its_row_lets_units_through(engine: PostgresEngine) -> None:
    await allow(engine, 2)
    store = await PostgresStore.open(engine.url, clock=VirtualClock(), guard=TAKE.write(budget=1, amount=1))
    assert await store.commit([ADD.write(id=1, body="x")]) == [1]
    with pytest.raises(BadUnit):
        await store.commit([ADD.write(id=1, body="again")])
    assert await store.commit([ADD.write(id=2, body="x")]) == [1]
    assert store.broken is None
    await store.close()


async def test_a_guard_that_touches_no_row_fences_the_store_off_for_good(engine: PostgresEngine) -> None:
    await allow(engine, 0)
    told: list[StoreBroken] = []
    store = await PostgresStore.open(
        engine.url, clock=VirtualClock(), guard=TAKE.write(budget=1, amount=1), on_broken=told.append
    )
    group = [store.commit([ADD.write(id=number, body="too late")]) for number in range(3)]
    results = await asyncio.gather(*group, return_exceptions=True)
    assert [type(one) for one in results] == [StoreFenced] * 3
    await allow(engine, 5)
    with pytest.raises(StoreFenced):
        await store.commit([ADD.write(id=9, body="later")])
    await store.close()
    assert [type(one) for one in told] == [StoreFenced]
    assert engine.stored() == []


async def test_a_guard_may_be_a_row_that_is_only_locked(engine: PostgresEngine) -> None:
    from sqlalchemy import select

    await allow(engine, 1)
    locked = Statement("budgets.lock", select(BUDGETS.c.id).with_for_update(read=True))
    store = await PostgresStore.open(engine.url, clock=VirtualClock(), guard=locked.write())
    assert await store.commit([ADD.write(id=1, body="x")]) == [1]
    await store.close()


async def allow(engine: PostgresEngine, count: int) -> None:
    """Allow `count` transactions by the guard of these tests."""
    with another(engine) as other:
        other.execute('INSERT INTO budgets VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET "left" = %s', (count, count))


async def test_a_second_store_on_one_database_is_refused_and_told_who_has_it(engine: PostgresEngine) -> None:
    store = await engine.open()
    with pytest.raises(StoreInUse, match=rf"the database test_\d+ on .* is in use by rollcall {os.getpid()} on "):
        await engine.open()
    assert await store.commit([ADD.write(id=1, body="undisturbed")]) == [1]
    await store.close()
    await (await engine.open()).close()


async def test_a_group_of_any_size_is_done_in_order(engine: PostgresEngine) -> None:
    store = await engine.open()
    with engine.held():
        units = [store.commit([ADD.write(id=number, body="x"), FILL.write(note=number)]) for number in range(200)]
        await asyncio.sleep(0)
    assert await asyncio.gather(*units) == [[1, 1]] * 200
    assert [number for number, _ in engine.stored()] == list(range(200))
    assert store.units.groups == 4
    await store.close()


FILL = Statement("notes.fill", CHANGE.clause.values(body="filled"))  # type: ignore[attr-defined]


async def test_a_truth_value_is_a_number_as_on_sqlite_and_a_fraction_is_refused(engine: PostgresEngine) -> None:
    store = await engine.open()
    assert await store.commit([ADD.write(id=True, body="one")]) == [1]
    with pytest.raises(BadUnit, match="float"):
        await store.commit([ADD.write(id=1.5, body="x")])
    assert await notes(store) == {1: "one"}
    await store.close()


async def test_what_the_server_refuses_is_told_without_its_values(engine: PostgresEngine) -> None:
    store = await engine.open()
    await store.commit([ADD.write(id=42, body="secret words")])
    with capture_logs() as logs:
        store.post([ADD.write(id=42, body="secret words")])
        store.post([ADD.write(id="secret words", body="x")])
        await store.commit([])
    assert [entry["error"] for entry in logs] == [
        "notes.add: UniqueViolation (23505) notes notes_pkey",
        "notes.add: InvalidTextRepresentation (22P02)",
    ]
    await store.close()


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("disk_full", StoreFull),
        ("io_error", StoreFull),
        ("data_corrupted", StoreBroken),
        ("program_limit_exceeded", BadUnit),
    ],
)
async def test_an_error_of_the_disk_is_told_from_an_error_of_the_unit(
    engine: PostgresEngine, state: str, error: type[StoreError]
) -> None:
    with another(engine) as other:
        other.execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'x' "
            f"USING ERRCODE = '{state}'; END $$; "
            "CREATE TRIGGER failing BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION fail()"
        )
    store = await engine.open()
    with pytest.raises(error):
        await store.commit([ADD.write(id=1, body="x")])
    assert (store.broken is not None) == (error is StoreBroken)
    await store.close()


async def test_an_error_that_the_server_answers_to_a_commit_undoes_the_group_and_breaks_nothing(
    engine: PostgresEngine,
) -> None:
    with another(engine) as other:
        other.execute("ALTER TABLE notes ADD CONSTRAINT later UNIQUE (body) DEFERRABLE INITIALLY DEFERRED")
    store = await engine.open()
    with pytest.raises(BadUnit, match="commit: UniqueViolation"):
        await store.commit([ADD.write(id=1, body="same"), ADD.write(id=2, body="same")])
    assert await store.commit([ADD.write(id=3, body="other")]) == [1]
    assert list(await notes(store)) == [3]
    await store.close()


async def test_many_reads_at_once_share_a_few_connections(engine: PostgresEngine) -> None:
    store = await engine.open()
    await store.commit([ADD.write(id=1, body="x")])
    found = await asyncio.gather(*(store.read(ALL.query()) for _ in range(50)))
    assert found == [[{"id": 1, "body": "x"}]] * 50
    with another(engine) as other:
        row = other.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {OF_THE_STORE}").fetchone()
    assert row is not None
    assert row[0] <= 5
    await store.close()


async def test_a_read_that_is_given_up_leaves_the_others_whole(engine: PostgresEngine) -> None:
    store = await engine.open()
    await store.commit([ADD.write(id=1, body="x")])
    with another(engine) as other, other.transaction():
        other.execute("LOCK TABLE notes IN ACCESS EXCLUSIVE MODE")
        reading = asyncio.create_task(notes(store))
        with another(engine) as watching:
            await eventually(lambda: sessions_that_wait(watching))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert await store.read(FIND.query(body="x")) == [{"id": 1}]
    await store.close()


@pytest.mark.parametrize(
    "url", ["postgresql://bot:hunter2@127.0.0.1:1/name", "postgresql://bot:hunter2@127.0.0.1/name?nonsense=1"]
)
async def test_an_address_where_no_database_is_gives_a_sentence_without_the_password(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        await PostgresStore.open(url, clock=InstantClock())
    assert "hunter2" not in str(refused.value)
    assert "PostgreSQL database" in str(refused.value) or "the database name on 127.0.0.1" in str(refused.value)


async def test_a_database_that_does_not_keep_utf_8_is_refused(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.url, autocommit=True) as other:
        other.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0 STRATEGY file_copy")
    with pytest.raises(StoreError, match="keeps text as LATIN1; make one with ENCODING 'UTF8'"):
        await PostgresStore.open(postgres_server.url_of("latin"), clock=VirtualClock())


async def test_a_server_that_acknowledges_before_it_has_written_is_told_not_to(engine: PostgresEngine) -> None:
    with another(engine) as other:
        other.execute(f"ALTER DATABASE {other.info.dbname} SET synchronous_commit = off")
    with connect_writer(engine.url) as writer:
        assert writer.execute("SHOW synchronous_commit").fetchone() == ("on",)
