"""JSON Schema as Rollcall uses it: `$ref`s written out, nothing that only costs tokens, and as valid as it came.

What comes from elsewhere is read by the draft that it names, else by draft 7, or by 2020-12 where it has words that
only the later drafts have. Our form names its draft where that is not draft 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import PydanticUserError, TypeAdapter

from function_calls.schema_cleaning import cleaned as cleaned
from function_calls.schema_mending import as_later, everywhere, mend, nodes
from function_calls.schema_words import DRAFT_7, DRAFT_2020_12, LATER
from function_calls.schema_words import UnusableSchema as UnusableSchema
from services.json_values import JsonObject

EMPTY: JsonObject = {"type": "object", "properties": {}, "required": []}
_EARLY = re.compile(r"https?://json-schema\.org/draft-0[467]/schema#?")
_LATE = re.compile(r"https?://json-schema\.org/draft/20(19-09|20-12)/schema#?")
_TO_THE_LATEST = re.compile(r"https?://json-schema\.org/draft/2020-12/schema(#.*)?")


def schema_of(arguments: Any) -> JsonObject:
    """The schema of a pydantic model or a dataclass, as a model is told it.
    Raises UnusableSchema for a type that refers to itself, or that JSON cannot hold."""
    try:
        generated = TypeAdapter(arguments).json_schema()
    except PydanticUserError as error:
        raise UnusableSchema(f"{arguments!r} cannot be told a model: {error.message}") from None
    schema = cleaned(generated)
    if "$defs" in schema:
        repeated = ", ".join(schema["$defs"])
        raise UnusableSchema(f"{repeated} refers to itself; a model cannot be told such a type")
    if schema.get("type") != "object":
        raise UnusableSchema(f"{arguments!r} does not describe an object, so it cannot be the arguments of a function")
    # The docstring of the arguments explains them to authors.
    schema.pop("description", None)
    return _completed(schema)


def closed(schema: JsonObject) -> JsonObject:
    """The same schema, refusing unknown keys wherever an object names its own."""
    copy: JsonObject = deepcopy(schema)
    _close(copy)
    return copy


def imported(schema: object) -> JsonObject:
    """A schema from elsewhere as ours, by which the same arguments are valid. What its author meant is put right where
    it is plain: type names of other languages, values listed for an array that are meant for its items, a property
    that says of itself that it is required.
    Raises UnusableSchema when it is no object schema, refers outside itself, or has no end."""
    if not isinstance(schema, Mapping):
        raise UnusableSchema(f"parameters must be a JSON Schema object, not {type(schema).__name__}")
    try:
        mended = deepcopy(dict(schema))
        everywhere(mended, mend)
        later = _is_later(mended)
        if later:
            everywhere(mended, as_later)
    except RecursionError:
        raise UnusableSchema("it is nested too deep") from None
    # Whoever writes `$defs` thinks of a draft in which what stands beside a reference is in force.
    alone = not later and ("$defs" not in mended or _states(mended, _EARLY))
    ours = cleaned(mended, drops_null=False, refs_alone=alone, draft=DRAFT_2020_12 if later else DRAFT_7)
    kind = ours.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise UnusableSchema(f"parameters must have type object, not {kind!r}")
    return _completed({**({"$schema": DRAFT_2020_12} if later else {}), **ours})


def _is_later(schema: JsonObject) -> bool:
    if _states(schema, _EARLY):
        return False
    return _states(schema, _LATE) or any(node.keys() & LATER or _refers_to_the_latest(node) for node in nodes(schema))


def _refers_to_the_latest(node: JsonObject) -> bool:
    reference = node.get("$ref")
    return isinstance(reference, str) and _TO_THE_LATEST.fullmatch(reference) is not None


def _states(schema: JsonObject, drafts: re.Pattern[str]) -> bool:
    stated = schema.get("$schema")
    return isinstance(stated, str) and drafts.fullmatch(stated) is not None


def _completed(schema: JsonObject) -> JsonObject:
    """Key order and the keys that every exporter relies on."""
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    if not isinstance(properties, Mapping):
        raise UnusableSchema(f"properties must be an object, not {properties!r}")
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise UnusableSchema(f"required must be a list of names, not {required!r}")
    head = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {**head, **{key: value for key, value in schema.items() if key not in head}}


def _close(schema: Any) -> None:
    if isinstance(schema, list):
        for item in schema:
            _close(item)
    elif isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
            for sub in schema["properties"].values():
                _close(sub)
        for key in ("items", "anyOf", "oneOf", "allOf", "additionalProperties"):
            _close(schema.get(key))
