"""Settings of news feeds, web search and chat summaries."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from config.terms import BaseUrl, Count, Language, Number, Section, WebUrl, Word, settings_error


class FeedSettings(Section):
    """One RSS or Atom feed."""

    name: Word
    """Source name of its items; must be unique."""
    url: WebUrl
    """URL of the feed."""
    topics: Annotated[tuple[Word, ...], Field(max_length=20)] = ()
    """Words for selecting it, such as world, tech or 科技."""
    language: Language | None = None
    """Chats in another language get it only if there is no feed in theirs. Missing: for all languages."""


class NewsSettings(Section):
    """News from RSS and Atom feeds."""

    feeds: Annotated[tuple[FeedSettings, ...], Field(max_length=40)] = ()
    """Feeds. Without any, requests for news are answered with instructions for adding some."""
    items: Count = Field(default=5, ge=1, le=20)
    """Number of items unless requested otherwise."""
    cache_seconds: Count = Field(default=600, ge=0, le=86_400)
    """Cache lifetime of a feed."""
    timeout_seconds: Number = Field(default=10, gt=0, le=25)
    """Timeout of a feed; all are fetched concurrently."""
    feed_kilobytes: Count = Field(default=1024, ge=16, le=8192)
    """Maximum size of a feed; larger ones are not read."""


SearchKind = Literal["none", "searxng", "perplexity", "openai"]
"""A search service."""


class SearchSettings(Section):
    """Web search."""

    kind: SearchKind = "none"
    """searxng: an instance with JSON enabled. perplexity: its API. openai: chat completions of a model that searches
    the web. none: no search."""
    url: BaseUrl = Field(default="")
    """URL of the service. Empty: https://api.perplexity.ai, or https://api.openai.com/v1; searxng has no default."""
    api_key: SecretStr = SecretStr("")
    """API key; preferably a reference to the environment."""
    model: Annotated[str, Field(max_length=128)] = ""
    """The model that searches. Empty: sonar for perplexity; openai has no default."""
    results: Count = Field(default=5, ge=1, le=20)
    """Number of results or sources shown."""
    timeout_seconds: Number = Field(default=30, gt=0, le=100)
    """Timeout of a search."""
    cache_seconds: Count = Field(default=600, ge=0, le=86_400)
    """Cache lifetime of results."""
    private_network: bool = False
    """Whether `url` may be on this machine or a private network. Applies only to that server and port."""

    @field_validator("url")
    @classmethod
    def _needed_by_searxng(cls, url: str, info: ValidationInfo) -> str:
        if info.data.get("kind") == "searxng" and not url:
            raise settings_error("has to say where the searxng instance is, such as https://searx.example")
        return url

    @field_validator("api_key")
    @classmethod
    def _needed_by_perplexity(cls, key: SecretStr, info: ValidationInfo) -> SecretStr:
        kind = info.data.get("kind")
        if not key.get_secret_value() and (kind == "perplexity" or (kind == "openai" and not info.data.get("url"))):
            raise settings_error(f"is needed to search with {kind}; write it as a reference to the environment")
        return key

    @field_validator("model")
    @classmethod
    def _needed_by_openai(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("kind") == "openai" and not model:
            raise settings_error("has to name a model that searches the web by itself")
        return model


class SummarySettings(Section):
    """Limits of chat summaries on request."""

    lines: Count = Field(default=300, ge=10, le=5000)
    """Maximum number of messages in one summary, the latest."""
    tokens: Count = Field(default=12_000, ge=500, le=1_000_000)
    """Maximum length of these messages for the model, in estimated tokens."""
    timeout_seconds: Number = Field(default=40, gt=0, le=100)
    """Timeout of the model; then the summary is made without it."""


class PicturesSettings(Section):
    """Pictures of the weather of a week and of results of polls, on networks that can send files. They need the extra
    `pictures`."""

    font: str = ""
    """Path of a font file that is tried before the usual fonts of the system."""
