"""A provider's server as model protocols use it: bytes are posted, and the answer comes back as bytes."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.clock import Clock
from services.llm.model import ChatModel, ModelError, ModelMessage, ModelRequest, Offer
from services.llm.profile import Endpoint
from services.refs import ErrorCode

if TYPE_CHECKING:
    from services.llm.transport import ProviderTransport

_PROBE_SECONDS = 20.0


class Provider:
    """One server; connected when it is first asked."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._transport: ProviderTransport | None = None
        self._opening = asyncio.Lock()

    async def post(self, body: bytes, timeout_seconds: float) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer. Raises ModelError for a refusal, `transient` for a connection that
        fails, and `timeout` when `timeout_seconds` have passed."""
        try:
            async with asyncio.timeout(timeout_seconds):
                transport = self._transport or await self._open()
                parcel = transport.packed(body)
                del body  # Whoever waits for an answer does not hold the question.
                return await transport.post(parcel)
        except TimeoutError:
            raise ModelError(ErrorCode.TIMEOUT, f"no answer within {timeout_seconds:.1f} s", retryable=True) from None

    async def close(self) -> None:
        """Close the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    async def _open(self) -> ProviderTransport:
        async with self._opening:
            if self._transport is None:
                # In a thread: importing openai would stop all chats for most of a second.
                module = await asyncio.to_thread(importlib.import_module, "services.llm.transport")
                self._transport = module.ProviderTransport(self._endpoint, self._clock)
            return self._transport


async def say_hello(model: ChatModel, usual_name: str, clock: Clock, offer: Offer | None = None) -> str:
    """One line that says how fast `model` answered a word. With an `offer`, a server that takes no functions shows
    itself. Raises ModelError when there is no answer."""
    began = clock.monotonic()
    hello = ModelRequest([ModelMessage("user", "Say OK.")], offer, timeout_seconds=_PROBE_SECONDS)
    answer = await model.complete(hello)
    return f"{answer.model or usual_name} answered in {clock.monotonic() - began:.1f} s"
