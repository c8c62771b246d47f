"""Requests of a worker to the gateway that holds an account."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from sqlalchemy import select

from bot.cluster.accounts import Account
from bot.cluster.requests import Requests
from bot.platforms.base import ChatPlatform, Editing, Files, Moderating, Outgoing, SendFailed
from bot.testing import FAMILY, TestPlatform
from function_calls.ports import Measure, ModerationRequest
from services.clock import SystemClock
from services.refs import MemberRef, Role
from services.store.ids import Ids
from services.store.port import Query, Statement
from services.store.postgres.locks import SHARED
from services.store.postgres.store import PostgresStore
from services.store.turns.cluster import REQUESTS

ANN = MemberRef("test", "bot", "ann")
LEFT = Query(Statement("tests.requests", select(REQUESTS.c.method)), {})


async def never(_key: str) -> None:
    await asyncio.Event().wait()


async def at_once(_key: str) -> None:
    return


async def nothing_to_do(_account: Account) -> None:
    return


@pytest.fixture
async def store(new_postgres_database: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(new_postgres_database, clock=SystemClock(), claims=[SHARED])
    yield opened
    await opened.close()


def an_account(store: PostgresStore, network: TestPlatform, node: int) -> tuple[Account, Requests]:
    requests = Requests(store, Ids(SystemClock(), node), SystemClock())
    return Account(cast(ChatPlatform, network), requests, store, never, nothing_to_do), requests


async def test_the_holder_answers_requests_and_errors_keep_their_facts(store: PostgresStore) -> None:
    network = TestPlatform()
    network.roles[ANN] = Role.ADMIN
    (worker, _), (holder, serving) = an_account(store, network, 1), an_account(store, network, 2)
    holder.is_here = True

    task = asyncio.create_task(serving.serve(lambda account: holder.answer if account == holder.key else None))
    assert await worker.role(FAMILY, ANN) is Role.ADMIN
    moderating: object = worker
    assert isinstance(moderating, Moderating)
    assert not isinstance(moderating, Files | Editing)
    await moderating.moderate(ModerationRequest(FAMILY, Measure.KICK, ANN))
    assert [one.measure for one in network.moderated] == [Measure.KICK]
    failure = SendFailed("no right", retryable=False)
    failure.status = 403
    network.refusals.append(failure)
    with pytest.raises(SendFailed, match="no right") as failed:
        await moderating.moderate(ModerationRequest(FAMILY, Measure.KICK, ANN))
    assert (failed.value.retryable, failed.value.status) == (False, 403)
    task.cancel()
    await store.commit([])
    assert await store.read(LEFT) == []


async def test_without_an_answer_there_is_no_role_and_no_message(store: PostgresStore) -> None:
    network = TestPlatform()
    network.roles[ANN] = Role.OWNER
    worker, _ = an_account(store, network, 1)
    assert await worker.role(FAMILY, ANN) is None
    with pytest.raises(SendFailed) as failed:
        await worker.send(Outgoing(FAMILY, "key", "hello"))
    assert failed.value.retryable
    assert network.sent == []
