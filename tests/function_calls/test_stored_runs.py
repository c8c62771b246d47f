"""Stored runs from before a restart, when the turn reaches them again."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from config.texts import Texts
from function_calls.spec import FunctionResult, Touch
from function_calls.turn import NoTurnLog, StoredRun
from services.refs import ErrorCode
from tests.fakes.functions import Recorder
from tests.function_calls.routing import Routing

EN = Texts().of("en")


class Remembers(NoTurnLog):
    """Knows these runs by the ends of their keys."""

    def __init__(self, **runs: StoredRun) -> None:
        super().__init__()
        self._stored = runs

    def stored_run(self, key: str) -> StoredRun | None:
        return self._stored.get("inner" if key.endswith(":0.0") else "outer")


@pytest.mark.requirement("D37")
async def test_what_a_stored_result_confesses_is_still_in_what_is_made_of_it() -> None:
    async def passes_on(context: Any, arguments: Any, call: Any) -> FunctionResult:
        return FunctionResult(data=(await call.invoke("inner", {})).data)

    inner, outer = Recorder("inner"), Recorder("outer", does=passes_on)
    routing = Routing(inner, outer)
    for result, is_outside in ((FunctionResult(data="a page", outside=True), True), (FunctionResult(data=7), False)):
        turn = routing.a_turn(log=Remembers(inner=StoredRun("inner", result)))
        assert (await routing.invoke("outer", turn=turn)).outside is is_outside
        assert (Touch.READS_OUTSIDE in turn.memory.taint) is is_outside
    assert (len(outer.runs), inner.runs) == (2, [])


@pytest.mark.parametrize(("stored", "name"), [("pay", "/buy"), ("gone_since", "gone since")])
async def test_a_stored_run_of_another_function_is_unknown_by_the_name_that_people_know(stored: str, name: str) -> None:
    routing = Routing(Recorder("act"), Recorder("pay", commands=["buy"]))
    with capture_logs() as logs:
        result = await routing.invoke(
            "act", turn=routing.a_turn(log=Remembers(outer=StoredRun(stored, FunctionResult())))
        )
    assert result.error is not None
    assert (result.error.code, result.error.text) == (
        ErrorCode.UNKNOWN_OUTCOME,
        EN.say("failures.unknown_outcome", name=name),
    )
    assert [(one["event"], one["stored"], one["asked"]) for one in logs] == [("ledger_mismatch", stored, "act")]
