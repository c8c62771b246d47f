"""Runs that the member cancels instead of answering: messages to the chat and results for the model."""

from __future__ import annotations

from typing import Any

import pytest

from bot.testing import a_group, call
from config.texts import Texts
from function_calls.spec import FunctionResult, Message
from services.refs import MemberRef
from tests.fakes.asking import Asking
from tests.fakes.functions import Recorder
from tests.fakes.kept import last_reason

EN = Texts().of("en")
DROPPED = EN.say("questions.dropped")
BOB = MemberRef("test", "bot", "bob")


def asks_then(*said: Message, fails: bool = False, **options: Any) -> Recorder:
    """A function that asks for a name; after a cancellation it returns `said` or fails."""

    async def does(context: Any, arguments: Any, own: Any) -> FunctionResult:
        if own.resumed is None:
            return FunctionResult.ask("Your name?")
        if fails:
            raise RuntimeError("gone")
        return FunctionResult(messages=said)

    return Recorder("fill", does=does, **options)


PUT_AWAY = (Message("psst", to=BOB), Message("Put away."), Message("Bye."))


async def test_after_a_command_the_chat_hears_each_of_its_messages_where_it_belongs() -> None:
    fill = asks_then(*PUT_AWAY, commands=["fill"])
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill")
        assert await group.say("Ann", "cancel") == ["psst", "Put away.", "Bye."]
        assert [one.private_to for one in group.platform.sent] == [None, BOB, None, None]
        assert await last_reason(group) == ("answered_question", "fill")


async def test_what_a_cancelled_run_says_to_somebody_else_no_model_reads() -> None:
    async def does(context: Any, arguments: Any, own: Any) -> FunctionResult:
        if own.resumed is None:
            return FunctionResult.ask("Your name?")
        return FunctionResult(messages=(Message("psst", to=BOB), Message("Put away.")))

    fill = Recorder("fill", does=does)
    async with a_group([fill.spec]) as group:
        group.model.says(call("fill"), "As you like.")
        assert await group.say("Ann", "@Rollcall fill it in please") == ["Your name?"]
        assert await group.say("Ann", "cancel") == ["psst", "Put away.", "As you like."]
        told = group.model.requests[-1].messages[-1].content
    assert ("Put away." in told, "psst" in told) == (True, False)


async def test_a_model_is_told_of_one_that_has_nothing_to_say_in_the_bots_words() -> None:
    fill = Asking(commands=[], on_cancel=None)
    async with a_group([fill.spec]) as group:
        group.model.says(call("fill"), "As you like.")
        await group.say("Ann", "@Rollcall fill it in please")
        assert await group.say("Ann", "cancel") == ["As you like."]
        assert DROPPED in group.model.requests[-1].messages[-1].content


@pytest.mark.parametrize("by_model", [False, True])
async def test_of_one_that_fails_nobody_is_told_that_it_was_called_off(by_model: bool) -> None:
    fill = asks_then(fails=True, commands=["fill"], effect="once")
    unknown = EN.say("failures.unknown_outcome", name="/fill")
    async with a_group([fill.spec]) as group:
        if by_model:
            group.model.says(call("fill"), "I do not know.")
        await group.say("Ann", "@Rollcall fill it in please" if by_model else "/fill")
        said = await group.say("Ann", "cancel")
        assert said[0] == unknown
        assert (await last_reason(group))[0] == ("function_failed" if by_model else "unknown_outcome")
        if by_model:
            assert '"unknown_outcome"' in group.model.requests[-1].messages[-1].content
