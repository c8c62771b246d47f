"""Accuracy of the offline model: how often it selects the right function, and how often it selects one without reason.

    python -m benchmarks.offline [--data DIR] [--threshold 0.65] [--errors N]

Offers the built-in functions and selects one for each labelled message of `C_intents` and each line of `F_group_chat`
in the data folder. Prints one JSON line for each language and one for all, with shares per group of messages: `right`
and `wrong` calls and functions `asked` about, for messages that need one of the functions; calls for messages that need
none, that are `near` to one, or that were overheard. Times are of the processor.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.registration.functions import built_in_modules
from function_calls.loading.python_functions import specs_of
from function_calls.registry import BotFunctions
from function_calls.spec import OfferedTo
from services.llm.model import Offer
from services.llm.offline.matching import NAME_THRESHOLD, READ_THRESHOLD, ExampleIndex, Match
from services.llm.offline.offline import call_for, spoken_times
from services.text_index import listed

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("ROLLCALL_DATA", REPOSITORY.parent / "shared" / "data"))

TODO_CHANGES = "todo_add todo_done todo_remove todo_update"
MEANT: Mapping[str, str] = {
    # CLINC150
    "weather": "weather",
    "todo_list": "todo_list",
    "todo_list_update": TODO_CHANGES,
    "time": "time_in",
    "timezone": "time_in time_convert",
    "date": "date_in",
    "roll_dice": "roll_dice",
    "flip_coin": "flip_coin",
    "calculator": "calculate",
    "measurement_conversion": "unit_convert",
    "definition": "define",
    "translate": "translate",
    "shopping_list": "shop",
    "shopping_list_update": "shop shop_done shop_remove",
    "what_can_i_ask_you": "help",
    "reminder": "reminder_list",
    "reminder_update": "reminder_create reminder_change reminder_delete",
    # SLURP
    "weather_query": "weather",
    "datetime_query": "time_in time_convert date_in",
    "datetime_convert": "time_convert time_in",
    "lists_createoradd": "todo_add",
    "lists_query": "todo_list",
    "lists_remove": "todo_remove todo_done",
    "news_query": "news",
    "qa_maths": "calculate unit_convert",
    "qa_definition": "define",
    # SNIPS
    "GetWeather": "weather",
}
"""Right functions for an intent. Other intents need none of the built-in functions."""

NEAR = frozenset(
    listed("""
    update_playlist AddToPlaylist play_music alarm timer
    alarm_set alarm_query alarm_remove calendar calendar_update calendar_set calendar_query calendar_remove
    next_holiday exchange_rate qa_currency distance cancel repeat
    """)
)
"""Intents that are close to a function. Reported separately, because a call may be acceptable."""


@dataclass(frozen=True, slots=True)
class Case:
    """A labelled message."""

    text: str
    intent: str
    group: str
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Selection for a message: the function to call, or the functions to ask about."""

    case: Case
    called: str
    named: tuple[str, ...]
    score: float
    example: str
    """The most similar example."""


class _EveryService(Mapping[type, object]):
    """Contains every service. The functions are only described, never run."""

    def __getitem__(self, key: type) -> object:
        return key

    def __contains__(self, key: object) -> bool:
        return True

    def __iter__(self) -> Iterator[type]:
        return iter(())

    def __len__(self) -> int:
        return 0


def built_in_offer() -> Offer:
    """The functions of `function_calls/handlers` that are offered to models."""
    described = [spec for module in built_in_modules() for spec in specs_of(module, _EveryService())]
    specs = [spec for spec in described if OfferedTo.MODEL in spec.access.offered_to]
    return BotFunctions(specs).offer(specs)


def intent_cases(folder: Path, known: frozenset[str]) -> list[Case]:
    """Labelled messages of all files in `folder`. `known`: names of functions."""
    return [Case(row["text"], row["intent"], _group(row["intent"], known), _language(row)) for row in _rows(folder)]


def _rows(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of all files of JSON lines in `folder`, which may be compressed."""
    for file in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _language(row: Mapping[str, Any]) -> str:
    return str(row.get("lang", "en")).split("-", maxsplit=1)[0]


def _group(intent: str, known: frozenset[str]) -> str:
    if intent in MEANT:
        return "in_scope" if known & set(MEANT[intent].split()) else "near"
    return "near" if intent in NEAR else "oos"


def overheard_cases(folder: Path, most: int = 10_000) -> list[Case]:
    """Lines of group chats that were not for a bot; a fixed sample of `most` if there are more."""
    rows = (row for row in _rows(folder) if row.get("kind", "message") == "message" and row["text"])
    cases = [Case(row["text"], "", "irc", _language(row)) for row in rows]
    return cases if len(cases) <= most else random.Random(7).sample(cases, most)


def outcomes(index: ExampleIndex, cases: Sequence[Case], shift: float) -> tuple[list[Outcome], float]:
    """Selection for each case, and the mean processor time in milliseconds. `shift` is added to all thresholds."""
    found: list[Outcome] = []
    started = time.process_time()
    for case in cases:
        matches = index.best(case.text)
        called = _called(matches, case.text, shift)
        named = tuple(match.function.original for match in matches if match.score >= NAME_THRESHOLD)
        score, example = (matches[0].score, matches[0].example) if matches else (0.0, "")
        found.append(Outcome(case, called, named, score, example))
    return found, (time.process_time() - started) * 1000 / max(1, len(cases))


def _called(matches: Sequence[Match], text: str, shift: float) -> str:
    if not matches or call_for(matches, text, shift) is None:
        return ""
    return matches[0].function.original


def report(found: Sequence[Outcome], ms_per_message: float) -> dict[str, float]:
    """The figures to print."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        groups[outcome.case.group].append(outcome)
    inside = groups["in_scope"]
    right = sum(_is_right(outcome) for outcome in inside)
    return {
        "in_scope": len(inside),
        "right": _share(right, inside),
        "wrong": _share(sum(bool(one.called) for one in inside) - right, inside),
        "asked": _share(sum(not one.called and bool(one.named) for one in inside), inside),
        "oos": len(groups["oos"]),
        "oos_false": _share(sum(bool(one.called) for one in groups["oos"]), groups["oos"]),
        "near": len(groups["near"]),
        "near_false": _share(sum(bool(one.called) for one in groups["near"]), groups["near"]),
        "irc": len(groups["irc"]),
        "irc_false": _share(sum(bool(one.called) for one in groups["irc"]), groups["irc"]),
        "ms_per_message": round(ms_per_message, 3),
    }


def _is_right(outcome: Outcome) -> bool:
    return outcome.called in MEANT[outcome.case.intent].split()


def _share(count: int, of: Sequence[Outcome]) -> float:
    return round(count / len(of), 4) if of else 0.0


def _print_errors(found: Sequence[Outcome], most: int) -> None:
    """Print counts by intent, and some of the wrong calls, to stderr."""
    by_intent: defaultdict[str, Counter[str]] = defaultdict(Counter)
    false: list[str] = []
    for outcome in found:
        inside = outcome.case.group == "in_scope"
        right = inside and _is_right(outcome)
        kind = "right" if right else "false" if outcome.called else "asked" if outcome.named else "left"
        by_intent[f"{outcome.case.group:8} {outcome.case.intent}"][kind] += 1
        if kind == "false":
            case = outcome.case
            label = f"{outcome.score:.2f} {outcome.called:14} {case.group:8} {case.intent:20}"
            false.append(f"{label} {case.text} | {outcome.example}")
    for intent, counts in sorted(by_intent.items()):
        print(intent, dict(counts), file=sys.stderr)
    print("\n".join(random.Random(3).sample(false, min(most, len(false)))), file=sys.stderr)


def main() -> None:
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the data folder (default: $ROLLCALL_DATA)")
    parser.add_argument(
        "--threshold", type=float, default=READ_THRESHOLD, help="for functions that read; the others move along"
    )
    parser.add_argument("--overheard", type=int, default=10_000, metavar="N", help="at most N overheard lines")
    parser.add_argument("--errors", type=int, default=0, metavar="N", help="print counts by intent and N false calls")
    options = parser.parse_args()
    offer = built_in_offer()
    cases = intent_cases(options.data / "C_intents", frozenset(function.original for function in offer.functions))
    cases += overheard_cases(options.data / "F_group_chat", options.overheard)
    index = ExampleIndex(offer.functions, spoken_times())
    found, ms_per_message = outcomes(index, cases, options.threshold - READ_THRESHOLD)
    if options.errors:
        _print_errors(found, options.errors)
    for language in sorted({case.language for case in cases}):
        of_language = [outcome for outcome in found if outcome.case.language == language]
        print(json.dumps({"language": language, **report(of_language, ms_per_message)}))
    print(json.dumps({"language": "all", **report(found, ms_per_message)}))


if __name__ == "__main__":
    main()
