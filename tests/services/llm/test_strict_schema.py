"""Schemas in the strict form that servers enforce."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.llm.encoding import encode_tools, strict_schema
from services.llm.model import Offer, OfferedFunction

CITY = {"type": "string", "description": "Where"}


def an_object(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


def test_objects_are_closed_and_what_may_be_left_out_may_be_null() -> None:
    unit, days = {"type": "string", "enum": ["c"]}, {"type": "integer", "default": 1}
    schema = an_object(["city"], city=CITY, days=days, unit=unit)
    assert strict_schema(schema) == {
        "type": "object",
        "properties": {
            "city": CITY,
            "days": {"type": ["integer", "null"]},
            "unit": {"anyOf": [{"type": "string", "enum": ["c"]}, {"type": "null"}]},
        },
        "required": ["city", "days", "unit"],
        "additionalProperties": False,
    }


def test_it_goes_all_the_way_down() -> None:
    inner = an_object(["a"], a={"type": "array", "items": an_object(["b"], b=CITY)})
    strict = strict_schema(an_object(["in"], **{"in": inner}))
    assert strict is not None
    assert json.dumps(strict).count('"additionalProperties": false') == 3


@pytest.mark.parametrize(
    "part",
    [
        {"type": "object"},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "array"},
        {"type": "string", "pattern": "a+"},
        {},
        {"oneOf": [CITY]},
    ],
)
def test_what_would_allow_other_values_stays_as_it_is(part: dict[str, Any]) -> None:
    assert strict_schema(an_object(["p"], p=part)) is None


def test_only_functions_that_can_be_are_marked_and_only_where_the_profile_says_so() -> None:
    free = OfferedFunction("free", "free", "", an_object(p={}))
    held = OfferedFunction("held", "held", "", an_object(["city"], city=CITY))
    offer = Offer([free, held])
    marked = [tool["function"].get("strict") for tool in json.loads(encode_tools(offer, strict=True))]
    assert marked == [None, True]
    assert "strict" not in encode_tools(offer).decode()
