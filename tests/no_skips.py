"""A pytest plugin (`-p tests.no_skips`): if ROLLCALL_NO_SKIPS is set, a skipped test fails.

Tests without their data files are still skipped, because the data is not part of the project: their skip reason names
the variable of the data folder.
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
    """Make the report of a skipped test a failure."""
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Make the report of a skipped module a failure."""
    return _refuse_skip((yield))


def _refuse_skip(report: Report) -> Report:
    expected_to_fail = hasattr(report, "wasxfail")
    if report.skipped and not expected_to_fail and os.environ.get(SWITCH) and not _is_for_data(report):
        report.outcome = "failed"
        report.longrepr = f"skipped, though {SWITCH} is set: {_reason(report)}"
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The skip reason, without pytest's prefix `Skipped: `."""
    place_and_reason = report.longrepr
    reason = place_and_reason[2] if isinstance(place_and_reason, tuple) else str(place_and_reason)
    return reason.removeprefix("Skipped: ")


def _is_for_data(report: pytest.TestReport | pytest.CollectReport) -> bool:
    return DATA_VARIABLE in _reason(report)
