"""Protocol of turn filters, which wrap the processing of one message: they act before, after or instead of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from function_calls.context import MessageContext
from function_calls.outcome import Dispatch, TurnOutcome
from function_calls.turn import Turn

TurnFilter = Callable[[MessageContext, Turn, Dispatch], Awaitable[TurnOutcome]]
"""`async def f(message, turn, dispatch)`: the message is routed only if the filter calls `dispatch(message, turn)`."""


def turn_chain(dispatch: Dispatch, filters: Sequence[TurnFilter]) -> Dispatch:
    """`dispatch` wrapped in `filters`, the first one outermost; `dispatch` itself if `filters` is empty."""
    for one in reversed(filters):
        dispatch = _around(one, dispatch)
    return dispatch


def _around(one: TurnFilter, inner: Dispatch) -> Dispatch:
    def run(context: MessageContext, turn: Turn) -> Awaitable[TurnOutcome]:
        return one(context, turn, inner)

    return run
