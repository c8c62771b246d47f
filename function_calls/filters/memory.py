"""The filter `memory`: what functions write into a turn's state is there in the same member's next turns in that chat.
It is for functions alone: no model is shown it, and no other member or chat ever has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from function_calls.context import MessageContext
from function_calls.filters.turn import TurnFilter
from function_calls.find_functions import FOUND
from function_calls.outcome import Dispatch, TurnOutcome
from function_calls.turn import Turn
from services.clock import Clock
from services.store import turn_memory
from services.store.port import Store

_LONGEST = 100_000
_MINUTE_MS = 60_000


def memory(store: Store, minutes: int, clock: Clock) -> TurnFilter:
    """Keeps a state for `minutes` after the last turn that changed it; one of more than 100 kB is not kept."""

    async def around(context: MessageContext, turn: Turn, dispatch: Dispatch) -> TurnOutcome:
        chat, member = context.chat.key, turn.whose(context).sender.ref.key
        rows = await store.read(turn_memory.get(chat, member, clock.now_ms()))
        before = rows[0]["state"] if rows else "{}"
        turn.state.update(orjson.loads(before))
        outcome = _without(orjson.loads(before), await dispatch(context, turn))
        # What was found is on offer for the rest of its turn; kept, the offer would grow from turn to turn.
        state = {key: value for key, value in turn.state.items() if key != FOUND}
        after = orjson.dumps(state, default=str).decode()
        if after != before and len(after) <= _LONGEST:
            store.post([turn_memory.keep(chat, member, after, clock.now_ms() + minutes * _MINUTE_MS)])
        return outcome

    return around


def _without(known: dict[str, Any], outcome: TurnOutcome) -> TurnOutcome:
    """`outcome`, its question without what was known before the turn: until it is answered that may change, and then
    it is read anew."""
    question = outcome.question
    if question is None:
        return outcome
    on = question.continuation
    changed = {key: value for key, value in on.state.items() if key not in known or known[key] != value}
    return replace(outcome, question=replace(question, continuation=replace(on, state=changed)))
