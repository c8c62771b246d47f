"""The benchmark of plans."""

from __future__ import annotations

import json

import pytest

from benchmarks.plan import main


def test_a_plan_of_mixed_messages_is_measured_and_reproduces_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--messages", "40"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["compared"], figures["unlike_recorded"], figures["not_compared"]) == (40, 0, 0)
    assert figures["changed"] > 0
