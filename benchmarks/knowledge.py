"""Share of questions for which a knowledge base finds the right file among its first three: one JSON line.

python -m benchmarks.knowledge [--misses]

The corpus in `benchmarks/knowledge` has forty pages, 26 in English and 14 in Chinese; `knowledge_questions.jsonl` has
forty English and twenty Chinese questions. Both were written for this benchmark and are dedicated to the public domain
(CC0 1.0). The questions were written before the first measurement and differ in wording from the pages. Times are wall
times of a search, with the check for changed files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

from config.sections.knowledge import KnowledgeSettings
from services.clock import SystemClock
from services.knowledge import KnowledgeBases

_HERE = Path(__file__).parent
_DEPTH = 3
_PASSAGES = 5


async def ranks(questions: Sequence[str]) -> tuple[list[Sequence[str]], float]:
    """Files found for each question, best first, and the mean time of a search in milliseconds."""
    knowledge = KnowledgeBases(KnowledgeSettings.model_validate({"bases": {"all": _HERE / "knowledge"}}), SystemClock())
    await knowledge.refresh()
    began = time.perf_counter()
    found = [await knowledge.search(["all"], question, _PASSAGES) for question in questions]
    milliseconds = (time.perf_counter() - began) * 1000 / len(questions)
    return [list(dict.fromkeys(passage.file for passage in one)) for one in found], milliseconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all questions. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="also print the questions that were missed")
    options = parser.parse_args(arguments)
    lines = (_HERE / "knowledge_questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    found, milliseconds = asyncio.run(ranks([row["question"] for row in rows]))
    hits = {
        depth: [row["file"] in files[:depth] for row, files in zip(rows, found, strict=True)] for depth in (1, _DEPTH)
    }
    languages = ["en" if row["file"].isascii() else "zh" for row in rows]
    figures: dict[str, float] = {f"first_{depth}": _share(of_depth) for depth, of_depth in hits.items()}
    for language in ("en", "zh"):
        figures[f"first_{_DEPTH}_{language}"] = _share(
            [hit for hit, one in zip(hits[_DEPTH], languages, strict=True) if one == language]
        )
    print(json.dumps({"questions": len(rows), **figures, "ms_per_search": round(milliseconds, 2)}))
    if options.misses:
        for row, files, hit in zip(rows, found, hits[_DEPTH], strict=True):
            if not hit:
                print(json.dumps({**row, "found": files}, ensure_ascii=False))
    return 0


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 3)


if __name__ == "__main__":
    raise SystemExit(main())
