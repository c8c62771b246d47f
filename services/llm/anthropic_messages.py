"""Models behind the Anthropic messages protocol."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import orjson

from services.clock import Clock
from services.llm.anthropic_answers import read_body
from services.llm.anthropic_encoding import encode_conversation, encode_tools
from services.llm.encoding import guided
from services.llm.model import ModelAnswer, ModelRequest
from services.llm.profile import ModelProfile
from services.llm.provider import Provider, say_hello

_VERSION = "2023-06-01"
_USUAL_MAX_TOKENS = 4096
"""The wire knows no request without a limit; `max_tokens` in the profile's extra fields sets another one."""
_MODES = {"none": "none", "required": "any", "auto": "auto"}


class AnthropicMessages:
    """A ChatModel over HTTP. Asks once; `ResilientModel` asks again."""

    def __init__(self, profile: ModelProfile, clock: Clock) -> None:
        self.name = profile.name
        self._profile = profile
        self._clock = clock
        headers = {"x-api-key": profile.api_key.get_secret_value(), "anthropic-version": _VERSION}
        self._provider = Provider(profile.endpoint("messages", MappingProxyType(headers), bearer=False), clock)
        head = orjson.dumps({"model": profile.model, "max_tokens": _USUAL_MAX_TOKENS, **profile.extra})
        self._head = head.removesuffix(b"}")

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The model's answer. Raises ModelError as `Provider.post` and `read` do."""
        status, headers, answer = await self._provider.post(self.encode(request), request.timeout_seconds)
        return self.read(request, status, headers, answer)

    def read(self, request: ModelRequest, status: int, headers: Mapping[str, str], answer: bytes) -> ModelAnswer:
        """What the server's response to `request` says. Raises ModelError as `read_body` does."""
        return read_body(status, headers, answer, self._clock.now())

    def encode(self, request: ModelRequest) -> bytes:
        """The bytes of the request's body: what every request shares, the functions, the instructions, the turns."""
        parts = [self._head]
        if request.offer is not None and request.offer.functions:
            parts += [b',"tools":', encode_tools(request.offer), self._tool_choice(request.tool_choice)]
        system, turns = encode_conversation(guided(request), echo_reasoning=self._profile.echo_reasoning)
        if system != b"[]":
            parts += [b',"system":', system]
        parts += [b',"messages":', turns, b"}"]
        return b"".join(parts)

    async def probe(self) -> str:
        """One line that says how fast the model answered a word. Raises ModelError when it did not."""
        return await say_hello(self, self._profile.model, self._clock)

    async def close(self) -> None:
        """Close the connections; the model is not used afterwards."""
        await self._provider.close()

    def _tool_choice(self, choice: str) -> bytes:
        if choice not in ("auto", "none") and not self._profile.tool_choice_required:
            choice = "auto"
        wanted: dict[str, str | bool] = (
            {"type": _MODES[choice]} if choice in _MODES else {"type": "tool", "name": choice}
        )
        if choice != "none" and self._profile.parallel_flag is not None:
            wanted["disable_parallel_tool_use"] = not self._profile.parallel_flag
        return b"" if wanted == {"type": "auto"} else b',"tool_choice":' + orjson.dumps(wanted)
