from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from config.sections.news_and_search import NewsSettings
from services.clock import VirtualClock
from services.web.http import WebClient, WebLimits
from services.web.news import Headlines, News
from tests.fakes.feeds import ATOM_PATH, RDF_PATH, RSS, RSS_PATH, feed_pages
from tests.fakes.web_server import Page, WebServer

LIMITS = WebLimits(timeout_seconds=3.0, body_bytes=64 * 1024)
ALL = 20


def a_service(server: WebServer, clock: VirtualClock, **changes: Any) -> News:
    feeds = [
        {"name": "World", "url": server.url(RSS_PATH), "topics": ["world", "Politics"]},
        {"name": "Tech", "url": server.url(ATOM_PATH), "topics": ["tech"], "language": "en-GB"},
        {"name": "北京", "url": server.url(RDF_PATH), "topics": ["世界"], "language": "zh"},
    ]
    settings = NewsSettings.model_validate({"feeds": feeds, **changes})
    return News(settings, WebClient(LIMITS, allow_loopback=True), clock)


def titles(found: Headlines) -> list[str]:
    return [item.title for item in found.items]


@pytest.mark.requirement("D3")
async def test_the_newest_items_of_all_feeds_come_first_and_nothing_comes_twice() -> None:
    async with WebServer(feed_pages()) as server:
        found = await a_service(server, VirtualClock()).latest("", ALL, "en")
    # The bridge is in both feeds with the same title, the rain with the same link: each counts for the first feed.
    assert [(item.title, item.source) for item in found.items] == [
        ("A chip is <faster>", "Tech"),
        ("Rain in the north", "World"),
        ("Bridge opens & closes", "World"),
        ("No date at all", "World"),
    ]
    assert (found.broken, found.stale) == ([], [])


async def test_only_so_many_items_are_given_as_are_wanted() -> None:
    async with WebServer(feed_pages()) as server:
        assert len((await a_service(server, VirtualClock()).latest("", 2, "en")).items) == 2


async def test_a_chat_gets_the_feeds_in_its_language_and_all_where_there_is_none_in_it() -> None:
    async with WebServer(feed_pages()) as server:
        service = a_service(server, VirtualClock())
        assert {item.source for item in (await service.latest("", ALL, "zh-TW")).items} == {"World", "北京"}
        only_chinese = News(
            NewsSettings.model_validate({"feeds": [{"name": "北京", "url": server.url(RDF_PATH), "language": "zh"}]}),
            WebClient(LIMITS, allow_loopback=True),
            VirtualClock(),
        )
        assert titles(await only_chinese.latest("", ALL, "en")) == ["北京下雪了"]


@pytest.mark.parametrize("topic", ["tech", " TECH "])
async def test_a_topic_of_the_settings_leads_to_its_feeds_alone(topic: str) -> None:
    async with WebServer(feed_pages()) as server:
        found = await a_service(server, VirtualClock()).latest(topic, ALL, "en")
        assert [asked.path for asked in server.asked] == [ATOM_PATH]
    assert {item.source for item in found.items} == {"Tech"}


async def test_a_feed_can_be_asked_for_by_its_name() -> None:
    async with WebServer(feed_pages()) as server:
        found = await a_service(server, VirtualClock()).latest("world", ALL, "en")
    assert {item.source for item in found.items} == {"World"}


@pytest.mark.parametrize(("topic", "count"), [("bridges", 1), ("oslo bridge", 1), ("elections", 0), ("的", 0)])
async def test_another_topic_is_looked_for_in_the_items(topic: str, count: int) -> None:
    async with WebServer(feed_pages()) as server:
        found = await a_service(server, VirtualClock()).latest(topic, ALL, "en")
    assert len(found.items) == count


async def test_a_feed_is_not_asked_again_for_ten_minutes_and_then_only_for_what_is_new() -> None:
    clock = VirtualClock()
    async with WebServer(feed_pages()) as server:
        service = a_service(server, clock)
        await service.latest("world", ALL, "en")
        await clock.advance(599)
        await service.latest("world", ALL, "en")
        assert len(server.asked) == 1
        server.pages[RSS_PATH] = Page(status=304)
        await clock.advance(1)
        found = await service.latest("world", ALL, "en")
        again = server.asked[1].headers
        assert (again["if-none-match"], again["if-modified-since"]) == ('"one"', "Mon, 05 Jan 2026 08:00:00 GMT")
        assert (len(found.items), found.stale) == (3, [])
        await clock.advance(599)
        await service.latest("world", ALL, "en")
        assert len(server.asked) == 2


async def test_who_asks_at_the_same_time_waits_for_the_same_answer() -> None:
    async with WebServer(feed_pages()) as server:
        service = a_service(server, VirtualClock())
        await asyncio.gather(*(service.latest("world", ALL, "en") for _ in range(5)))
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    "broken",
    [
        Page(status=500),
        Page(status=404),
        Page(b"<html>moved</html>", headers={"Content-Type": "text/html"}),
        Page(silent=True),
        Page(b"<rss>" + b"x" * 100, cut=True),
        Page(b"<rss>" * 1000, endless=True),
        Page(status=302, headers={"Location": "http://10.0.0.1/feed"}),
        Page(status=304),
    ],
)
async def test_a_broken_feed_hides_no_other_and_is_named(broken: Page) -> None:
    async with WebServer({**feed_pages(), RSS_PATH: broken}) as server:
        found = await a_service(server, VirtualClock()).latest("", ALL, "en")
    assert {item.source for item in found.items} == {"Tech"}
    assert found.broken == ["World"]


async def test_of_a_feed_that_breaks_later_the_old_items_are_given_with_their_age() -> None:
    clock = VirtualClock()
    async with WebServer(feed_pages()) as server:
        service = a_service(server, clock)
        await service.latest("world", ALL, "en")
        server.pages[RSS_PATH] = Page(status=503)
        await clock.advance(7200)
        found = await service.latest("world", ALL, "en")
        assert (len(found.items), found.broken) == (3, [])
        assert [(feed.name, feed.age_seconds) for feed in found.stale] == [("World", 7200)]
        # It is not requested for a minute, and then requested again.
        await service.latest("world", ALL, "en")
        assert len(server.asked) == 2
        server.pages[RSS_PATH] = feed_pages()[RSS_PATH]
        await clock.advance(60)
        assert (await service.latest("world", ALL, "en")).stale == []


async def test_news_from_the_future_is_taken_for_new() -> None:
    clock = VirtualClock()
    later = RSS.replace("05 Jan 2026 07:30", "05 Jan 2036 07:30")
    async with WebServer({**feed_pages(), RSS_PATH: replace(feed_pages()[RSS_PATH], body=later.encode())}) as server:
        found = await a_service(server, clock).latest("", ALL, "en")
    assert found.items[0].at_ms is not None
    assert all(item.at_ms is None or item.at_ms <= clock.now_ms() for item in found.items)


async def test_operators_are_told_what_is_wrong_with_each_feed() -> None:
    async with WebServer({**feed_pages(), RSS_PATH: Page(status=500), ATOM_PATH: Page(b"<html>")}) as server:
        problems = await a_service(server, VirtualClock()).problems()
    assert list(problems) == ["World", "Tech"]
    assert "status 500" in problems["World"]
    assert "neither RSS nor Atom" in problems["Tech"]
