"""Recall of the function search of the router: one JSON line.

python -m benchmarks.retrieval POOL.jsonl QUERIES.jsonl [--k 10] [--percentile 95]

A line of the pool is a function with `name`, `description` and `parameters`; a line of the queries has `query`, and the
names of functions in `relevant`. Other keys are ignored. Times are CPU times, as in all benchmarks.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from services.llm.model import OfferedFunction
from services.llm.offline.function_search import FunctionSearch

_DEPTHS = (1, 5, 10, 20)


class Query(NamedTuple):
    """A message and the functions that it needs."""

    text: str
    relevant: frozenset[str]


class Answer(NamedTuple):
    """Result for a query, best first, and its CPU time."""

    found: Sequence[str]
    milliseconds: float


def functions_in(pool: Path) -> list[OfferedFunction]:
    """The functions in `pool`."""
    return [
        OfferedFunction(row["name"], row["name"], row.get("description") or "", row.get("parameters") or {})
        for row in _rows(pool)
    ]


def queries_in(file: Path) -> list[Query]:
    """The queries in `file`."""
    return [Query(row["query"], frozenset(row["relevant"])) for row in _rows(file)]


def answers_to(queries: Sequence[Query], search: FunctionSearch, depth: int) -> list[Answer]:
    """Results of `search` for each query. Queries are run twice, so that the words are cached the second time, as in a
    chat."""
    for query in queries:
        search.rank(query.text, depth)
    answers: list[Answer] = []
    for query in queries:
        began = time.thread_time()
        ranked = search.rank(query.text, depth)
        took = time.thread_time() - began
        answers.append(Answer([function.original for function, _ in ranked], took * 1000))
    return answers


def recall(queries: Sequence[Query], answers: Sequence[Answer], depth: int) -> float:
    """Mean share of the relevant functions of a query among its first `depth` results."""
    shares = [
        len(query.relevant.intersection(answer.found[:depth])) / len(query.relevant)
        for query, answer in zip(queries, answers, strict=True)
    ]
    return round(sum(shares) / len(shares), 4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the files named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", type=Path, metavar="POOL.jsonl")
    parser.add_argument("queries", type=Path, metavar="QUERIES.jsonl")
    parser.add_argument("--k", type=int, default=10, help="a further depth to measure beside 1, 5, 10 and 20")
    parser.add_argument("--percentile", type=float, help="this percentile of the time for a query instead of the mean")
    options = parser.parse_args(arguments)
    depths = sorted({*_DEPTHS, options.k})
    queries = queries_in(options.queries)
    answers = answers_to(queries, FunctionSearch(functions_in(options.pool)), depths[-1])
    figures = {f"recall@{depth}": recall(queries, answers, depth) for depth in depths}
    figures["ms_per_query"] = round(_milliseconds(answers, options.percentile), 3)
    print(json.dumps(figures))
    return 0


def _milliseconds(answers: Sequence[Answer], percentile: float | None) -> float:
    times = sorted(answer.milliseconds for answer in answers)
    if percentile is None:
        return sum(times) / len(times)
    return times[min(len(times) - 1, math.ceil(len(times) * percentile / 100) - 1)]


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    raise SystemExit(main())
