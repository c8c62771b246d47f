"""Stored values of scripts: lifetime and visibility."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keyword_modules import memory
from function_calls.basic.keywords import Grants, ScriptRun
from services.clock import VirtualClock
from services.refs import ChatRef
from services.scripts.memory import ScriptMemory
from services.store.chats.script_data import SCRIPT_MEMORY
from services.store.retention import old_rows
from tests.fakes.builders import a_message
from tests.fakes.script_runs import a_run
from tests.fakes.sqlite_store import a_store
from tests.function_calls.script_keywords.saying import Saying

WORK = ChatRef("test", "bot", "work")
DAY = 86_400.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def say(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Saying]:
    async with a_store(tmp_path, clock, [SCRIPT_MEMORY]) as store:
        yield Saying([memory], {ScriptMemory: ScriptMemory(store, clock)})


def by(name: str, *, chat: ChatRef | None = None, private: bool = False, **changes: object) -> ScriptRun:
    context = a_message(sender=name, private=private, **({"chat": chat} if chat else {}))
    return a_run(context, **changes)


@pytest.mark.parametrize("value", [5, 2.5, "words", True, [1, "a", None], {"a": {"b": [1]}}])
async def test_a_value_comes_back_as_it_was(say: Saying, value: object) -> None:
    await say(a_run(), 'SET BOT MEMORY "k", v', v=value)
    assert await say(a_run(), 'GET BOT MEMORY("k")') == value


async def test_a_name_that_was_never_set_gives_null(say: Saying) -> None:
    assert await say(a_run(), 'GET BOT MEMORY "k"') is None
    assert await say(a_run(), 'GET USER MEMORY "k"') is None
    assert await say(a_run(), 'RECALL "k"') is None


@pytest.mark.parametrize(
    "statement",
    [
        'SET BOT MEMORY "n_" + who, 7',
        'SET BOT MEMORY("n_" + who, 7)',
        'SET BOT MEMORY "n_" + who = 7',
    ],
)
async def test_a_name_can_be_reckoned_in_every_form(say: Saying, statement: str) -> None:
    await say(a_run(), statement, who="ann")
    assert await say(a_run(), 'GET BOT MEMORY "n_ann"') == 7


async def test_bot_memory_is_everybodys_in_the_chat(say: Saying) -> None:
    await say(by("Ann"), 'SET BOT MEMORY "topic", "tea"')
    assert await say(by("Bob"), 'GET BOT MEMORY "topic"') == "tea"


async def test_no_other_chat_and_no_other_bot_sees_what_a_chat_put(say: Saying) -> None:
    for kind in ("BOT", "CHAT", "USER"):
        await say(by("Ann"), f'SET {kind} MEMORY "topic", "tea"')
        assert await say(by("Ann", chat=WORK), f'GET {kind} MEMORY "topic"') is None
    assert await say(by("Ann", bot="other"), 'GET BOT MEMORY "topic"') is None


async def test_what_the_operator_shares_reaches_all_chats_of_the_bot_and_no_other_bot(say: Saying) -> None:
    shared = Grants(shared_memory=("Prices_*",))
    await say(by("Ann", grants=shared), 'SET BOT MEMORY "prices_tea", 3')
    assert await say(by("Bob", chat=WORK, grants=shared), 'GET BOT MEMORY "prices_tea"') == 3
    assert await say(by("Bob", chat=WORK, grants=shared, bot="other"), 'GET BOT MEMORY "prices_tea"') is None


async def test_a_members_shared_value_follows_them_to_other_chats_and_bots_and_nobody_else(say: Saying) -> None:
    shared = Grants(shared_memory=("language",))
    await say(by("Ann", grants=shared), 'SET USER MEMORY "language", "pt"')
    assert await say(by("Ann", chat=WORK, grants=shared, bot="other"), 'GET USER MEMORY "language"') == "pt"
    assert await say(by("Bob", grants=shared), 'GET USER MEMORY "language"') is None


async def test_what_a_member_said_to_the_bot_alone_is_not_found_when_others_read_along(say: Saying) -> None:
    await say(by("Ann", private=True), 'REMEMBER "salary", 100')
    await say(by("Ann"), 'REMEMBER "city", "Oslo"')
    assert await say(by("Ann"), 'RECALL "salary"') is None
    assert await say(by("Ann", private=True), 'RECALL "salary"') == 100
    assert await say(by("Ann", private=True), 'RECALL "city"') == "Oslo"


async def test_remember_is_for_a_time_or_without_an_end(say: Saying, clock: VirtualClock) -> None:
    await say(a_run(), 'REMEMBER "code", 1234, "5 minutes"')
    await say(a_run(), 'REMEMBER "plain", 1, 2')
    await say(a_run(), 'REMEMBER "po_" + po.id = po', po={"id": "7"})
    await clock.advance(299)
    assert await say(a_run(), 'RECALL "code"') == 1234
    await clock.advance(2)
    assert await say(a_run(), 'RECALL "code"') is None
    await clock.advance(2 * DAY)
    assert await say(a_run(), 'RECALL "plain"') is None
    await clock.advance(1000 * DAY)
    assert await say(a_run(), 'RECALL "po_7"') == {"id": "7"}


async def test_what_is_over_is_swept_and_the_rest_stays(tmp_path: Path, clock: VirtualClock) -> None:
    async with a_store(tmp_path, clock, [SCRIPT_MEMORY]) as store:
        say = Saying([memory], {ScriptMemory: ScriptMemory(store, clock)})
        await say(a_run(), 'SET USER MEMORY "a", 1, "1 day"')
        await say(a_run(), 'SET USER MEMORY "b", 1, "3 days"')
        await say(a_run(), 'SET USER MEMORY "c", 1')
        await clock.advance(2 * DAY)
        old = old_rows(before_id=0, before_ms=0, before_day="", expired_ms=0, now_ms=clock.now_ms())
        assert await store.commit([one for one in old if one.statement.name == "retention.script_memory"]) == [1]
        assert await say(a_run(), 'GET USER MEMORY "b"') == 1
        assert await say(a_run(), 'GET USER MEMORY "c"') == 1


async def test_null_and_forget_take_a_value_away(say: Saying) -> None:
    for statement in ('SET USER MEMORY "k", NULL', 'FORGET "k"', 'FORGET USER MEMORY "k"'):
        await say(a_run(), 'SET USER MEMORY "k", 1')
        await say(a_run(), statement)
        assert await say(a_run(), 'GET USER MEMORY "k"') is None
    assert await say(a_run(), 'FORGET "k"') is False
    await say(a_run(), 'SET CHAT MEMORY "k", 1')
    assert await say(a_run(), 'FORGET CHAT MEMORY "k"') is True
    await say(a_run(), 'SET BOT MEMORY "k", 1')
    assert await say(a_run(), 'FORGET BOT MEMORY "k"') is True


@pytest.mark.parametrize("kind", ["BOT", "CHAT"])
async def test_what_anybody_may_have_put_counts_as_words_of_others(say: Saying, kind: str) -> None:
    run = a_run()
    assert await say(run, f'GET {kind} MEMORY "k"') is None
    assert not run.has_outside_text
    await say(a_run(), f'SET {kind} MEMORY "k", 1')
    await say(run, f'GET {kind} MEMORY "k"')
    assert run.has_outside_text


@pytest.mark.parametrize("was_outside", [False, True])
async def test_a_members_value_counts_as_words_of_others_when_it_was_made_of_them(
    say: Saying, was_outside: bool
) -> None:
    await say(a_run(has_outside_text=was_outside), 'SET USER MEMORY "k", 1')
    run = a_run()
    await say(run, 'GET USER MEMORY "k"')
    assert run.has_outside_text is was_outside


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ("GET BOT MEMORY color", RunCode.WRONG_TYPE, "name to remember is missing"),
        ('SET BOT MEMORY "", 1', RunCode.WRONG_TYPE, "name to remember is missing"),
        ("SET BOT MEMORY long, 1", RunCode.BAD_VALUE, "1 to 200 visible characters"),
        ('SET BOT MEMORY "k", large', RunCode.NOT_ALLOWED, "64 kB"),
        ('REMEMBER "k", 1, "soon"', RunCode.BAD_VALUE, "“soon”"),
        ('REMEMBER "k", 1, list', RunCode.WRONG_TYPE, "30 days"),
    ],
)
async def test_what_cannot_be_kept_is_said_plainly_and_changes_nothing(
    say: Saying, statement: str, code: RunCode, words: str
) -> None:
    await say(a_run(), 'SET BOT MEMORY "k", "old"')
    with pytest.raises(RunError, match=words) as raised:
        await say(a_run(), statement, long="x" * 201, large="x" * 64_001, list=[1])
    assert raised.value.code is code
    assert await say(a_run(), 'GET BOT MEMORY "k"') == "old"


async def test_faults_are_said_in_the_chats_language(say: Saying) -> None:
    with pytest.raises(RunError, match="看不懂“soon”"):
        await say(a_run(language="zh"), 'REMEMBER "k", 1, "soon"')


async def test_an_owner_has_room_for_so_much_and_others_are_not_touched(say: Saying) -> None:
    for number in range(62):
        await say(a_run(), f'SET BOT MEMORY "k{number}", v', v="x" * 63_990)
    with pytest.raises(RunError, match="4 MB"):
        await say(a_run(), 'SET BOT MEMORY "one more", v', v="x" * 63_990)
    await say(a_run(), 'SET BOT MEMORY "k0", v', v="y" * 63_990)
    await say(a_run(), 'SET CHAT MEMORY "k", v', v="x" * 63_990)
    await say(a_run(), 'SET BOT MEMORY "k1", NULL')
    await say(a_run(), 'SET BOT MEMORY "one more", v', v="x" * 63_990)


async def test_half_a_character_and_a_zero_are_kept_as_they_are(say: Saying) -> None:
    await say(a_run(), 'SET BOT MEMORY "k", v', v="a\ud800b\0c")
    assert await say(a_run(), 'GET BOT MEMORY "k"') == "a\ud800b\0c"


async def test_a_run_keeps_nothing_of_another_members_run(say: Saying) -> None:
    ann = by("Ann")
    await say(ann, 'REMEMBER "k", "hers"')
    bob = replace(ann, context=a_message(sender="Bob"))
    assert await say(bob, 'RECALL "k"') is None
