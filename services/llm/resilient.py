"""Retries of one model within a deadline, and a switch to the text protocol for servers without function calling."""

from __future__ import annotations

import re
from collections.abc import Callable

import structlog

from services.clock import Clock
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest
from services.patterns import lazy_pattern
from services.retry import Retry, RetryDecision


class ResilientModel:
    """A ChatModel around another. `request.timeout_seconds` holds for all attempts and the waits between them."""

    def __init__(
        self,
        model: ChatModel,
        retry: Retry,
        clock: Clock,
        timeout_seconds: float | None = None,
        *,
        patience_seconds: float | None = None,
    ) -> None:
        """`timeout_seconds` ends every question by then, however much time the request leaves. A provider that asks for
        a longer wait than `patience_seconds` is not asked again."""
        self.name = model.name
        self._model = model
        self._retry = retry
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = patience_seconds

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The model's answer. Raises the last ModelError: at once when it will not pass by itself, or when the
        provider asks for a longer wait than is left (the error's `retry_after_seconds` says how long)."""
        seconds = request.timeout_seconds
        if self._timeout_seconds is not None:
            seconds = min(seconds, self._timeout_seconds)
        deadline = self._clock.monotonic() + seconds

        async def attempt() -> ModelAnswer:
            return await self._model.complete(self._within(request, deadline))

        return await self._retry.run(attempt, on=ModelError, judge=self._judge, deadline=deadline)

    async def probe(self) -> str:
        """One short line that says the model can be reached. Raises ModelError when not; asks once."""
        return await self._model.probe()

    async def close(self) -> None:
        """Free the connections of the model inside."""
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
    """A ChatModel with function calling that goes over to another way of speaking when its server refuses tools. It
    does not go back: what the server can do is asked again at the next start."""

    def __init__(self, native: ChatModel, in_prose: Callable[[], ChatModel]) -> None:
        """`in_prose` makes the model that is asked from then on."""
        self.name = native.name
        self._native = native
        self._in_prose = in_prose
        self._instead: ChatModel | None = None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The model's answer. Raises ModelError."""
        if self._instead is not None:
            return await self._instead.complete(request)
        try:
            return await self._native.complete(request)
        except ModelError as error:
            if not refuses_tools(error):
                raise
            instead = self._degraded(error)
        return await instead.complete(request)

    async def probe(self) -> str:
        """One line that says the model can be reached, and how it is spoken to. Raises ModelError when not."""
        if self._instead is None:
            try:
                return await self._native.probe()
            except ModelError as error:
                if not refuses_tools(error):
                    raise
                self._degraded(error)
        return f"{await self._degraded().probe()}, without function calling: calls are read from its text"

    async def close(self) -> None:
        """Free the connections of both."""
        await self._native.close()
        if self._instead is not None:
            await self._instead.close()

    def _degraded(self, error: ModelError | None = None) -> ChatModel:
        if self._instead is None:
            # Said once, though several requests may have been under way.
            _log.warning("model_without_tools", model=self.name, error=str(error), spoken_to="json_text")
            self._instead = self._in_prose()
        return self._instead


def refuses_tools(error: ModelError) -> bool:
    """Whether a provider's refusal says that this model, or its server, knows no function calling."""
    return error.status in _STATUSES and _REFUSALS.search(str(error)) is not None
