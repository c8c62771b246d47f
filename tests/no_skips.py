"""A pytest plugin (`-p tests.no_skips`): with ROLLCALL_NO_SKIPS set, a skipped test counts as failed.

Data that is not part of the project may be absent anywhere, so a skip for its sake stays one: its reason names the
variable that says where the data lies.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

SWITCH = "ROLLCALL_NO_SKIPS"
DATA_VARIABLE = "ROLLCALL_DATA"

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of one test, its skip turned into a failure."""
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole module that skips itself."""
    return _refuse_skip((yield))


def _refuse_skip(report: Report) -> Report:
    expected_to_fail = hasattr(report, "wasxfail")
    if report.skipped and not expected_to_fail and os.environ.get(SWITCH) and not _is_for_data(report):
        report.outcome = "failed"
        report.longrepr = f"skipped, though {SWITCH} is set: {_reason(report)}"
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why the test was skipped, without pytest's `Skipped: ` before it."""
    place_and_reason = report.longrepr
    reason = place_and_reason[2] if isinstance(place_and_reason, tuple) else str(place_and_reason)
    return reason.removeprefix("Skipped: ")


def _is_for_data(report: pytest.TestReport | pytest.CollectReport) -> bool:
    return DATA_VARIABLE in _reason(report)
