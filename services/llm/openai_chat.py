"""Models behind the OpenAI chat-completions protocol, which most providers and local servers speak."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import orjson
from pydantic import SecretStr

from services.clock import Clock
from services.json_values import JsonValue
from services.llm.encoding import encode_messages, encode_tools
from services.llm.model import ModelAnswer, ModelError, ModelMessage, ModelRequest
from services.llm.openai_answers import read_body
from services.refs import ErrorCode

if TYPE_CHECKING:
    from services.llm.openai_transport import OpenAITransport

_PROBE_SECONDS = 20.0
_MODES = frozenset({"auto", "none", "required"})


@dataclass(frozen=True, slots=True)
class OpenAIProfile:
    """One model, and what its server can do. The defaults send nothing that a server might not know."""

    name: str
    """The name in the settings."""
    model: str
    """What the server calls it."""
    base_url: str
    """Up to and including the version, such as `https://api.openai.com/v1`."""
    api_key: SecretStr
    parallel_flag: bool | None = None
    """The value of `parallel_tool_calls`; None: the server does not know the field."""
    tool_choice_required: bool = True
    """Whether the server knows `tool_choice: required` and a named function; else `auto` is asked instead."""
    echo_reasoning: bool = True
    """Whether the model gets its own reasoning back in later rounds."""
    connections: int = 4000
    """The most requests at once."""
    silence_seconds: float = 30.0
    """An answer that began and in which nothing comes for so long is given up."""
    extra: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """More fields of each request, such as `temperature`."""


class OpenAIChat:
    """A ChatModel over the openai package. Asks once; `ResilientModel` asks again."""

    def __init__(self, profile: OpenAIProfile, clock: Clock) -> None:
        self.name = profile.name
        self._profile = profile
        self._clock = clock
        self._transport: OpenAITransport | None = None
        self._opening = asyncio.Lock()
        head = orjson.dumps({"model": profile.model, **profile.extra})
        self._head = head.removesuffix(b"}")

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The model's answer. Raises ModelError as `read_body` does, `transient` for a connection that fails, and
        `timeout` when `request.timeout_seconds` have passed."""
        body = self.encode(request)
        try:
            async with asyncio.timeout(request.timeout_seconds):
                transport = self._transport or await self._open()
                status, headers, answer = await transport.post_chat(body)
        except TimeoutError:
            raise ModelError(
                ErrorCode.TIMEOUT, f"no answer within {request.timeout_seconds:.1f} s", retryable=True
            ) from None
        return read_body(status, headers, answer, self._clock.now())

    def encode(self, request: ModelRequest) -> bytes:
        """The bytes of the request's body: what every request shares, the functions, then the messages."""
        parts = [self._head]
        if request.offer is not None and request.offer.functions:
            parts += [b',"tools":', encode_tools(request.offer), self._tool_choice(request.tool_choice)]
            if self._profile.parallel_flag is not None:
                parts.append(b',"parallel_tool_calls":%b' % orjson.dumps(self._profile.parallel_flag))
        parts += [b',"messages":', encode_messages(request.messages, echo_reasoning=self._profile.echo_reasoning), b"}"]
        return b"".join(parts)

    async def probe(self) -> str:
        """One line that says how fast the model answered a word. Raises ModelError when it did not."""
        began = self._clock.monotonic()
        hello = ModelMessage("user", "Say OK.")
        answer = await self.complete(ModelRequest([hello], timeout_seconds=_PROBE_SECONDS))
        seconds = self._clock.monotonic() - began
        return f"{answer.model or self._profile.model} answered in {seconds:.1f} s"

    async def close(self) -> None:
        """Close the connections; the model is not used afterwards."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    def _tool_choice(self, choice: str) -> bytes:
        if choice == "auto" or (choice != "none" and not self._profile.tool_choice_required):
            return b""
        if choice in _MODES:
            return b',"tool_choice":"%b"' % choice.encode()
        return b',"tool_choice":' + orjson.dumps({"type": "function", "function": {"name": choice}})

    async def _open(self) -> OpenAITransport:
        async with self._opening:
            if self._transport is None:
                # In a thread: importing openai would stop all chats for most of a second.
                module = await asyncio.to_thread(importlib.import_module, "services.llm.openai_transport")
                profile = self._profile
                self._transport = module.OpenAITransport(
                    profile.base_url, profile.api_key, profile.connections, profile.silence_seconds, self._clock
                )
            return self._transport
