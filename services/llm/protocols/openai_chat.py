"""Client of the OpenAI chat completions API, which most providers and local servers support."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from services.clock import Clock
from services.llm.encoding import encode_messages, encode_tools, guided
from services.llm.model import ModelAnswer, ModelRequest, Offer, OfferedFunction
from services.llm.profile import ModelProfile
from services.llm.provider import Provider, say_hello
from services.llm.reading.dialects import reader_for
from services.llm.reading.openai import read_body

_EXAMPLE = OfferedFunction(
    "ready", "ready", "Says that you are ready.", {"type": "object", "properties": {}, "required": []}
)
"""Function offered by a probe."""
_MODES = frozenset({"auto", "none", "required"})


class OpenAIChat:
    """ChatModel over the OpenAI chat completions API. Does not retry; see `ResilientModel`."""

    def __init__(self, profile: ModelProfile, clock: Clock) -> None:
        self.name = profile.name
        self._profile = profile
        self._dialect = profile.dialect
        self._clock = clock
        self._provider = Provider(profile.endpoint("chat/completions"), clock)
        self._heads = profile.heads()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        status, headers, answer = await self._provider.post(self.encode(request), request.timeout_seconds)
        return self.read(request, status, headers, answer)

    def read(self, request: ModelRequest, status: int, headers: Mapping[str, str], answer: bytes) -> ModelAnswer:
        """Parse the server's response to `request`. Raises ModelError as `read_body` does."""
        return read_body(status, headers, answer, self._clock.now(), reader_for(self._dialect, request.offer))

    def encode(self, request: ModelRequest) -> bytes:
        """Encode the request body: constant fields, functions, messages."""
        parts = [self._heads[request.thinks]]
        if request.offer is not None and request.offer.functions:
            parts += [
                b',"tools":',
                encode_tools(request.offer, strict=self._profile.strict),
                self._tool_choice(request.tool_choice),
            ]
            if self._profile.parallel_flag is not None:
                parts.append(b',"parallel_tool_calls":%b' % orjson.dumps(self._profile.parallel_flag))
        parts += [b',"messages":', self._messages(request), b"}"]
        return b"".join(parts)

    def _messages(self, request: ModelRequest) -> bytes:
        profile = self._profile
        return encode_messages(guided(request), echo_reasoning=profile.echo_reasoning, sees=profile.sees)

    async def probe(self) -> str:
        return await say_hello(self, self._profile.model, self._clock, Offer([_EXAMPLE]))

    async def close(self) -> None:
        await self._provider.close()

    def _tool_choice(self, choice: str) -> bytes:
        if choice == "auto" or (choice != "none" and not self._profile.tool_choice_required):
            return b""
        if choice in _MODES:
            return b',"tool_choice":"%b"' % choice.encode()
        return b',"tool_choice":' + orjson.dumps({"type": "function", "function": {"name": choice}})
