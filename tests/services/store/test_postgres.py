"""Behaviour of the PostgreSQL store beyond the common contract."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from random import Random
from typing import Any

import psycopg
import pytest
from sqlalchemy import literal_column, select
from structlog.testing import capture_logs

from services.clock import InstantClock, SystemClock, VirtualClock
from services.store.ids import Ids
from services.store.port import BadUnit, Conflict, Statement, StoreBroken, StoreError, StoreFenced, StoreFull, Write
from services.store.postgres.connections import address_of, application_name, connect_writer
from services.store.postgres.locks import EXCLUSIVE, SHARED, Claim, take
from services.store.postgres.store import PostgresStore
from services.store.sqlite.lock import StoreInUse
from services.store.turns import due
from services.store.turns.occurrences import OCCURRENCES
from services.timers.timetable import Timetable
from tests.conftest import REPOSITORY
from tests.contracts.store_engines import ADD, ADD_ONCE, ALL, CHANGE, FIND, PostgresEngine, notes
from tests.fakes.drafts import a_draft, later
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


async def test_a_second_store_on_one_database_is_refused_and_told_who_has_it(engine: PostgresEngine) -> None:
    store = await engine.open()
    with pytest.raises(StoreInUse, match=rf"the database test_\d+ on .* is in use by rollcall {os.getpid()} on "):
        await engine.open()
    assert await store.commit([ADD.write(id=1, body="undisturbed")]) == [1]
    await store.close()
    await (await engine.open()).close()


@asynccontextmanager
async def process(
    url: str, name: str, claim: Claim = SHARED, on_broken: Callable[[StoreBroken], None] | None = None
) -> AsyncIterator[PostgresStore]:
    """The store of another process, whose application name begins with `name`."""
    store = await PostgresStore.open(
        f"{url}&application_name={name}", clock=SystemClock(), claims=[claim], on_broken=on_broken
    )
    try:
        yield store
    finally:
        await store.close()


def named(name: str) -> str:
    return f"{name} {os.getpid()} on {socket.gethostname()}"


async def claimed(store: PostgresStore, name: str) -> None:
    """Wait until `store` has the lock `name`."""
    async with asyncio.timeout(10):
        while await store.claim(name) is not None:  # noqa: ASYNC110  # another process is waited for
            await asyncio.sleep(0.005)


async def test_a_claim_excludes_other_processes_and_names_its_holder(engine: PostgresEngine) -> None:
    async with process(engine.url, "first") as first, process(engine.url, "second") as second:
        assert await first.claim("gateway") is None
        assert await second.claim("gateway") == named("first")
        assert await first.claim("gateway") is None
        assert await second.claim("another gateway") is None


async def test_a_claim_is_free_when_its_process_closes_the_store(engine: PostgresEngine) -> None:
    async with process(engine.url, "second") as second:
        async with process(engine.url, "first") as first:
            assert await first.claim("gateway") is None
            assert await first.claim("gateway") is None
        assert await second.claim("gateway") is None


async def test_a_claim_is_free_when_its_process_is_killed(engine: PostgresEngine) -> None:
    async with process(engine.url, "first") as first:
        script = CLAIMS.format(url=engine.url)
        async with asyncio.timeout(30):
            other = await asyncio.create_subprocess_exec(
                sys.executable, "-c", script, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE
            )
            assert other.stdout is not None
            assert await other.stdout.readline() == b"None\n"
        assert await first.claim("gateway") == f"killed {other.pid} on {socket.gethostname()}"
        other.kill()
        await other.wait()
        await claimed(first, "gateway")


CLAIMS = """
import asyncio
from services.clock import SystemClock
from services.store.postgres.locks import SHARED
from services.store.postgres.store import PostgresStore
async def main():
    url = "{url}&application_name=killed"
    store = await PostgresStore.open(url, clock=SystemClock(), claims=[SHARED])
    print(await store.claim("gateway"), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_locks_are_taken_again_after_a_lost_connection(engine: PostgresEngine) -> None:
    async with process(engine.url, "first") as first, process(engine.url, "second") as second:
        assert await first.claim("gateway") is None
        assert await second.end_session(named("first"))
        assert await first.commit([ADD.write(id=1, body="x")]) == [1]
        assert await second.claim("gateway") == named("first")
        with pytest.raises(StoreInUse):
            async with process(engine.url, "third", EXCLUSIVE):
                pass
        # The refused claim of the second process does not fence it.
        assert await first.end_session(named("second"))
        assert await second.commit([ADD.write(id=2, body="x")]) == [1]


async def test_a_lock_of_its_own_lost_session_is_waited_for(engine: PostgresEngine) -> None:
    async with process(engine.url, "first") as first:
        assert await first.claim("gateway") is None
        with process_session(engine, named("first")) as other:
            end_writer(other)
            take(other, Claim("gateway"))
            writing = asyncio.ensure_future(first.commit([ADD.write(id=1, body="x")]))
            with capture_logs() as logs:
                await eventually(lambda: len(logs) > 1)
            assert {entry["problem"] for entry in logs[1:]} == {f"the lock gateway is held by {named('first')}"}
            assert not writing.done()
        assert await writing == [1]


@contextmanager
def process_session(engine: PostgresEngine, name: str) -> Iterator[psycopg.Connection[Any]]:
    """A session with that application name."""
    with psycopg.connect(engine.url, autocommit=True, application_name=name) as other:
        yield other


def end_writer(other: psycopg.Connection[Any]) -> None:
    """Terminate the session that holds locks, and wait for its end."""
    holding = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
    other.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM ({holding} GROUP BY pid) AS holders".encode())


async def test_a_process_whose_lock_was_taken_over_is_told_and_writes_nothing_more(engine: PostgresEngine) -> None:
    told: list[StoreBroken] = []
    async with process(engine.url, "second") as second, process(engine.url, "first", on_broken=told.append) as first:
        assert await first.claim("gateway") is None
        assert not await second.end_session(named("nobody"))
        assert await second.end_session(named("first"))
        await claimed(second, "gateway")
        group = [first.commit([ADD.write(id=number, body="too late")]) for number in range(3)]
        results = await asyncio.gather(*group, return_exceptions=True)
        assert [type(result) for result in results] == [StoreFenced] * 3
        with pytest.raises(StoreFenced, match=f"the lock gateway is held by {named('second')}"):
            await first.commit([ADD.write(id=9, body="later")])
        with pytest.raises(StoreFenced):
            await first.claim("gateway")
        assert [type(error) for error in told] == [StoreFenced]
        assert await second.commit([ADD.write(id=5, body="x")]) == [1]
    assert engine.stored() == [(5, "x")]


@pytest.mark.parametrize(("first", "second"), [(SHARED, EXCLUSIVE), (EXCLUSIVE, SHARED), (EXCLUSIVE, EXCLUSIVE)])
async def test_a_single_process_excludes_all_others_and_is_excluded_by_them(
    engine: PostgresEngine, first: Claim, second: Claim
) -> None:
    async with process(engine.url, "first", first):
        with pytest.raises(StoreInUse, match=f"is in use by {named('first')}; stop it first"):
            async with process(engine.url, "second", second):
                pass
    async with process(engine.url, "second", second):
        pass


@pytest.mark.requirement("D41")
async def test_of_two_processes_that_claim_the_same_occurrences_at_once_each_occurrence_goes_to_one(
    new_postgres_database: str,
) -> None:
    url, clock = new_postgres_database, SystemClock()
    async with process(url, "first") as first, process(url, "second") as second:
        at = later(clock.now(), hours=1)
        drafts = [a_draft(f"t{number}", at) for number in range(200)]
        await Timetable(first, clock, Ids(clock)).add(drafts, call_key="many", most_per_owner=1000)
        claims = [
            due.claim(row["id"], revision=0, wall=row["wall"], due_ms=row["due_ms"], now_ms=1, turn_id=1)
            for row in await first.read(DUE.query())
        ]
        results = await asyncio.gather(*(went_to(store, claims) for store in (first, second)))
        assert len(claims) == 200
        assert [ours != theirs for ours, theirs in zip(*results, strict=True)] == [True] * 200


DUE = Statement("test.occurrences", select(OCCURRENCES).order_by(OCCURRENCES.c.id))


async def went_to(store: PostgresStore, claims: Sequence[Write]) -> list[bool]:
    """Whether each claim succeeded with this store."""
    done = await asyncio.gather(*(store.commit([claim]) for claim in claims), return_exceptions=True)
    assert all(result == [1] or isinstance(result, Conflict) for result in done)
    return [result == [1] for result in done]


async def test_a_long_application_name_is_shortened_as_by_the_server_and_keeps_the_process(
    engine: PostgresEngine,
) -> None:
    url = f"{engine.url}&application_name={'operator%20' * 10}"
    with psycopg.connect(address_of(url)) as other:
        assert other.execute("SHOW application_name").fetchone() == (application_name(url),)
    assert application_name(url).endswith(named(""))


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


async def test_statements_work_after_groups_that_were_undone(engine: PostgresEngine) -> None:
    """A statement that was prepared by a group that is undone is prepared again."""
    chance = Random(5)
    changes = [
        Statement(f"notes.change{number}", CHANGE.clause.where(literal_column(str(number)) == literal_column("0")))  # type: ignore[attr-defined]
        for number in range(4)
    ]
    for _ in range(6):
        store = await engine.open()
        await store.commit([ADD_ONCE.write(id=1, body="one")])
        for _ in range(12):
            units = [
                [ADD.write(id=1, body="again")]
                if chance.random() < 0.25
                else [chance.choice(changes).write(note=1, to="two")]
                for _ in range(chance.randrange(1, 6))
            ]
            await asyncio.gather(*(store.commit(unit) for unit in units), return_exceptions=True)
        for change in changes:
            assert len(await store.commit([change.write(note=1, to="three")])) == 1
        await store.close()
