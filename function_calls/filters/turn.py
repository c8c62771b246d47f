"""A turn filter stands around the answering of one message: before, after, or instead of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from function_calls.context import MessageContext
from function_calls.outcome import Dispatch, TurnOutcome
from function_calls.turn import Turn

TurnFilter = Callable[[MessageContext, Turn, Dispatch], Awaitable[TurnOutcome]]
"""`async def f(message, turn, dispatch)`: without calling `dispatch(message, turn)` nothing is routed."""


def turn_chain(dispatch: Dispatch, filters: Sequence[TurnFilter]) -> Dispatch:
    """`dispatch` with `filters` around it, the first one outermost; `dispatch` itself where there are none."""
    for one in reversed(filters):
        dispatch = _around(one, dispatch)
    return dispatch


def _around(one: TurnFilter, inner: Dispatch) -> Dispatch:
    def run(context: MessageContext, turn: Turn) -> Awaitable[TurnOutcome]:
        return one(context, turn, inner)

    return run
