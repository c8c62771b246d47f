"""Hostile feeds: one chat gets an error, and neither the daemon's memory nor other chats are affected."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.testing import PLATFORM, a_group
from services.clock import SystemClock
from services.refs import ChatRef
from services.sandbox.parsing import DocumentParser, Parser, ParsingError
from services.web.feeds import NoFeed, feed_from_json
from services.web.http import WebClient
from tests.fakes.feeds import RSS
from tests.fakes.web_server import Page, WebServer

MEBIBYTE = 1024 * 1024
START = '<?xml version="1.0"?><rss version="2.0" xml:base="http://world.example/"><channel><title>World</title>'
OTHER = ChatRef(PLATFORM, "bot", "neighbours")


def filled(element: str) -> bytes:
    """A feed of 1 MiB that repeats `element`."""
    return (START + element * ((MEBIBYTE - len(START)) // len(element))).encode()


GROWING_BASE = filled(f'<a xml:base="{"b" * 200}/">')
"""Each nested base URL contains the previous ones: 2.4 GB in total."""
HOSTILE = {"growing base": GROWING_BASE, "nested": filled("<a>"), "links": filled("<link/>"), "unclosed": filled("<")}


@dataclass(slots=True)
class Load:
    """Highest values since the start."""

    blocked_seconds: float = 0.0
    grown_bytes: int = 0


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@asynccontextmanager
async def measured_load() -> AsyncIterator[Load]:
    """Time for which the event loop is blocked, as CPU time of this process, and its resident memory."""
    load, start = Load(), resident_bytes()

    async def measure() -> None:
        while True:
            # CPU time: on a busy machine the event loop also waits for other processes.
            began = time.process_time()
            await asyncio.sleep(0.005)
            load.blocked_seconds = max(load.blocked_seconds, time.process_time() - began)
            load.grown_bytes = max(load.grown_bytes, resident_bytes() - start)

    measuring = asyncio.create_task(measure())
    try:
        yield load
    finally:
        measuring.cancel()


async def test_a_hostile_feed_costs_the_daemon_no_memory_and_other_chats_no_time() -> None:
    xml = {"Content-Type": "application/rss+xml"}
    pages = {"/good": Page(RSS.encode(), headers=xml), "/bad": Page(GROWING_BASE, headers=xml)}
    async with WebServer(pages) as server:
        settings = {"news": {"feeds": [{"name": path.strip("/"), "url": server.url(path)} for path in pages]}}
        async with a_group(settings=settings, web=WebClient(allow_loopback=True)) as group:
            await group.say("Ann", "/news good")
            async with measured_load() as load:
                await group.hear("Ann", "/news bad")
                await group.hear("Bob", "/calc 2+3", chat=OTHER)
                await group.settle()
            in_other, in_family = group.platform.sent[-2:]
    assert (in_other.chat, in_other.text) == (OTHER, "2+3 = 5")
    assert in_family.text == (
        "I can't reach any of my news sources right now (bad). Please try again in a few minutes."
    )
    assert load.grown_bytes < 150 * MEBIBYTE
    assert load.blocked_seconds < 0.05


async def entry_count(parser: DocumentParser, feed: bytes) -> int:
    """0 for a rejected feed."""
    try:
        return len(feed_from_json(await parser.parse(Parser.FEED, feed, "application/rss+xml")))
    except (NoFeed, ParsingError):
        return 0


@pytest.mark.parametrize("name", HOSTILE)
async def test_parsing_a_hostile_feed_ends_within_five_seconds(name: str) -> None:
    async with asyncio.timeout(5):
        assert await entry_count(DocumentParser(SystemClock()), HOSTILE[name]) == 0


async def test_a_feed_is_parsed_after_hostile_ones() -> None:
    parser = DocumentParser(SystemClock())
    feeds = [GROWING_BASE, HOSTILE["nested"], RSS.encode()]
    assert await asyncio.gather(*(entry_count(parser, feed) for feed in feeds)) == [0, 0, 3]
