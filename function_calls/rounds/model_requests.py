"""One model request with its filters, budget reservation and outage notices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog

from function_calls.checks.budgets import RequestBudgets
from function_calls.context import MessageContext
from function_calls.filters.round import Round, RoundFilter, round_chain
from function_calls.result import storable_text
from function_calls.rounds.conversation import without_history
from function_calls.turn import Notice, Turn
from services.clock import Clock
from services.fault_points import FaultPoints
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest
from services.refs import ModelProblem
from services.store.port import Store
from services.store.turns import audit, budgets

_UNAVAILABLE = frozenset(
    {ModelProblem.OUTAGE, ModelProblem.BUSY, ModelProblem.KEY, ModelProblem.QUOTA, ModelProblem.MISSING}
)
"""Problems that affect every message. Other errors concern a single message and are always reported."""
COUNTER = "outages"
"""Change counter of the notices of outages."""


class Outages:
    """Stores which readers were notified of an outage. An outage starts with a message that no model could answer and
    ends with the next answer of a model, in any process."""

    def __init__(self, store: Store, clock: Clock, say_again_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._say_again_seconds = say_again_seconds
        self._is_on = False
        """Whether the store may have notices."""

    def use(self, say_again_seconds: float) -> None:
        """Set the minimum time between notices in a chat during an outage."""
        self._say_again_seconds = say_again_seconds

    async def was_notified(self, context: MessageContext, error: ModelError) -> bool:
        """Whether the readers of a reply to `context` were recently notified of this outage. Raises StoreError."""
        if error.problem not in _UNAVAILABLE:
            return False
        [row] = await self._store.read(budgets.outage(_readers(context)))
        at_ms = row["at_ms"]
        return at_ms is not None and 0 <= self._clock.now_ms() - at_ms < self._say_again_seconds * 1000

    def notify(self, context: MessageContext, turn: Turn, error: ModelError, text: str) -> None:
        """Record with the end of the turn that the readers are notified by `text`."""
        if error.problem not in _UNAVAILABLE:
            return
        day = self._clock.now().date().isoformat()
        record = budgets.note_outage(_readers(context), day, self._clock.now_ms())
        turn.output.notices += (Notice(text, record),)
        self._is_on = True
        # The next answer of a model may be in another process.
        self._store.post([audit.touch(COUNTER)])

    async def begin(self) -> None:
        """Expect notices in the store, as another process has added some."""
        self._is_on = True

    def end(self) -> None:
        """End the outage, since a model answered."""
        if self._is_on:
            self._is_on = False
            self._store.post([budgets.END_OUTAGES])


def _readers(context: MessageContext) -> str:
    return f"{context.chat.key} {context.sender.ref.key}" if context.private else context.chat.key


_log = structlog.get_logger("asking")

RecordAnswer = Callable[[str, int, ModelAnswer, int, Sequence[str]], None]
"""Records a model request: turn id, round number, answer, duration in microseconds, names of the offered functions."""


def not_recorded(
    turn_id: str, round_number: int, answer: ModelAnswer, duration_us: int, offered: Sequence[str]
) -> None:
    """Record nothing."""


class ModelRequests:
    """Sends the model requests of turns, with filters, budgets and outage tracking."""

    def __init__(
        self,
        model: ChatModel,
        clock: Clock,
        outages: Outages | None,
        *,
        filters: Sequence[RoundFilter] = (),
        record: RecordAnswer = not_recorded,
        faults: FaultPoints | None = None,
        budgets: RequestBudgets | None = None,
    ) -> None:
        """`filters` wrap every request, the first one outermost. Without `budgets` nothing is counted."""
        self._model = model
        self._clock = clock
        self._outages = outages
        self._record = record
        self._reach = (faults or FaultPoints()).reach
        self._budgets = budgets
        self.ask = round_chain(self._record_answer, filters)
        """The model's answer to a round. Sets `Round.writes` to the writes to commit with it. Raises ModelError and
        OverBudget."""

    async def _record_answer(self, round_: Round) -> ModelAnswer:
        self._reach("route.before_llm")
        began = self._clock.monotonic()
        answer = _storable(await self._answer(round_))
        if self._outages is not None:
            self._outages.end()
        self._reach("llm.after_response_before_persist")
        duration_us, offer = int((self._clock.monotonic() - began) * 1e6), round_.request.offer
        self._record(round_.turn.input.id, round_.number, answer, duration_us, () if offer is None else offer.names)
        return answer

    async def _answer(self, round_: Round) -> ModelAnswer:
        """Request an answer. If the request is too long, retry once without the chat's history."""
        request = round_.request
        try:
            return await self._once(round_, request)
        except ModelError as error:
            shorter = without_history(request.messages)
            if error.problem is not ModelProblem.TOO_LONG or len(shorter) == len(request.messages):
                raise
            _log.warning("asked_again_without_history", turn=round_.turn.input.id, error=str(error))
        return await self._once(round_, replace(request, messages=shorter))

    def _once(self, round_: Round, request: ModelRequest) -> Awaitable[ModelAnswer]:
        if self._budgets is None:
            return self._model.complete(request)
        return self._paid(round_, request, self._budgets)

    async def _paid(self, round_: Round, request: ModelRequest, budgets: RequestBudgets) -> ModelAnswer:
        reservation = await budgets.reserve(round_.context, round_.turn, request)
        try:
            answer = await self._model.complete(request)
        except ModelError as error:
            budgets.refund(reservation, error)
            raise
        round_.writes = (*round_.writes, *budgets.settled(reservation, answer))
        return answer


def _storable(answer: ModelAnswer) -> ModelAnswer:
    """`answer` with texts that every store and network accepts. The calls stay unchanged: their arguments are parsed
    without loss or not at all."""
    everything = f"{answer.text}{answer.finish}{answer.model}{answer.request_id}"
    if storable_text(everything) == everything:
        return answer
    return replace(
        answer,
        text=storable_text(answer.text),
        finish=storable_text(answer.finish),
        model=storable_text(answer.model),
        request_id=storable_text(answer.request_id),
    )
