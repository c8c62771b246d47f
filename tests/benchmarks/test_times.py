"""Accuracy of parsing times is at least that of docs/times.md, which lists all wrong rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.times import PAGE, Answer, Row, Score, is_right, main, measure, ours, page_with, read_rows, repeats_as
from services.times import Times
from services.times.recurrence import Calendar, Rule, Unit

FILE = "D_time_expressions/time_expressions.jsonl"
Measured = tuple[list[Score], list[tuple[Row, Answer | None]]]


@pytest.fixture
def measured(data: Callable[[str], Path]) -> Measured:
    return measure(read_rows(data(FILE)), ours(Times()))


def test_the_page_has_the_figures_and_every_miss_with_its_reason(measured: Measured) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page_with(page, *measured) == page
    assert "no reason is written down yet" not in page


def test_nine_of_ten_english_times_for_reminders_are_right(measured: Measured) -> None:
    shares = {one.source: one.right / one.n for one in measured[0] if one.reminder_like and one.lang == "en"}
    assert len(shares) == 4
    assert min(shares.values()) >= 0.9


def test_no_other_reader_is_better_on_times_for_reminders() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    figures = [list(map(int, row[3:])) for row in rows if len(row) == 7 and row[2] == "yes"]
    assert len(figures) == 8
    for n, right, *others in figures:
        assert right > max(others) or right == n


def test_a_wrong_answer_is_not_right() -> None:
    row = {"text": "tomorrow", "kind": "instant", "grain": "day", "expected": "2026-03-05T00:00:00", "source": "x"}
    row |= {"reference_time": "2026-03-04T10:00:00", "lang": "en", "reminder_like": True}
    ((score,), _) = measure([row], ours(Times()))
    assert score.right == 1
    assert not is_right({**row, "expected": "2026-03-06T00:00:00"}, ours(Times())("tomorrow", _now()))
    assert not is_right(row, None)


def _now() -> datetime:
    return datetime(2026, 3, 4, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "step", "timex", "expected"),
    [
        ("0 15 * * *", 1, "T15", True),
        ("0 16 * * *", 1, "T15", False),
        ("0 9 * * 1", 1, "XXXX-WXX-1", True),
        ("0 9 * * 2", 1, "XXXX-WXX-1", False),
        ("0 9 4 3 *", 1, "P1Y", True),
        ("0 9 * * 1", 2, "P2W", True),
        ("0 9 * * *", 1, "TMO", True),
        ("0 20 * * *", 1, "TMO", False),
    ],
)
def test_a_rule_is_compared_with_what_a_set_says(cron: str, step: int, timex: str, expected: bool) -> None:
    assert repeats_as(Rule(Calendar(cron, step, Unit.WEEK)), timex) is expected


def test_it_prints_a_line_for_each_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        '{"text": "at 5pm", "kind": "time_of_day", "expected": ["17:00:00"], "source": "a/b", "lang": "en",'
        ' "reference_time": null, "reminder_like": true}\n',
        encoding="utf-8",
    )
    main([str(file), "--misses"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert '"right": 1' in lines[0]
