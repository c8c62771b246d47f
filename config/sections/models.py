"""Settings of language models: servers, failover, shadow comparison, roll-out and chat memory."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field, SecretStr

from config.terms import BaseUrl, Count, FunctionPath, Number, Seconds, Section, Temperature, Tokens, Word

Protocol = Literal["openai", "anthropic", "json_text", "xml_text", "function"]
"""A way to speak to a model."""
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
"""A family of models, by the notation in which they are trained to write calls."""


class ModelProfileSettings(Section):
    """What one model and its server can do. What is left out is not relied on."""

    strict: bool = False
    """Whether the server holds the model to the schemas of functions. Those that can be are then marked as strict."""
    tool_choice: bool = True
    """Whether the server can be told to call a function now, any or a certain one."""
    reasoning_echo: bool = True
    """Whether the model gets its own reasoning back in later rounds of a turn, word for word. Some providers insist on
    it beside calls, some refuse it."""
    dialect: Dialect | None = None
    """The family whose notation is read where the server leaves calls in the text. Left out: none is, and such text is
    neither run nor shown."""


class ModelSettings(Section):
    """One language model. The first usable one of the list that can answer does."""

    name: Word
    """What logs call it; each name once."""
    protocol: Protocol = "openai"
    """How it is spoken to. openai: chat completions with function calling. anthropic: its messages. json_text and
    xml_text: chat completions for models without function calling, which write calls into their text. function: by
    calling `function`."""
    function: FunctionPath = ""
    """For the protocol `function`: the Python function to call, as package.module:function."""
    base_url: BaseUrl = ""
    """Where its API is. Empty: https://api.openai.com/v1, or https://api.anthropic.com/v1."""
    api_key: SecretStr = SecretStr("")
    """The key for its API; best written as a reference to the environment."""
    model: Word
    """The model's name at the provider."""
    timeout_seconds: Seconds = 60
    """How long one question may take, with all attempts."""
    attempts: Count = Field(default=3, ge=1, le=10)
    """How often one question is sent when the provider fails for a moment."""
    max_output_tokens: Tokens | None = None
    """The longest answer, in tokens. Left out: the provider's own limit."""
    parallel_calls: bool | None = None
    """Whether one answer may call several functions. Left out: the provider's own way; some know no such switch."""
    profile: ModelProfileSettings = ModelProfileSettings()
    """What the model and its server can do."""
    temperature: Temperature | None = None
    """How much chance there is in answers. Left out: the provider's own value; some models take none."""

    @property
    def usable(self) -> bool:
        """Whether there is a key or an address, or a function to call, so that it can be asked at all."""
        if self.protocol == "function":
            return bool(self.function)
        return bool(self.api_key.get_secret_value() or self.base_url)


class FailoverSettings(Section):
    """When a language model is left for the next one of the list, and for how long it is left alone."""

    first_answer_seconds: Seconds = 30
    """A model that has said nothing for so long is left for the next one. The last one of the list may take longer."""
    total_seconds: Seconds = 70
    """How long one question may take with all models together, where there are several."""
    failures: Count = Field(default=3, ge=1, le=100)
    """Questions in a row that a model fails to answer before it is left alone for a while."""
    cooldown_seconds: Seconds = 15
    """How long it is left alone then. One question tries it afterwards; each time that one fails, twice as long."""
    longest_cooldown_seconds: Seconds = 60
    """The longest of these pauses."""
    longest_wait_seconds: Seconds = 600
    """The longest that a model is left alone which asked for a wait. One that refused its key, knows no such model, or
    has no credit left is left alone for as long."""
    say_again_seconds: Seconds = 600
    """While no model answers, a chat is told once. Whoever needs the model after so long is told again."""


class ShadowSettings(Section):
    """A model that is asked, after the reply was sent, what it would have called; nothing is run for it."""

    model: str = Field(default="", max_length=128)
    """The name of an entry in `models`, which then answers no chat. Empty: there is no shadow."""
    max_per_hour: Count = Field(default=60, ge=1, le=1_000_000)
    """Questions to it in any 60 minutes; what is over that is counted and not asked."""
    parallel: Count = Field(default=1, ge=1, le=100)
    """Questions to it at the same time."""
    queue: Count = Field(default=20, ge=1, le=10_000)
    """Questions that may wait; what is over that is counted and not asked."""
    timeout_seconds: Seconds = 60
    """How long one answer may take."""


_SHARES = 10_000


class RolloutSettings(Section):
    """Which share of the chats has function calling by models, where neither the chat nor `chats.settings` says."""

    percent: Number = Field(default=100, ge=0, le=100)
    """Of all chats, in steps of 0.01. Whoever is in stays in while it grows. The others have commands and chat."""
    name: str = Field(default="", max_length=128)
    """Another name draws other chats."""

    def includes(self, chat_key: str) -> bool:
        """Whether the chat is among those that come first: the same on every machine and after every start."""
        if self.percent >= 100:
            return True
        drawn = hashlib.sha256(f"{self.name}\0{chat_key}".encode()).digest()
        return int.from_bytes(drawn[:8]) % _SHARES < round(self.percent * _SHARES / 100)


ContextScope = Literal["chat", "thread", "member"]
"""What of a group a model is shown: all of it; the chain of replies that the message belongs to; or what the one who
asks has said and was answered."""


class MemorySettings(Section):
    """What a model is told of what was said before the messages that it is shown."""

    summarise_after_tokens: Count = Field(default=2000, ge=0, le=1_000_000)
    """When so much has been said that is shown no longer, the model is asked for a summary after a turn. 0: never."""
    summary_tokens: Count = Field(default=400, ge=50, le=10_000)
    """The longest summary."""
