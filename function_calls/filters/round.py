"""A round filter stands around one request to the model: it may change the request, the answer, or answer instead. What
may be called is not its business: `invoke` checks every call whatever was offered or answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from function_calls.context import MessageContext
from function_calls.turn import Turn
from services.llm.model import ModelAnswer, ModelRequest
from services.store.port import Write


@dataclass(slots=True)
class Round:
    """One request to the model. A filter may replace `request` before it asks; its messages are the turn's own list,
    which a filter never changes in place."""

    context: MessageContext
    turn: Turn
    number: int
    """0 for the first request of a turn."""
    request: ModelRequest
    writes: tuple[Write, ...] = ()
    """What has to be in the store together with the answer."""


Ask = Callable[[Round], Awaitable[ModelAnswer]]
RoundFilter = Callable[[Round, Ask], Awaitable[ModelAnswer]]
"""`async def f(round, ask)`: not calling `ask` answers instead of the model; calling it again asks again. `ask` raises
ModelError. An answer that is stored from before a crash passed the filters then, and does not pass them again."""


def round_chain(ask: Ask, filters: Sequence[RoundFilter]) -> Ask:
    """`ask` with `filters` around it, the first one outermost; `ask` itself where there are none."""
    for one in reversed(filters):
        ask = _around(one, ask)
    return ask


def _around(one: RoundFilter, inner: Ask) -> Ask:
    def run(round_: Round) -> Awaitable[ModelAnswer]:
        return one(round_, inner)

    return run
