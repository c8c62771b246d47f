"""Argument validation of functions with external JSON Schemas, compared with the validator alone.

`python -m benchmarks.arguments FILE.jsonl …` measures the valid calls of corpora instead. Rows have `functions`, and
`concrete_calls` (`[{"name", "arguments"}]`) or `ground_truth` (`{name: arguments}`, or a list of these). Prints the
best of many rounds, and the share of calls that are accepted; the other calls contradict their schemas.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs

from benchmarks.measuring import Driver, Effort, Figure, Load, Sample, median, ratio, rounds, timed
from function_calls.encodings import imported_definition
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.definition import DefinitionError
from function_calls.schema.schema import UnusableSchema, imported
from function_calls.spec import ArgumentError

_BATCHES = 21
_ROUNDS = 50
_TEXT = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 0}
TYPICAL: Sequence[tuple[dict[str, Any], dict[str, Any]]] = (
    (
        {"properties": {"city": _TEXT, "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius"}}},
        {"city": "Oslo"},
    ),
    (
        {"properties": {"query": {**_TEXT, "minLength": 1}, "most": {**_WHOLE, "default": 10}}},
        {"query": "x", "most": 5},
    ),
    (
        {"properties": {"amount": {"type": "number"}, "source": _TEXT, "target": {**_TEXT, "pattern": "^[A-Z]{3}$"}}},
        {"amount": 12.5, "source": "EUR", "target": "NOK"},
    ),
    (
        {"properties": {"title": _TEXT, "labels": {"type": "array", "items": _TEXT}, "urgent": {"type": "boolean"}}},
        {"title": "Leak", "labels": ["house", "water"], "urgent": True},
    ),
    (
        {
            "properties": {
                "who": {"type": "object", "properties": {"name": _TEXT, "age": _WHOLE}, "required": ["name"]},
                "note": {"anyOf": [_TEXT, {"type": "null"}], "default": None},
            },
            "required": ["who"],
        },
        {"who": {"name": "Ann", "age": 30}},
    ),
    ({"properties": {"start": _TEXT, "end": _TEXT, "changes": {**_WHOLE, "default": 3}}}, {"start": "A", "end": "B"}),
)
"""Typical external schemas, each with valid arguments."""


class Case(NamedTuple):
    """One call: its arguments, our parser and the bare validator."""

    parse: Callable[[dict[str, Any]], Any]
    is_valid: Callable[[Any], bool]
    arguments: dict[str, Any]


def case_of(schema: dict[str, Any], arguments: dict[str, Any]) -> Case:
    """The call with `arguments`; `schema` is in our form. Raises UnusableSchema."""
    bare = jsonschema_rs.validator_for({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
    return Case(SchemaArguments(schema).parse, bare.is_valid, arguments)


def _typical() -> list[Case]:
    return [case_of(imported(schema), arguments) for schema, arguments in TYPICAL]


async def bare(load: Load) -> Sample:
    """Floor: the validator alone, without conversion of strings to numbers and without defaults."""

    async def once(case: Case) -> None:
        assert case.is_valid(case.arguments)

    return await timed(load.count, _in_turn(_typical()), once, batches=_BATCHES)


async def parse(load: Load) -> Sample:
    """Parse the arguments: convert, validate and add defaults."""

    async def once(case: Case) -> None:
        assert case.parse(case.arguments)

    return await timed(load.count, _in_turn(_typical()), once, batches=_BATCHES)


def _in_turn(cases: Sequence[Case]) -> Callable[[int], Case]:
    return lambda number: cases[number % len(cases)]


DRIVERS: dict[str, Driver] = {"bare": bare, "parse": parse}


def argument_figures(effort: Effort) -> list[Figure]:
    """Cost of parsing the arguments of a call with an external schema."""
    load = Load(count=effort.count(2_000))
    samples = rounds({"bare": ("arguments.bare", load), "parse": ("arguments.parse", load)}, effort)
    what = "the arguments of a call read, checked by a foreign schema and completed by its defaults"
    floor = median(samples["bare"])
    return [
        Figure("argument_check", what, "us", median(samples["parse"]), 5.0, floor),
        Figure(
            "argument_check",
            f"{what}, against the bare validator",
            "ratio",
            ratio(samples["parse"], samples["bare"]),
            8.0,
            floor,
        ),
    ]


FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {"argument_check": argument_figures}


def calls_in(file: Path) -> Iterator[Case | None]:
    """The calls of a corpus; None for a call that its schema rejects."""
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "special" in row.get("category", ""):
            # This answer describes an error in the request and is not a call.
            continue
        schemas: dict[str, Any] = {}
        for definition in row["functions"]:
            with suppress(DefinitionError):
                foreign = imported_definition(definition)
                schemas[foreign.name] = foreign.parameters
        for name, arguments in _calls_of(row):
            # Repeated calls of a function have numbered names.
            schema = schemas.get(name) or schemas.get(re.sub(r"_\d+$", "", name))
            yield _accepted(schema, arguments) if schema is not None and isinstance(arguments, dict) else None


def _accepted(schema: dict[str, Any], arguments: dict[str, Any]) -> Case | None:
    try:
        case = case_of(schema, arguments)
        case.parse(arguments)
    except (UnusableSchema, ArgumentError):
        return None
    return case


def _calls_of(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for call in row.get("concrete_calls") or ():
        yield call["name"], call["arguments"]
    truth = row.get("ground_truth") or []
    for calls in truth if isinstance(truth, list) else [truth]:
        if isinstance(calls, dict):
            yield from calls.items()


def _best_us(once: Callable[[], None], calls: int) -> float:
    """CPU time of one call in the best round, in microseconds."""
    taken: list[float] = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        once()
        taken.append(time.process_time() - began)
    return min(taken) / calls * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the files named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    options = parser.parse_args(arguments)
    found = [case for file in options.files for case in calls_in(file)]
    cases = [case for case in found if case is not None]
    if not cases:
        parser.error("there is no valid call in these files")

    def parse_all() -> None:
        for case in cases:
            case.parse(case.arguments)

    def check_all() -> None:
        for case in cases:
            case.is_valid(case.arguments)

    gc.disable()
    taken, floor = _best_us(parse_all, len(cases)), _best_us(check_all, len(cases))
    accepted = round(len(cases) / len(found), 4)
    figures = {
        "calls": len(found),
        "accepted": accepted,
        "us": round(taken, 2),
        "bare_us": round(floor, 2),
        "ratio": round(taken / floor, 2),
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
