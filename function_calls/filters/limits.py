"""The filter `limits`: runs that come too often are refused. Budgets of tokens and money are checks of `invoke`; this
only slows somebody down."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from function_calls.filters.call import Invocation, Proceed
from function_calls.spec import FunctionResult
from services.clock import Clock
from services.refs import ErrorCode

_WINDOW_SECONDS = 60.0
_MOST_KEPT = 10_000


class Limits:
    """Counts runs in the last 60 seconds, for each member or each chat; the ten thousand latest are kept apart."""

    def __init__(self, calls_per_minute: int, counted_by: str, setting: str, clock: Clock) -> None:
        """`setting` is the key that `/why` names."""
        self._most = calls_per_minute
        self._by_member = counted_by == "member"
        self._setting = setting
        self._clock = clock
        self._runs: dict[str, deque[tuple[float, str]]] = {}

    async def __call__(self, invocation: Invocation, proceed: Proceed) -> FunctionResult:
        """The run, or the refusal when there were too many."""
        if invocation.spec.immediate:
            # Whoever was too fast can still stop what runs.
            return await proceed(invocation)
        await invocation.call.until_kept()
        context, key = invocation.context, invocation.call.key
        runs = self._of(context.sender.ref.key if self._by_member else context.chat.key)
        now = self._clock.monotonic()
        while runs and runs[0][0] <= now - _WINDOW_SECONDS:
            runs.popleft()
        # A further attempt of the same run is no further run.
        if not any(known == key for _, known in runs):
            if len(runs) >= self._most:
                text = invocation.call.say("filters.too_often", name=invocation.spec.name)
                refused = FunctionResult.fail(ErrorCode.REFUSED, text)
                return replace(refused, metadata={"refused_by": f"{self._setting}.calls_per_minute"})
            runs.append((now, key))
        return await proceed(invocation)

    def _of(self, who: str) -> deque[tuple[float, str]]:
        runs = self._runs.pop(who, None)
        if runs is None:
            runs = deque()
            if len(self._runs) >= _MOST_KEPT:
                del self._runs[next(iter(self._runs))]
        self._runs[who] = runs
        return runs
