"""Settings of news feeds, web search and chat summaries."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from config.terms import BaseUrl, Count, Language, Number, Section, WebUrl, Word, fault


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


SearchKind = Literal["none", "searxng", "perplexity", "openai"]
"""A way to search."""


class SearchSettings(Section):
    """The search on the web."""

    kind: SearchKind = "none"
    """Who searches. searxng: an instance of it with JSON switched on. perplexity: its API. openai: a model behind chat
    completions that searches by itself. none: nobody."""
    url: BaseUrl = Field(default="")
    """Where it is. Empty: https://api.perplexity.ai, or https://api.openai.com/v1; searxng has no usual one."""
    api_key: SecretStr = SecretStr("")
    """The key for its API; best written as a reference to the environment."""
    model: Annotated[str, Field(max_length=128)] = ""
    """The model that searches. Empty: sonar at perplexity; openai has no usual one."""
    results: Count = Field(default=5, ge=1, le=20)
    """Hits or sources that are shown."""
    timeout_seconds: Number = Field(default=30, gt=0, le=100)
    """How long one search may take."""
    cache_seconds: Count = Field(default=600, ge=0, le=86_400)
    """How long the same question has the same answer."""
    private_network: bool = False
    """Whether `url` may be on this machine or in a network of one's own. It holds for that server and port alone."""

    @field_validator("url")
    @classmethod
    def _needed_by_searxng(cls, url: str, info: ValidationInfo) -> str:
        if info.data.get("kind") == "searxng" and not url:
            raise fault("has to say where the searxng instance is, such as https://searx.example")
        return url

    @field_validator("api_key")
    @classmethod
    def _needed_by_perplexity(cls, key: SecretStr, info: ValidationInfo) -> SecretStr:
        kind = info.data.get("kind")
        if not key.get_secret_value() and (kind == "perplexity" or (kind == "openai" and not info.data.get("url"))):
            raise fault(f"is needed to search with {kind}; write it as a reference to the environment")
        return key

    @field_validator("model")
    @classmethod
    def _needed_by_openai(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("kind") == "openai" and not model:
            raise fault("has to name a model that searches the web by itself")
        return model


class SummarySettings(Section):
    """How much of a chat is put in short when somebody asks for it."""

    lines: Count = Field(default=300, ge=10, le=5000)
    """The most messages that one summary is made of, the latest ones."""
    tokens: Count = Field(default=12_000, ge=500, le=1_000_000)
    """The most of them that the model is shown, in tokens as estimated."""
    timeout_seconds: Number = Field(default=40, gt=0, le=100)
    """How long the model may take; after that the summary is made without it."""
