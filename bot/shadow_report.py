"""What the shadow would have done differently, counted from its log: behind `rollcall stats --shadow`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import orjson

from services.json_values import JsonObject

WORDS = "(words)"
"""Stands for the functions of a decision that calls none."""


@dataclass(slots=True)
class FunctionComparison:
    """The messages for which the acting model chose this."""

    decisions: int = 0
    agree: int = 0
    instead: Counter[str] = field(default_factory=Counter)
    """What the shadow would have called instead."""
    arguments: Counter[str] = field(default_factory=Counter)
    """Where it would have given other arguments."""
    errors: Counter[str] = field(default_factory=Counter)
    """How the shadow failed, by code."""


@dataclass(slots=True)
class ShadowReport:
    """All comparisons since some instant."""

    functions: dict[str, FunctionComparison] = field(default_factory=dict)
    acted_ms: list[float] = field(default_factory=list)
    shadow_ms: list[float] = field(default_factory=list)
    acted_errors: Counter[str] = field(default_factory=Counter)
    """How the acting model failed; what the shadow said then is compared with nothing."""

    @property
    def decisions(self) -> int:
        """How many could be compared, failures of the shadow with them."""
        return sum(one.decisions for one in self.functions.values())

    @property
    def agree(self) -> int:
        """How many were alike in functions and arguments."""
        return sum(one.agree for one in self.functions.values())

    def as_json(self) -> JsonObject:
        """Plain data."""
        return {
            "decisions": self.decisions,
            "agree": self.agree,
            "agree_share": round(self.agree / self.decisions, 4) if self.decisions else 0.0,
            "acted_errors": dict(self.acted_errors),
            "acted_ms": {"p50": percentile(self.acted_ms, 0.5), "p95": percentile(self.acted_ms, 0.95)},
            "shadow_ms": {"p50": percentile(self.shadow_ms, 0.5), "p95": percentile(self.shadow_ms, 0.95)},
            "functions": {
                name: {
                    "decisions": one.decisions,
                    "agree": one.agree,
                    "instead": dict(one.instead),
                    "arguments": dict(one.arguments),
                    "errors": dict(one.errors),
                }
                for name, one in self.functions.items()
            },
        }


def read_report(path: Path, since: datetime) -> ShadowReport:
    """The report on the log `path` and what was put aside of it. Lines that cannot be read are passed over: the last
    one may be half written. Raises OSError."""
    report = ShadowReport()
    for line in _lines(path):
        if datetime.fromisoformat(line["at"]) >= since:
            _count(report, line)
    report.functions = dict(sorted(report.functions.items(), key=lambda item: -item[1].decisions))
    return report


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all are not above; 0 without values."""
    return sorted(values)[math.ceil(len(values) * share) - 1] if values else 0.0


def _lines(path: Path) -> Iterator[JsonObject]:
    for file in sorted(path.parent.glob(f"{path.name}*")):
        for text in file.read_bytes().splitlines():
            try:
                yield orjson.loads(text)
            except orjson.JSONDecodeError:
                continue


def _count(report: ShadowReport, line: JsonObject) -> None:
    acted, shadow = line["acted"], line["shadow"]
    if acted["error"]:
        report.acted_errors[acted["error"]] += 1
        return
    report.acted_ms.append(acted["duration_ms"])
    chosen, other = _functions(acted), _functions(shadow)
    counted = report.functions.setdefault(chosen, FunctionComparison())
    counted.decisions += 1
    if shadow["error"]:
        counted.errors[shadow["error"]] += 1
        return
    report.shadow_ms.append(shadow["duration_ms"])
    counted.agree += line["agrees"]
    if chosen != other:
        counted.instead[other] += 1
    counted.arguments.update(line["differing_arguments"])


def _functions(decision: JsonObject) -> str:
    return " + ".join(call["name"] for call in decision["calls"]) or WORDS
