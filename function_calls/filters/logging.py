"""The filter `logging`: a line in the daemon's log for each turn, round or run, with its duration. The call log and the
log of model requests are always written; this shows what passes at one place among the layers."""

from __future__ import annotations

import logging

import structlog

from function_calls.context import MessageContext
from function_calls.filters.call import CallFilter, Invocation, Proceed
from function_calls.filters.round import Ask, Round, RoundFilter
from function_calls.filters.turn import TurnFilter
from function_calls.outcome import Dispatch, TurnOutcome
from function_calls.spec import FunctionResult
from function_calls.turn import Turn
from services.clock import Clock
from services.llm.model import ModelAnswer, ModelError

_log = structlog.get_logger("filters")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO}


def logged_turns(level: str, clock: Clock) -> TurnFilter:
    """Each turn: its reason, not its texts."""
    number = _LEVELS[level]

    async def around(context: MessageContext, turn: Turn, dispatch: Dispatch) -> TurnOutcome:
        began = clock.monotonic()
        outcome = await dispatch(context, turn)
        duration_ms = _since(began, clock)
        _log.log(number, "turn", turn=turn.id, chat=context.chat.key, reason=outcome.reason.value, ms=duration_ms)
        return outcome

    return around


def logged_rounds(level: str, clock: Clock) -> RoundFilter:
    """Each request to the model: which functions it called, or the code of its failure."""
    number = _LEVELS[level]

    async def around(round_: Round, ask: Ask) -> ModelAnswer:
        began = clock.monotonic()
        facts: dict[str, object] = {"turn": round_.turn.id, "round": round_.number}
        try:
            answer = await ask(round_)
        except ModelError as error:
            _log.log(number, "round", **facts, error=error.code.value, ms=_since(began, clock))
            raise
        _log.log(number, "round", **facts, calls=[call.name for call in answer.calls], ms=_since(began, clock))
        return answer

    return around


def logged_calls(level: str, clock: Clock) -> CallFilter:
    """Each run: its outcome, not its arguments."""
    number = _LEVELS[level]

    async def around(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        began = clock.monotonic()
        result = await proceed(invocation)
        outcome = "ok" if result.error is None else result.error.code.value
        facts = {"function": invocation.spec.name, "key": invocation.call.key}
        _log.log(number, "call", **facts, outcome=outcome, ms=_since(began, clock))
        return result

    return around


def _since(began: float, clock: Clock) -> float:
    return round((clock.monotonic() - began) * 1000, 3)
