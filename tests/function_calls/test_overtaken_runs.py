"""Runs whose intent conflicts with a faster turn, and runs that must only end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from function_calls.checks.permissions import ALLOWED, Open, Policies, PolicyDecision
from function_calls.spec import FunctionResult, Resumed
from function_calls.turn import NoTurnLog, Run, StoredRun
from services.refs import ErrorCode
from services.store.port import Conflict, Write
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.routing import Routing

SPENT = FunctionResult.fail(ErrorCode.REFUSED, "No units are left.")


class TakenFirst(NoTurnLog):
    """Another turn takes the intent's budget first, every time."""

    def __init__(self, stored: StoredRun | None = None) -> None:
        super().__init__()
        self._stored = stored

    def stored_run(self, key: str) -> StoredRun | None:
        return self._stored

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        raise Conflict


class Budget:
    """A budget that is spent after some number of checks."""

    def __init__(self, looks: int) -> None:
        self._left = looks

    async def judge(self, *_: Any) -> PolicyDecision:
        self._left -= 1
        return ALLOWED if self._left >= 0 else PolicyDecision(SPENT)


def with_budget(act: Recorder, looks: int) -> Routing:
    """A chat with this function and this budget."""
    return Routing(act, policies=Policies(Budget(looks), Open()))


async def test_who_was_overtaken_in_the_last_of_a_budget_is_told_so() -> None:
    act = Recorder("act", effect="once")
    routing = with_budget(act, 1)
    result = await routing.invoke("act", turn=routing.a_turn(log=TakenFirst()))
    assert (result, act.runs) == (SPENT, [])


@pytest.mark.parametrize("effect", ["read", "idempotent", "once"])
async def test_what_could_not_be_noted_for_another_reason_than_the_budget_does_not_run(effect: str) -> None:
    act = Recorder("act", effect=effect)
    routing = with_budget(act, 2)
    with pytest.raises(Conflict):
        await routing.invoke("act", turn=routing.a_turn(log=TakenFirst()))
    assert (act.runs, routing.recorded) == ([], [])


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_a_run_that_was_paid_for_before_a_crash_is_never_refused_by_a_budget_that_is_spent_now(
    effect: str,
) -> None:
    act = Recorder("act", effect=effect)
    routing = with_budget(act, 0)
    with pytest.raises(Conflict):
        await routing.invoke("act", turn=routing.a_turn(log=TakenFirst(StoredRun("act", None))))
    assert (act.runs, routing.recorded) == ([], [])


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_what_another_function_was_paid_for_under_the_same_key_pays_for_nothing(effect: str) -> None:
    act = Recorder("act", effect=effect)
    routing = with_budget(act, 0)
    result = await routing.invoke("act", turn=routing.a_turn(log=TakenFirst(StoredRun("other", None))))
    assert (result, act.runs) == (SPENT, [])


@pytest.mark.parametrize("kind", ["expired", "cancelled"])
async def test_a_run_that_is_only_to_end_and_whose_arguments_fit_no_more_is_turned_away_once(kind: Any) -> None:
    act = Recorder("act", CITY, effect="once")
    routing = Routing(act)
    turn = routing.a_turn()
    turn.memory.resume("asked", Resumed({}, "", kind))
    result = await routing.invoke("act", raw={"city": 5}, turn=turn, key="asked")
    assert (result.error and result.error.code, act.runs) == (ErrorCode.BAD_ARGUMENTS, [])
    assert [run.key for run, _ in routing.recorded] == ["asked"]
