"""Data stored per member, and questions that other members may answer."""

from __future__ import annotations

from typing import Any

from bot.testing import a_group, call
from function_calls.spec import FunctionResult
from tests.bot.test_approvals import ADMIN, asked, code_in, needing, post
from tests.fakes.functions import CITY, Recorder


async def notes(context: Any, arguments: Any, own: Any) -> FunctionResult:
    return FunctionResult(data="noted", context_updates={"note": arguments["city"]})


async def shows(context: Any, arguments: Any, own: Any) -> str:
    return str(own.state.get("note"))


NOTE = Recorder("note", CITY, does=notes, effect="idempotent", touches="stays_here", commands=["note"]).spec
SHOW = Recorder("show", does=shows, commands=["show"]).spec


def remembering(by: str) -> dict[str, Any]:
    return {**needing(by), "filters": {"turn": [{"memory": {"minutes": 60}}]}}


async def test_whoever_allows_a_run_does_not_get_what_is_remembered_for_the_asker() -> None:
    async with a_group([NOTE, SHOW, post().spec], settings=remembering("admin")) as group:
        group.model.says([call("note", city="Ann's"), call("post", city="Oslo")])
        code = code_in(await group.say("Ann", "@Rollcall do it"))
        group.model.says("Done.")
        await group.say("Bob", f"approve {code}", **ADMIN)
        assert await group.say("Bob", "/show", **ADMIN) == ["None"]
        assert await group.say("Ann", "/show") == ["Ann's"]


async def test_an_allowed_run_finds_and_changes_what_is_remembered_for_the_asker() -> None:
    async def counts(context: Any, arguments: Any, own: Any) -> FunctionResult:
        return FunctionResult.say(f"after {own.state.get('note')}", data=None)

    function = post(does=counts)
    async with a_group([NOTE, SHOW, function.spec], settings=remembering("admin")) as group:
        code = await asked(group)
        await group.say("Bob", "/note Bob's", **ADMIN)
        await group.say("Ann", "/note Ann's")
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["after Ann's"]


async def test_the_answer_to_an_old_question_brings_no_old_state_back() -> None:
    async with a_group([NOTE, SHOW, post().spec], settings=remembering("member")) as group:
        await group.say("Ann", "/note old")
        code = await asked(group)
        await group.say("Ann", "/note new")
        assert await group.say("Ann", f"approve {code}") == ["posted"]
        assert await group.say("Ann", "/show") == ["new"]


async def test_what_the_turn_itself_had_changed_before_it_asked_is_there_when_it_goes_on() -> None:
    function = post(does=shows)
    async with a_group([NOTE, function.spec], settings=remembering("admin")) as group:
        group.model.says([call("note", city="here"), call("post", city="Oslo")])
        code = code_in(await group.say("Ann", "@Rollcall do it"))
        group.model.says("Done.")
        await group.clock.advance(300)
        assert "here" in (await group.say("Bob", f"approve {code}", **ADMIN))[0]
