"""External function definitions, with other type names and typical mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from function_calls.encodings import imported_definition, offered_names
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.schema import imported
from function_calls.spec import ArgumentError

MANY_WORDS = {
    "type": "dict",
    "properties": {
        "rate": {"type": "float"},
        "point": {"type": "tuple", "items": {"type": "float"}},
        "whatever": {"type": "any"},
        "options": {"type": "dict", "properties": {"deep": {"type": "bool"}}},
        "tags": {"type": "array", "items": {"type": "string"}, "enum": ["red", "blue"]},
        "enum": {"type": "str", "enum": ["a"], "examples": "a, b"},
    },
    "required": ["rate"],
}


def accepts(schema: dict[str, Any], **arguments: Any) -> bool:
    try:
        SchemaArguments(imported(schema), fills_defaults=False).parse(arguments)
    except ArgumentError:
        return False
    return True


def test_foreign_words_for_types_mean_those_of_json_schema() -> None:
    properties = imported(MANY_WORDS)["properties"]
    assert [properties[name].get("type") for name in ("rate", "point", "whatever", "options", "enum")] == [
        "number", "array", None, "object", "string",
    ]  # fmt: skip
    assert accepts(MANY_WORDS, rate=1, point=[1, 2.5], whatever={"a": [1]}, options={"deep": True}, enum="a")
    assert not accepts(MANY_WORDS, rate="many")
    assert not accepts(MANY_WORDS, rate=1, options={"deep": [1]})


def test_values_that_are_listed_for_an_array_are_those_of_its_items() -> None:
    assert accepts(MANY_WORDS, rate=1, tags=["red", "blue"])
    assert not accepts(MANY_WORDS, rate=1, tags=["green"])
    whole = {"properties": {"pair": {"type": "array", "enum": [["a", "b"]]}}}
    assert accepts(whole, pair=["a", "b"])
    assert not accepts(whole, pair=["b", "a"])


@pytest.mark.parametrize(
    ("text", "fits"),
    [("2026-01-05T09:00:00Z", True), ("2026-01-05T09:00:00", True), ("2026-01-05", False), ("soon", False)],
)
def test_a_date_with_a_time_may_leave_its_zone_out(text: str, fits: bool) -> None:
    assert accepts({"properties": {"at": {"type": "string", "format": "date-time"}}}, at=text) is fits


def test_a_definition_may_say_arguments_for_its_schema() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    foreign = imported_definition({"name": "f", "arguments": schema, "results": {}})
    assert (foreign.parameters, foreign.metadata) == (schema, {"results": {}})
    both = imported_definition({"name": "f", "parameters": schema, "arguments": "kept"})
    assert (both.parameters, both.metadata) == (schema, {"arguments": "kept"})


def records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def true_calls(row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls in the answer to a question of either corpus."""
    for call in row.get("concrete_calls") or ():
        yield call["name"], call["arguments"]
    truth = row.get("ground_truth") or []
    for calls in truth if isinstance(truth, list) else [truth]:
        yield from calls.items()


CONTRADICTED = {
    "live_parallel_multiple_2-2-0": "the command is not one of the three that are allowed",
    "parallel_multiple_21": "a text of Python stands where a list of numbers is wanted",
    "ace_en_normal_atom_object_deep_14": "three allowed values in one text, for one of them",
    "ace_en_normal_atom_object_deep_35": "the settings lack a required chartType",
    "ace_en_normal_single_turn_parallel_function_68": "the options lack a required timePeriod",
}
"""Cases of the corpora whose answer contradicts the schema."""


@pytest.mark.parametrize("corpus", ["bfcl", "acebench_en", "acebench_zh"])
def test_the_true_calls_of_a_corpus_are_accepted(data: Callable[[str], Path], corpus: str) -> None:
    refused, number, ids = set(), 0, set()
    for row in records(data(f"B_function_calls/{corpus}.jsonl")):
        ids.add(row["id"])
        functions = [imported_definition(one) for one in row["functions"]]
        assert all(imported(one.parameters) == one.parameters for one in functions), row["id"]
        parsers = {one.name: SchemaArguments(one.parameters, fills_defaults=False) for one in functions}
        if "special" in row["category"]:
            continue
        assert len(set(offered_names(list(parsers)).values())) == len(parsers)
        for name, arguments in true_calls(row):
            number += 1
            # Repeated calls of a function have numbered names.
            parser = parsers.get(name) or parsers[re.sub(r"_\d+$", "", name)]
            try:
                assert parser.parse(arguments) == arguments
            except ArgumentError:
                refused.add(row["id"])
    assert number > 150
    assert refused == CONTRADICTED.keys() & ids


@pytest.mark.parametrize("pool", ["bfcl", "sealtools", "metatool", "acebench_en", "acebench_zh"])
def test_every_function_of_a_pool_can_be_imported_and_offered(data: Callable[[str], Path], pool: str) -> None:
    functions = [imported_definition(one) for one in records(data(f"B_function_calls/retrieval/{pool}.pool.jsonl"))]
    for one in functions:
        SchemaArguments(one.parameters)
        assert imported(one.parameters) == one.parameters, one.name
    names = offered_names([one.name for one in functions])
    assert len(set(names.values())) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())
