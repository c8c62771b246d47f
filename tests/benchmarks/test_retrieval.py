"""The benchmark of the function search: its command, and the minimum recall on the development sets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.retrieval import main

FOLDER = "B_function_calls/retrieval"
FIGURES = {"recall@1", "recall@5", "recall@10", "recall@20", "ms_per_query"}


def lines(file: Path, *rows: object) -> str:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(file)


def test_the_command_prints_one_line_with_the_share_that_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = lines(
        tmp_path / "pool.jsonl",
        {"name": "weather", "description": "The weather of a city.", "parameters": None},
        {"name": "dice.roll", "description": "Throw dice.", "parameters": {"properties": {"sides": {}}}},
        {"name": "music", "description": "", "field": "weather dice"},
    )
    queries = lines(
        tmp_path / "queries.jsonl",
        {"query": "throw dice", "relevant": ["dice.roll"]},
        {"query": "the weather, please", "relevant": ["weather", "music"]},
    )

    assert main([pool, queries, "--k", "10"]) == 0

    (line,) = capsys.readouterr().out.splitlines()
    figures = json.loads(line)
    assert figures.keys() == FIGURES
    assert [figures[f"recall@{depth}"] for depth in (1, 5, 10, 20)] == [0.75] * 4
    assert figures["ms_per_query"] >= 0


def test_another_depth_is_measured_beside_the_usual_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = lines(tmp_path / "pool.jsonl", {"name": "tea"}, {"name": "tea_time"})
    queries = lines(tmp_path / "queries.jsonl", {"query": "tea time", "relevant": ["tea", "tea_time"]})

    main([pool, queries, "--k", "2", "--percentile", "95"])

    figures = json.loads(capsys.readouterr().out)
    assert figures.keys() == FIGURES | {"recall@2"}
    assert (figures["recall@1"], figures["recall@2"]) == (0.5, 1.0)


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    ("name", "rows", "ahead"),
    [
        ("bfcl", "all", 0.0),
        ("sealtools", "all", 0.0),
        ("acebench_en", "all", 0.0),
        ("acebench_zh", "all", 0.0),
        ("metatool", "lexical", 0.04),
    ],
)
def test_the_search_finds_more_than_the_baselines_do(
    name: str, rows: str, ahead: float, data: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    baselines = json.loads(data(f"{FOLDER}/baselines.json").read_text(encoding="utf-8"))
    bar = max(
        row["recall@10"]
        for key, row in baselines.items()
        if key.startswith(f"{name}|") and (rows == "all" or key.endswith(("bm25_okapi", "bm25s_lucene")))
    )

    main([str(data(f"{FOLDER}/{name}.pool.jsonl")), str(data(f"{FOLDER}/{name}.queries.jsonl"))])

    reached = json.loads(capsys.readouterr().out)["recall@10"]
    assert reached >= bar + ahead
    assert reached > bar or reached == 1.0
