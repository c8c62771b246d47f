"""Model rounds that were interrupted by a question resume as if there had been no interruption."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bot.testing import call
from function_calls.questions.open_questions import open_from_json, open_to_json
from services.refs import Role
from tests.bot.test_approvals import code_in, needing, post
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import call as a_call
from tests.fakes.model import calls, says
from tests.fakes.wired_model import a_group
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.function_calls.routing import Routing, said

pytestmark = [pytest.mark.requirement("D28"), pytest.mark.usefixtures("each_protocol")]

ADMIN: dict[str, Any] = {"role": Role.ADMIN}


async def test_what_is_to_happen_once_happens_once_before_and_after_a_yes_that_is_waited_for() -> None:
    pay, held_up = Recorder("pay", CITY, effect="once", gives="paid"), post()
    async with a_group([pay.spec, held_up.spec], settings=needing()) as group:
        group.model.says([call("pay", city="Oslo"), call("post", city="Oslo")])
        code = code_in(await group.say("Ann", "@Rollcall pay and post"))
        group.model.says([call("pay", city="Oslo"), call("post", city="Oslo")], "All done.")
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted", "All done."]
    assert (pay.runs, held_up.runs) == ([{"city": "Oslo"}], [{"city": "Oslo"}])


@pytest.mark.parametrize("again", [{}, {"city": "Oslo"}], ids=["as it was called", "as it was answered"])
async def test_a_call_that_an_answer_completed_is_not_run_again(again: dict[str, Any]) -> None:
    pay = Recorder("pay", CITY, effect="once", gives="paid", ask={"city": "Where?"})
    async with a_group([pay.spec]) as group:
        group.model.says(call("pay"))
        assert await group.say("Ann", "@Rollcall pay") == ["Where?"]
        group.model.says(call("pay", **again), "All done.")
        assert await group.say("Ann", "Oslo") == ["paid", "All done."]
    assert pay.runs == [{"city": "Oslo"}]


async def test_a_call_that_was_refused_by_a_person_is_not_asked_for_again() -> None:
    held_up = post()
    async with a_group([held_up.spec], settings=needing()) as group:
        group.model.says(call("post", city="Oslo"))
        code = code_in(await group.say("Ann", "@Rollcall post it"))
        group.model.says(call("post", city="Oslo"), "It was not wanted.")
        heard = await group.say("Bob", f"no {code}", **ADMIN)
        assert (len(heard), heard[-1]) == (2, "It was not wanted.")
    assert held_up.runs == []


async def test_the_calls_before_a_question_count_in_the_rounds_after_it() -> None:
    note, rain = Recorder("note", {"n": {"type": "integer"}}), Recorder("rain", CITY, ask={"city": "Where?"})
    first = calls(a_call("note", "a", n=1), a_call("note", "b", n=2), a_call("rain", "c"))
    then = calls(a_call("note", "d", n=3), a_call("note", "e", n=4))
    routing = Routing(note, rain, script=[first, then, says("So far.")], settings={"max_calls": 4})
    asked = await routing.hears("note and rain")
    assert said(await routing.hears_answer(asked, "Oslo")) == ["So far."]
    assert (len(note.runs), len(rain.runs)) == (3, 1)


async def test_a_model_that_runs_in_a_circle_is_stopped_across_a_question() -> None:
    look, rain = Recorder("look", gives=("ok", "nothing new")), Recorder("rain", CITY, ask={"city": "Where?"})
    script = [calls(a_call("look", f"c{n}")) for n in range(2)]
    ask = calls(a_call("look", "c2"), a_call("rain", "c3"))
    after = [calls(a_call("look", f"c{n}"), a_call("rain", f"r{n}", city="Oslo")) for n in range(4, 6)]
    routing = Routing(look, rain, script=[*script, ask, *after, says("That is all.")], settings={"max_rounds": 9})
    asked = await routing.hears("look")
    assert said(await routing.hears_answer(asked, "Oslo")) == ["That is all."]
    assert routing.model.requests[-1].tool_choice == "none"


async def test_a_question_that_an_older_release_stored_is_still_answered() -> None:
    rain = Recorder("rain", CITY, ask={"city": "Where?"}, gives=("ok", "wet"))
    routing = Routing(rain, script=[calls(a_call("rain")), says("It rains.")])
    asked = await routing.hears("rain")
    assert asked.question is not None
    stored = orjson.loads(orjson.dumps(open_to_json(asked.question)))
    del stored["remembered"]
    outcome = await routing.hears("Oslo", answering=(open_from_json(7, stored), "Oslo"))
    assert (said(outcome), rain.runs) == (["It rains."], [{"city": "Oslo"}])
