"""A call by a program writes the same records as the same call by a command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from function_calls.spec import ToolError
from services.refs import ErrorCode
from services.store.port import Statement
from services.store.turns.ledger import LEDGER
from tests.fakes.functions import CITY, Recorder
from tests.harness.mcp_programs import Programs, programs

EVERY_RUN = Statement("every run", select(LEDGER))
ROOM = "test:bot:family"
UNITS = {"budgets": {"member": {"units": 1}, "functions": {"act": 2}}}
APPROVAL = {"approvals": {"required": [{"functions": ["act"], "by": "admin"}]}}


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of call and its outcome."""

    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    city: str = "Oslo"


CASES = {
    "it runs": Case({}, {}),
    "it reads": Case({"effect": "read"}, {}),
    "it fails": Case({"gives": RuntimeError("no")}, {}),
    "it fails on purpose": Case({"gives": ToolError("no", ErrorCode.ENVIRONMENT)}, {}),
    "it is switched off": Case({}, {"functions": {"act": {"enabled": False}}}),
    "the role is too weak": Case({"roles": "admin"}, {}),
    "the scope is another": Case({"scope": "private"}, {}),
    "an argument is wrong": Case({}, {}, city="x" * 50),
    "the share of the day is used up": Case({}, UNITS),
    "a yes is asked for": Case({"confirm": "Really {city}?"}, {}),
    "somebody has to allow it": Case({}, APPROVAL),
}
SHORT = {"city": {**CITY["city"], "maxLength": 20}}


async def left_behind(case: Case, *, by_mcp: bool) -> tuple[int, list[Any], list[Any]]:
    """Number of handler runs, ledger rows and call log entries."""
    act = Recorder("act", SHORT, **{"effect": "once", "commands": ["act"], **case.options})
    clients = [{"name": "editor", "chat": ROOM}]
    async with programs([act.spec], clients, case.settings) as served:
        if by_mcp:
            await served.call("act", {"city": case.city})
        else:
            await served.group.say("Ann", f"/act {case.city}")
        rows = await _ledger(served)
        for log in served.group.daemon.logs:
            log.flush()
        file = served.settings.logging.folder / "function_calls.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    logged = [(one["function"], one["chat"], one["arguments"], one["outcome"]) for one in lines]
    assert {one["path"] for one in lines} <= {"mcp" if by_mcp else "command"}
    return len(act.runs), rows, logged


async def _ledger(served: Programs) -> list[Any]:
    rows = await served.group.daemon.store.read(EVERY_RUN.query())
    return [(row["function"], row["chat"], row["arguments"], row["effect"], row["code"]) for row in rows]


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_by_a_program_as_by_a_command(case: Case) -> None:
    assert await left_behind(case, by_mcp=True) == await left_behind(case, by_mcp=False)
