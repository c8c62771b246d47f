"""The contract of engines: a chat notices no difference between one process and a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from bot.testing import FAMILY, call
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import Kind, MessageContext
from function_calls.ports import Measure
from services.refs import MemberRef, Role
from tests.contracts.engines import ENGINES, Conversation, a_conversation, until
from tests.fakes.asking import Asking
from tests.fakes.functions import Recorder
from tests.fakes.held import Held

EN = Texts().of("en")
Opens = Callable[..., AbstractAsyncContextManager[Conversation]]


@pytest.fixture(params=ENGINES)
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Opens:
    """Opens a conversation on the engine."""
    url = "" if request.param == "sqlite" else request.getfixturevalue("new_postgres_database")

    def opens(functions: Sequence[Any] = (), **settings: Any) -> AbstractAsyncContextManager[Conversation]:
        return a_conversation(request.param, tmp_path, url, functions, settings)

    return opens


async def test_commands_and_calls_of_the_model_are_answered_once(talk: Opens) -> None:
    pay = Recorder("pay", effect="once", gives="paid", commands=["pay"])
    async with talk([pay.spec]) as chat:
        assert await chat.say("Ann", "/pay") == ["paid"]
        chat.model.says([call("pay")], "All done.")
        assert await chat.say("Bob", "@Rollcall see to the rent, please pay", answers=2) == ["paid", "All done."]
        await chat.hear("Eve", "nobody is meant")
        assert await chat.say("Ann", "/pay", native_id="same") == ["paid"]
        await chat.hear("Ann", "/pay", native_id="same")
        assert await chat.say("Ann", "/pay") == ["paid"]
    assert len(pay.runs) == 4


async def test_turns_of_a_chat_run_in_order_and_chats_do_not_wait_for_each_other(talk: Opens) -> None:
    held = Held()
    async with talk([held.spec]) as chat:
        chat.model.says([call("hold", text="one")], [call("hold", text="elsewhere")])
        await chat.hear("Ann", "@Rollcall one")
        await held.has_begun("one")
        await chat.hear("Bob", "@Rollcall two")
        await chat.hear("Eve", "@Rollcall three")
        await chat.hear("Ann", "@Rollcall go on", chat=FAMILY._replace(native="work"))
        await held.has_begun("elsewhere")
        chat.model.says("said one", [call("hold", text="two")], "said two", [call("hold", text="three")], "said three")
        held.let_go("one")
        await held.has_begun("two")
        held.let_go("two")
        await held.has_begun("three")
        held.let_go("three")
        await chat.sends(3)
        chat.model.says("said elsewhere")
        held.let_go("elsewhere")
        await chat.sends(4)
        assert chat.texts == ["said one", "said two", "said three", "said elsewhere"]
    assert held.begun == ["one", "elsewhere", "two", "three"]
    assert held.most_at_once == 2


async def test_a_question_of_a_function_is_answered_by_the_next_message(talk: Opens) -> None:
    fill = Asking(questions=["One?", "Two?"])
    async with talk([fill.spec]) as chat:
        assert await chat.say("Ann", "/fill") == ["One?"]
        assert await chat.say("Ann", "a") == ["Two?"]
        await chat.hear("Bob", "x")
        assert await chat.say("Ann", "b") == ["Thanks: a, b."]
        chat.model.says("Hello.")
        assert await chat.say("Ann", "@Rollcall hello") == ["Hello."]


async def test_an_approval_is_given_by_another_member_and_runs_once(talk: Opens) -> None:
    pay = Recorder("pay", effect="once", gives="paid", touches="sends_out")
    approvals = {"required": [{"functions": ["pay"], "by": "admin"}]}
    async with talk([pay.spec], approvals=approvals) as chat:
        chat.model.says([call("pay")])
        (question,) = await chat.say("Ann", "@Rollcall pay the rent")
        assert "pay" in question
        assert not pay.runs
        chat.model.says("All done.")
        said = await chat.say("Ada", "@Rollcall yes", role=Role.ADMIN, answers=2)
        assert said == ["paid", "All done."]
    assert len(pay.runs) == 1


async def test_a_running_turn_is_stopped(talk: Opens) -> None:
    held = Held()
    async with talk([held.spec]) as chat:
        chat.model.says([call("hold", text="it")])
        await chat.hear("Ann", "@Rollcall wait")
        await held.has_begun("it")
        assert await chat.say("Ann", "/stop") == [EN.say("stop.stopped")]
        assert not held.running
        chat.model.says("Hello.")
        assert (await chat.say("Ann", "@Rollcall hello"))[-1] == "Hello."


async def test_a_waiting_message_is_edited_or_deleted_and_a_running_one_is_noted(talk: Opens) -> None:
    held = Held()
    async with talk([held.spec]) as chat:
        chat.model.says([call("hold", text="it")], "First.", "Second.")
        await chat.hear("Ann", "@Rollcall wait", native_id="a")
        await held.has_begun("it")
        await chat.hear("Bob", "@Rollcall tell me", native_id="b")
        await chat.hear("Eve", "@Rollcall never mind", native_id="c")
        await chat.hear("Bob", "@Rollcall tell me more", native_id="b", kind=Kind.EDIT)
        await chat.hear("Eve", "", native_id="c", kind=Kind.DELETE)
        await chat.hear("Ann", "@Rollcall wait for me", native_id="a", kind=Kind.EDIT)
        await asyncio.sleep(0.2)  # the notification to the worker
        held.let_go()
        await until(lambda: "Second." in chat.texts)
        assert any(EN.say("turns.edited_meanwhile") in text for text in chat.texts)
        asked = chat.model.requests[-1].messages[-1].content
        assert "tell me more" in asked
        chat.model.says("Third.")
        assert (await chat.say("Ann", "@Rollcall hello"))[-1] == "Third."


async def test_a_long_run_leaves_the_queue_of_its_chat(talk: Opens) -> None:
    held = Held(background=True)
    async with talk([held.spec]) as chat:
        chat.model.says([call("hold", text="it")])
        await chat.hear("Ann", "@Rollcall take your time")
        await held.has_begun("it")
        chat.model.says("Hello.")
        await chat.hear("Bob", "@Rollcall hello")
        await until(lambda: "Hello." in chat.texts)
        chat.model.says("At last.")
        held.let_go()
        await until(lambda: any("done: it" in text or "At last." in text for text in chat.texts))


async def test_a_reminder_that_a_turn_has_set_is_sent_when_it_is_due(talk: Opens) -> None:
    async with talk() as chat:
        chat.model.says([call("reminder_create", text="drink in 1 second")])
        await chat.hear("Ann", "@Rollcall remind me in 1 second to drink")
        await until(lambda: any("drink" in text and "Ann" in text for text in chat.texts[1:]))
        await asyncio.sleep(1.2)  # the next tick: it is not sent twice
        assert sum(text.startswith("⏰ Ann") for text in chat.texts) == 1


async def test_the_role_of_the_moment_decides(talk: Opens) -> None:
    seal = Recorder("seal", effect="once", gives="sealed", roles=["admin"])
    async with talk([seal.spec]) as chat:
        chat.model.says([call("seal")], "Done.")
        assert "sealed" in await chat.say("Ada", "@Rollcall seal it", role=Role.ADMIN, answers=2)
        chat.network.roles[MemberRef("test", "bot", "ada")] = Role.MEMBER
        chat.model.says([call("seal")], "Not allowed.")
        await chat.hear("Ada", "@Rollcall seal it", role=Role.ADMIN)
        await until(lambda: "Not allowed." in "".join(chat.texts))
    assert len(seal.runs) == 1


async def test_a_measure_of_moderation_is_taken_once(talk: Opens) -> None:
    async with talk() as chat:
        await chat.hear("Bob", "hello")
        chat.network.roles[MemberRef("test", "bot", "ada")] = Role.ADMIN
        chat.model.says([call("kick", member="Bob")])
        (question,) = await chat.say("Ada", "@Rollcall kick Bob", role=Role.ADMIN)
        assert "Bob" in question
        await chat.hear("Ada", "yes", role=Role.ADMIN)
        await until(lambda: bool(chat.network.moderated))
        await until(lambda: len(chat.texts) > 1)
    assert [(one.measure, one.who) for one in chat.network.moderated] == [(Measure.KICK, "bob")]


async def test_a_long_turn_shows_that_it_works_and_its_status_becomes_the_answer(talk: Opens) -> None:
    held = Held()
    async with talk([held.spec], router={"status_after_seconds": 1}) as chat:
        chat.model.says([call("hold", text="it")], "Done at last.")
        await chat.hear("Ann", "@Rollcall hold it")
        await held.has_begun("it")
        await until(lambda: bool(chat.network.statuses))
        await chat.sends(1)
        held.let_go()
        await until(lambda: [outgoing.text for _, outgoing in chat.network.edited][-1:] == ["Done at last."])


async def test_settings_that_a_command_changes_hold_for_the_next_turn(talk: Opens) -> None:
    async with talk() as chat:
        await chat.say("Ada", "/settings language zh", role=Role.OWNER)
        chat.model.says("好的。")
        assert await chat.say("Ada", "@Rollcall hello") == ["好的。"]
        assert "zh" in chat.model.requests[-1].messages[0].content


async def test_an_accepted_message_survives_the_end_of_all_processes(talk: Opens) -> None:
    held = Held(effect="idempotent")
    async with talk([held.spec]) as chat:
        chat.model.says([call("hold", text="it")])
        await chat.hear("Ann", "@Rollcall hold it")
        await held.has_begun("it")
    held.let_go()
    async with talk([held.spec]) as chat:
        chat.model.says("All done.")
        await until(lambda: "All done." in chat.texts)


async def test_what_a_function_does_for_the_chat_is_known_in_the_next_turn(talk: Opens) -> None:
    heard: list[str] = []

    async def look(context: MessageContext, arguments: dict[str, Any], call: Call) -> str:
        heard.append(context.text)
        return "seen"

    seen = Recorder("look", does=look)
    async with talk([seen.spec]) as chat:
        chat.model.says([call("todo_add", text="milk")], "Added.")
        await chat.hear("Ann", "@Rollcall add milk to the list")
        await chat.sends(1)
        await until(lambda: any("milk" in text for text in chat.texts))
        await until(lambda: chat.gateway.engine.running == 0)
        before = len(chat.texts)
        await chat.hear("Ann", "/todo")
        await chat.sends(before + 1)
        assert "milk" in chat.texts[-1]
