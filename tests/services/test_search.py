from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from structlog.testing import capture_logs

from services.clock import VirtualClock
from services.refs import ErrorCode, RequestProblem
from services.web.http import WebClient, WebError, WebLimits
from services.web.search import CACHED_ANSWERS, Answer, Hit, Searcher, SearchingModel, SearXNG, WebSearch
from tests.fakes.searchers import (
    CHAT_PATH,
    SEARXNG_PATH,
    a_completion,
    annotated_answer,
    perplexity_answer,
    searxng_answer,
)
from tests.fakes.web_server import Page, WebServer

KEY = SecretStr("pplx-abcdefghijklmnop")
HTTP = WebLimits(timeout_seconds=0.5)


def a_searxng(server: WebServer, key: str = "") -> SearXNG:
    return SearXNG(WebClient(HTTP, allow_loopback=True), server.url("/"), SecretStr(key))


def a_model(server: WebServer) -> SearchingModel:
    return SearchingModel(WebClient(HTTP, allow_loopback=True), server.url(""), KEY, "sonar")


def a_search(searcher: Searcher | None, clock: VirtualClock) -> WebSearch:
    return WebSearch(searcher, clock, results=5, cache_seconds=600)


async def asked_of_model(answer: Any, count: int = 5) -> Answer:
    async with WebServer({CHAT_PATH: Page.json(answer)}) as server:
        return await a_model(server).search("how high is it?", count, "en")


# SearXNG


async def test_searxng_is_asked_in_json_and_its_pages_are_given_once_each_as_plain_text() -> None:
    async with WebServer({SEARXNG_PATH: Page.json(searxng_answer())}) as server:
        answer = await a_searxng(server).search("tall bridge", 5, "zh")
        [asked] = server.asked
    assert asked.query == {"q": "tall bridge", "format": "json", "language": "zh"}
    assert "authorization" not in asked.headers
    assert answer == Answer(
        hits=(
            Hit("The tallest bridge", "https://bridges.example/tall", "It is 343 m high. Built in 2004."),
            Hit("https://list.example/bridges", "https://list.example/bridges", "A list."),
        )
    )


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"answers": ["2"]}, "2"),
        ({"answers": [{"answer": "1 + 1 = 2", "url": None, "engine": "calculator"}]}, "1 + 1 = 2"),
        ({"infoboxes": [{"infobox": "Millau", "content": "A <i>viaduct</i>.", "urls": []}]}, "A viaduct."),
        ({"answers": [None, {"answer": 3}], "infoboxes": "x"}, ""),
    ],
)
async def test_what_searxng_answers_itself_stands_before_its_pages(more: dict[str, Any], text: str) -> None:
    async with WebServer({SEARXNG_PATH: Page.json({**searxng_answer(), **more})}) as server:
        answer = await a_searxng(server, "gate").search("x", 1, "en")
        assert server.asked[0].headers["authorization"] == "Bearer gate"
    assert (answer.text, len(answer.hits)) == (text, 1)


@pytest.mark.parametrize("body", [[], {}, {"results": None}, "text"])
async def test_another_shape_is_a_failure_of_the_search(body: Any) -> None:
    async with WebServer({SEARXNG_PATH: Page.json(body), CHAT_PATH: Page.json(body)}) as server:
        for searcher in (a_searxng(server), a_model(server)):
            with pytest.raises(WebError) as caught:
                await searcher.search("x", 5, "en")
            assert caught.value.code is ErrorCode.FAILED


# Models with web search


async def test_perplexity_is_asked_with_its_key_and_gives_an_answer_with_the_sources_it_refers_to() -> None:
    async with WebServer({CHAT_PATH: Page.json(perplexity_answer())}) as server:
        answer = await a_model(server).search("how high is it?", 5, "en")
        [asked] = server.asked
    body = json.loads(asked.body)
    assert (asked.method, asked.headers["authorization"]) == ("POST", "Bearer pplx-abcdefghijklmnop")
    assert (body["model"], body["messages"][-1]) == ("sonar", {"role": "user", "content": "how high is it?"})
    assert answer.text == "The Millau Viaduct is 343 m high.[1] Others are close.[3]"
    assert answer.hits == [
        Hit("Millau", "https://bridges.example/millau", "343 m", 1),
        Hit("Pingtang", "https://bridges.example/pingtang", "", 3),
    ]


async def test_bare_citations_and_annotations_are_sources_too() -> None:
    bare = {**a_completion("So it is.[2]"), "citations": ["https://a.example/1", "https://www.b.example/2"]}
    assert (await asked_of_model(bare)).hits == [Hit("b.example", "https://www.b.example/2", "", 2)]
    annotated = await asked_of_model(annotated_answer())
    assert annotated.hits == [
        Hit("Millau", "https://bridges.example/millau"),
        Hit("Heights", "https://list.example/"),
    ]


async def test_only_so_many_sources_are_given_and_none_that_is_no_web_page() -> None:
    many = {**a_completion("Yes."), "citations": ["javascript:x", *(f"https://a.example/{n}" for n in range(9))]}
    answer = await asked_of_model(many, 3)
    assert [hit.url for hit in answer.hits] == [f"https://a.example/{n}" for n in range(3)]


async def test_thoughts_are_left_out_parts_are_joined_and_what_is_long_is_cut() -> None:
    assert (await asked_of_model(a_completion("<think>hm\nhm</think>\nYes."))).text == "Yes."
    parts = [{"type": "text", "text": "Yes"}, {"type": "image_url"}, {"type": "text", "text": "."}]
    assert (await asked_of_model(a_completion(parts))).text == "Yes."
    assert len((await asked_of_model(a_completion("word " * 3000))).text) <= 2500


@pytest.mark.parametrize("content", ["", "  ", "<think>for ever", None, 3])
async def test_an_answer_without_words_is_a_failure(content: object) -> None:
    with pytest.raises(WebError) as caught:
        await asked_of_model(a_completion(content))
    assert caught.value.code is ErrorCode.FAILED


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["url", "title", "url_citation", "text", "type"]), inner, max_size=3)
    ),
    max_leaves=8,
)


class Said:
    """A web client with a fixed answer."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def get_json(self, url: str, **more: Any) -> Any:
        return self._answer

    async def post_json(self, url: str, body: Any, **more: Any) -> Any:
        return self._answer


@given(_JSON, _JSON, _JSON)
async def test_whatever_comes_back_is_read_or_refused(content: Any, sources: Any, notes: Any) -> None:
    answer = {
        **a_completion(content, annotations=notes),
        "citations": sources,
        "results": sources,
        "answers": notes,
        "infoboxes": content,
    }
    http: Any = Said(answer)
    for searcher in (SearXNG(http, "http://x.example", KEY), SearchingModel(http, "http://x.example", KEY, "m")):
        try:
            found = await searcher.search("x", 5, "en")
        except WebError:
            continue
        assert all(hit.url.startswith(("http://", "https://")) and hit.title for hit in found.hits)


# Any search service


async def test_the_same_question_is_asked_once_in_ten_minutes() -> None:
    clock = VirtualClock()
    async with WebServer({SEARXNG_PATH: Page.json(searxng_answer())}) as server:
        search = a_search(a_searxng(server), clock)
        await search.search("Tall  bridge", "en")
        await clock.advance(599)
        await search.search(" tall bridge ", "en")
        assert len(server.asked) == 1
        await search.search("tall bridge", "zh")
        await clock.advance(1)
        await search.search("tall bridge", "en")
        assert len(server.asked) == 3


async def test_only_so_many_answers_are_kept() -> None:
    http: Any = Said(searxng_answer())
    search = a_search(SearXNG(http, "http://x.example", KEY), VirtualClock())
    first = await search.search("0", "en")
    for number in range(CACHED_ANSWERS):
        await search.search(str(number + 1), "en")
    assert await search.search("0", "en") is not first


@pytest.mark.parametrize(
    ("page", "code", "advice"),
    [
        (Page(status=401), ErrorCode.FAILED, "search.api_key"),
        (Page(status=403), ErrorCode.FAILED, "search.formats"),
        (Page(status=404), ErrorCode.FAILED, "search.url"),
        (Page(status=429), ErrorCode.TRANSIENT, "limits the rate"),
        (Page(status=503), ErrorCode.TRANSIENT, "Check that it is there"),
        (Page(silent=True), ErrorCode.TRANSIENT, "timeout_seconds"),
    ],
)
async def test_a_failure_is_not_kept_and_the_log_says_what_to_do(page: Page, code: ErrorCode, advice: str) -> None:
    async with WebServer({CHAT_PATH: page}) as server:
        search = a_search(a_model(server), VirtualClock())
        with capture_logs() as logs, pytest.raises(WebError) as caught:
            await search.search("x", "en")
        assert caught.value.code is code
        [line] = logs
        assert advice in line["advice"]
        assert KEY.get_secret_value() not in str(line)
        server.pages[CHAT_PATH] = Page.json(perplexity_answer())
        assert (await search.search("x", "en")).text


async def test_where_nobody_is_set_nobody_searches() -> None:
    with pytest.raises(RequestProblem, match=r"search\.not_set"):
        await a_search(None, VirtualClock()).search("x", "en")
