"""One configured model: address, headers, and what its server can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import SecretStr

from services.refs import JsonValue


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where questions are posted, and what goes with each."""

    base_url: str
    """Up to and including the version, such as `https://api.openai.com/v1`."""
    path: str
    """Below the base URL, without a slash at its start."""
    api_key: SecretStr
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    bearer: bool = True
    """Whether the key goes into `Authorization`; else `headers` have it."""
    connections: int = 4000
    """The most requests at once."""
    silence_seconds: float = 30.0
    """An answer that began and in which nothing comes for so long is given up."""


_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """One model. The defaults send nothing that a server might not know, and read no calls out of its text."""

    name: str
    """The name in the settings."""
    model: str
    """What the server calls it."""
    base_url: str
    """Up to and including the version, such as `https://api.openai.com/v1`."""
    api_key: SecretStr
    parallel_flag: bool | None = None
    """Whether one answer may call several functions; None: the server is not told."""
    strict: bool = False
    """Whether the server holds a model to the schemas of functions that are marked as strict."""
    tool_choice_required: bool = True
    """Whether the server can be told to call a function, any or a certain one; else `auto` is asked instead."""
    echo_reasoning: bool = True
    """Whether the model gets its own reasoning back in later rounds."""
    dialect: str | None = None
    """The notation of calls in the model's text, one of `services.llm.reading.dialects`; None: they are not read."""
    connections: int = 4000
    """The most requests at once."""
    silence_seconds: float = 30.0
    """An answer that began and in which nothing comes for so long is given up."""
    extra: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """More fields of each request, such as `temperature`."""

    def endpoint(self, path: str, headers: Mapping[str, str] = _NONE, *, bearer: bool = True) -> Endpoint:
        """Where its questions are posted: `path` is below the base URL, `headers` go with each."""
        return Endpoint(
            self.base_url,
            path,
            self.api_key,
            headers=headers,
            bearer=bearer,
            connections=self.connections,
            silence_seconds=self.silence_seconds,
        )
