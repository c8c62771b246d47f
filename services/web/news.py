"""News from the configured RSS and Atom feeds, cached and without duplicates."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from config.sections.news_and_search import FeedSettings, NewsSettings
from services.clock import Clock
from services.sandbox.parsing import DocumentParser, Parser, ParsingError
from services.text_index import terms
from services.web.addresses import link_key
from services.web.feeds import Entry, NoFeed, feed_from_json
from services.web.http import WebClient, WebError

_log = structlog.get_logger("news")
_ACCEPT = "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"
_RETRY_SECONDS = 60.0
"""Upper limit of the pause after a failed request; `cache_seconds` applies if it is shorter."""
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NewsItem:
    """News item of one feed, as `News.latest` returns it."""

    title: str
    source: str
    """Name of the feed in the settings."""
    link: str
    """Empty if the feed has none."""
    summary: str
    at_ms: int | None
    """Milliseconds since 1970 UTC, never in the future; None if the feed has no date."""


@dataclass(frozen=True, slots=True)
class StaleFeed:
    """A feed that failed to update; its cached entries, `age_seconds` old, are used."""

    name: str
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Headlines:
    """Result of `News.latest`: items, and the feeds that failed."""

    items: Sequence[NewsItem]
    """Newest first; items without a date last."""
    broken: Sequence[str] = ()
    """Names of failed feeds without cached entries."""
    stale: Sequence[StaleFeed] = ()


@dataclass(slots=True)
class _Feed:
    """State of one feed: cached entries, validators, and times of reading and retry."""

    settings: FeedSettings
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    entries: Sequence[Entry] | None = None
    etag: str = ""
    last_modified: str = ""
    read_at: float = 0.0
    """Time of the clock's `monotonic()` at which `entries` were last known to be current."""
    next_at: float = 0.0
    """Earliest time of the next request."""
    problem: str = ""
    """Reason of the last failure; empty after a success."""


class News:
    """Reads the configured feeds, each at most once per `cache_seconds`. A failing feed does not affect the others."""

    def __init__(self, settings: NewsSettings, http: WebClient, clock: Clock) -> None:
        self._settings = settings
        self._http = http
        self._clock = clock
        self._parser = DocumentParser(clock)
        self._feeds = [_Feed(one) for one in settings.feeds]

    @property
    def usual_count(self) -> int:
        """Default number of items from the settings; 0 without feeds."""
        return self._settings.items if self._feeds else 0

    def is_configured(self, _bot: str) -> bool:
        """Whether there are feeds."""
        return bool(self._feeds)

    @property
    def topics(self) -> Sequence[str]:
        """Topics of all feeds without duplicates, in the order of the settings."""
        return list(dict.fromkeys(topic for feed in self._feeds for topic in feed.settings.topics))

    async def latest(self, topic: str, count: int, language: str) -> Headlines:
        """At most `count` items for a chat in `language`. `topic` is a feed's topic or name, else words that an item
        must contain; empty for all items. Failed feeds are listed in the result; nothing is raised for them."""
        feeds = self._for_language(language)
        wanted = topic.strip().casefold()
        fitting = [feed for feed in feeds if wanted in _called(feed.settings)]
        chosen = fitting or feeds
        await asyncio.gather(*(self._refresh(feed) for feed in chosen))
        items = _merged(chosen, self._clock.now_ms())
        if wanted and not fitting:
            items = [item for item in items if _is_about(item, topic)]
        now = self._clock.monotonic()
        return Headlines(
            items[:count],
            [feed.settings.name for feed in chosen if feed.entries is None],
            [
                StaleFeed(feed.settings.name, now - feed.read_at)
                for feed in chosen
                if feed.entries is not None and feed.problem
            ],
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def problems(self) -> dict[str, str]:
        """Error message of each feed that cannot be read, by feed name, for operators; empty if all can be read."""
        await asyncio.gather(*(self._refresh(feed) for feed in self._feeds))
        return {feed.settings.name: feed.problem for feed in self._feeds if feed.problem}

    def _for_language(self, language: str) -> Sequence[_Feed]:
        """Feeds in the chat's language or without a language; all feeds if there are no such feeds."""
        base = _base(language)
        fitting = [
            feed for feed in self._feeds if feed.settings.language is None or _base(feed.settings.language) == base
        ]
        return fitting or self._feeds

    async def _refresh(self, feed: _Feed) -> None:
        """Request the feed unless its cache is fresh or it failed less than a minute ago; a failure is logged and
        stored in `problem`; concurrent callers wait for the same request."""
        async with feed.lock:
            if self._clock.monotonic() < feed.next_at:
                return
            try:
                await self._ask(feed)
            except (WebError, NoFeed, ParsingError) as error:
                feed.problem = str(error)
                feed.next_at = self._clock.monotonic() + min(_RETRY_SECONDS, self._settings.cache_seconds)
                _log.warning("feed_failed", feed=feed.settings.name, problem=feed.problem)

    async def _ask(self, feed: _Feed) -> None:
        headers = {"accept": _ACCEPT}
        if feed.entries is not None:
            headers |= {"if-none-match": feed.etag} if feed.etag else {}
            headers |= {"if-modified-since": feed.last_modified} if feed.last_modified else {}
        try:
            answer = await self._http.get(feed.settings.url, headers=headers)
        except WebError as error:
            if error.status != 304 or feed.entries is None:
                raise
        else:
            parsed = await self._parser.parse(Parser.FEED, answer.body, answer.content_type)
            feed.entries = feed_from_json(parsed)
            feed.etag, feed.last_modified = answer.etag, answer.last_modified
        feed.problem = ""
        feed.read_at = self._clock.monotonic()
        feed.next_at = feed.read_at + self._settings.cache_seconds


def _called(feed: FeedSettings) -> list[str]:
    """The feed's name and topics, case-folded: names by which people ask for it."""
    return [word.casefold() for word in (feed.name, *feed.topics)]


def _base(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].lower()


def _merged(feeds: Sequence[_Feed], now_ms: int) -> list[NewsItem]:
    """Items of `feeds`, newest first. Of items with the same page or title, the earliest is kept."""
    items = [
        NewsItem(
            entry.title,
            feed.settings.name,
            entry.link,
            entry.summary,
            None if entry.at_ms is None else min(entry.at_ms, now_ms),
        )
        for feed in feeds
        for entry in feed.entries or ()
    ]
    seen: set[str] = set()
    merged: list[NewsItem] = []
    for item in sorted(items, key=lambda one: now_ms if one.at_ms is None else one.at_ms):
        keys = {f"title {' '.join(_WORDS.findall(item.title.casefold())) or item.title}"}
        keys |= {f"link {link_key(item.link)}"} if item.link else set()
        if seen.isdisjoint(keys):
            merged.append(item)
        seen |= keys
    return sorted(merged, key=lambda one: (one.at_ms is None, -(one.at_ms or 0)))


def _is_about(item: NewsItem, topic: str) -> bool:
    wanted = set(terms(topic))
    if not wanted:
        return topic.strip().casefold() in item.title.casefold()
    return wanted <= set(terms(f"{item.title} {item.summary}"))
