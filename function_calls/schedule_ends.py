"""What a chat hears of a schedule's run that did not work: once, not every morning; and what pauses it."""

from __future__ import annotations

from dataclasses import replace

from function_calls.context import MessageContext
from function_calls.failures import LASTS, REFUSED_BY
from function_calls.spec import FunctionError, FunctionResult
from function_calls.turn import Turn
from services.refs import ErrorCode
from services.schedules import Schedules
from services.timer import Timer

_DO_NOT_FIT = frozenset({ErrorCode.BAD_ARGUMENTS, ErrorCode.MISSING_ARGUMENTS})


class ScheduleEnds:
    """Asked by the router how a run by the clock ends for the chat."""

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def ended(self, context: MessageContext, result: FunctionResult, turn: Turn) -> FunctionResult | None:
        """`result` as the chat is to have it. A failure that may pass is told once in a row of them; one that nothing
        would mend pauses the schedule. None for what no schedule began, and for an effect of which nobody knows."""
        called = context.timer
        if called is None or result.ok:
            return None
        if result.error is not None and result.error.code is ErrorCode.UNKNOWN_OUTCOME:
            return None
        timer = await self._schedules.of_id(called.timer_id)
        if timer is None:
            return None
        failure = _as_failure(result, turn)
        if _is_for_good(called.function, failure, turn):
            await self._schedules.rest(timer, call_key=f"{turn.id}:pause")
            return _said("schedules.could_not_run", failure, timer, turn)
        if await self._schedules.failed_before(timer.id, int(turn.id)):
            # The log has it, and so has the list.
            return failure.with_error_text("")
        return _said("schedules.failed", failure, timer, turn)


def _as_failure(result: FunctionResult, turn: Turn) -> FunctionResult:
    """By the clock a question has nobody to answer it."""
    if result.question is None:
        return result
    error = FunctionError(ErrorCode.REFUSED, turn.profile().texts.say("schedules.would_ask"))
    return replace(result, question=None, error=error, metadata={REFUSED_BY: "schedules", LASTS: True})


def _is_for_good(function: str, failure: FunctionResult, turn: Turn) -> bool:
    """Whether it would be the same the next time, unless somebody does something about it."""
    error = failure.error
    if error is None or turn.functions.find(function) is None:
        return True
    if error.code is ErrorCode.REFUSED:
        return LASTS in failure.metadata
    return error.code in _DO_NOT_FIT


def _said(key: str, failure: FunctionResult, timer: Timer, turn: Turn) -> FunctionResult:
    reason = failure.error.text if failure.error is not None else ""
    text = turn.profile().texts.say(key, line=timer.title, number=timer.number, reason=reason)
    return failure.with_error_text(text)
