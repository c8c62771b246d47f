"""Malicious scripts: protection by the language itself; the host's protection is tested there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from function_calls.basic.codes import Code, RunCode
from function_calls.basic.environment import Limits
from function_calls.basic.functions import ARITIES
from function_calls.basic.language.parser import parse
from function_calls.basic.machine.machine import Failed
from tests.function_calls.basic.scripts import FORMS, run
from tests.harness.basic_fuzz import fuzz

HELD_BY_THE_RUN = {"bas-003": RunCode.MEMORY, "bas-019": RunCode.DIVISION}
HELD_BY_THE_READER = ("bas-010", "bas-012")


@pytest.fixture
def rows(data: Callable[[str], Path]) -> dict[str, str]:
    """The scripts by id."""
    lines = data("G_faults/basic_malicious.jsonl").read_text("utf-8").splitlines()
    return {row["id"]: row["source_code"] for row in map(json.loads, lines)}


@pytest.mark.parametrize("row", HELD_BY_THE_RUN)
def test_a_script_that_takes_too_much_or_goes_wrong_is_stopped_with_its_reason(row: str, rows: dict[str, str]) -> None:
    began = time.thread_time()
    heard = run(rows[row])
    assert isinstance(heard.event, Failed)
    assert heard.event.code is HELD_BY_THE_RUN[row]
    assert heard.event.at.line == 1
    assert heard.event.detail
    assert time.thread_time() - began < 2


def test_a_text_that_grows_a_little_in_each_round_is_stopped_by_whichever_limit_it_meets_first(
    rows: dict[str, str],
) -> None:
    assert run(rows["bas-002"]).code is RunCode.STEPS
    assert run(rows["bas-002"], limits=Limits(steps=10_000_000, memory_bytes=50_000)).code is RunCode.MEMORY


@pytest.mark.parametrize("row", HELD_BY_THE_READER)
def test_a_statement_that_reaches_for_the_machine_does_not_exist(row: str, rows: dict[str, str]) -> None:
    faults = parse(rows[row], FORMS, ARITIES).faults
    assert [fault.code for fault in faults] == [Code.UNKNOWN_STATEMENT]


def test_chance_is_the_runs_own(rows: dict[str, str]) -> None:
    first, second = run(rows["bas-030"]).texts, run(rows["bas-030"]).texts
    assert first == second
    assert 0 <= float(first[0]) < 1


def test_thousands_of_texts_by_chance_break_nothing() -> None:
    found = fuzz(2_500)  # tests/nightly runs a million
    assert not found.wrong, "\n".join(found.wrong)
    assert found.inputs == 2_500
    assert found.ran > 500
    assert found.slowest_seconds < 3
    assert found.kinds["ended"] > 125
    assert len(found.kinds) > 15
