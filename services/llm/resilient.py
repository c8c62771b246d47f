"""Retries of a model within a deadline, and fallback to the text protocol for servers without function calling."""

from __future__ import annotations

import re
from collections.abc import Callable

import structlog

from services.clock import Clock
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest
from services.patterns import lazy_pattern
from services.retry import Retry, RetryDecision


class ResilientModel:
    """ChatModel that retries another model. `request.timeout_seconds` covers all attempts and pauses."""

    def __init__(
        self,
        model: ChatModel,
        retry: Retry,
        clock: Clock,
        timeout_seconds: float | None = None,
        *,
        patience_seconds: float | None = None,
    ) -> None:
        """`timeout_seconds` caps the timeout of each request. If a provider's `Retry-After` exceeds `patience_seconds`,
        do not retry."""
        self.name = model.name
        self._model = model
        self._retry = retry
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = patience_seconds

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The model's answer. Raises the last ModelError: at once if it is not retryable or its `retry_after_seconds`
        exceeds the remaining time or the patience."""
        seconds = request.timeout_seconds
        if self._timeout_seconds is not None:
            seconds = min(seconds, self._timeout_seconds)
        deadline = self._clock.monotonic() + seconds

        async def attempt() -> ModelAnswer:
            return await self._model.complete(self._within(request, deadline))

        return await self._retry.run(attempt, on=ModelError, judge=self._judge, deadline=deadline)

    async def probe(self) -> str:
        return await self._model.probe()

    async def close(self) -> None:
        await self._model.close()

    def _within(self, request: ModelRequest, deadline: float) -> ModelRequest:
        seconds = deadline - self._clock.monotonic()
        return request if seconds >= request.timeout_seconds else request.within(seconds, request.messages)

    def _judge(self, error: ModelError) -> RetryDecision:
        wait, patience = error.retry_after_seconds, self._patience_seconds
        too_long = wait is not None and patience is not None and wait > patience
        return RetryDecision(error.retryable and not too_long, wait)


_STATUSES = frozenset({400, 404, 405, 415, 422, 500, 501})
_TOOLS = r"(?:tools?|functions?|tool[ _-](?:use|call(?:ing|s)?)|function[ _-]call(?:ing|s)?)"
_REFUSALS = lazy_pattern(
    rf"""
      (?:\bnot|n['’]t)\s+(?:\w+\s+){{0,3}}?support(?:s|ed)?\b[^.;]{{0,40}}?\b{_TOOLS}\b
    | \b{_TOOLS}\b["'`\]]{{0,2}}(?:\s+\w+){{0,3}}?\s+(?:is|are|was)(?:\s+(?:currently|yet))?\s+
      (?:not\s+(?:\w+\s+)?(?:supported|available|enabled|permitted|allowed)|unsupported|disabled)
    | \b(?:unsupported|unrecognized|unknown|unexpected|extra)\s+(?:\w+\s+){{0,3}}?(?:supplied\s*)?:?\s*["'`\[]{{0,2}}
      (?:tool_choice["'`]?\s*,\s*["'`]?)?tools\b
    | \bno\s+endpoints?\b[^.;]{{0,60}}\btool\s+use\b
    | --enable-auto-tool-choice | \btools\s+param\s+requires\b
    | "tools"\s*\]?[^.;]{{0,40}}(?:extra\s+inputs|extra\s+fields|not\s+permitted)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_log = structlog.get_logger("llm")


class DegradingModel:
    """ChatModel with function calling that switches to a fallback when its server rejects tools. The switch lasts until
    the next start."""

    def __init__(self, native: ChatModel, make_fallback: Callable[[], ChatModel]) -> None:
        """`make_fallback` creates the fallback model, once, when it is first needed."""
        self.name = native.name
        self._native = native
        self._make_fallback = make_fallback
        self._fallback: ChatModel | None = None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The native model's answer, or the fallback's once the server has rejected tools; that request is repeated.
        Raises ModelError."""
        if self._fallback is not None:
            return await self._fallback.complete(request)
        try:
            return await self._native.complete(request)
        except ModelError as error:
            if not refuses_tools(error):
                raise
            fallback = self._degraded(error)
        return await fallback.complete(request)

    async def probe(self) -> str:
        """One line confirming that the model is reachable, and whether it uses the fallback. Raises ModelError."""
        if self._fallback is None:
            try:
                return await self._native.probe()
            except ModelError as error:
                if not refuses_tools(error):
                    raise
                self._degraded(error)
        return f"{await self._degraded().probe()}, without function calling: calls are read from its text"

    async def close(self) -> None:
        """Close both models; the fallback only if it was created."""
        await self._native.close()
        if self._fallback is not None:
            await self._fallback.close()

    def _degraded(self, error: ModelError | None = None) -> ChatModel:
        if self._fallback is None:
            # Log it once, although concurrent requests may fail the same way.
            _log.warning("model_without_tools", model=self.name, error=str(error), spoken_to="json_text")
            self._fallback = self._make_fallback()
        return self._fallback


def refuses_tools(error: ModelError) -> bool:
    """Whether a provider's error says that the model or its server does not support function calling."""
    return error.status in _STATUSES and _REFUSALS.search(str(error)) is not None
