"""Protocol of round filters, which wrap one model request: they may change the request or the answer, or answer
instead. Permissions do not depend on them: `invoke` checks every call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from function_calls.context import MessageContext
from function_calls.turn import Turn
from services.llm.model import ModelAnswer, ModelRequest
from services.store.port import Write


@dataclass(slots=True)
class Round:
    """One model request. A filter may replace `request` before it calls `ask`, but must not modify its messages in
    place: the list belongs to the turn."""

    context: MessageContext
    turn: Turn
    number: int
    """0 for the first request of a turn."""
    request: ModelRequest
    writes: tuple[Write, ...] = ()
    """Writes to commit together with the answer."""


Ask = Callable[[Round], Awaitable[ModelAnswer]]
RoundFilter = Callable[[Round, Ask], Awaitable[ModelAnswer]]
"""`async def f(round, ask)`: return without calling `ask` to answer instead of the model; call it again to retry. `ask`
raises ModelError. A stored answer from before a crash has already passed the filters and does not pass them again."""


def round_chain(ask: Ask, filters: Sequence[RoundFilter]) -> Ask:
    """`ask` wrapped in `filters`, the first one outermost; `ask` itself if `filters` is empty."""
    for one in reversed(filters):
        ask = _around(one, ask)
    return ask


def _around(one: RoundFilter, inner: Ask) -> Ask:
    def run(round_: Round) -> Awaitable[ModelAnswer]:
        return one(round_, inner)

    return run
