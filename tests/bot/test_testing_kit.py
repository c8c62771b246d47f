"""The test kit is short to use, and its errors explain what is wrong with a function."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog
from pydantic import BaseModel, Field

import function_calls.handlers.small.dice
from bot.testing import TestPlatform, a_group, call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.chats.todo import TodoLists
from services.llm.model import ModelAnswer, ModelError
from services.refs import ErrorCode


class Town(BaseModel, frozen=True):
    """Where."""

    city: str = Field(description="The town")


@tool_function(commands=["temperature"], examples=["how warm is it in {city}"])
async def temperature(context: MessageContext, args: Town) -> str:
    """Say how warm it is in a town."""
    return f"{args.city}: 3 degrees"


@tool_function(commands=["lists"])
async def lists(context: MessageContext, *, todo: TodoLists) -> str:
    """Say whether there is a list."""
    return type(todo).__name__


async def test_a_conversation_of_a_group_takes_a_few_lines() -> None:
    async with a_group([temperature]) as group:
        group.model.says(call("temperature", city="Oslo"), "Put on a coat.")
        assert await group.say("Ann", "@Rollcall how warm is it in Oslo?") == ["Put on a coat."]
        assert await group.say("Bob", "/temperature Bergen") == ["Bergen: 3 degrees"]
        assert await group.say("Bob", "so cold") == []


async def test_a_function_gets_the_services_that_it_names() -> None:
    async with a_group([lists]) as group:
        assert await group.say("Ann", "/lists") == ["TodoLists"]


async def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="neither a marked function nor a FunctionSpec"):
        async with a_group([function_calls.handlers.small.dice]):
            pass


async def test_a_script_that_has_run_out_says_so() -> None:
    async with a_group() as group:
        await group.say("Ann", "@Rollcall hello")
        assert len(group.model.requests) == 1
        with pytest.raises(ModelError, match="no more answers"):
            await group.model.complete(group.model.requests[0])


async def test_the_model_says_texts_calls_several_calls_answers_and_errors() -> None:
    async with a_group([temperature]) as group:
        towns = [call("temperature", city="Oslo"), call("temperature", city="Bergen")]
        group.model.says(towns, ModelAnswer(text="Both are cold."))
        assert await group.say("Ann", "@Rollcall Oslo and Bergen?") == ["Both are cold."]
        results = [message for message in group.model.requests[1].messages if message.role == "tool"]
        assert len({message.call_id for message in results}) == 2
        group.model.says(ModelError(ErrorCode.TIMEOUT, "slow"))
        assert len(await group.say("Ann", "@Rollcall hello")) == 1


async def test_a_home_that_is_given_stays_and_dice_fall_the_same_each_time(tmp_path: Path) -> None:
    rolled = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        async with a_group(home=tmp_path / name) as group:
            rolled.append(await group.say("Ann", "/roll 3d6"))
        assert (tmp_path / name / "rollcall.sqlite").exists()
    assert rolled[0] == rolled[1]
    assert rolled[0]


async def test_a_crash_loses_what_was_not_durable_and_nothing_else(tmp_path: Path) -> None:
    async with a_group([temperature], home=tmp_path) as group:
        # It reads the store, so it starts after its message is committed.
        await group.hear("Ann", "/roles")
        await group.crash()
    platform = TestPlatform()
    async with a_group([temperature], home=tmp_path, platform=platform) as group:
        await group.settle()
    assert [one.text.partition("\n")[0] for one in platform.sent] == ["Your role in this chat: member."]


async def test_the_time_stands_still_until_the_test_moves_it() -> None:
    async with a_group() as group:
        before = group.clock.now()
        await group.say("Ann", "/id")
        assert group.clock.now() == before


async def test_an_exception_of_a_handler_is_logged_from_its_own_line_on_without_local_variables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @tool_function(commands=["boom"])
    async def boom(context: MessageContext) -> str:
        """Go wrong."""
        password = "hunter" + "2"
        return str(len(password) // 0)

    before = structlog.get_config()
    structlog.reset_defaults()
    try:
        async with a_group([boom]) as group:
            await group.say("Ann", "/boom")
        assert not structlog.is_configured()
    finally:
        structlog.configure(**before)
    printed = capsys.readouterr().out
    assert "ZeroDivisionError" in printed
    assert "in boom" in printed
    assert "hunter2" not in printed
    assert "invocation.py" not in printed
    assert len(printed.splitlines()) <= 8
