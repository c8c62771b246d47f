"""News from the configured RSS and Atom feeds, cached and without duplicates."""

from __future__ import annotations

import asyncio
import calendar
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import structlog

from config.sections.news_and_search import FeedSettings, NewsSettings
from services.clock import Clock
from services.text_index import terms
from services.threads import Threads
from services.web.addresses import clean_link, link_key
from services.web.content import one_line, text_of_html
from services.web.http import WebClient, WebError

_MOST_ENTRIES = 200
_TITLE_CHARS = 200
_SUMMARY_CHARS = 300
_LONGEST_TEXT = 20_000
_ROOT = re.compile(rb"<\s*(\w+:)?(rss|feed|rdf)\b", re.IGNORECASE)
_ROOT_WITHIN = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a feed."""

    title: str
    link: str
    """http or https, without what follows readers; empty where there is none."""
    summary: str
    at_ms: int | None
    """Milliseconds since 1970 UTC when it was published or last changed; None where the feed does not say."""


class NoFeed(ValueError):
    """The bytes are no feed."""


def read_feed(body: bytes, content_type: str) -> list[Entry]:
    """The entries of a feed in its own order, at most 200; those without a title are left out. Raises NoFeed. Takes
    long for long feeds, so it belongs into a thread."""
    # 60 ms: paid by the first feed instead of by the start.
    import feedparser

    if not _ROOT.search(body[:_ROOT_WITHIN]):
        raise NoFeed("there is neither RSS nor Atom in it")
    headers = {"content-type": content_type}
    try:
        # A stream, because a text or bytes would be taken for an address or a file to open.
        parsed = feedparser.parse(BytesIO(body), response_headers=headers, sanitize_html=False)
    except Exception as error:
        # What strangers send brings out faults of every kind in the parser.
        raise NoFeed(f"it cannot be read ({type(error).__name__})") from error
    if not parsed.get("version") and not parsed.entries:
        raise NoFeed("it cannot be read as RSS or Atom")
    return [entry for one in parsed.entries[:_MOST_ENTRIES] if (entry := _entry(one)).title]


def _entry(one: Mapping[str, Any]) -> Entry:
    return Entry(
        title=_plain(one, "title", _TITLE_CHARS),
        link=clean_link(_text(one, "link")) or clean_link(_text(one, "id")),
        summary=_plain(one, "summary", _SUMMARY_CHARS),
        at_ms=_instant(one),
    )


def _plain(one: Mapping[str, Any], key: str, most_chars: int) -> str:
    """The text of a field; what says that it is no markup may speak of `<b>`."""
    is_markup = one.get(f"{key}_detail", {}).get("type") != "text/plain"
    return (text_of_html if is_markup else one_line)(_text(one, key)[:_LONGEST_TEXT], most_chars)


def _text(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key)
    return value if isinstance(value, str) else ""


def _instant(one: Mapping[str, Any]) -> int | None:
    # A plain copy: the parser's own mapping warns where it would give the one date for the other.
    dates = dict(one)
    for key in ("published_parsed", "updated_parsed"):
        parsed = dates.get(key)
        if parsed:
            try:
                return calendar.timegm(parsed) * 1000
            except (ValueError, OverflowError, TypeError):
                continue
    return None


_log = structlog.get_logger("news")
_ACCEPT = "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"
_RETRY_SECONDS = 60.0
"""A feed that failed is left alone for so long, or for the time that it would have been kept."""
_READERS = 2
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NewsItem:
    """One piece of news."""

    title: str
    source: str
    """The feed's name in the settings."""
    link: str
    """Empty where the feed gives none."""
    summary: str
    at_ms: int | None
    """Milliseconds since 1970 UTC, never in the future; None where the feed does not say."""


@dataclass(frozen=True, slots=True)
class StaleFeed:
    """A feed that cannot be had now; what was read of it before is used."""

    name: str
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Headlines:
    """What is new, and what is missing from it."""

    items: Sequence[NewsItem]
    """Newest first; what has no date stands last."""
    broken: Sequence[str] = ()
    """Feeds of which nothing is known."""
    stale: Sequence[StaleFeed] = ()


@dataclass(slots=True)
class _Feed:
    """One feed and what is known of it."""

    settings: FeedSettings
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    entries: Sequence[Entry] | None = None
    etag: str = ""
    last_modified: str = ""
    read_at: float = 0.0
    """On the clock's `monotonic()`: when `entries` were last known to be up to date."""
    again_at: float = 0.0
    """Not to be asked before."""
    problem: str = ""
    """Why it could not be had the last time."""


class News:
    """The feeds of the settings. One that fails hides no other."""

    def __init__(self, settings: NewsSettings, http: WebClient, clock: Clock, threads: Threads | None = None) -> None:
        self._settings = settings
        self._http = http
        self._clock = clock
        self._threads = threads or Threads(_READERS)
        self._feeds = [_Feed(one) for one in settings.feeds]

    @property
    def usual_count(self) -> int:
        """How many items are said when nobody asks for a number; 0 where there are no feeds."""
        return self._settings.items if self._feeds else 0

    @property
    def topics(self) -> Sequence[str]:
        """The topics of all feeds, each once, in the order of the settings."""
        return list(dict.fromkeys(topic for feed in self._feeds for topic in feed.settings.topics))

    async def latest(self, topic: str, count: int, language: str) -> Headlines:
        """At most `count` items for a chat in `language`. `topic`: one of the feeds' topics or names, else words that
        items have to hold; empty for everything."""
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
        """What is wrong with each feed that cannot be had, by its name; for operators."""
        await asyncio.gather(*(self._refresh(feed) for feed in self._feeds))
        return {feed.settings.name: feed.problem for feed in self._feeds if feed.problem}

    def _for_language(self, language: str) -> Sequence[_Feed]:
        """The feeds in the chat's language and those for all; every feed where that leaves none."""
        base = _base(language)
        fitting = [
            feed for feed in self._feeds if feed.settings.language is None or _base(feed.settings.language) == base
        ]
        return fitting or self._feeds

    async def _refresh(self, feed: _Feed) -> None:
        """Ask for what is new, unless it was asked lately; who asks meanwhile waits for that answer."""
        async with feed.lock:
            if self._clock.monotonic() < feed.again_at:
                return
            try:
                await self._ask(feed)
            except (WebError, NoFeed) as error:
                feed.problem = str(error)
                feed.again_at = self._clock.monotonic() + min(_RETRY_SECONDS, self._settings.cache_seconds)
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
            feed.entries = await self._threads.run(read_feed, answer.body, answer.content_type)
            feed.etag, feed.last_modified = answer.etag, answer.last_modified
        feed.problem = ""
        feed.read_at = self._clock.monotonic()
        feed.again_at = feed.read_at + self._settings.cache_seconds


def _called(feed: FeedSettings) -> list[str]:
    """All words by which people ask for the feed."""
    return [word.casefold() for word in (feed.name, *feed.topics)]


def _base(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].lower()


def _merged(feeds: Sequence[_Feed], now_ms: int) -> list[NewsItem]:
    """The items of `feeds`, newest first, each page and each title once: the one with the earliest date, as it was
    there first."""
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
    kept: list[NewsItem] = []
    for item in sorted(items, key=lambda one: now_ms if one.at_ms is None else one.at_ms):
        keys = {f"title {' '.join(_WORDS.findall(item.title.casefold())) or item.title}"}
        keys |= {f"link {link_key(item.link)}"} if item.link else set()
        if seen.isdisjoint(keys):
            kept.append(item)
        seen |= keys
    return sorted(kept, key=lambda one: (one.at_ms is None, -(one.at_ms or 0)))


def _is_about(item: NewsItem, topic: str) -> bool:
    wanted = set(terms(topic))
    if not wanted:
        return topic.strip().casefold() in item.title.casefold()
    return wanted <= set(terms(f"{item.title} {item.summary}"))
