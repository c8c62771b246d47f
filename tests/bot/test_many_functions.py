"""A whole daemon with more functions than fit into one model request."""

from __future__ import annotations

from typing import Any

import pytest

from bot.testing import call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from tests.fakes.functions import Recorder
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol

SETTINGS = {"chats": {"allow": ["*"]}, "router": {"shortlist": 9, "function_tokens": 0}}


def offered(group: Any, number: int = -1) -> list[str]:
    """Names of the functions on offer in a request."""
    offer = group.model.requests[number].offer
    assert offer is not None
    return list(offer.by_name)


@tool_function("plural_of_ox", "Tell the plural of ox.")
async def plural_of_ox(context: MessageContext) -> FunctionResult:
    """A function of an operator whose words no message has."""
    return FunctionResult.say("oxen")


async def test_an_operators_function_is_offered_with_every_message() -> None:
    async with a_group([plural_of_ox]) as group:
        for text in ("what do you call more than one of them?", "hello", "你好"):
            group.model.says("Hm.")
            await group.say("Ann", f"@Rollcall {text}")
            assert "plural_of_ox" in offered(group)
            assert {"weather", "todo_add", "reminder_create"} <= {*offered(group)}


async def test_functions_whose_services_are_not_configured_are_offered_once_they_are() -> None:
    feeds = {"news": {"feeds": [{"name": "Town", "url": "https://news.example/feed"}]}}
    for settings, is_offered in ((None, False), (feeds, True)):
        async with a_group(settings=settings) as group:
            group.model.says("Hm.")
            await group.say("Ann", "@Rollcall the headlines, please")
            assert ("news" in offered(group)) is is_offered


async def test_the_lowest_limit_of_the_usable_models_applies() -> None:
    small = {"name": "small", "model": "s", "api_key": "x", "function_tokens": 900}
    unusable = {"name": "unusable", "model": "s", "function_tokens": 100}
    models = [{"name": "large", "model": "l", "api_key": "x"}, small, unusable]
    async with a_group(settings={"models": models}) as group:
        group.model.says("Hm.")
        await group.say("Ann", "@Rollcall hello")
        assert "find_functions" in offered(group)
        assert 4 < len(offered(group)) < 15


async def test_a_request_in_another_language_finds_its_function_beyond_the_limit() -> None:
    async with a_group(settings={"router": {"function_tokens": 1200}}) as group:
        for text, wanted in (
            ("Wie wird das Wetter morgen?", "weather"),
            ("¿qué hora es en Tokio?", "time_in"),
            ("supprime tous mes rappels", "reminder_delete_all"),
            ("清单加上牛奶", "todo_add"),
        ):
            group.model.says("Hm.")
            await group.say("Ann", f"@Rollcall {text}")
            assert wanted in offered(group)


async def test_the_model_is_told_who_has_been_silent_when_it_asks() -> None:
    async with a_group() as group:
        await group.say("Bo", "hello")
        await group.clock.advance(86_400)
        group.model.says(call("members"), "Bo has.")
        assert await group.say("Ann", "@Rollcall who has been silent?") == ["Bo has."]
        assert "Bo: yesterday" in group.model.requests[-1].messages[-1].content


async def test_the_askers_zone_role_and_network_are_stated_in_the_last_message() -> None:
    async with a_group() as group:
        await group.say("Ann", "/timezone New York")
        group.model.says("Hm.")
        await group.say("Ann", "@Rollcall hello")
        first, *_, last = group.model.requests[-1].messages
        assert "For Ann it is Monday 2026-01-05 04:00 (America/New_York). Ann's role: member." in last.content
        assert "Replies are shown as plain text." in last.content
        assert "New_York" not in first.content


async def test_a_time_is_offered_in_words_only_and_other_forms_are_still_accepted() -> None:
    async with a_group() as group:
        group.model.says(call("reminder_create", text="tea", start="2026-01-06T10:00"), "")
        [said] = await group.say("Ann", "@Rollcall remind me of tea")
        offer = group.model.requests[0].offer
        assert offer is not None
        assert {*offer.by_name["reminder_create"].parameters["properties"]} == {"text", "when", "count", "who", "more"}
        assert {*offer.by_name["reminder_change"].parameters["properties"]} == {"which", "text", "when"}
        assert "tomorrow, Tuesday 6 January at 10:00" in said


async def test_a_function_that_no_word_of_the_message_names_is_found_called_and_stays_on_offer() -> None:
    async with a_group(settings=SETTINGS) as group:
        group.model.says(call("find_functions", query="vote in the poll"), call("poll_vote"), "There you are.", "Hm.")
        await group.say("Ann", "@Rollcall surprise me")
        await group.say("Ann", "@Rollcall oh")

        assert offered(group, 0)[:2] == ["help", "find_functions"]
        assert "poll_vote" not in offered(group, 0)
        assert offered(group, 1)[: len(offered(group, 0))] == offered(group, 0)
        assert "poll_vote" in offered(group, 1)
        assert "poll_vote" in offered(group, -1)


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
    async with a_group(many, settings={"filters": filters, "router": {"shortlist": 8, "function_tokens": 0}}) as group:
        for number in range(0, 60, 6):
            group.model.says(*[call("find_functions", query=f"gadget{number + more}") for more in range(2)], "Well.")
            await group.say("Ann", "@Rollcall hello there")
        group.model.says("Hi.")
        await group.say("Ann", "@Rollcall hello")
        assert len(offered(group)) <= 10
