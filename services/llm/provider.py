"""Provider's server as model protocols use it: request and response bodies as bytes."""

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
    """HTTP client of one model server; connects on first use."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._transport: ProviderTransport | None = None
        self._opening = asyncio.Lock()

    async def post(self, body: bytes, timeout_seconds: float) -> tuple[int, Mapping[str, str], bytes]:
        """POST `body`; returns status, headers and body. The body is cut after 8 MiB and one byte. Raises ModelError
        for an error status, a failed connection (`transient`) or after `timeout_seconds` (`timeout`)."""
        try:
            async with asyncio.timeout(timeout_seconds):
                transport = self._transport or await self._open()
                parcel = transport.packed(body)
                del body  # frees the request body while waiting for the answer
                return await transport.post(parcel)
        except TimeoutError:
            raise ModelError(ErrorCode.TIMEOUT, f"no answer within {timeout_seconds:.1f} s", retryable=True) from None

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    async def _open(self) -> ProviderTransport:
        async with self._opening:
            if self._transport is None:
                # In a thread: importing openai blocks for most of a second.
                module = await asyncio.to_thread(importlib.import_module, "services.llm.transport")
                self._transport = module.ProviderTransport(self._endpoint, self._clock)
            return self._transport


async def say_hello(model: ChatModel, usual_name: str, clock: Clock, offer: Offer | None = None) -> str:
    """Send a short message (timeout 20 seconds); returns one line with the response time of `model`. An `offer` also
    tests whether the server accepts functions. Raises ModelError if there is no answer."""
    began = clock.monotonic()
    hello = ModelRequest([ModelMessage("user", "Say OK.")], offer, timeout_seconds=_PROBE_SECONDS)
    answer = await model.complete(hello)
    return f"{answer.model or usual_name} answered in {clock.monotonic() - began:.1f} s"
