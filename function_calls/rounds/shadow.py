"""Shadow mode: a second model repeats the first decision of a turn after the reply was sent. Its calls are never run or
sent to a chat, only compared and recorded."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import structlog

from config.sections.models import ShadowSettings
from function_calls.filters.round import Ask, Round
from services.clock import Clock
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest, Offer
from services.refs import ChatRef, ErrorCode

_log = structlog.get_logger("shadow")
_HOUR_SECONDS = 3600.0
_MOST_PENDING = 1000
_NO_FUNCTION = "none"


@dataclass(frozen=True, slots=True)
class Decision:
    """First decision of a model: its calls in order, empty for a text answer, or its error."""

    calls: tuple[tuple[str, dict[str, Any] | None], ...] = ()
    """Original function names with arguments; None for arguments that could not be parsed."""
    error: ErrorCode | None = None
    duration_us: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The decisions of both models on a message."""

    turn_id: str
    chat: ChatRef
    acted: Decision
    """Decision of the model that answers."""
    shadow: Decision

    @property
    def same_functions(self) -> bool:
        """Whether both call the same functions in the same order."""
        return [name for name, _ in self.acted.calls] == [name for name, _ in self.shadow.calls]

    @property
    def differing_arguments(self) -> list[str]:
        """Unequal arguments as `function.argument`, if both call the same functions."""
        if not self.same_functions:
            return []
        differing: list[str] = []
        for (name, ours), (_, theirs) in zip(self.acted.calls, self.shadow.calls, strict=True):
            ours, theirs = ours or {}, theirs or {}
            differing += [f"{name}.{key}" for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        return differing

    @property
    def agrees(self) -> bool:
        """Whether both decisions are equal; False if either failed."""
        failed = self.acted.error is not None or self.shadow.error is not None
        return not failed and self.same_functions and not self.differing_arguments


class _Asked(NamedTuple):
    turn_id: str
    chat: ChatRef
    request: ModelRequest
    acted: Decision


class Shadow:
    """Sends requests to the second model within its own limits. Costs a turn only a reference to its first request."""

    def __init__(
        self,
        model: ChatModel,
        settings: ShadowSettings,
        clock: Clock,
        record: Callable[[Comparison], None],
        delivered: Callable[[ChatRef], Awaitable[None]],
    ) -> None:
        """`delivered` returns when the pending messages of a chat have been sent."""
        self._model = model
        self._settings = settings
        self._clock = clock
        self._record = record
        self._delivered = delivered
        self._pending: dict[str, _Asked] = {}
        self._waiting: deque[_Asked] = deque()
        self._started_at: deque[float] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self.dropped: Counter[str] = Counter()
        """Number of skipped requests by the limiting setting."""

    async def around(self, round_: Round, ask: Ask) -> ModelAnswer:
        """Innermost round filter: records the first request of a turn and its decision."""
        if round_.number:
            return await ask(round_)
        # Copied, because the list of messages grows in place.
        request = replace(round_.request, messages=tuple(round_.request.messages))
        began = self._clock.monotonic()
        try:
            answer = await ask(round_)
        except ModelError as error:
            self._note(round_, request, Decision(error=error.code, duration_us=self._since(began)))
            raise
        self._note(round_, request, _decided(answer, request.offer, self._since(began)))
        return answer

    def turn_ended(self, turn_id: str, chat: ChatRef) -> None:
        """Queue the turn's request; its reply has been handed to delivery."""
        asked = self._pending.pop(turn_id, None)
        if asked is None:
            return
        now = self._clock.monotonic()
        while self._started_at and self._started_at[0] <= now - _HOUR_SECONDS:
            self._started_at.popleft()
        if len(self._started_at) >= self._settings.max_per_hour:
            self.dropped["max_per_hour"] += 1
        elif len(self._waiting) >= self._settings.queue:
            self.dropped["queue"] += 1
        else:
            self._started_at.append(now)
            self._waiting.append(asked)
            self._start_next()

    async def idle(self) -> None:
        """Wait until the queue is empty."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def close(self) -> None:
        """Cancel running requests, drop queued ones and close the model."""
        self._waiting.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._model.close()

    def _note(self, round_: Round, request: ModelRequest, acted: Decision) -> None:
        if len(self._pending) >= _MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        self._pending[round_.turn.input.id] = _Asked(round_.turn.input.id, round_.context.chat, request, acted)

    def _start_next(self) -> None:
        if self._waiting and len(self._tasks) < self._settings.parallel:
            task = asyncio.create_task(self._work(), name="shadow")
            self._tasks.add(task)
            task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        problem = task.exception()
        if problem is not None:
            _log.error("shadow_failed", exc_info=problem)
        self._start_next()

    async def _work(self) -> None:
        while self._waiting:
            asked = self._waiting.popleft()
            await self._delivered(asked.chat)
            shadow = await self._decision(asked.request)
            self._record(Comparison(asked.turn_id, asked.chat, asked.acted, shadow))

    async def _decision(self, request: ModelRequest) -> Decision:
        began = self._clock.monotonic()
        try:
            answer = await self._model.complete(replace(request, timeout_seconds=self._settings.timeout_seconds))
        except ModelError as error:
            return Decision(error=error.code, duration_us=self._since(began))
        return _decided(answer, request.offer, self._since(began))

    def _since(self, began: float) -> int:
        return int((self._clock.monotonic() - began) * 1e6)


def _decided(answer: ModelAnswer, offer: Offer | None, duration_us: int) -> Decision:
    names = {} if offer is None else offer.by_name
    calls = [
        (names[call.name].original if call.name in names else call.name, call.arguments)
        for call in answer.calls
        if call.name != _NO_FUNCTION or call.name in names
    ]
    return Decision(tuple(calls), duration_us=duration_us)
