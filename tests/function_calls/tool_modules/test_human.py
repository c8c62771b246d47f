"""A model asks the member and continues with the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from bot.testing import Group, a_group, call
from config.texts import Texts
from function_calls.call import Path as Way
from function_calls.spec import FunctionResult
from function_calls.tool_modules import human
from services.refs import ErrorCode
from tests.fakes.functions import Recorder
from tests.fakes.kept import last_reason
from tests.function_calls.routing import Routing

EN = Texts().of("en")
ASK = human.human_input


def told(group: Group) -> Any:
    """Result of its call in the model request."""
    return orjson.loads(group.model.requests[-1].messages[-1].content)


@pytest.mark.requirement("E45")
async def test_the_model_is_given_the_members_answer_after_a_restart_too(tmp_path: Path) -> None:
    async with a_group([ASK], home=tmp_path) as group:
        group.model.says(call("human_input", question=" Which colour? "))
        assert await group.say("Ann", "@Rollcall buy paint") == ["Which colour?"]
        assert await last_reason(group) == ("asked", "human_input")
    async with a_group([ASK], home=tmp_path) as group:
        assert await group.say("Bob", "green") == []
        group.model.says("Blue it is.")
        assert await group.say("Ann", "blue, please") == ["Blue it is."]
        assert told(group) == {
            "ok": True,
            "result": {"answer": "blue, please", "by": "Ann"},
            "said_in_chat": ["Which colour?"],
        }


@pytest.mark.requirement("E45")
async def test_choices_are_buttons_and_other_words_will_do() -> None:
    async with a_group([ASK]) as group:
        for said, answer in (("BLUE", "blue"), ("green", "green")):
            group.model.says(call("human_input", question="Which?", choices=["blue", "red", "blue "]), "Good.")
            await group.say("Ann", "@Rollcall buy paint")
            assert [one.value for one in group.platform.sent[-1].choices] == ["blue", "red"]
            await group.say("Ann", said)
            assert told(group)["result"]["answer"] == answer


@pytest.mark.requirement("C26")
async def test_the_model_hears_that_the_member_will_not_say() -> None:
    async with a_group([ASK]) as group:
        group.model.says(call("human_input", question="Which?"), "Then I leave it.")
        await group.say("Ann", "@Rollcall buy paint")
        assert await group.say("Ann", "never mind") == ["Then I leave it."]
        assert told(group)["error"] == "cancelled"


async def test_when_nobody_answers_no_model_is_asked_and_nothing_is_said() -> None:
    async with a_group([ASK]) as group:
        group.model.says(call("human_input", question="Which?"))
        await group.say("Ann", "@Rollcall buy paint")
        await group.clock.advance(301)
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        assert (len(group.platform.sent), len(group.model.requests)) == (1, 1)
        assert await last_reason(group) == ("expired", "human_input")


@pytest.mark.requirement("E45")
async def test_it_is_off_unless_an_operator_wants_it_and_no_command() -> None:
    async with a_group() as group:
        assert group.daemon.registry.of("default").find("human_input") is None
    async with a_group([ASK]) as group:
        spec = group.daemon.registry.of("default").find("human_input")
        assert spec is not None
        assert spec.command.words == ()


async def test_another_function_may_ask_through_it() -> None:
    async def paints(context: Any, arguments: Any, own: Any) -> FunctionResult:
        result: FunctionResult = await own.invoke("human_input", {"question": "Which colour?"})
        return result

    paint = Recorder("paint", does=paints, commands=["paint"])
    async with a_group([ASK, paint.spec]) as group:
        assert await group.say("Ann", "/paint") == ["Which colour?"]
        assert orjson.loads((await group.say("Ann", "blue"))[0]) == {"answer": "blue", "by": "Ann"}


async def test_where_nobody_reads_it_is_refused() -> None:
    from function_calls.loading.python_functions import as_spec

    result = await Routing(as_spec(ASK, {})).invoke("human_input", raw={"question": "Which?"}, path=Way.CLI)
    assert result.error is not None
    assert result.error.code is ErrorCode.REFUSED
    assert "Which?" in result.error.text
