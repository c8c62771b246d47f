"""Settings of the search on the web: who is asked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from config.terms import BaseUrl, Count, Number, Section, fault

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
