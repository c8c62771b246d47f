"""A value that a model wrote as bare text, between tags, as the JSON that its schema asks for."""

from __future__ import annotations

import ast
import re

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.tool_arguments import loads_unique

_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,18})")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?")
_FLAGS = {"true": True, "false": False}
_LONGEST_LITERAL = 64 * 1024


def exact_json(text: str) -> JsonValue:
    """`text` as JSON that loses nothing. Raises ValueError or RecursionError."""
    value = orjson.loads(text)
    loads_unique(text)
    return value


def typed(text: str, schema: JsonObject, *, python: bool = False) -> JsonValue:
    """`text` in the first type of `schema` that it can be read as; else unchanged, for the check of the arguments to
    complain about. Where a text is allowed, it stays one. `python`: lists and objects may be Python's literals, which
    some models are trained to write."""
    types = _types(schema)
    if "string" in types or not types:
        return text
    bare = text.strip()
    if "integer" in types and _WHOLE.fullmatch(bare):
        return int(bare)
    if "number" in types and _NUMBER.fullmatch(bare):
        number: JsonValue = orjson.loads(bare)
        return number
    if "boolean" in types and bare.lower() in _FLAGS:
        return _FLAGS[bare.lower()]
    if "null" in types and bare in ("null", "None"):
        return None
    if types & {"object", "array"}:
        return _structure(text, python=python)
    return text


def _types(schema: JsonObject) -> set[str]:
    """The types that a schema allows; empty when it does not say."""
    named = schema.get("type")
    if isinstance(named, str):
        return {named}
    if isinstance(named, list):
        return {one for one in named if isinstance(one, str)}
    found: set[str] = set()
    for union in ("anyOf", "oneOf"):
        for one in schema.get(union) or ():
            types = _types(one) if isinstance(one, dict) else set()
            if not types:
                return set()
            found |= types
    return found


def _structure(text: str, *, python: bool) -> JsonValue:
    try:
        return exact_json(text)
    except (ValueError, RecursionError):
        return python_literal(text, text) if python else text


def python_literal(source: str, otherwise: JsonValue) -> JsonValue:
    """The JSON that a literal of Python's stands for, nothing evaluated; `otherwise` for anything else."""
    if len(source) > _LONGEST_LITERAL:
        return otherwise
    try:
        value = ast.literal_eval(source.strip())
        # Tuples, sets, bytes and keys that are no text are not JSON.
        return value if orjson.loads(orjson.dumps(value)) == value and not isinstance(value, tuple) else otherwise
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return otherwise
