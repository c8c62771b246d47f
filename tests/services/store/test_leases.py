"""The lease and its fencing token, with a real PostgreSQL server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import select
from structlog.testing import capture_logs

from services.clock import SystemClock
from services.store.ids import Ids
from services.store.port import Conflict, Query, Statement, StoreBroken, StoreFenced, Write
from services.store.postgres.connections import address_of
from services.store.postgres.lease import PostgresLease, connect_as_leader
from services.store.postgres.store import PostgresStore
from services.store.statements import compile_statement
from services.store.turns import audit, due
from services.store.turns.leases import Held, Unreachable
from services.store.turns.occurrences import OCCURRENCES
from services.timers.timetable import Timetable
from tests.fakes.drafts import a_draft, later
from tests.harness.postgres_server import PostgresServer, as_a_daemon_makes_it

PATIENCE_SECONDS = 20.0
LONG = 60.0
SHORT = 0.3
_MOMENTS = Statement("test.moments", select(OCCURRENCES).order_by(OCCURRENCES.c.id))


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """A database with all tables."""
    return postgres_server.new_database(as_a_daemon_makes_it)


@asynccontextmanager
async def a_lease(url: str, holder: str, seconds: float = LONG) -> AsyncIterator[PostgresLease]:
    lease = PostgresLease(url, holder, seconds, partial(as_a_daemon_makes_it, url))
    try:
        yield lease
    finally:
        await lease.close()


@asynccontextmanager
async def a_writer(
    url: str, guard: Write, seconds: float = LONG, on_broken: Callable[[StoreBroken], None] | None = None
) -> AsyncIterator[PostgresStore]:
    """The store of a leader."""
    connect = partial(connect_as_leader, seconds=seconds)
    store = await PostgresStore.open(url, clock=SystemClock(), guard=guard, connect=connect, on_broken=on_broken)
    try:
        yield store
    finally:
        await store.close()


async def taken(lease: PostgresLease) -> int:
    """The token, after `lease` has been acquired."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            got = await lease.take()
            if not isinstance(got, Held):
                return got
            await asyncio.sleep(0.02)


def a_row(number: int) -> Write:
    return audit.note(id=number, at_ms=1, actor="ann", chat="c", action="a", detail="")


async def rows(store: PostgresStore) -> list[int]:
    return sorted(row["id"] for row in await store.read(audit.last(100)))


async def test_who_asks_first_leads_and_the_others_are_told_who_and_for_how_long(url: str) -> None:
    async with a_lease(url, "first") as first, a_lease(url, "second") as second:
        assert await first.take() == 1
        held = await second.take()
        assert isinstance(held, Held)
        assert held.holder == "first"
        assert 0 < held.left_ms <= LONG * 1000


async def test_a_new_database_is_made_ready_by_who_asks_first(postgres_server: PostgresServer) -> None:
    async with a_lease(postgres_server.new_database(), "first") as first:
        assert await first.take() == 1


async def test_a_lease_that_has_run_out_goes_to_the_next_one_under_a_higher_token(url: str) -> None:
    async with a_lease(url, "first", SHORT) as first, a_lease(url, "second", SHORT) as second:
        assert await first.take() == 1
        assert await taken(second) == 2
        assert not await first.renew(1)
        assert await second.renew(2)


async def test_a_lease_that_is_given_back_is_free_at_once(url: str) -> None:
    async with a_lease(url, "first") as first, a_lease(url, "second") as second:
        await first.take()
        await first.release()
        assert await second.take() == 2
        await first.release()
        assert await second.renew(2)


async def test_who_cannot_tell_whether_it_took_the_lease_asks_again_and_has_it(url: str) -> None:
    async with a_lease(url, "first") as first:
        assert [await first.take(), await first.take()] == [1, 2]


async def test_of_many_who_ask_at_the_same_instant_one_leads(url: str) -> None:
    async with a_lease(url, "old") as old:
        await old.take()
        await old.release()
    crowd = [PostgresLease(url, f"daemon {number}", LONG, lambda: None) for number in range(8)]
    try:
        got = await asyncio.gather(*(one.take() for one in crowd))
        assert sorted(one for one in got if not isinstance(one, Held)) == [2]
    finally:
        for one in crowd:
            await one.close()


async def test_a_server_that_is_away_is_an_error_without_the_password() -> None:
    async with a_lease("postgresql://bot:hunter2@127.0.0.1:1/x", "first") as lease:
        with pytest.raises(Unreachable, match="cannot be asked who leads") as raised:
            await lease.take()
        assert "hunter2" not in str(raised.value)


@asynccontextmanager
async def between(url: str, may_speak: asyncio.Event) -> AsyncIterator[str]:
    """Address of a proxy for the server at `url`, which stops forwarding without closing connections while `may_speak`
    is cleared."""
    socket = Path(conninfo_to_dict(url)["host"]) / ".s.PGSQL.5432"
    passing: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await may_speak.wait()
            writer.write(data)
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(socket)
        writers.extend((writer, inner_writer))
        passing.add(asyncio.create_task(pass_on(reader, inner_writer)))
        passing.add(asyncio.create_task(pass_on(inner_reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"postgresql://bot@127.0.0.1:{port}/{conninfo_to_dict(url)['dbname']}"
    finally:
        server.close()
        for task in passing:
            task.cancel()
        for writer in writers:
            writer.close()
        await asyncio.gather(*passing, *(writer.wait_closed() for writer in writers), return_exceptions=True)


async def test_a_server_that_is_silent_costs_a_renewal_its_patience_and_no_more(url: str) -> None:
    """The first attempt waits for its response, the second one for its connection."""
    may_speak = asyncio.Event()
    may_speak.set()
    async with between(url, may_speak) as through, a_lease(through, "first", 3.0) as first:
        token = await first.take()
        assert isinstance(token, int)
        may_speak.clear()
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(Unreachable, match="does not say in time"):
                await first.renew(token)
            assert 0.4 < time.monotonic() - began < 1.5
        may_speak.set()
        assert await first.renew(token)


async def test_who_gives_up_waiting_for_a_silent_server_need_not_wait_for_that_either(url: str) -> None:
    may_speak = asyncio.Event()
    may_speak.set()
    async with between(url, may_speak) as through, a_lease(through, "first", 60.0) as first:
        token = await first.take()
        assert isinstance(token, int)
        may_speak.clear()
        renewing = asyncio.create_task(first.renew(token))
        await asyncio.wait([renewing], timeout=0.1)
        renewing.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await renewing
        assert time.monotonic() - began < 1.5
        may_speak.set()
        assert await first.renew(token)


async def test_a_leader_that_another_one_has_taken_over_from_commits_nothing_more(url: str) -> None:
    broken: list[StoreBroken] = []
    async with a_lease(url, "old", SHORT) as old, a_lease(url, "new") as new:
        token = await taken(old)
        async with a_writer(url, old.guard(token), on_broken=broken.append) as late:
            await late.commit([a_row(1)])
            async with a_writer(url, new.guard(await taken(new))) as store:
                for unit in ([a_row(2)], []):
                    with pytest.raises(StoreFenced):
                        await late.commit(unit)
                await store.commit([a_row(3)])
                assert await rows(store) == [1, 3]
        assert [type(one) for one in broken] == [StoreFenced]


async def test_nobody_takes_over_in_the_midst_of_a_commit(url: str) -> None:
    async with a_lease(url, "old", SHORT) as old, a_lease(url, "new", 5.0) as new:
        with connect_as_leader(address_of(url), LONG) as session:
            begin_as(session, old.guard(await taken(old)))
            session.execute(*statement(a_row(1)))
            await asyncio.sleep(SHORT)
            assert isinstance(await new.take(), Held)
            session.execute("COMMIT")
            assert await taken(new) == 2
        async with a_writer(url, new.guard(2)) as store:
            assert await rows(store) == [1]


async def test_a_leader_that_is_held_up_in_a_transaction_is_cut_off_when_its_lease_has_run_out(url: str) -> None:
    async with a_lease(url, "old", SHORT) as old, a_lease(url, "new") as new:
        with connect_as_leader(address_of(url), SHORT) as session:
            begin_as(session, old.guard(await taken(old)))
            session.execute(*statement(a_row(1)))
            assert await taken(new) == 2
            with pytest.raises(psycopg.Error, match="idle-in-transaction"):
                session.execute("COMMIT")
        async with a_writer(url, new.guard(2)) as store:
            assert await rows(store) == []


async def test_a_leader_that_is_held_up_before_it_has_sent_all_of_a_transaction_is_cut_off_too(url: str) -> None:
    async with a_lease(url, "old", SHORT) as old, a_lease(url, "new", SHORT) as new:
        with connect_as_leader(address_of(url), SHORT) as session, capture_logs() as logs:
            together = await a_half_sent_transaction(session, old)
            assert await taken(new) == 2
            with pytest.raises(psycopg.OperationalError):
                together.__exit__(None, None, None)
        async with a_writer(url, new.guard(2)) as store:
            assert await rows(store) == []
    assert [entry["event"] for entry in logs] == ["held_up_leader_cut_off"]


async def test_a_standby_without_permission_to_terminate_sessions_reports_it_and_waits(
    postgres_server: PostgresServer, url: str
) -> None:
    name = conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE ROLE plain LOGIN")
        server.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
        server.execute("REVOKE EXECUTE ON FUNCTION pg_terminate_backend FROM PUBLIC")
    plain = postgres_server.url_of(str(name)).replace("//bot@", "//plain@")
    async with a_lease(plain, "old", SHORT) as old, a_lease(plain, "new", SHORT) as new:
        with connect_as_leader(address_of(plain), SHORT) as session, capture_logs() as logs:
            together = await a_half_sent_transaction(session, old)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not logs:
                    assert isinstance(await new.take(), Held)
            together.__exit__(None, None, None)
            session.execute("ROLLBACK")
            assert await taken(new) == 2
    assert [entry["event"] for entry in logs] == ["held_up_leader_not_cut_off"]


async def test_a_transaction_that_the_server_is_busy_with_is_not_cut_off(url: str) -> None:
    async with a_lease(url, "old", SHORT) as old, a_lease(url, "new", SHORT) as new:
        with connect_as_leader(address_of(url), LONG) as session:
            begin_as(session, old.guard(await taken(old)))
            session.execute(*statement(a_row(1)))
            busy = asyncio.create_task(asyncio.to_thread(session.execute, f"SELECT pg_sleep({5 * SHORT}); COMMIT"))
            assert await taken(new) == 2
            await busy
        async with a_writer(url, new.guard(2)) as store:
            assert await rows(store) == [1]


@pytest.mark.requirement("D41")
async def test_of_two_that_claim_the_same_moments_at_once_each_moment_goes_to_one(url: str) -> None:
    """sched-fault-09 without the lease: both pass the guard."""
    clock = SystemClock()
    async with a_lease(url, "both") as lease:
        guard = lease.guard(await taken(lease))
        async with a_writer(url, guard) as one, a_writer(url, guard) as other:
            at = later(clock.now(), hours=1)
            drafts = [a_draft(f"t{number}", at) for number in range(200)]
            await Timetable(one, clock, Ids(clock)).add(drafts, call_key="many", most_per_owner=1000)
            moments = await one.read(Query(_MOMENTS, {}))
            claims = [
                due.claim(row["id"], revision=0, wall=row["wall"], due_ms=row["due_ms"], now_ms=1, turn_id=1)
                for row in moments
            ]
            first, second = await asyncio.gather(*(_claimed(store, claims) for store in (one, other)))
            assert len(claims) == 200
            assert [mine != theirs for mine, theirs in zip(first, second, strict=True)] == [True] * 200


async def _claimed(store: PostgresStore, claims: list[Write]) -> list[bool]:
    """Whether each claim succeeded with this store."""
    done = await asyncio.gather(*(store.commit([claim]) for claim in claims), return_exceptions=True)
    assert all(one == [1] or isinstance(one, Conflict) for one in done)
    return [one == [1] for one in done]


async def a_half_sent_transaction(session: psycopg.Connection[Any], lease: PostgresLease) -> psycopg.Pipeline:
    """A transaction of a new leader, for which the server has received all but the end of a pipeline."""
    guard = lease.guard(await taken(lease))
    together = session.pipeline()
    together.__enter__()
    session.execute("BEGIN")
    session.execute(*statement(guard))
    session.execute(*statement(a_row(1)))
    return together


def begin_as(session: psycopg.Connection[Any], guard: Write) -> None:
    session.execute("BEGIN")
    assert session.execute(*statement(guard)).rowcount == 1


def statement(write: Write) -> tuple[bytes, tuple[Any, ...]]:
    compiled = compile_statement(write.statement, "postgresql")
    return compiled.sql.encode(), compiled.bind(write.values)
