"""A whole daemon with more functions than fit into one model request."""

from __future__ import annotations

import pytest

from bot.testing import call
from tests.fakes.functions import Recorder
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol

SETTINGS = {"chats": {"allow": ["*"]}, "router": {"shortlist_above": 12}}


async def test_a_function_that_no_word_of_the_message_names_is_found_called_and_kept_on_offer() -> None:
    async with a_group(settings=SETTINGS) as group:
        group.model.says(call("find_functions", query="flip a coin"), call("flip_coin"), "There you are.", "Hm.")
        await group.say("Ann", "@Rollcall surprise me")
        await group.say("Ann", "@Rollcall oh")

        first, second, third, later = (request.offer for request in group.model.requests)
        assert first is not None
        assert second is not None
        assert list(first.by_name) == ["help", "find_functions"]
        assert list(second.by_name)[:3] == ["help", "find_functions", "flip_coin"]
        assert second is third is later


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_what_was_found_is_on_offer_still_when_a_question_came_in_between() -> None:
    async with a_group(settings=SETTINGS) as group:
        found = call("find_functions", query="open a poll, a vote")
        group.model.says(found, call("poll_create", question="Pizza?"), "Open.")
        await group.say("Ann", "@Rollcall surprise us")
        assert len(group.model.requests) == 2
        await group.say("Ann", "yes; no")

        *_, asked, resumed = (request.offer for request in group.model.requests)
        assert asked is resumed
        assert asked is not None
        assert "poll_create" in asked.by_name


async def test_what_was_found_in_earlier_turns_does_not_pile_up_where_functions_have_a_memory() -> None:
    many = [
        Recorder(f"gadget{number}", commands=[f"gadget{number}"], description=f"Does thing{number}.").spec
        for number in range(60)
    ]
    filters = {"turn": [{"memory": {"minutes": 600}}]}
    async with a_group(many, settings={"filters": filters, "router": {"shortlist": 8}}) as group:
        for number in range(0, 60, 6):
            group.model.says(*[call("find_functions", query=f"gadget{number + more}") for more in range(2)], "Well.")
            await group.say("Ann", "@Rollcall hello there")
        group.model.says("Hi.")
        await group.say("Ann", "@Rollcall hello")
        last = group.model.requests[-1].offer
    assert last is not None
    assert len(last.functions) <= 10
