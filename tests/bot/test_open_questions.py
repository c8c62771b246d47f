"""Questions of the bot: asked once, to one member, for a limited time, and kept during a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.platforms.base import Accepted
from bot.testing import Group, call
from config.texts import Texts
from function_calls.context import Kind, Quoted
from services.clock import VirtualClock
from services.llm.offline.offline import OfflineModel
from services.refs import MemberRef
from services.store.turns.pending import PENDING
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held
from tests.fakes.kept import kept, last_reason
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol

EN = Texts().of("en")
CLOSED = EN.say("questions.closed")
BOB = MemberRef("test", "bot", "bob")
WHERE_AND_WHEN = {
    "city": {"type": "string", "description": "The place", "required": True},
    "day": {"type": "string", "description": "Which day", "required": True},
}


def rain(**options: Any) -> Recorder:
    return Recorder("rain", CITY, commands=["rain"], ask={"city": "Where?"}, **options)


def wipe(**options: Any) -> Recorder:
    return Recorder("wipe", commands=["wipe"], confirm="Really wipe?", effect="once", **options)


@pytest.mark.requirement("D53")
async def test_a_missing_argument_is_asked_for_and_the_next_message_fills_it() -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        assert await group.say("Ann", "/rain") == ["Where?"]
        assert await last_reason(group) == ("asked", "rain")
        assert await group.say("Ann", "Oslo") == ["done"]
        assert await last_reason(group) == ("answered_question", "rain")
        assert await group.say("Ann", "Bergen") == []
        assert function.runs == [{"city": "Oslo"}]


@pytest.mark.requirement("D53")
async def test_what_others_say_does_not_fill_the_question() -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/rain")
        assert await group.say("Bob", "Oslo") == []
        assert await group.say("Ann", "Tromsø", chat=group.chat._replace(native="work")) == []
        assert function.runs == []
        assert await group.say("Ann", "Bergen") == ["done"]
        assert function.runs == [{"city": "Bergen"}]


@pytest.mark.requirement("D53")
async def test_a_question_expires_for_good() -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/rain")
        await group.clock.advance(299)
        await group.daemon.housekeeping.expire_questions()
        assert await kept(group, PENDING.c.state) == [("open",)]
        await group.clock.advance(1)
        assert await group.say("Ann", "Oslo") == []
        assert function.runs == []


@pytest.mark.parametrize("step", [1800, -1800])
async def test_a_question_waits_its_time_whatever_is_done_to_the_wall_clock(step: float) -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/rain")
        group.clock.jump(step)
        await group.daemon.housekeeping.expire_questions()
        assert await group.say("Ann", "Oslo") == ["done"]
        await group.say("Ann", "/rain")
        group.clock.jump(step)
        await group.clock.advance(300)
        assert await group.say("Ann", "Bergen") == []
        assert function.runs == [{"city": "Oslo"}]


async def test_a_question_waits_no_longer_than_its_time_after_a_restart_with_a_wall_clock_that_was_set_back(
    tmp_path: Path,
) -> None:
    function = rain()
    async with a_group([function.spec], home=tmp_path) as group:
        await group.say("Ann", "/rain")
    clock = VirtualClock()
    clock.jump(-1800)
    async with a_group([function.spec], home=tmp_path, clock=clock) as group:
        await clock.advance(300)
        assert await group.say("Ann", "Oslo") == []
    assert function.runs == []


async def test_a_question_that_expired_is_closed_in_the_store_too(tmp_path: Path) -> None:
    function = rain()
    async with a_group([function.spec], home=tmp_path) as group:
        await group.say("Ann", "/rain")
        await group.clock.advance(301)
        await group.daemon.housekeeping.expire_questions()
        assert await kept(group, PENDING.c.state) == [("expired",)]
    async with a_group([function.spec], home=tmp_path) as group:
        assert await group.say("Ann", "Oslo") == []


@pytest.mark.requirement("D53")
async def test_a_question_survives_a_restart(tmp_path: Path) -> None:
    function = rain()
    async with a_group([function.spec], home=tmp_path) as group:
        await group.say("Ann", "/rain")
    async with a_group([function.spec], home=tmp_path) as group:
        assert await group.say("Bob", "Oslo") == []
        assert await group.say("Ann", "Oslo") == ["done"]
    async with a_group([function.spec], home=tmp_path) as group:
        assert await group.say("Ann", "Oslo") == []
    assert function.runs == [{"city": "Oslo"}]


async def test_a_question_expires_while_the_daemon_is_down(tmp_path: Path) -> None:
    function = rain()
    async with a_group([function.spec], home=tmp_path) as group:
        await group.say("Ann", "/rain")
    later = VirtualClock()
    await later.advance(301)
    async with a_group([function.spec], home=tmp_path, clock=later) as group:
        assert await group.say("Ann", "Oslo") == []
    assert function.runs == []


async def test_an_answer_that_was_accepted_before_a_crash_is_heeded_after_it(tmp_path: Path) -> None:
    function = rain()
    async with a_group([function.spec], home=tmp_path) as group:
        await group.say("Ann", "/rain")
        await group.hear("Ann", "Oslo", id="x2")
        await group.crash()
    async with a_group([function.spec], home=tmp_path) as group:
        await group.settle()
        assert await group.hear("Ann", "Oslo", id="x2") is Accepted.DUPLICATE
        assert [one.text for one in group.platform.sent][-1:] in (["done"], [])
    assert function.runs[-1] == {"city": "Oslo"}


@pytest.mark.requirement("D53")
async def test_each_missing_argument_is_asked_for_in_turn() -> None:
    function = Recorder("rain", WHERE_AND_WHEN, commands=["rain"], ask={"city": "Where?", "day": "When?"})
    async with a_group([function.spec]) as group:
        assert await group.say("Ann", "/rain") == ["Where?"]
        assert await group.say("Ann", "Oslo", id="x2") == ["When?"]
        assert await group.say("Ann", "today") == ["done"]
        assert function.runs == [{"city": "Oslo", "day": "today"}]


@pytest.mark.requirement("D53")
async def test_an_answer_that_is_delivered_again_does_not_answer_the_next_question(tmp_path: Path) -> None:
    function = Recorder("rain", WHERE_AND_WHEN, commands=["rain"], ask={"city": "Where?", "day": "When?"})
    async with a_group([function.spec], home=tmp_path) as group:
        await group.say("Ann", "/rain")
        assert await group.say("Ann", "Oslo", id="x2") == ["When?"]
        assert await group.say("Ann", "Oslo", id="x2") == []
    async with a_group([function.spec], home=tmp_path) as group:
        assert await group.say("Ann", "Oslo", id="x2") == []
        assert await group.say("Ann", "today") == ["done"]
    assert function.runs == [{"city": "Oslo", "day": "today"}]


async def test_two_answers_at_once_fill_it_once() -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/rain")
        first, second = group.message("Ann", "Oslo"), group.message("Ann", "Bergen")
        waiting = [group.daemon.intake.accept(one) for one in (first, second)]
        for one in waiting:
            await one
        await group.settle()
        assert function.runs == [{"city": "Oslo"}]


async def test_two_members_each_answer_their_own_question() -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/rain")
        await group.say("Bob", "/rain")
        assert await group.say("Bob", "Bergen") == ["done"]
        assert await group.say("Ann", "Oslo") == ["done"]
        assert function.runs == [{"city": "Bergen"}, {"city": "Oslo"}]


async def test_a_newer_question_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    rains, snows = rain(), Recorder("snow", CITY, commands=["snow"], ask={"city": "Snow where?"})
    async with a_group([rains.spec, snows.spec], home=tmp_path) as group:
        await group.say("Ann", "/rain")
        await group.say("Ann", "/snow")
    async with a_group([rains.spec, snows.spec], home=tmp_path) as group:
        assert await group.say("Ann", "Oslo") == ["done"]
        assert await group.say("Ann", "Oslo") == []
    assert (rains.runs, snows.runs) == ([], [{"city": "Oslo"}])


async def test_a_command_in_between_is_run_and_the_question_stays_open() -> None:
    function, other = rain(), Recorder("note", commands=["note"])
    async with a_group([function.spec, other.spec]) as group:
        await group.say("Ann", "/rain")
        assert await group.say("Ann", "/note") == ["done"]
        assert await group.say("Ann", "Oslo") == ["done"]
        assert (len(other.runs), function.runs) == (1, [{"city": "Oslo"}])


REMIND = "remind me in 10 minutes to call Ann"


@pytest.mark.parametrize("is_group", [False, True])
async def test_a_clear_request_for_another_function_is_no_answer_and_the_question_stays_open(is_group: bool) -> None:
    function = rain()
    async with a_group([function.spec], model=OfflineModel(Texts())) as group:
        assert await group.say("Ann", "/rain", is_group=is_group) == ["Where?"]
        (reply,) = await group.say("Ann", REMIND, is_group=is_group)
        assert "call Ann" in reply
        assert await last_reason(group) == ("function", "reminder_create")
        assert function.runs == []
        assert await group.say("Ann", "Oslo", is_group=is_group) == ["done"]
        assert function.runs == [{"city": "Oslo"}]


async def test_a_new_request_that_asks_something_itself_withdraws_the_question(tmp_path: Path) -> None:
    function, note = rain(), Recorder("note", {"text": {"type": "string", "required": True}}, ask={"text": "What?"})
    async with a_group([function.spec, note.spec], home=tmp_path) as group:
        group.model.says(call("note"))
        assert await group.say("Ann", "/rain") == ["Where?"]
        await group.say("Ann", REMIND)
        assert await last_reason(group) == ("asked", "note")
    async with a_group([function.spec, note.spec], home=tmp_path) as group:
        group.model.says("Noted.")
        await group.say("Ann", "Oslo")
        assert (function.runs, note.runs) == ([], [{"text": "Oslo"}])


async def test_with_a_model_a_clear_request_is_routed_as_usual() -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        group.model.says("I will.")
        await group.say("Ann", "/rain")
        assert await group.say("Ann", REMIND) == ["I will."]
        assert await group.say("Ann", "Oslo") == ["done"]


@pytest.mark.parametrize(
    ("options", "answer", "facts"),
    [
        ({}, "Oslo in Norway", {}),
        ({}, REMIND, {"reply_to_bot": True}),
        ({"effect": "idempotent"}, REMIND, {}),
        ({"touches": ["sends_out"]}, "what is the time in Tokyo", {}),
        ({"examples": ["rain in {city}"]}, "rain in Oslo", {}),
    ],
)
async def test_what_may_be_the_missing_value_is_the_answer(
    options: dict[str, Any], answer: str, facts: dict[str, Any]
) -> None:
    function = rain(**options)
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/rain")
        assert await group.say("Ann", answer, **facts) == ["done"]
        assert function.runs == [{"city": answer}]


@pytest.mark.parametrize(
    ("language", "word", "reply"),
    [("en", "cancel", "Okay, cancelled."), ("en", "Never mind.", "Okay, cancelled."), ("zh", "算了", "好的，已取消。")],
)
async def test_the_one_who_was_asked_may_call_it_off(language: str, word: str, reply: str) -> None:
    function = rain()
    async with a_group([function.spec], settings={"language": language, "chats": {"allow": ["*"]}}) as group:
        reply = group.daemon.chats.profile(group.chat).texts.say("questions.dropped")
        await group.say("Ann", "/rain")
        assert await group.say("Ann", word) == [reply]
        assert await group.say("Ann", "Oslo") == []
        assert function.runs == []


@pytest.mark.parametrize(
    ("language", "word", "runs"),
    [
        ("en", "yes", 1),
        ("en", "OK!", 1),
        ("en", "no", 0),
        ("en", "don't", 0),
        ("zh", "是的", 1),
        ("zh", "好", 1),
        ("zh", "不要", 0),
        ("zh", "否", 0),
    ],
)
async def test_what_is_to_be_confirmed_runs_after_a_yes_alone(language: str, word: str, runs: int) -> None:
    function = wipe()
    async with a_group([function.spec], settings={"language": language, "chats": {"allow": ["*"]}}) as group:
        assert await group.say("Ann", "/wipe") == ["Really wipe?"]
        assert len(group.platform.sent[-1].choices) == 2
        assert function.runs == []
        assert len(await group.say("Ann", word)) == 1
        assert len(function.runs) == runs


async def test_chatter_is_no_yes_and_the_question_waits() -> None:
    function = wipe()
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/wipe")
        assert await group.say("Ann", "what a day") == []
        assert await group.say("Bob", "yes") == []
        assert function.runs == []
        assert await group.say("Ann", "yes") == ["done"]


async def test_a_yes_from_long_ago_runs_nothing_when_the_function_has_changed(tmp_path: Path) -> None:
    before, after = wipe(), Recorder("wipe", commands=["wipe"], confirm="Wipe all of it?", effect="once")
    async with a_group([before.spec], home=tmp_path) as group:
        await group.say("Ann", "/wipe")
    async with a_group([after.spec], home=tmp_path) as group:
        assert await group.say("Ann", "yes") == ["“/wipe” has changed since I asked you. Please ask me again."]
    assert (before.runs, after.runs) == ([], [])


async def asked_by_the_model(group: Group) -> None:
    group.model.says(call("rain"))
    assert await group.say("Ann", "@Rollcall will it rain?") == ["Where?"]


@pytest.mark.requirement("D52", "D53", "D28")
@over_each_protocol
async def test_the_rounds_of_a_model_go_on_after_the_answer_and_a_restart(tmp_path: Path) -> None:
    function = rain(gives="wet")
    async with a_group([function.spec], home=tmp_path) as group:
        await asked_by_the_model(group)
    async with a_group([function.spec], home=tmp_path) as group:
        group.model.says("Take an umbrella.")
        assert await group.say("Ann", "Oslo") == ["Take an umbrella."]
        shown = group.model.requests[0].messages
        assert [message.role for message in shown][-3:] == ["user", "assistant", "tool"]
    assert function.runs == [{"city": "Oslo"}]


@pytest.mark.requirement("D52")
async def test_a_models_own_question_is_answered_after_a_restart_by_its_member_only(tmp_path: Path) -> None:
    function = rain(gives="wet")
    async with a_group([function.spec], home=tmp_path) as group:
        group.model.says(call("insufficient_arguments", question="Where?"))
        assert await group.say("Ann", "@Rollcall will it rain?") == ["Where?"]
        assert await group.say("Bob", "Bergen") == []
    async with a_group([function.spec], home=tmp_path) as group:
        group.model.says(call("rain", city="Oslo"), "Take an umbrella.")
        assert await group.say("Ann", "Oslo") == ["Take an umbrella."]
    assert function.runs == [{"city": "Oslo"}]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("sky", {"is_group": False}),
        ("sky over Oslo", {"is_group": False}),
        ("sky over Oslo", {"reply_to_bot": True}),
        ("@Rollcall sky over Oslo", {}),
        ("Oslo", {"reply_to_bot": True, "mentions": (BOB,)}),
    ],
)
async def test_an_answer_may_begin_like_a_command(text: str, facts: dict[str, Any]) -> None:
    function, sky = rain(), Recorder("sky", {"place": {"type": "string", "required": False}}, commands=["sky"])
    async with a_group([function.spec, sky.spec]) as group:
        await group.say("Ann", "/rain", is_group=facts.get("is_group", True))
        assert await group.say("Ann", text, **facts) == ["done"]
        assert function.runs == [{"city": text.removeprefix("@Rollcall ")}]
        assert sky.runs == []


@pytest.mark.requirement("D53")
@pytest.mark.parametrize(
    "facts",
    [{"reply_to": Quoted("b1", "Bob", "Where do we meet?")}, {"mentions": (BOB,)}],
)
async def test_what_is_said_to_another_member_is_no_answer(facts: dict[str, Any]) -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/rain")
        assert await group.say("Ann", "At eight, in Bergen", **facts) == []
        assert await last_reason(group) == ("not_addressed", "")
        assert await group.say("Ann", "Oslo") == ["done"]
        assert function.runs == [{"city": "Oslo"}]


async def test_a_question_that_a_message_came_too_late_for_is_closed_in_the_store_too() -> None:
    function = rain()
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/rain")
        await group.clock.advance(301)
        await group.say("Ann", "Oslo")
        await group.daemon.housekeeping.expire_questions()
        assert await kept(group, PENDING.c.state) == [("expired",)]


async def test_an_answer_that_a_filter_stops_leaves_the_question_waiting_also_after_a_restart(tmp_path: Path) -> None:
    function = rain(gives="it rains")
    settings = {"filters": {"turn": [{"blacklist": {"words": ["damn"]}}]}}
    async with a_group([function.spec], settings=settings, home=tmp_path) as group:
        assert await group.say("Ann", "/rain") == ["Where?"]
        await group.say("Ann", "damn")
        assert await last_reason(group) == ("filtered", "filters.turn[0].blacklist")
        assert await group.say("Ann", "Oslo") == ["it rains"]
        assert await group.say("Ann", "/rain") == ["Where?"]
        await group.say("Ann", "damn it")
    async with a_group([function.spec], settings=settings, home=tmp_path) as group:
        assert await group.say("Ann", "Rome") == ["it rains"]
    assert function.runs == [{"city": "Oslo"}, {"city": "Rome"}]


async def test_a_newer_question_stays_when_the_answer_to_the_older_one_is_stopped() -> None:
    function = rain(gives="it rains")
    snow = Recorder("snow", CITY, commands=["snow"], gives="it snows", ask={"city": "Where?"})
    settings = {"filters": {"turn": [{"blacklist": {"words": ["damn"]}}]}}
    held = Held(effect="read")
    async with a_group([function.spec, snow.spec, held.spec], settings=settings) as group:
        assert await group.say("Ann", "/rain") == ["Where?"]
        await group.hear("Cleo", "/hold it")
        await held.has_begun("it")
        await group.hear("Ann", "/snow")
        await group.hear("Ann", "damn")
        held.let_go()
        await group.settle()
        assert await group.say("Ann", "Oslo") == ["it snows"]
        assert function.runs == []
        assert [state for (state,) in await kept(group, PENDING.c.state)] == ["answered", "answered"]


def latest(group: Group) -> Quoted:
    """The bot's latest message, as quoted by a network."""
    return Quoted(f"sent-{group.platform.sent[-1].key}", "Rollcall", "…", from_bot=True)


async def test_a_reply_to_a_question_that_is_closed_answers_no_other_and_is_told_so() -> None:
    """Regression: an approval of an older question was taken as the answer to the newer one."""
    place, gone = rain(), wipe()
    async with a_group([place.spec, gone.spec]) as group:
        await group.say("Ann", "/rain")
        where = latest(group)
        await group.say("Ann", "/wipe")
        really = latest(group)
        assert await group.say("Ann", "ok", reply_to=where) == [CLOSED]
        assert group.platform.sent[-1].reply_to is not None
        assert (place.runs, gone.runs) == ([], [])
        assert await group.say("Ann", "yes please", reply_to=really) == ["done"]
        assert await group.say("Ann", "yes", reply_to=really) == [CLOSED]
        assert await group.say("Ann", "no thanks", reply_to=really, kind=Kind.CHOICE) == [CLOSED]
        assert gone.runs == [{}]


async def test_a_reply_to_a_question_that_expired_is_told_so_through_a_restart(tmp_path: Path) -> None:
    place, gone = rain(), wipe()
    async with a_group([place.spec, gone.spec], home=tmp_path) as group:
        await group.say("Ann", "/wipe")
        really = latest(group)
        await group.clock.advance(301)
        assert await group.say("Ann", "yes", reply_to=really) == [CLOSED]
        await group.daemon.housekeeping.expire_questions()
    async with a_group([place.spec, gone.spec], home=tmp_path) as group:
        assert await group.say("Ann", "yes", reply_to=really) == [CLOSED]
        group.model.says("It would be gone.")
        assert await group.say("Ann", "what would that have done?", reply_to=really) == ["It would be gone."]
    assert gone.runs == []


async def test_a_reply_to_what_another_member_was_asked_answers_nothing_of_ones_own() -> None:
    place, gone = rain(), wipe()
    async with a_group([place.spec, gone.spec]) as group:
        await group.say("Ann", "/rain")
        where = latest(group)
        await group.say("Bob", "/wipe")
        group.model.says("Ann decides.")
        assert await group.say("Bob", "yes", reply_to=where) == ["Ann decides."]
        assert await group.say("Bob", "yes", reply_to=where, kind=Kind.CHOICE) == []
        assert gone.runs == []
        assert await group.say("Bob", "yes") == ["done"]
        assert await group.say("Ann", "Oslo", reply_to=where) == ["done"]
        group.model.says("You are welcome.")
        assert await group.say("Ann", "thanks", reply_to=where) == ["You are welcome."]


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        ("yes please", 1),
        ("OK, do it!", 1),
        ("sure, thanks", 1),
        ("no thanks", 0),
        ("No, don't.", 0),
        ("don’t do it", 0),
        ("never mind", 0),
    ],
)
async def test_a_yes_or_no_may_stand_in_usual_company(said: str, runs: int) -> None:
    gone = wipe()
    async with a_group([gone.spec]) as group:
        await group.say("Ann", "/wipe")
        assert await group.say("Ann", said) == ["done" if runs else EN.say("questions.dropped")]
        assert len(gone.runs) == runs


@pytest.mark.parametrize("said", ["yes but not now", "yes no", "ok?", "is that ok", "no idea", "please", "okra", "👍"])
async def test_what_is_neither_leaves_the_question_open(said: str) -> None:
    gone = wipe()
    async with a_group([gone.spec]) as group:
        await group.say("Ann", "/wipe")
        assert await group.say("Ann", said, **({"kind": Kind.REACTION, "id": "else"} if said == "👍" else {})) == []
        assert gone.runs == []
        assert await group.say("Ann", "yes") == ["done"]


async def test_a_newer_question_says_that_it_leaves_the_older_one_and_closes_its_buttons() -> None:
    place, gone = rain(), wipe()
    async with a_group([place.spec, gone.spec]) as group:
        await group.say("Ann", "/wipe")
        really = latest(group).native_id
        assert await group.say("Bob", "/rain") == ["Where?"]
        assert group.platform.sent[-1].closes == ()
        assert await group.say("Ann", "/rain") == ["(I've dropped my earlier question: “Really wipe?”)\nWhere?"]
        assert group.platform.sent[-1].closes == (really,)
        where = latest(group).native_id
        assert await group.say("Ann", "Oslo") == ["done"]
        assert group.platform.sent[-1].closes == (where,)
        assert await group.say("Ann", "/rain") == ["Where?"]


async def test_what_was_asked_in_private_is_not_repeated_in_the_group() -> None:
    place, gone = rain(), wipe()
    async with a_group([place.spec, gone.spec]) as group:
        await group.say("Ann", "/wipe", private=True)
        assert await group.say("Ann", "/rain") == ["(I've dropped my earlier question.)\nWhere?"]


async def test_a_reply_to_a_closed_question_closes_its_buttons() -> None:
    gone = wipe()
    async with a_group([gone.spec]) as group:
        await group.say("Ann", "/wipe")
        really = latest(group)
        await group.clock.advance(301)
        assert await group.say("Ann", "yes", reply_to=really) == [CLOSED]
        assert group.platform.sent[-1].closes == (really.native_id,)
