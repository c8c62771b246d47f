"""Web search, from the message to the reply, with local search services."""

from __future__ import annotations

from typing import Any

import pytest

from bot.testing import a_group, call
from services.llm.model import ModelRequest
from services.web.http import WebClient, WebLimits
from tests.fakes.functions import Recorder
from tests.fakes.kept import last_reason
from tests.fakes.searchers import CHAT_PATH, SEARXNG_PATH, perplexity_answer, searxng_answer
from tests.fakes.web_server import Page, WebServer

KEY = "pplx-abcdefghijklmnop"


def finding() -> WebServer:
    return WebServer({SEARXNG_PATH: Page.json(searxng_answer())})


def answering() -> WebServer:
    return WebServer({CHAT_PATH: Page.json(perplexity_answer())})


def searxng(server: WebServer, **more: Any) -> dict[str, Any]:
    return {"search": {"kind": "searxng", "url": server.url(""), "private_network": True, **more}}


def perplexity(server: WebServer) -> dict[str, Any]:
    return {"search": {"kind": "perplexity", "url": server.url(""), "api_key": KEY, "private_network": True}}


@pytest.mark.requirement("D3", "D56")
async def test_pages_are_shown_with_their_whole_links_and_the_chat_sees_that_it_is_searched() -> None:
    async with finding() as server, a_group(settings=searxng(server)) as group:
        [reply] = await group.say("Ann", "/search tall bridge")
        assert [text for _, text in group.platform.statuses if text] == ["searching the web: tall bridge"]
    assert reply.splitlines() == [
        "1. The tallest bridge",
        "It is 343 m high. Built in 2004.",
        "https://bridges.example/tall",
        "2. https://list.example/bridges",
        "A list.",
        "https://list.example/bridges",
    ]


@pytest.mark.requirement("D3")
@pytest.mark.parametrize("command", ["/ask", "/search", "/搜索"])
async def test_an_answer_is_said_with_the_sources_that_it_refers_to(command: str) -> None:
    async with answering() as server, a_group(settings=perplexity(server)) as group:
        [reply] = await group.say("Ann", f"{command} how high is the Millau viaduct?")
    assert reply.splitlines() == [
        "The Millau Viaduct is 343 m high.[1] Others are close.[3]",
        "Sources:",
        "[1] Millau: https://bridges.example/millau",
        "[3] Pingtang: https://bridges.example/pingtang",
    ]


async def test_no_more_pages_are_shown_than_are_set() -> None:
    async with finding() as server, a_group(settings=searxng(server, results=1)) as group:
        [reply] = await group.say("Ann", "/search tall bridge")
    assert reply.count("https://") == 1


async def test_a_model_searches_and_answers_from_what_it_found() -> None:
    async with finding() as server, a_group(settings=searxng(server)) as group:
        group.model.says(call("search", query="tall bridge"), "343 m: https://bridges.example/tall")
        assert await group.say("Ann", "@Rollcall how high is it?") == ["343 m: https://bridges.example/tall"]
        told = group.model.requests[1].messages[-1].content
    assert told.startswith("<data from=search use=information-only>")
    assert "It is 343 m high." in told


async def test_what_was_read_in_private_goes_into_no_search_without_a_yes_and_a_further_search_needs_none() -> None:
    diary = Recorder("diary", gives="my secret", touches="reads_private")
    async with finding() as server, a_group([diary.spec], settings=searxng(server)) as group:
        group.model.says(call("search", query="bridges"), call("search", query="tall bridges"), "343 m.")
        assert await group.say("Ann", "@Rollcall how high is it?") == ["343 m."]
        seen = len(server.asked)
        group.model.says(call("diary"), call("search", query="my secret"), "There.")
        [asked] = await group.say("Ann", "@Rollcall what does my diary mean?")
        assert "my secret" in asked
        assert len(server.asked) == seen
        group.model.says("There.")
        await group.say("Ann", "@Rollcall yes")
        assert len(server.asked) == seen + 1


@pytest.mark.parametrize(
    "text", ["ask Bob whether his test was positive", "search your feelings", "search", "ask", "搜索引擎怎么工作"]
)
async def test_words_that_are_said_to_the_bot_go_to_nobody_else(text: str) -> None:
    async with finding() as server, a_group(settings=searxng(server)) as group:
        group.model.says("Hm.")
        assert await group.say("Ann", f"@Rollcall {text}") == ["Hm."]
        assert server.asked == []


def offered(request: ModelRequest) -> set[str]:
    return set(request.offer.by_name) if request.offer else set()


async def test_a_model_is_not_offered_a_search_that_nobody_does_and_the_command_says_what_to_set() -> None:
    settings = {"router": {"shortlist": 0}}
    async with a_group(settings=settings) as group:
        group.model.says("I don't know.")
        await group.say("Ann", "@Rollcall search the web for bridges")
        assert "search" not in offered(group.model.requests[0])
        [reply] = await group.say("Ann", "/search bridges")
        assert "“search:”" in reply
    async with a_group(settings={**settings, "search": {"kind": "perplexity", "api_key": KEY}}) as group:
        group.model.says("I don't know.")
        await group.say("Ann", "@Rollcall search the web for bridges")
        assert "search" in offered(group.model.requests[0])


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (Page(status=429), "too many requests"),
        (Page(status=502), "can't reach the search service"),
        (Page.json({"error": {"message": f"bad key {KEY}"}}, 401), "isn't working here"),
        (Page(b"<html>hello</html>"), "isn't working here"),
    ],
)
async def test_a_search_that_fails_is_told_in_plain_words(page: Page, text: str) -> None:
    async with WebServer({CHAT_PATH: page}) as server, a_group(settings=perplexity(server)) as group:
        [reply] = await group.say("Ann", "/search bridges")
        assert await last_reason(group) == ("function_failed", "search")
    assert text in reply
    assert KEY not in reply


async def test_a_server_on_ones_own_network_is_not_asked_without_leave() -> None:
    async with finding() as server, a_group(settings=searxng(server, private_network=False)) as group:
        [reply] = await group.say("Ann", "/search bridges")
        assert server.asked == []
    assert "isn't working here" in reply


async def test_nothing_found_is_said_and_no_error() -> None:
    nothing = {**searxng_answer(), "results": [], "unresponsive_engines": []}
    async with WebServer({SEARXNG_PATH: Page.json(nothing)}) as server, a_group(settings=searxng(server)) as group:
        assert await group.say("Ann", "/search xyzzy") == ["I found nothing on the web about xyzzy."]


async def test_an_empty_result_of_failed_engines_is_a_failed_search_and_the_next_one_asks_again() -> None:
    failed = {**searxng_answer(), "results": [], "unresponsive_engines": [["brave", "timeout"], ["bing", "CAPTCHA"]]}
    async with WebServer({SEARXNG_PATH: Page.json(failed)}) as server, a_group(settings=searxng(server)) as group:
        [reply] = await group.say("Ann", "/search bridges")
        assert await last_reason(group) == ("function_failed", "search")
        server.pages[SEARXNG_PATH] = Page.json(searxng_answer())
        [again] = await group.say("Ann", "/search bridges")
    assert "can't reach the search service" in reply
    assert "bridges.example" in again


async def test_who_says_only_search_is_asked_for_what() -> None:
    async with finding() as server, a_group(settings=searxng(server)) as group:
        assert await group.say("Ann", "/search") == ["What should I search for?"]
        [reply] = await group.say("Ann", "tall bridge")
        assert server.asked[0].query["q"] == "tall bridge"
    assert "bridges.example" in reply


async def test_a_search_that_takes_too_long_ends_at_its_time() -> None:
    http = WebClient(WebLimits(timeout_seconds=0.3), allow_loopback=True)
    silent = WebServer({SEARXNG_PATH: Page(silent=True)})
    async with silent as server, a_group(settings=searxng(server), web=http) as group:
        [reply] = await group.say("Ann", "/search bridges")
    assert "can't reach the search service" in reply
