"""A model that is asked again when asking again may help, within one deadline over all attempts."""

from __future__ import annotations

from services.clock import Clock
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest
from services.retry import Retry, Verdict


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

    def _judge(self, error: ModelError) -> Verdict:
        wait, patience = error.retry_after_seconds, self._patience_seconds
        too_long = wait is not None and patience is not None and wait > patience
        return Verdict(error.retryable and not too_long, wait)
