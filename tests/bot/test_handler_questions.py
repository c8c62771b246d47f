"""A function asks during its run: the member's next message resumes it, and every question ends with a notification."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Literal

import pytest

from bot.testing import FAMILY, Group, TestPlatform, call
from config.texts import Texts
from function_calls.context import Kind
from function_calls.spec import Choice, FunctionResult
from services.clock import VirtualClock
from services.refs import MemberRef, Role
from services.store.turns.inbox import INBOX
from services.store.turns.ledger import LEDGER
from services.store.turns.pending import PENDING
from tests.fakes.asking import Asking
from tests.fakes.dying_store import DyingStore
from tests.fakes.functions import CITY, Recorder
from tests.fakes.kept import kept, last_reason
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol

EN = Texts().of("en")
DROPPED = EN.say("questions.dropped")
BEGAN = ("began", "")


async def expire(group: Group, seconds: int = 301) -> None:
    """Advance the clock and expire unanswered questions."""
    await group.clock.advance(seconds)
    await group.daemon.housekeeping.expire_questions()
    await group.settle()


async def test_the_next_message_of_the_member_leads_back_into_the_run() -> None:
    fill = Asking(parameters=CITY)
    async with a_group([fill.spec]) as group:
        assert await group.say("Ann", "/fill Oslo") == ["Your name?"]
        assert await last_reason(group) == ("asked", "fill")
        assert await group.say("Bob", "Bob") == []
        assert await group.say("Ann", "Bob and I talk", chat=FAMILY._replace(native="work")) == []
        assert await group.say("Ann", " Ann! ") == ["Thanks: Ann!."]
        assert await last_reason(group) == ("answered_question", "fill")
        assert await group.say("Ann", "Ann") == []
    assert fill.runs == [BEGAN, ("answered", "Ann!")]
    assert fill.recorder.runs == [{"city": "Oslo"}] * 2


async def test_what_it_says_before_it_asks_is_said_first() -> None:
    fill = Asking(first="This takes a minute.")
    async with a_group([fill.spec]) as group:
        assert await group.say("Ann", "/fill") == ["This takes a minute.", "Your name?"]
    silent = Asking(questions=["", "And now?"])
    async with a_group([silent.spec]) as group:
        assert await group.say("Ann", "/fill") == [EN.say("questions.input")]
    talking = Asking(questions=["", "And now?"], first="Tell me.")
    async with a_group([talking.spec]) as group:
        assert await group.say("Ann", "/fill") == ["Tell me."]
        assert await group.say("Ann", "a") == ["And now?"]


async def test_it_may_ask_again_and_again_through_restarts(tmp_path: Path) -> None:
    fill = Asking(questions=["One?", "Two?", "Three?"], effect="once")
    async with a_group([fill.spec], home=tmp_path) as group:
        assert await group.say("Ann", "/fill") == ["One?"]
        assert await group.say("Ann", "a") == ["Two?"]
    async with a_group([fill.spec], home=tmp_path) as group:
        assert await group.say("Bob", "x") == []
        assert await group.say("Ann", "b") == ["Three?"]
    async with a_group([fill.spec], home=tmp_path) as group:
        assert await group.say("Ann", "c") == ["Thanks: a, b, c."]
        codes = [code for _, code in await kept(group, LEDGER.c.turn_id, LEDGER.c.code)]
        assert codes == ["asked", "asked", "asked", "ok"]
    assert [one.number for one in fill.resumed if one is not None] == [1, 2, 3]


async def test_one_that_asks_without_end_is_stopped() -> None:
    fill = Asking(questions=["More?"] * 60)
    async with a_group([fill.spec]) as group:
        said = await group.say("Ann", "/fill")
        for _ in range(49):
            assert said == ["More?"]
            said = await group.say("Ann", "more")
        assert said == ["More?"]
        assert await group.say("Ann", "more") == [EN.say("questions.cannot_go_on", name="/fill")]
        assert await group.say("Ann", "more") == []


async def test_state_that_is_too_much_to_keep_is_refused() -> None:
    async def hoards(context: Any, arguments: Any, own: Any) -> FunctionResult:
        return FunctionResult.ask("Go on?", resume={"all": "x" * 600_000})

    hoard = Recorder("hoard", does=hoards, commands=["hoard"])
    async with a_group([hoard.spec]) as group:
        assert await group.say("Ann", "/hoard") == [EN.say("questions.cannot_go_on", name="/hoard")]
        assert await kept(group, PENDING.c.id) == []


async def test_state_of_any_plain_kind_comes_back_as_json_has_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def keeps(context: Any, arguments: Any, own: Any) -> FunctionResult:
        seen.append(own.resumed)
        return FunctionResult.ask("Go\ud800on?", resume={"n": 2**70, "t": "a\0b", "l": [1, None, {"x": 1.5}]})

    keep = Recorder("keep", does=keeps, commands=["keep"])
    async with a_group([keep.spec], home=tmp_path) as group:
        assert await group.say("Ann", "/keep") == ["Go\ufffdon?"]
    async with a_group([keep.spec], home=tmp_path) as group:
        await group.say("Ann", "yes")
    assert seen[1].state == {"n": str(2**70), "t": "a\0b", "l": [1, None, {"x": 1.5}]}


@pytest.mark.parametrize(("said", "answer"), [("Black", "b"), ("WHITE", "w"), ("b", "b"), ("green", "green")])
async def test_a_choice_is_a_button_or_its_words(said: str, answer: str) -> None:
    fill = Asking(choices=[Choice("Black", "b"), Choice("White", "w"), Choice("Stop", "stop")])
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill")
        assert [one.value for one in group.platform.sent[-1].choices] == ["b", "w", "stop"]
        await group.say("Ann", said)
    assert fill.runs[1] == ("answered", answer)


async def test_a_button_answers_too_and_a_choice_is_no_wish_to_stop() -> None:
    fill = Asking(choices=[Choice("Stop there", "cancel")])
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill")
        assert await group.say("Bob", "cancel", kind=Kind.CHOICE) == []
        assert await group.say("Ann", "cancel", kind=Kind.CHOICE) == ["Thanks: cancel."]


# -- ended by the member


@pytest.mark.parametrize("word", ["cancel", "Never mind.", "stop!"])
async def test_the_run_hears_that_the_member_cancelled_and_what_it_says_is_shown(word: str) -> None:
    fill = Asking()
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill")
        assert await group.say("Ann", word) == ["Put away."]
        assert await group.say("Ann", "Ann") == []
    assert fill.runs == [BEGAN, ("cancelled", "")]
    assert fill.resumed[1] is not None
    assert fill.resumed[1].state == {"answers": []}


async def test_a_run_that_has_nothing_to_say_to_a_cancel_still_leaves_no_silence() -> None:
    fill = Asking(on_cancel=None)
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill")
        assert await group.say("Ann", "cancel") == [DROPPED]


async def test_a_cancelled_run_asks_no_more() -> None:
    async def stubborn(context: Any, arguments: Any, own: Any) -> FunctionResult:
        return FunctionResult.ask("Really?", resume={})

    nag = Recorder("nag", does=stubborn, commands=["nag"])
    async with a_group([nag.spec]) as group:
        await group.say("Ann", "/nag")
        assert await group.say("Ann", "cancel") == [DROPPED]
        assert await group.say("Ann", "yes") == []


# -- no answer


async def test_a_run_that_nobody_answers_hears_of_it_and_the_chat_does_not() -> None:
    fill = Asking()
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill")
        await expire(group, 299)
        assert fill.runs == [BEGAN]
        before = len(group.platform.sent)
        await expire(group, 1)
        await expire(group)
        assert fill.runs == [BEGAN, ("expired", "")]
        assert len(group.platform.sent) == before
        assert await last_reason(group) == ("expired", "fill")
        assert await kept(group, PENDING.c.state) == [("expired",)]
        assert await group.say("Ann", "Ann") == []


async def test_it_hears_of_it_after_a_restart_however_long_that_took(tmp_path: Path) -> None:
    fill = Asking(effect="once")
    async with a_group([fill.spec], home=tmp_path) as group:
        await group.say("Ann", "/fill")
        clock = group.clock
    await clock.advance(9000)
    async with a_group([fill.spec], home=tmp_path, clock=clock) as group:
        await expire(group, 0)
        await expire(group, 0)
        assert fill.runs == [BEGAN, ("expired", "")]
        assert group.platform.sent == []


async def test_it_hears_of_it_in_its_place_of_the_chats_order() -> None:
    order: list[str] = []

    async def notes(context: Any, arguments: Any, own: Any) -> None:
        order.append("note")

    fill, note = Asking(), Recorder("note", does=notes, commands=["note"])
    async with a_group([fill.spec, note.spec]) as group:
        await group.say("Ann", "/fill")
        await group.clock.advance(301)
        await group.hear("Bob", "/note")
        await group.daemon.housekeeping.expire_questions()
        await group.hear("Bob", "/note")
        await group.settle()
        rows = await kept(group, INBOX.c.kind, INBOX.c.reason)
    assert [kind for kind, _ in rows] == ["message", "message", "expiry", "message"]
    assert order == ["note", "note"]
    assert fill.runs[-1] == ("expired", "")


async def test_another_question_to_the_member_ends_the_run_that_waited(tmp_path: Path) -> None:
    fill, rain = Asking(), Recorder("rain", CITY, commands=["rain"], ask={"city": "Where?"})
    async with a_group([fill.spec, rain.spec], home=tmp_path) as group:
        await group.say("Ann", "/fill")
        assert await group.say("Ann", "/rain") == ["(I've dropped my earlier question: “Your name?”)\nWhere?"]
        await expire(group, 1)
        assert fill.runs == [BEGAN, ("expired", "")]
        assert await group.say("Ann", "Oslo") == ["done"]
        await group.say("Ann", "/fill")
        await group.say("Ann", "/fill")
        # The first daemon had no time for the notification: it follows after the restart.
        clock = group.clock
    async with a_group([fill.spec, rain.spec], home=tmp_path, clock=clock) as group:
        await expire(group, 1)
        assert fill.runs[2:] == [BEGAN, BEGAN, ("expired", "")]
        assert await group.say("Ann", "Ann") == ["Thanks: Ann."]


async def test_what_was_replaced_is_no_question_any_more_after_a_restart_either(tmp_path: Path) -> None:
    fill, rain = Asking(), Recorder("rain", CITY, commands=["rain"])
    async with a_group([fill.spec, rain.spec], home=tmp_path) as group:
        await group.say("Ann", "/fill")
        await group.say("Ann", "/rain")
        assert await group.say("Ann", "Oslo") == ["done"]
        clock = group.clock
    async with a_group([fill.spec, rain.spec], home=tmp_path, clock=clock) as group:
        assert await group.say("Ann", "Ann") == []
        await expire(group, 0)
    assert fill.runs == [BEGAN, ("expired", "")]


async def test_a_full_queue_only_puts_it_off() -> None:
    fill, slow = Asking(), Recorder("slow", commands=["slow"])
    async with a_group([fill.spec, slow.spec], settings={"limits": {"queue_per_chat": 1}}) as group:
        await group.say("Ann", "/fill")
        await group.clock.advance(301)
        assert group.daemon.engine.reserve_slot(group.chat, immediate=False) == ""
        await group.daemon.housekeeping.expire_questions()
        assert fill.runs == [BEGAN]
        group.daemon.engine.release_slot(group.chat, immediate=False)
        await expire(group, 0)
        assert fill.runs == [BEGAN, ("expired", "")]


async def test_a_run_that_nobody_answers_hears_of_it_though_its_asker_has_lost_the_right_to_it() -> None:
    fill = Asking(roles="admin")
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill", role=Role.ADMIN)
        group.platform.roles[MemberRef("test", "bot", "ann")] = Role.MEMBER
        await expire(group)
    assert fill.runs == [BEGAN, ("expired", "")]


# -- with a model


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_a_model_is_told_what_the_run_gave_in_the_end() -> None:
    fill = Asking(commands=[])
    async with a_group([fill.spec]) as group:
        group.model.says(call("fill"))
        assert await group.say("Ann", "@Rollcall fill it in please") == ["Your name?"]
        group.model.says("All done.")
        assert await group.say("Ann", "Ann") == ["All done."]
        told = group.model.requests[-1].messages[-1]
        assert (told.role, "Ann" in told.content) == ("tool", True)


@pytest.mark.requirement("C26", "D28")
@over_each_protocol
async def test_a_model_is_told_that_the_member_cancelled() -> None:
    fill = Asking(commands=[], effect="idempotent", touches="stays_here")
    async with a_group([fill.spec]) as group:
        group.model.says(call("fill"))
        await group.say("Ann", "@Rollcall fill it in please")
        group.model.says("As you like.")
        said = await group.say("Ann", "cancel")
        assert said[0] == "Put away."
        tool = [one.content for one in group.model.requests[-1].messages if one.role == "tool"]
        assert '"cancelled"' in tool[0]


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_further_calls_of_the_same_answer_run_after_it() -> None:
    fill, note = Asking(commands=[]), Recorder("note", effect="once", touches="stays_here", gives="Noted.")
    async with a_group([fill.spec, note.spec]) as group:
        group.model.says([call("fill"), call("note")])
        assert await group.say("Ann", "@Rollcall do both please") == ["Your name?"]
        assert note.runs == []
        group.model.says("Good.")
        assert await group.say("Ann", "Ann") == ["Noted.", "Good."]
        assert len(note.runs) <= 1


# -- when the process dies


async def until_dead(store: DyingStore, work: Coroutine[Any, Any, object]) -> None:
    """Do `work` until the process dies."""
    tasks = {asyncio.create_task(work), asyncio.create_task(store.died.wait())}
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def pay(context: Any, arguments: Any, own: Any) -> FunctionResult:
    """Asks, and pays if the answer says so."""
    if own.resumed is None:
        return FunctionResult.ask("Sure?", resume={"sum": 5})
    return FunctionResult.say(f"Paid {own.resumed.state['sum']}.")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(1, 11))
async def test_wherever_the_process_dies_no_question_is_lost_and_nothing_is_paid_twice(
    tmp_path: Path, at: int, when: Literal["before", "after"]
) -> None:
    function = Recorder("pay", does=pay, commands=["pay"], effect="once")
    platform, store = TestPlatform(), DyingStore(at, when)

    async def asked_and_answered(group: Group) -> None:
        await group.say("Ann", "/pay", id="x1")
        await group.say("Ann", "yes", id="x2")

    async with a_group([function.spec], home=tmp_path, platform=platform, around_store=store.around) as group:
        await until_dead(store, asked_and_answered(group))
        await group.crash()
    async with a_group([function.spec], home=tmp_path, platform=platform) as group:
        await group.settle()
        await asked_and_answered(group)
        codes = await kept(group, LEDGER.c.turn_id, LEDGER.c.key, LEDGER.c.code)
    said = [one.text for one in platform.sent]
    begun = sum(one.resumed is not None for one in function.calls)
    assert begun <= 1
    unknown = EN.say("failures.unknown_outcome", name="/pay")
    assert said in (["Sure?", "Paid 5."], ["Sure?", unknown], [unknown]), codes
    if unknown not in said:
        assert begun == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(2, 7))
async def test_what_asked_within_another_function_asks_again_after_a_crash(
    tmp_path: Path, at: int, when: Literal["before", "after"]
) -> None:
    async def asks_and_notes(context: Any, arguments: Any, own: Any) -> FunctionResult:
        asked: FunctionResult = await own.invoke("fill", {})
        await own.invoke("note", {})
        return asked

    fill, note = Asking(effect="once"), Recorder("note", effect="once")
    outer = Recorder("outer", does=asks_and_notes, commands=["outer"], effect="idempotent")
    specs, platform, store = [fill.spec, note.spec, outer.spec], TestPlatform(), DyingStore(at, when)
    async with a_group(specs, home=tmp_path, platform=platform, around_store=store.around) as group:
        await until_dead(store, group.say("Ann", "/outer", id="x1"))
        await group.crash()
    async with a_group(specs, home=tmp_path, platform=platform) as group:
        await group.settle()
        await group.say("Ann", "/outer", id="x1")
        await group.say("Ann", "Ann", id="x2")
    said = [one.text for one in platform.sent]
    unknown = EN.say("failures.unknown_outcome", name="/fill")
    assert said in (["Your name?", "Thanks: Ann."], [unknown])
    # A started run is not started again: it asks again from stored data, or its outcome is unknown.
    assert fill.runs.count(BEGAN) <= 1
    assert len(note.runs) <= 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(4, 9))
async def test_wherever_the_process_dies_a_run_hears_that_nobody_answered(
    tmp_path: Path, at: int, when: Literal["before", "after"]
) -> None:
    fill = Asking(effect="idempotent")
    platform, store, clock = TestPlatform(), DyingStore(at, when), VirtualClock()

    async def not_answered(group: Group) -> None:
        await group.say("Ann", "/fill", id="x1")
        await expire(group)

    async with a_group([fill.spec], home=tmp_path, platform=platform, around_store=store.around, clock=clock) as group:
        await until_dead(store, not_answered(group))
        await group.crash()
    async with a_group([fill.spec], home=tmp_path, platform=platform, clock=clock) as group:
        await group.settle()
        await not_answered(group)
        assert await kept(group, PENDING.c.state) == [("expired",)]
        ends = [reason for kind, reason in await kept(group, INBOX.c.kind, INBOX.c.reason) if kind == "expiry"]
    assert ends == ["expired"]
    assert [one.text for one in platform.sent] == ["Your name?"]
    assert fill.runs[-1] == ("expired", "")
