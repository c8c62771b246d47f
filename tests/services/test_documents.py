"""Documents of chats on both databases: changes at once, repeated calls, and chats apart from each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.testing import a_group
from services.chats.documents import Documents
from services.chats.members import KnownMember
from services.chats.shopping import ShoppingList
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, RequestProblem

HERE, THERE = ChatRef("test", "bot", "family"), ChatRef("test", "bot", "work")
ANN = KnownMember(MemberRef("test", "bot", "ann"), "Ann")


@pytest.fixture(params=["sqlite", "postgresql"])
async def documents(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Documents]:
    is_server = request.param == "postgresql"
    store = {"store": {"url": request.getfixturevalue("new_postgres_database")}} if is_server else {}
    async with a_group(home=tmp_path, settings=store) as group:
        yield Documents(group.daemon.store, VirtualClock())


async def put(documents: Documents, text: str, *, key: str = "", chat: ChatRef = HERE) -> list[str | int]:
    def change(state: ShoppingList, _: int) -> list[int]:
        return state.add([text])

    _, result = await documents.change(chat, ShoppingList, change, by=ANN, call_key=key or text)
    return list(result)


async def test_changes_at_the_same_time_are_all_kept(documents: Documents) -> None:
    numbers = await asyncio.gather(*(put(documents, f"item {at}") for at in range(12)))
    state = await documents.read(HERE, ShoppingList)
    assert sorted(numbers) == [[at] for at in range(1, 13)]
    assert {one.text for one in state.items} == {f"item {at}" for at in range(12)}
    assert (state.version, state.names) == (12, {"test:bot:ann": "Ann"})


async def test_a_repeated_call_changes_nothing_and_has_the_same_result(documents: Documents) -> None:
    assert await put(documents, "milk", key="call-1") == [1]
    await put(documents, "eggs", key="call-2")
    assert await put(documents, "milk", key="call-1") == [1]
    assert (await documents.read(HERE, ShoppingList)).version == 2


async def test_a_change_that_raises_writes_nothing(documents: Documents) -> None:
    def fail(state: ShoppingList, _: int) -> list[int]:
        state.add(["milk"])
        raise RequestProblem("todo.full")

    with pytest.raises(RequestProblem):
        await documents.change(HERE, ShoppingList, fail, by=ANN, call_key="call-1")
    assert (await documents.read(HERE, ShoppingList)).items == []


async def test_a_document_belongs_to_one_chat(documents: Documents) -> None:
    await put(documents, "milk")
    assert (await documents.read(THERE, ShoppingList)).items == []
