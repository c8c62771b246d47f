"""Accuracy of the offline model on `utterances.jsonl`: right functions with the right arguments.

    python -m benchmarks.utterances [--split tune|final|final2] [--rows]

Offers the built-in functions that models are offered, and compares the call for each utterance with the wanted one. A
time counts as right if it is parsed to the wanted minute, day or recurrence. Prints one JSON line for each language and
one for all, with shares of the messages that want a function: `right` (function and all arguments), `asks` (right
function, no wrong argument, and a question for a missing one), `other_arguments`, `wrong` (another function),
`suggested` and `unanswered`; and calls for sound-alikes: `false`. `--rows` lists the misses of the split `tune`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.offline import built_in_offer
from services.calc.calculator import BadExpression, calculate
from services.clock import VirtualClock
from services.llm.model import OfferedFunction
from services.llm.offline.matching import NAME_THRESHOLD, ExampleIndex
from services.llm.offline.offline import call_for
from services.llm.offline.utterance import SpokenTimes
from services.times import Times
from services.times.recurrence import Calendar, Every, Once, next_after
from services.times.reminder_lines import US, read_line
from services.times.requested_times import ParsedTime, TimeNotUnderstood, requested_time, to_rule

FILE = Path(__file__).resolve().parent / "utterances.jsonl"
ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 12, 10, tzinfo=ZONE)
DEFAULT_TIME = time(9)
_MENTION = re.compile(r"@Rollcall\s+")
_EDGES = " \t.,!?;:。，！？；：…'\"‘’“”"
_DROPPED = re.compile(r"\b(?:the|an?|my|your|our)\b|[\u2600-\u27bf\U0001f300-\U0001faff]|\s+")
_TIME_KEYS = ("when", "start", "repeat", "every", "cron", "end", "count")


@dataclass(frozen=True, slots=True)
class Row:
    """An utterance with the call that it wants; `function` is empty for a sound-alike."""

    text: str
    language: str
    function: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result for a row: its kind, and the call that was made as text."""

    row: Row
    kind: str
    made: str


def rows_of(split: str) -> list[Row]:
    """Rows of one split. `final2` was written by somebody else, later and from /help alone."""
    lines = FILE.read_text(encoding="utf-8").splitlines()[1:]
    rows = [row for row in map(json.loads, lines) if row["split"] == split]
    return [Row(row["text"], row["language"], row["function"] or "", row["arguments"]) for row in rows]


class Scorer:
    """Compares the offline model's calls with the wanted ones."""

    def __init__(self) -> None:
        functions = built_in_offer().functions
        self._functions = {function.original: function for function in functions}
        self._index = ExampleIndex(functions, SpokenTimes(VirtualClock(NOW)))
        self._times = Times()

    def outcome(self, row: Row) -> Outcome:
        """The outcome for `row`."""
        text = _MENTION.sub("", row.text)
        matches = self._index.best(text)
        call = call_for(matches, text)
        if call is None:
            is_suggested = bool(matches) and matches[0].score >= NAME_THRESHOLD
            best = f"{matches[0].score:.2f} {matches[0].function.original} {matches[0].arguments}" if matches else ""
            return Outcome(row, "suggested" if is_suggested and row.function else "unanswered", best)
        function = matches[0].function
        made = f"{matches[0].score:.2f} {function.original} {call.arguments} | {matches[0].example}"
        if not row.function:
            return Outcome(row, "false", made)
        if function.original != row.function:
            return Outcome(row, "wrong", made)
        arguments = dict(call.arguments or {})
        if function.original == "reminder_create":
            arguments = self._as_reminder(arguments, row.arguments.get("who", ()))
        return Outcome(row, self._kind(function, row.arguments, arguments), f"{made} -> {arguments}")

    def _as_reminder(self, arguments: dict[str, Any], members: Sequence[str]) -> dict[str, Any]:
        """The arguments with the time and recipients that the function reads from a text without a time."""
        if any(arguments.get(key) for key in ("when", "start", "repeat")) or "text" not in arguments:
            return arguments
        line = read_line(arguments["text"], NOW, self._times, members)
        found = {"text": line.text or None, "when": line.when or None, "who": list(line.who) or arguments.get("who")}
        return {**arguments, **{name: value for name, value in found.items() if value}}

    def _kind(self, function: OfferedFunction, wanted: Mapping[str, Any], found: dict[str, Any]) -> str:
        properties = function.parameters.get("properties", {})
        asked = set(function.parameters.get("required", ())) | ({"when"} if "repeat" in properties else set())
        asked &= properties.keys()
        is_timed = function.original.startswith("reminder_") and bool(set(_TIME_KEYS) & properties.keys())
        keys = set(wanted) | set(found)
        kinds: set[str] = set()
        if is_timed:
            keys -= set(_TIME_KEYS)
            kinds.add(self._time_kind(wanted, found))
        for key in keys:
            default = properties.get(key, {}).get("default")
            said = found.get(key)
            meant = said if said not in (default, "", {}) else None
            wants = wanted.get(key)
            kinds.add(self._value_kind(key, None if wants in (default, {}) else wants, meant, is_asked=key in asked))
        return next((kind for kind in ("other_arguments", "asks") if kind in kinds), "right")

    def _value_kind(self, key: str, wanted: Any, found: Any, *, is_asked: bool) -> str:
        accepted = wanted["any_of"] if isinstance(wanted, dict) and "any_of" in wanted else [wanted]
        if any(self._is_same(key, one or None, found) for one in accepted):
            return "right"
        return "asks" if found is None and is_asked else "other_arguments"

    def _is_same(self, key: str, wanted: Any, found: Any) -> bool:
        if wanted is None or found is None:
            return wanted is found
        if key == "who":
            return {_member(one) for one in wanted} == {_member(one) for one in found}
        if key == "more":
            return len(wanted) == len(found) and all(
                self._item_is_same(one, self._as_reminder(dict(other), ()))
                for one, other in zip(wanted, found, strict=True)
            )
        if isinstance(wanted, list) and isinstance(found, list):
            return [_plain(one) for one in wanted] == [_plain(one) for one in found]
        if key == "expression":
            return self._value(str(wanted)) == self._value(str(found))
        if key == "when":
            rules = [self._rule({"when": one}) for one in (wanted, found)]
            return _plain(wanted) == _plain(found) or (None not in rules and rules[0] == rules[1])
        return _plain(wanted) == _plain(found)

    def _item_is_same(self, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
        texts = self._value_kind("text", wanted.get("text"), found.get("text"), is_asked=False)
        return texts == self._time_kind(wanted, found) == "right"

    def _value(self, expression: str) -> object:
        try:
            return calculate(expression)
        except BadExpression:
            return expression

    def _time_kind(self, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> str:
        """Comparison of all fields about time at once."""
        moments = wanted.get("start", wanted.get("when"))
        accepted = moments["any_of"] if isinstance(moments, dict) else [moments]
        said = {key: found[key] for key in _TIME_KEYS if found.get(key)}
        if not said:
            return "right" if accepted == [None] and "repeat" not in wanted else "asks"
        if accepted == [None] and "repeat" not in wanted:
            return "other_arguments"
        if "start" not in wanted and not _is_iso(accepted):
            return (
                "right"
                if any(_plain(str(one)) in _plain(said.get("when", "")) for one in accepted)
                else ("other_arguments")
            )
        parsed = self._rule(said)
        if parsed is None:
            return "asks"
        return "right" if self._fits(parsed, wanted, accepted) else "other_arguments"

    def _rule(self, said: Mapping[str, Any]) -> ParsedTime | None:
        requested = requested_time(*(said.get(key) for key in _TIME_KEYS))
        try:
            return to_rule(requested, self._times, NOW, DEFAULT_TIME)
        except (TimeNotUnderstood, ValueError):
            return None

    def _fits(self, parsed: ParsedTime, wanted: Mapping[str, Any], accepted: Sequence[str | None]) -> bool:
        rule = parsed.rule
        if not _repeats_as(rule.when, wanted):
            return False
        until = f"{rule.until:%Y-%m-%d}" if rule.until else None
        if ("end" in wanted and until != wanted["end"]) or rule.count != wanted.get("count"):
            return isinstance(rule.when, Once) and "end" not in wanted and "count" not in wanted
        first = next_after(rule, ZoneInfo(parsed.zone), NOW.astimezone(UTC))
        if first is None:
            return False
        at = first.at.astimezone(ZONE).replace(tzinfo=None)
        moments = [one for one in accepted if one]
        if None in accepted and isinstance(rule.when, Every):
            return True
        if len(moments) > 2 and all("T" in one for one in moments):
            return min(moments) <= f"{at:%Y-%m-%dT%H:%M}" <= max(moments)
        return any(f"{at:%Y-%m-%dT%H:%M}".startswith(one) or f"{at:T%H:%M}" == one for one in moments)


def _is_iso(moments: Iterable[str | None]) -> bool:
    return all(one is None or re.match(r"\d{4}-|T\d", one) for one in moments)


def _repeats_as(when: Once | Calendar | Every, wanted: Mapping[str, Any]) -> bool:
    """Whether the rule repeats in the unit and interval of `repeat` and `every`."""
    repeat, every = wanted.get("repeat", "none"), wanted.get("every", 1)
    if isinstance(when, Once):
        return bool(repeat == "none")
    if isinstance(when, Every):
        return bool(
            (repeat == "interval" and when.seconds == every * 60) or (repeat, every * 86400) == ("daily", when.seconds)
        )
    if repeat == "cron":
        return not isinstance(wanted.get("cron"), str) or when.cron.split()[2:] == wanted["cron"].split()[2:]
    _, _, day, month, weekday = when.cron.split()
    kind = (
        "weekdays" if weekday in ("1-5", "1,2,3,4,5") else "weekly" if weekday != "*" and "," not in weekday
        else "yearly" if month != "*" else "monthly" if day != "*" else "daily"
    )  # fmt: skip
    return bool(kind == repeat and when.step == every)


def _member(name: str) -> str:
    plain = name.removeprefix("@").casefold()
    return "all" if plain in US else plain


def _plain(value: Any) -> str:
    return _DROPPED.sub(" ", str(value).casefold()).replace("  ", " ").strip(_EDGES).replace("  ", " ")


def report(outcomes: Sequence[Outcome], language: str) -> dict[str, Any]:
    """Figures to print."""
    wanting = Counter(one.kind for one in outcomes if one.row.function)
    alike = [one for one in outcomes if not one.row.function]
    total = max(1, wanting.total())
    kinds = ("right", "asks", "other_arguments", "wrong", "suggested", "unanswered")
    return {
        "language": language,
        "wanting": wanting.total(),
        **{kind: round(wanting[kind] / total, 3) for kind in kinds},
        "sound_alikes": len(alike),
        "false": round(sum(one.kind == "false" for one in alike) / max(1, len(alike)), 3),
    }


def main() -> None:
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=("tune", "final", "final2"), default="tune")
    parser.add_argument("--rows", action="store_true", help="list the misses (split tune only)")
    options = parser.parse_args()
    scorer = Scorer()
    outcomes = [scorer.outcome(row) for row in rows_of(options.split)]
    if options.rows and options.split == "tune":
        for one in outcomes:
            if one.kind != "right" and (one.row.function or one.kind == "false"):
                wanted = f"{one.row.function} {json.dumps(one.row.arguments, ensure_ascii=False)}"
                print(f"{one.kind:15} {one.row.text}\n      wanted {wanted}\n      made   {one.made}", file=sys.stderr)
    for language in ("en", "zh"):
        print(json.dumps(report([one for one in outcomes if one.row.language == language], language)))
    print(json.dumps(report(outcomes, "all")))


if __name__ == "__main__":
    main()
