"""Settings of language models: where they are, how they are spoken to, and what they can do."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from config.terms import BaseUrl, Count, FunctionPath, Seconds, Section, Temperature, Tokens, Word

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
