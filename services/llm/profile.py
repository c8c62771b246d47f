"""Settings of one model: address, headers, and capabilities of its server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson
from pydantic import SecretStr

from services.refs import JsonValue

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Profile of one model. The defaults send no optional fields and parse no calls from text."""

    name: str
    """Name in the settings."""
    model: str
    """Name on the server."""
    base_url: str
    """Up to and including the version, such as `https://api.openai.com/v1`."""
    api_key: SecretStr
    parallel_flag: bool | None = None
    """Whether one answer may contain several calls; None: omit the parameter."""
    strict: bool = False
    """Whether the server enforces the schemas of functions marked as strict."""
    tool_choice_required: bool = True
    """Whether the server supports `required` or a named function; otherwise `auto` is sent."""
    echo_reasoning: bool = True
    """Whether to return the model's reasoning in later rounds."""
    sees: bool = False
    """Whether the model is sent pictures."""
    dialect: str | None = None
    """Notation of calls in the model's text, one of `services.llm.reading.dialects`; None: do not parse calls."""
    connections: int = 4000
    """Limit of concurrent requests."""
    silence_seconds: float = 30.0
    """Timeout between two pieces of a response body."""
    extra: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """Additional fields of each request, such as `temperature`."""
    thinking: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """Fields of requests that ask for longer reasoning, in addition to `extra` or instead of its values."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Additional headers of each request."""
    api_version: str = ""
    """Sent as the query parameter `api-version`, unless empty."""

    def heads(self, usual: Mapping[str, JsonValue] = _NONE) -> tuple[bytes, bytes]:
        """Beginning of a request body with the constant fields, without the closing brace; and that of a request for
        longer reasoning. `usual`: fields that `extra` may replace."""
        fields = {"model": self.model, **usual, **self.extra}
        usual_head, thinking = orjson.dumps(fields), orjson.dumps({**fields, **self.thinking})
        return usual_head.removesuffix(b"}"), thinking.removesuffix(b"}")

    def endpoint(self, path: str, headers: Mapping[str, str] = _NONE, *, bearer: bool = True) -> Endpoint:
        """Endpoint at `path` below the base URL; `headers` are sent with each request."""
        return Endpoint(self, path, headers, bearer)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One API method of a model's server."""

    profile: ModelProfile
    path: str
    """Relative to the base URL, without a leading slash."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Sent in addition to those of the profile, or instead of them."""
    bearer: bool = True
    """Whether to send the key as `Authorization: Bearer`; otherwise `headers` contain it."""
