"""Protocol of call filters, which wrap every run of a function: they act before, after or instead of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import FunctionResult, FunctionSpec


@dataclass(slots=True)
class Invocation:
    """One run as passed to filters. A filter may replace the arguments before it calls `proceed`."""

    context: MessageContext
    spec: FunctionSpec
    arguments: Any
    call: Call


Proceed = Callable[[Invocation], Awaitable[FunctionResult]]
CallFilter = Callable[[Invocation, Proceed], Awaitable[FunctionResult]]
"""`async def f(invocation, proceed)`: not calling `proceed` short-circuits; calling it again repeats the run."""


def chain(spec: FunctionSpec, filters: Sequence[CallFilter]) -> Proceed:
    """The handler wrapped in `filters`, the first one outermost. Built once for each function."""
    handler = spec.handler

    def run(invocation: Invocation) -> Awaitable[FunctionResult]:
        invocation.call.start_attempt()
        return handler(invocation.context, invocation.arguments, invocation.call)

    proceed: Proceed = run
    for one in reversed(filters):
        proceed = _around(one, proceed)
    return proceed


def _around(one: CallFilter, inner: Proceed) -> Proceed:
    # A plain function: a coroutine per layer, only to await the next, would cost as much as a filter.
    def run(invocation: Invocation) -> Awaitable[FunctionResult]:
        return one(invocation, inner)

    return run
