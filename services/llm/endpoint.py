"""The address of a provider's server, and what goes with each question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import SecretStr


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
