from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.testing import a_group
from function_calls.handlers.group import todo
from services.chats.todo import MOST_OPEN, TodoLists
from services.clock import VirtualClock
from services.refs import ChatRef, ErrorCode, Role
from tests.fakes.builders import a_member
from tests.fakes.sqlite_store import a_store
from tests.function_calls.handlers.running import Functions, text_of

WORK = ChatRef("test", "bot", "work")
DAY = 86_400.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def functions(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Functions]:
    async with a_store(tmp_path, clock) as store:
        yield Functions(todo, TodoLists(store, clock))


@pytest.mark.requirement("D3", "D13", "D32", "D33", "D56")
async def test_an_entry_is_added_shown_and_done(functions: Functions) -> None:
    assert text_of(await functions.run("todo_add", text="buy\n milk")) == "Added #1 to the list: buy milk"
    await functions.run("todo_add", text="call mum", by="Bob")
    assert text_of(await functions.run("todo_list")) == "To do (2):\n#1 buy milk (Ann)\n#2 call mum (Bob)"
    assert text_of(await functions.run("todo_done", item="2")) == "✅ #2 call mum"
    assert text_of(await functions.run("todo_list")) == "To do (1):\n#1 buy milk (Ann)"
    assert text_of(await functions.run("todo_list", show="done")).endswith("#2 ✅ call mum (Bob)")
    assert len((await functions.run("todo_list", show="all")).data) == 2


async def test_what_matters_most_stands_first(functions: Functions) -> None:
    await functions.run("todo_add", text="dust", priority="low")
    await functions.run("todo_add", text="read")
    await functions.run("todo_add", text="pay rent", priority="high")
    listed = text_of(await functions.run("todo_list", language="zh"))
    assert listed.splitlines() == ["待办（3）：", "#3 ❗ pay rent（Ann）", "#2 read（Ann）", "#1 ↓ dust（Ann）"]


@pytest.mark.requirement("D13")
async def test_a_list_belongs_to_its_chat(functions: Functions) -> None:
    await functions.run("todo_add", text="secret")
    assert text_of(await functions.run("todo_list", chat=WORK)) == "Nothing to do. 🎉"
    for name in ("todo_done", "todo_remove"):
        result = await functions.run(name, item="1", chat=WORK, by=a_member("Eve", Role.OWNER))
        assert result.error is not None
        assert result.error.code is ErrorCode.NOT_FOUND
    assert text_of(await functions.run("todo_add", text="other", chat=WORK)) == "Added #1 to the list: other"


async def test_a_run_that_is_repeated_adds_nothing_new(functions: Functions) -> None:
    first = await functions.run("todo_add", text="milk", key="turn-7:0")
    again = await functions.run("todo_add", text="milk", key="turn-7:0")
    assert first == again
    assert len((await functions.run("todo_list")).data) == 1
    await functions.run("todo_add", text="milk", key="turn-8:0")
    assert len((await functions.run("todo_list")).data) == 2


async def test_a_run_that_is_repeated_finishes_nothing_else(functions: Functions) -> None:
    await functions.run("todo_add", text="milk")
    await functions.run("todo_add", text="milk and bread")
    first = await functions.run("todo_done", item="milk", key="turn-7:0")
    assert await functions.run("todo_done", item="milk", key="turn-7:0") == first
    assert [entry["text"] for entry in (await functions.run("todo_list")).data] == ["milk and bread"]


async def test_a_run_that_is_repeated_removes_nothing_else(functions: Functions) -> None:
    await functions.run("todo_add", text="milk")
    await functions.run("todo_add", text="milk and bread")
    assert text_of(await functions.run("todo_remove", item="milk", key="turn-7:0")) == "Removed #1 milk"
    assert text_of(await functions.run("todo_remove", item="milk", key="turn-7:0")) == "#1 has already been removed."
    assert [entry["text"] for entry in (await functions.run("todo_list")).data] == ["milk and bread"]


async def test_a_number_is_not_given_again(functions: Functions) -> None:
    await functions.run("todo_add", text="one")
    await functions.run("todo_remove", item="1")
    assert text_of(await functions.run("todo_add", text="two")) == "Added #2 to the list: two"


@pytest.mark.parametrize("item", ["2", "#2", "number 2", "第2条", "CALL MUM", "mum"])
async def test_an_entry_is_found_by_number_or_words(functions: Functions, item: str) -> None:
    await functions.run("todo_add", text="buy milk")
    await functions.run("todo_add", text="Call mum")
    assert (await functions.run("todo_done", item=item)).data == {"number": 2, "done": True}


async def test_words_that_fit_several_entries_name_them(functions: Functions) -> None:
    await functions.run("todo_add", text="buy milk")
    await functions.run("todo_add", text="buy bread")
    result = await functions.run("todo_done", item="buy")
    assert result.error is not None
    assert result.error.code is ErrorCode.BAD_ARGUMENTS
    assert result.error.text.splitlines()[1:] == ["#1 buy milk (Ann)", "#2 buy bread (Ann)"]


async def test_what_is_done_is_not_done_twice(functions: Functions) -> None:
    await functions.run("todo_add", text="milk")
    await functions.run("todo_done", item="1")
    assert text_of(await functions.run("todo_done", item="1")) == "#1 milk was already done."


async def test_only_the_author_or_a_moderator_removes_an_entry(functions: Functions) -> None:
    await functions.run("todo_add", text="milk", by="Ann")
    refused = await functions.run("todo_remove", item="milk", by="Bob")
    assert refused.error is not None
    assert (refused.error.code, "Ann" in refused.error.text) == (ErrorCode.REFUSED, True)
    assert (await functions.run("todo_remove", item="milk", by=a_member("Bob", Role.MODERATOR))).ok


@pytest.mark.requirement("E44")
async def test_an_entry_gets_another_text_or_state(functions: Functions) -> None:
    await functions.run("todo_add", text="buy milk", priority="high")
    assert text_of(await functions.run("todo_update", number=1, text="buy\n oat milk")) == (
        "Updated: #1 ❗ buy oat milk (Ann)"
    )
    await functions.run("todo_update", number=1, state="done", by="Bob")
    assert (await functions.run("todo_list", show="done")).data[0]["text"] == "buy oat milk"
    both = await functions.run("todo_update", number=1, text="buy milk", state="open")
    assert both.data == {"number": 1, "text": "buy milk", "priority": "high", "added_by": "Ann", "done": False}
    assert text_of(await functions.run("todo_list")) == "To do (1):\n#1 ❗ buy milk (Ann)"


async def test_an_entry_is_changed_in_chat_by_its_number() -> None:
    async with a_group() as group:
        await group.say("Ann", "/todo add buy milk")
        assert await group.say("Ann", "/todo update 1 buy oat milk") == ["Updated: #1 buy oat milk (Ann)"]
        assert await group.say("Ann", "/todo update 1 state=done") == ["Updated: #1 ✅ buy oat milk (Ann)"]


async def test_a_change_that_is_repeated_changes_nothing_more(functions: Functions) -> None:
    await functions.run("todo_add", text="milk")
    first = await functions.run("todo_update", number=1, text="bread", state="done", key="turn-7:0")
    assert await functions.run("todo_update", number=1, text="bread", state="done", key="turn-7:0") == first
    assert len((await functions.run("todo_list", show="all")).data) == 1


async def test_a_change_says_what_is_to_be_different(functions: Functions) -> None:
    await functions.run("todo_add", text="milk")
    result = await functions.run("todo_update", number=1)
    assert result.error is not None
    assert (result.error.code, result.error.fields) == (ErrorCode.MISSING_ARGUMENTS, ("text",))


async def test_only_the_author_or_a_moderator_changes_what_an_entry_says(functions: Functions) -> None:
    await functions.run("todo_add", text="milk", by="Ann")
    refused = await functions.run("todo_update", number=1, text="beer", state="done", by="Bob")
    assert refused.error is not None
    assert (refused.error.code, "Ann" in refused.error.text) == (ErrorCode.REFUSED, True)
    assert text_of(await functions.run("todo_list")) == "To do (1):\n#1 milk (Ann)"
    assert (await functions.run("todo_update", number=1, text="beer", by=a_member("Bob", Role.MODERATOR))).ok
    missing = await functions.run("todo_update", number=7, text="x")
    assert missing.error is not None
    assert missing.error.code is ErrorCode.NOT_FOUND


async def test_a_full_list_opens_no_entry_again(functions: Functions) -> None:
    await functions.run("todo_add", text="first")
    await functions.run("todo_done", item="1")
    for number in range(MOST_OPEN):
        await functions.run("todo_add", text=f"task {number}")
    full = await functions.run("todo_update", number=1, state="open")
    assert full.error is not None
    assert (full.error.code, str(MOST_OPEN) in full.error.text) == (ErrorCode.REFUSED, True)


async def test_a_full_list_says_so(functions: Functions) -> None:
    for number in range(MOST_OPEN):
        await functions.run("todo_add", text=f"task {number}")
    full = await functions.run("todo_add", text="one more")
    assert full.error is not None
    assert (full.error.code, str(MOST_OPEN) in full.error.text) == (ErrorCode.REFUSED, True)
    await functions.run("todo_done", item="1")
    assert (await functions.run("todo_add", text="one more")).ok


async def test_done_entries_are_forgotten_after_thirty_days(functions: Functions, clock: VirtualClock) -> None:
    await functions.run("todo_add", text="old")
    await functions.run("todo_add", text="still open")
    await functions.run("todo_done", item="old")
    await clock.advance(31 * DAY)
    await functions.run("todo_add", text="new")
    texts = [entry["text"] for entry in (await functions.run("todo_list", show="all")).data]
    assert texts == ["still open", "new"]


async def test_the_list_is_there_after_a_restart(tmp_path: Path, clock: VirtualClock) -> None:
    async with a_store(tmp_path, clock) as store:
        await Functions(todo, TodoLists(store, clock)).run("todo_add", text="milk")
    async with a_store(tmp_path, clock) as store:
        assert text_of(await Functions(todo, TodoLists(store, clock)).run("todo_list")).endswith("#1 milk (Ann)")
