"""The benchmark of knowledge bases: its command, and the minimum share of files that are found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.knowledge import main

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_the_right_file_is_among_the_first_three_for_at_least_85_percent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["questions"] == 60
    assert figures["first_3"] >= 0.85
    assert min(figures["first_3_en"], figures["first_3_zh"]) >= 0.85


def test_the_corpus_has_40_short_pages_and_the_questions_are_about_nearly_all_of_them() -> None:
    pages = {file.name: file.stat().st_size for file in (FOLDER / "knowledge").glob("*.md")}
    rows = [json.loads(line) for line in (FOLDER / "knowledge_questions.jsonl").read_text("utf-8").splitlines()]
    assert len(pages) == 40
    assert max(pages.values()) <= 2500
    asked = {row["file"] for row in rows}
    assert asked <= pages.keys()
    assert len(asked) >= 35
