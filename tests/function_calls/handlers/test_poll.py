from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from function_calls.handlers.group import poll
from function_calls.schema.commands import arguments_of, plan_for
from services.chats.polls import MOST_OPEN, Polls
from services.clock import VirtualClock
from services.pictures import Pictures
from services.refs import ChatRef, ErrorCode, Role
from tests.fakes.builders import a_member
from tests.fakes.sqlite_store import a_store
from tests.function_calls.handlers.running import Functions, text_of

WORK = ChatRef("test", "bot", "work")
LUNCH: dict[str, Any] = {"question": "Lunch?", "options": ["pizza", "pasta", "sushi"]}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def functions(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Functions]:
    async with a_store(tmp_path, clock) as store:
        yield Functions(poll, Polls(store, clock), Pictures())


@pytest.mark.requirement("D13", "D32", "D33", "D56")
async def test_a_poll_is_asked_voted_on_and_closed(functions: Functions) -> None:
    asked = await functions.run("poll_create", **LUNCH)
    assert text_of(asked).splitlines()[:4] == ["📊 Poll 1: Lunch?", "1. pizza", "2. pasta", "3. sushi"]
    assert text_of(await functions.run("poll_vote", option="2", by="Bob")).splitlines()[0] == "Bob votes for pasta."
    await functions.run("poll_vote", option="Pasta", by="Cem")
    await functions.run("poll_vote", option="piz", by="Dee")
    assert text_of(await functions.run("poll_results")).splitlines() == [
        "📊 Poll 1: Lunch?",
        "1. pizza: 1 (33%)",
        "2. pasta: 2 (67%)",
        "3. sushi: 0 (0%)",
        "pasta is ahead.",
    ]
    closed = text_of(await functions.run("poll_close"))
    assert (closed.splitlines()[0], closed.splitlines()[-1]) == ("📊 Poll 1 is closed: Lunch?", "pasta wins.")
    late = await functions.run("poll_vote", option="1", by="Eve")
    assert late.error is not None
    assert late.error.code is ErrorCode.REFUSED


async def test_every_option_is_a_button_that_is_a_command_line_of_this_poll(functions: Functions) -> None:
    await functions.run("poll_create", question="Dinner?", options=["soup", "rice"])
    lunch = await functions.run("poll_create", **LUNCH)
    choices = lunch.messages[0].choices
    assert [choice.label for choice in choices] == ["pizza", "pasta", "sushi"]
    command, _, line = choices[1].value.partition(" ")
    spec = functions.specs["poll_vote"]
    assert command.removeprefix("/") in spec.command.words
    await functions.run("poll_create", question="Later?", options=["a", "b"])
    voted = await functions.run("poll_vote", **arguments_of(plan_for(spec), line))
    assert voted.data["question"] == "Lunch?"
    assert voted.data["votes"] == {"pizza": 0, "pasta": 1, "sushi": 0}


async def test_a_member_has_one_vote_and_may_change_it(functions: Functions) -> None:
    await functions.run("poll_create", **LUNCH)
    await functions.run("poll_vote", option="1")
    await functions.run("poll_vote", option="3")
    assert (await functions.run("poll_vote", option="3")).data["votes"] == {"pizza": 0, "pasta": 0, "sushi": 1}


async def test_a_tie_names_all_who_lead(functions: Functions) -> None:
    await functions.run("poll_create", **LUNCH)
    assert text_of(await functions.run("poll_results")).endswith("Nobody has voted yet.")
    await functions.run("poll_vote", option="1", by="Ann")
    await functions.run("poll_vote", option="3", by="Bob")
    assert text_of(await functions.run("poll_results")).endswith("It is a tie between pizza and sushi.")
    assert text_of(await functions.run("poll_results", language="zh")).endswith("pizza和sushi票数相同。")


async def test_polls_of_one_chat_are_not_seen_in_another(functions: Functions) -> None:
    await functions.run("poll_create", **LUNCH)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("poll_vote", {"option": "1"}),
        ("poll_results", {}),
        ("poll_close", {"poll": 1}),
    ]
    for name, raw in calls:
        result = await functions.run(name, chat=WORK, by=a_member("Eve", Role.OWNER), **raw)
        assert result.error is not None
        assert result.error.code is ErrorCode.NOT_FOUND
    assert (await functions.run("poll_results")).data["votes"] == {"pizza": 0, "pasta": 0, "sushi": 0}


async def test_a_run_that_is_repeated_starts_no_second_poll(functions: Functions) -> None:
    first = await functions.run("poll_create", key="turn-7:0", **LUNCH)
    assert await functions.run("poll_create", key="turn-7:0", **LUNCH) == first
    assert (await functions.run("poll_create", **LUNCH)).data["poll"] == 2


async def test_a_run_that_is_repeated_closes_no_other_poll(functions: Functions) -> None:
    await functions.run("poll_create", question="Dinner?", options=["soup", "rice"])
    await functions.run("poll_create", **LUNCH)
    first = await functions.run("poll_close", key="turn-7:0")
    assert await functions.run("poll_close", key="turn-7:0") == first
    assert (await functions.run("poll_results", poll=1)).data["open"] is True


async def test_only_who_asked_or_a_moderator_closes_a_poll(functions: Functions) -> None:
    await functions.run("poll_create", by="Ann", **LUNCH)
    refused = await functions.run("poll_close", by="Bob")
    assert refused.error is not None
    assert (refused.error.code, "Ann" in refused.error.text) == (ErrorCode.REFUSED, True)
    assert (await functions.run("poll_close", by=a_member("Bob", Role.MODERATOR))).data["open"] is False


@pytest.mark.parametrize(
    "options",
    [["only one"], ["same", "SAME "], [f"option {number}" for number in range(11)], ["x" * 101, "y"], [" ", ""]],
)
async def test_a_poll_needs_two_to_ten_different_options(functions: Functions, options: list[str]) -> None:
    result = await functions.run("poll_create", question="Which?", options=options)
    assert result.error is not None
    assert (result.error.code, result.error.fields) == (ErrorCode.BAD_ARGUMENTS, ("options",))


async def test_an_option_that_is_not_there_is_answered_with_the_options(functions: Functions) -> None:
    await functions.run("poll_create", **LUNCH)
    for option in ("4", "0", "p", "burger"):
        result = await functions.run("poll_vote", option=option)
        assert result.error is not None
        assert result.error.text.splitlines()[1:] == ["1. pizza", "2. pasta", "3. sushi"]


async def test_too_many_open_polls_are_refused(functions: Functions) -> None:
    for _ in range(MOST_OPEN):
        await functions.run("poll_create", **LUNCH)
    result = await functions.run("poll_create", **LUNCH)
    assert result.error is not None
    assert result.error.code is ErrorCode.REFUSED


async def test_closed_polls_and_their_votes_are_forgotten_after_ninety_days(
    functions: Functions, clock: VirtualClock
) -> None:
    await functions.run("poll_create", **LUNCH)
    await functions.run("poll_vote", option="1")
    await functions.run("poll_close")
    await clock.advance(91 * 86_400)
    assert (await functions.run("poll_create", **LUNCH)).data["poll"] == 1
    assert (await functions.run("poll_results", poll=1)).data["votes"] == {"pizza": 0, "pasta": 0, "sushi": 0}


async def test_polls_are_for_groups(functions: Functions) -> None:
    assert {spec.access.scope for spec in functions.specs.values()} == {"group"}
