"""Settings of language models: servers, failover, shadow comparison, roll-out and chat memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, SecretStr, model_validator

from config.terms import (
    BaseUrl,
    ClockTime,
    Count,
    FunctionPath,
    Headers,
    Number,
    Seconds,
    Section,
    Temperature,
    Tokens,
    Word,
    described_matching,
    settings_error,
)

Protocol = Literal["openai", "anthropic", "json_text", "xml_text", "function"]
"""Protocol of a model."""
Dialect = Literal[
    "hermes",
    "qwen",
    "glm",
    "llama",
    "mistral",
    "deepseek",
    "kimi",
    "gpt-oss",
    "minimax",
    "gemma",
    "granite",
    "nemotron",
    "phi",
    "jamba",
    "hunyuan",
    "longcat",
    "internlm",
    "seed",
]
"""A family of models, for the notation of calls they are trained to write."""


class ModelProfileSettings(Section):
    """Capabilities of a model and its server. Missing ones are not used."""

    strict: bool = False
    """Whether the server enforces the schemas of functions; suitable ones are then marked as strict."""
    tool_choice: bool = True
    """Whether requests can force a function call, of any or of a certain function."""
    reasoning_echo: bool = True
    """Whether the model gets its own reasoning back, unchanged, in later rounds of a turn. Some providers require it
    with calls, some reject it."""
    dialect: Dialect | None = None
    """Family whose notation is parsed if the server leaves calls in the text. Missing: none, and such text is neither
    run nor shown."""


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How long a model reasons before it answers; each model supports some of them."""
_SECRET_CHARS = 12
_OWN_KEYS = ("temperature", "top_p", "reasoning_effort")
_BUILT = ("model", "messages", "system", "tools", "tool_choice", "parallel_tool_calls", "stream", *_OWN_KEYS)


def _extra_fields(fields: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    for name in fields:
        if name in _BUILT:
            own = f"use the setting {name}" if name in _OWN_KEYS else "it is a part of every request"
            raise settings_error(f"must not contain {name!r}: {own}")
    return fields


class ModelSettings(Section):
    """One language model. The first usable model of the list that is available answers."""

    name: Word
    """Name in logs; must be unique."""
    protocol: Protocol = "openai"
    """openai: chat completions with function calling. anthropic: the messages API. json_text and xml_text: chat
    completions for models without function calling, which write calls as text. function: calls `function`."""
    function: FunctionPath = ""
    """For the protocol `function`: the Python function to call, as package.module:function."""
    base_url: BaseUrl = ""
    """URL of the API. Empty: https://api.openai.com/v1, or https://api.anthropic.com/v1."""
    api_key: SecretStr = SecretStr("")
    """API key; preferably a reference to the environment."""
    model: Word
    """The provider's name of the model."""
    timeout_seconds: Seconds = 60
    """Timeout of a request, including its retries."""
    attempts: Count = Field(default=3, ge=1, le=10)
    """Maximum number of attempts for a request that fails temporarily."""
    max_output_tokens: Tokens | None = None
    """Maximum length of an answer. Missing: the provider's limit."""
    parallel_calls: bool | None = None
    """Whether an answer may call several functions. Missing: the provider's default; some have no such option."""
    sees: bool = False
    """Whether the model is shown the pictures that are attached to a message, or quoted by it."""
    profile: ModelProfileSettings = ModelProfileSettings()
    """Capabilities of the model and its server."""
    function_tokens: Count | None = Field(default=None, ge=0, le=1_000_000)
    """Replaces `router.function_tokens`, for a model with a short context. If several models are usable, the lowest
    limit applies, because any of them may answer."""
    temperature: Temperature | None = None
    """Sampling temperature. Missing: the provider's default; some models accept none."""
    top_p: Number | None = Field(default=None, gt=0, le=1)
    """Share of the most likely tokens from which each token is sampled. Missing: the provider's default."""
    reasoning_effort: ReasoningEffort | None = None
    """Length of the model's reasoning. Missing: the provider's default; models without reasoning reject it."""
    thinking_effort: ReasoningEffort | None = None
    """The same for messages that ask the model to think harder."""
    extra_body: Annotated[Mapping[Word, JsonValue], Field(max_length=50), AfterValidator(_extra_fields)] = Field(
        default_factory=dict
    )
    """Additional fields of each request, as the server documents them. They are not secret."""
    headers: Headers = Field(default_factory=dict)
    """Additional headers of each request; preferably references to the environment."""
    api_version: Annotated[
        str, *described_matching(r"[A-Za-z0-9._-]{0,40}", "has to be a version such as 2024-10-21")
    ] = ""
    """Sent as the query parameter `api-version`, for Azure and servers like it. Empty: not sent."""

    @model_validator(mode="after")
    def _sent_by_the_protocol(self) -> Self:
        unsupported = {
            "anthropic": ("reasoning_effort", "thinking_effort"),
            "function": ("top_p", "reasoning_effort", "thinking_effort", "extra_body", "headers", "api_version"),
        }
        if self.sees and self.protocol not in ("openai", "anthropic"):
            raise settings_error(f"cannot have sees with the protocol {self.protocol}")
        for name in unsupported.get(self.protocol, ()):
            if getattr(self, name):
                instead = "; use extra_body" if self.protocol == "anthropic" else ""
                raise settings_error(f"cannot have {name} with the protocol {self.protocol}{instead}")
        if self.api_key.get_secret_value() and any(name.lower() == "authorization" for name in self.headers):
            raise settings_error("has both api_key and a header Authorization; leave one of both")
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secret values, to be redacted in logs. Short values of headers may be words, such as the bot's name."""
        values = (one.get_secret_value() for one in self.headers.values())
        return self.api_key.get_secret_value(), *(one for one in values if len(one) >= _SECRET_CHARS)

    @property
    def usable(self) -> bool:
        """Whether it has a key, a URL or a function to call, so that it can be asked."""
        if self.protocol == "function":
            return bool(self.function)
        return bool(self.api_key.get_secret_value() or self.base_url)


class FailoverSettings(Section):
    """Failover to the next language model, and pauses of failing ones."""

    first_answer_seconds: Seconds = 30
    """Timeout for the first output of a model before the next one is tried. The last model may take longer."""
    total_seconds: Seconds = 70
    """Timeout of a request with all models together, if there are several."""
    failures: Count = Field(default=3, ge=1, le=100)
    """Number of consecutive failed requests after which a model is paused."""
    cooldown_seconds: Seconds = 15
    """Length of the pause. Then one request is tried; if it fails, the pause is doubled."""
    longest_cooldown_seconds: Seconds = 60
    """Maximum length of such a pause."""
    longest_wait_seconds: Seconds = 600
    """Maximum pause of a model that requests a wait. Also the pause after a rejected key, an unknown model or an
    exhausted credit."""
    say_again_seconds: Seconds = 600
    """While no model is available, a chat is notified once, and again for a request after this time."""


class ShadowSettings(Section):
    """A model that is asked, after the reply was sent, which functions it would have called; nothing is run for it."""

    model: str = Field(default="", max_length=128)
    """Name of an entry in `models`, which then answers no chat. Empty: no shadow."""
    max_per_hour: Count = Field(default=60, ge=1, le=1_000_000)
    """Maximum number of requests in any 60 minutes; further ones are counted but not sent."""
    parallel: Count = Field(default=1, ge=1, le=100)
    """Maximum number of concurrent requests."""
    queue: Count = Field(default=20, ge=1, le=10_000)
    """Maximum number of queued requests; further ones are counted but not sent."""
    timeout_seconds: Seconds = 60
    """Timeout of an answer."""


class ThinkingSettings(Section):
    """Messages that ask the model to think harder, with these words or the command /think."""

    model: str = Field(default="", max_length=128)
    """Name of an entry in `models` that answers them first, in chats whose models include it. Empty: the usual models
    with their `thinking_effort`."""
    words: tuple[Word, ...] = Field(
        default=("think harder", "think carefully", "仔细想", "好好想", "认真想", "再想想", "想想…"), max_length=100
    )
    """Words that ask for it. With … at the end only at the beginning of a message."""


ModelNames = Annotated[tuple[Word, ...], Field(max_length=20)]
"""Names of entries in `models`."""
_SHARES = 10_000


class RolloutSettings(Section):
    """Share of the chats where models call functions, if neither the chat nor `chats.settings` sets it."""

    percent: Number = Field(default=100, ge=0, le=100)
    """Percentage of all chats, in steps of 0.01. Included chats stay included when it grows; others have commands and
    chat."""
    name: str = Field(default="", max_length=128)
    """Changing the name selects other chats."""

    def includes(self, chat_key: str) -> bool:
        """Whether the chat is among the included `percent`, by a digest of its key: the same on every machine and after
        every start."""
        if self.percent >= 100:
            return True
        drawn = hashlib.sha256(f"{self.name}\0{chat_key}".encode()).digest()
        return int.from_bytes(drawn[:8]) % _SHARES < round(self.percent * _SHARES / 100)


ContextScope = Literal["chat", "thread", "member"]
"""Messages of a group that a model is shown: all; the chain of replies of the message; or the asker's messages and the
answers to them."""


class MemorySettings(Section):
    """Summaries of messages that are older than those shown to the model, and notes on members and chats."""

    summarise_after_tokens: Count = Field(default=2000, ge=0, le=1_000_000)
    """Tokens of older messages after which the model is asked for a summary at the end of a turn. 0: never."""
    summary_tokens: Count = Field(default=400, ge=50, le=10_000)
    """Maximum length of a summary, in tokens."""
    notes_per_member: Count = Field(default=50, ge=1, le=10_000)
    """Maximum number of notes on a member in one chat."""
    notes_per_chat: Count = Field(default=100, ge=1, le=10_000)
    """Maximum number of notes on a chat itself."""
    digest_at: ClockTime = "04:00"
    """Time of day, in the chat's zone, of the digest in chats with `memory_digest`."""
