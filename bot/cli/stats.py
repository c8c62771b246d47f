"""`rollcall stats`: for each function how often it ran, how often it failed, and how long it took, and what was used of
budgets today; with `--shadow` what the second model would have done differently."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.beside import reader_of
from bot.cli.options import add_config, positive_hours, settings_or_faults
from bot.shadow_records import FILE
from bot.shadow_report import ShadowReport, percentile, read_report
from config.settings import Settings
from function_calls.shares import MICROS
from services.clock import SystemClock
from services.store.reader import CallStatistics, UsedShare
from services.store.side import ReaderError

_HOUR_MS = 3_600_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """What may stand behind the command."""
    parser.add_argument("--hours", type=positive_hours, default=24.0, help="how far back (24)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--shadow", action="store_true", help="compare the decisions of the second model")
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table. 1: there is no database, or with `--shadow` no log that can be read."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    since_ms = SystemClock().now_ms() - int(options.hours * _HOUR_MS)
    if options.shadow:
        return _shadow(settings, datetime.fromtimestamp(max(since_ms, 0) / 1000, UTC), options)
    try:
        with reader_of(settings) as reader:
            found = reader.call_statistics(since_ms)
            # Days begin at different moments in different chats, so the latest day of some is yesterday here.
            shares = reader.used_shares((datetime.now(UTC) - timedelta(days=1)).date().isoformat())
    except ReaderError as error:
        print(error, file=sys.stderr)
        return 1
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
        print(f"the log of the shadow cannot be read: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    elif report.decisions or report.acted_errors:
        print(_shadow_table(report))
    else:
        print(f"the shadow decided nothing in the last {options.hours:g} hours (settings: router.shadow.model)")
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
    lines = [f"{'DAY':<12}{'USED BY':<44}{'OF':<10}{'USED':>14}"]
    for one in shares:
        used = f"{one.used / MICROS:.4f}" if one.kind == "money" else str(one.used)
        lines.append(f"{one.day:<12}{one.holder:<44}{one.kind:<10}{used:>14}")
    return "\n".join(lines)
