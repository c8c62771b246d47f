"""The harness `switched_off` has a change for each requirement of section D, and runs the tests of one without it."""

from __future__ import annotations

import ast
import json

import pytest

from tests.harness.switched_off import SWITCHES, main, marked_tests, rows


def test_every_requirement_of_the_section_can_be_switched_off() -> None:
    assert list(SWITCHES) == rows()


@pytest.mark.parametrize("row", SWITCHES)
def test_what_a_switch_replaces_occurs_once_and_the_rest_is_still_python(row: str) -> None:
    switch = SWITCHES[row]
    assert switch.problem() == ""
    ast.parse(switch.changed())


@pytest.mark.parametrize("row", SWITCHES)
def test_the_test_that_is_expected_to_fail_is_one_of_the_requirement_and_runs_first(row: str) -> None:
    assert marked_tests(row)[0] == SWITCHES[row].expected


def test_a_switch_that_no_longer_fits_says_why() -> None:
    known, new = SWITCHES["D1"], SWITCHES["D39"]
    assert known._replace(source="import nothing\n").problem().endswith("occurs 0 times in function_calls/router.py")
    assert known._replace(file="bot/nowhere.py").problem() == "bot/nowhere.py does not exist"
    assert new._replace(file="bot/daemon.py").problem() == "bot/daemon.py exists"


def test_a_requirement_whose_feature_is_off_is_reported_with_the_test_that_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["D39"]) == 0
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["id"], line["ok"], line["failed"]) == ("D39", True, f"tests/{SWITCHES['D39'].expected}")


def test_an_unknown_requirement_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["D1", "D0"]) == 2
    assert capsys.readouterr().err == "no switch for D0\n"
