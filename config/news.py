"""Settings of the news: the feeds that are read, and how much of them is said."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from config.terms import Count, Language, Number, Section, WebUrl, Word


class FeedSettings(Section):
    """One RSS or Atom feed."""

    name: Word
    """What items are said to come from; each name once."""
    url: WebUrl
    """Where the feed is."""
    topics: Annotated[tuple[Word, ...], Field(max_length=20)] = ()
    """Words by which people ask for it, such as world, tech or 科技."""
    language: Language | None = None
    """Chats in another language get it only where there is no feed in theirs. Left out: it is for all."""


class NewsSettings(Section):
    """News from RSS and Atom feeds."""

    feeds: Annotated[tuple[FeedSettings, ...], Field(max_length=40)] = ()
    """The feeds. Without any there is no news, and whoever asks is told how to set some."""
    items: Count = Field(default=5, ge=1, le=20)
    """Items that are said when nobody asks for a number."""
    cache_seconds: Count = Field(default=600, ge=0, le=86_400)
    """How long a feed is not asked again."""
    timeout_seconds: Number = Field(default=10, gt=0, le=25)
    """How long one feed may take; all are asked at once."""
    feed_kilobytes: Count = Field(default=1024, ge=16, le=8192)
    """A feed that is longer is not read."""
