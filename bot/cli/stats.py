"""`rollcall stats`: runs, errors and durations per function, budgets, and the shadow model's differences."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from bot.cli.options import add_config, on_settings, positive_hours
from bot.database.opening import operator_connection_of
from bot.telemetry.records import FILE
from config.settings import Settings
from function_calls.checks.budgets import MICROS
from services.clock import SystemClock
from services.refs import JsonObject
from services.store.reader import CallStatistics, UsedShare

WORDS = "(words)"
"""Name for decisions without function calls."""


@dataclass(slots=True)
class FunctionComparison:
    """Comparisons by the functions that the acting model chose."""

    decisions: int = 0
    agree: int = 0
    instead: Counter[str] = field(default_factory=Counter)
    """Functions that the shadow model chose instead."""
    arguments: Counter[str] = field(default_factory=Counter)
    """Arguments that differed."""
    errors: Counter[str] = field(default_factory=Counter)
    """Errors of the shadow model, by code."""


@dataclass(slots=True)
class ShadowReport:
    """All comparisons since some time."""

    functions: dict[str, FunctionComparison] = field(default_factory=dict)
    acted_ms: list[float] = field(default_factory=list)
    shadow_ms: list[float] = field(default_factory=list)
    acted_errors: Counter[str] = field(default_factory=Counter)
    """Errors of the acting model, by code; these decisions are not compared."""

    @property
    def decisions(self) -> int:
        """Number of compared decisions, including errors of the shadow model."""
        return sum(one.decisions for one in self.functions.values())

    @property
    def agree(self) -> int:
        """Number of decisions with equal functions and arguments."""
        return sum(one.agree for one in self.functions.values())

    def as_json(self) -> JsonObject:
        """The report as JSON: `decisions`, `agree`, `agree_share` (0 to 1), errors by code, times in milliseconds
        (`p50`, `p95`), and the same counts by function."""
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
    """The report on the log at `path` and its rotated files. Invalid lines are skipped, because the last one may be
    incomplete. Raises OSError."""
    report = ShadowReport()
    for line in _lines(path):
        if datetime.fromisoformat(line["at"]) >= since:
            _count(report, line)
    report.functions = dict(sorted(report.functions.items(), key=lambda item: -item[1].decisions))
    return report


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by `share` of all; 0 without values."""
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


_HOUR_MS = 3_600_000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hours", type=positive_hours, default=24.0, help="period in hours (default: 24)")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--shadow", action="store_true", help="compare the decisions of the shadow model")
    add_config(parser)
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Print the table. 1: there is no database, or with `--shadow` no readable log."""
    since_ms = SystemClock().now_ms() - int(options.hours * _HOUR_MS)
    if options.shadow:
        return _shadow(settings, datetime.fromtimestamp(max(since_ms, 0) / 1000, UTC), options)
    with operator_connection_of(settings) as reader:
        found = reader.call_statistics(since_ms)
        # Days begin at different times in different chats, so the latest day of some is yesterday here.
        yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
        first_day = datetime.fromtimestamp(max(since_ms, 0) / 1000, UTC).date().isoformat()
        shares = reader.used_shares(min(yesterday, first_day))
    if options.json:
        print(json.dumps({one.function: one.as_json() for one in found}, ensure_ascii=False))
        return 0
    print(_table(found) if found else f"no function ran in the last {options.hours:g} hours")
    if shares:
        print("\n" + _shares_table(shares))
    return 0


def _shadow(settings: Settings, since: datetime, options: argparse.Namespace) -> int:
    try:
        report = read_report(Path(settings.logging.folder) / FILE, since)
    except OSError as error:
        print(f"error: the log of the shadow model cannot be read: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    elif report.decisions or report.acted_errors:
        print(_shadow_table(report))
    else:
        print(f"no decisions of the shadow model in the last {options.hours:g} hours (settings: router.shadow.model)")
    return 0


def _shadow_table(report: ShadowReport) -> str:
    share = report.agree / report.decisions if report.decisions else 0.0
    lines = [f"{report.agree} of {report.decisions} decisions agree ({share:.1%})"]
    for who, durations in (("acting model", report.acted_ms), ("shadow", report.shadow_ms)):
        lines.append(f"{who:<14}P50 {percentile(durations, 0.5):.0f} ms   P95 {percentile(durations, 0.95):.0f} ms")
    if report.acted_errors:
        lines.append(f"not compared, because the acting model failed: {_counted(report.acted_errors)}")
    lines.append(f"{'FUNCTION':<24}{'DECISIONS':>10}{'AGREE':>8}{'AGREE %':>9}  INSTEAD | OTHER ARGUMENTS | ERRORS")
    for name, one in report.functions.items():
        found = " | ".join(_counted(counter) for counter in (one.instead, one.arguments, one.errors))
        lines.append(f"{name:<24}{one.decisions:>10}{one.agree:>8}{one.agree / one.decisions:>9.1%}  {found}")
    return "\n".join(lines)


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "-"


def _table(found: list[CallStatistics]) -> str:
    numbers = f"{'RUNS':>8}{'OK':>8}{'ERRORS':>8}{'ASKED':>8}{'OK %':>8}{'P50 ms':>9}{'P95 ms':>9}"
    lines = [f"{'FUNCTION':<24}{numbers}  ERRORS BY CODE"]
    for one in found:
        codes = ", ".join(f"{code} {count}" for code, count in sorted(one.errors.items()))
        lines.append(
            f"{one.function:<24}{one.runs:>8}{one.ok:>8}{one.errors.total():>8}{one.asked:>8}{one.ok_share:>8.1%}"
            f"{one.p50_ms:>9}{one.p95_ms:>9}  {codes}"
        )
    return "\n".join(lines)


def _shares_table(shares: list[UsedShare]) -> str:
    lines = [f"{'DAY':<12}{'USED BY':<64}{'OF':<10}{'USED':>14}"]
    for one in shares:
        used = f"{one.used / MICROS:.4f}" if one.kind == "money" else str(one.used)
        lines.append(f"{one.day:<12}{' '.join(one.holder.splitlines()):<64}{one.kind:<10}{used:>14}")
    return "\n".join(lines)
