"""Lossless decoding of tool call arguments, from JSON or from text between tags."""

from __future__ import annotations

import ast
import json
import re
from typing import NamedTuple

import orjson

from services.refs import ErrorCode, JsonObject, JsonValue

MAX_ARGUMENT_CHARACTERS = 256 * 1024
MAX_OBJECTS_IN_A_ROW = 64

_SPACE = " \t\r\n"
_FLAT_TYPES = frozenset({str, int, bool, type(None)})
_CONTROL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[bf]|u00(?:0[0-8bcefBCEF]|1[0-9a-fA-F]|7[fF]))")
"""Escape of a control character other than tab and line breaks: nearly always a Windows path with single
backslashes."""


class Reading(NamedTuple):
    """Arguments of a call: either `arguments` or a `fault`."""

    raw: str
    arguments: JsonObject | None
    fault: ErrorCode | None = None


def read_arguments(value: JsonValue) -> tuple[Reading, ...]:
    """Decode `value`, the `arguments` of a tool call: one reading, or several for concatenated objects. Missing or
    empty arguments are `{}`; more than 256 Ki characters are `invalid_json`.

    A fault is `invalid_json`, `not_an_object`, or `truncated` for a valid but incomplete beginning."""
    if value is None:
        return (Reading("", {}),)
    if isinstance(value, str):
        return _read_text(value)
    try:
        raw = orjson.dumps(value).decode()
    except (TypeError, UnicodeDecodeError):
        return (Reading("", None, ErrorCode.INVALID_JSON),)
    if isinstance(value, dict):
        return _read_text(raw)
    return (Reading(raw, None, ErrorCode.NOT_AN_OBJECT),)


def loads_unique(text: str) -> JsonValue:
    """Decode JSON without loss. Raises ValueError for invalid JSON, duplicate keys and integers beyond 64 bits, and
    RecursionError for excessive nesting."""
    return _EXACT.decode(text)


def same_arguments(one: JsonObject | None, other: JsonObject | None) -> bool:
    """Whether both are the same JSON, regardless of key order; `1`, `1.0` and `true` differ."""
    return one is other or _canonical(one) == _canonical(other)


def same_readings(one: str, other: str) -> bool:
    """Whether two texts are the same readable arguments."""
    return [_canonical(reading.arguments) for reading in read_arguments(one) if reading.fault is None] == [
        _canonical(reading.arguments) for reading in read_arguments(other)
    ]


def _read_text(raw: str) -> tuple[Reading, ...]:
    text = raw.strip(_SPACE)
    if not text:
        return (Reading(raw, {}),)
    if len(text) > MAX_ARGUMENT_CHARACTERS:
        return (Reading(raw, None, ErrorCode.INVALID_JSON),)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _read_broken(raw, text, error.pos)
    if isinstance(value, dict):
        return (_checked(raw, text, value),)
    if value is None:
        return (Reading(raw, {}),)
    if isinstance(value, str):
        return (_read_twice_encoded(raw, value),)
    return (Reading(raw, None, ErrorCode.NOT_AN_OBJECT),)


def _read_twice_encoded(raw: str, inner: str) -> Reading:
    text = inner.strip(_SPACE)
    if not text:
        return Reading(raw, {})
    if not text.startswith("{"):
        return Reading(raw, None, ErrorCode.NOT_AN_OBJECT)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Reading(raw, None, _fault_at(error.pos, text))
    return _checked(raw, text, value)


def _read_broken(raw: str, text: str, position: int) -> tuple[Reading, ...]:
    """Decode concatenated objects, at most 64; else a single reading with the fault. Parsing `text` stopped at
    `position`, possibly the start of another object."""
    pieces: list[str] = []
    while position < len(text) and text[position] == "{" and text.startswith("{"):
        pieces.append(text[:position].rstrip(_SPACE))
        text = text[position:]
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError as error:
            position = error.pos
        else:
            pieces.append(text)
            return _read_pieces(raw, pieces)
        if len(pieces) >= MAX_OBJECTS_IN_A_ROW:
            break
    return (Reading(raw, None, _fault_at(position, text)),)


def _read_pieces(raw: str, pieces: list[str]) -> tuple[Reading, ...]:
    """One reading per distinct object; a single fault rejects all, because a part of the calls must not run."""
    readings: dict[bytes, Reading] = {}
    for piece in pieces:
        try:
            value = orjson.loads(piece)
        except orjson.JSONDecodeError:
            return (Reading(raw, None, ErrorCode.INVALID_JSON),)
        reading = _checked(piece, piece, value)
        if reading.fault is not None:
            return (Reading(raw, None, reading.fault),)
        readings.setdefault(_canonical(reading.arguments), reading)
    # Some servers start a call with `{}` and send the real object afterwards.
    meant = [reading for reading in readings.values() if reading.arguments]
    return tuple(meant or readings.values())


def _checked(raw: str, text: str, value: JsonObject) -> Reading:
    """`value`, decoded from `text`, unless decoding lost information or it contains escaped control characters; then a
    reading with `invalid_json`."""
    if "\\" in text and _CONTROL_ESCAPE.search(text):
        return Reading(raw, None, ErrorCode.INVALID_JSON)
    if _is_surely_exact(text, value):
        return Reading(raw, value)
    try:
        loads_unique(text)
    except (ValueError, RecursionError):
        return Reading(raw, None, ErrorCode.INVALID_JSON)
    return Reading(raw, value)


def _is_surely_exact(text: str, value: JsonObject) -> bool:
    """Whether `value`, decoded from `text`, certainly lost nothing; False if it is unknown. For flat objects without
    floats. As many colons as keys rule out duplicate keys, and orjson reads oversized integers as floats, so an object
    without floats has none."""
    return text.count(":") == len(value) and _FLAT_TYPES.issuperset(map(type, value.values()))


def _fault_at(position: int, text: str) -> ErrorCode:
    return ErrorCode.TRUNCATED if position >= len(text) else ErrorCode.INVALID_JSON


def _canonical(arguments: JsonObject | None) -> bytes:
    return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is given twice")
    return value


def _whole_number(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        raise ValueError("a whole number does not fit into 64 bits")
    return number


_EXACT = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_whole_number)


_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,18})")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?")
_FLAGS = {"true": True, "false": False}
_LONGEST_LITERAL = 64 * 1024


def exact_json(text: str) -> JsonValue:
    """Decode JSON without loss. Raises ValueError for invalid JSON and as `loads_unique` does, and RecursionError."""
    value = orjson.loads(text)
    loads_unique(text)
    return value


def typed(text: str, schema: JsonObject, *, python: bool = False) -> JsonValue:
    """Convert `text` to the first matching type of `schema` (integer, number, boolean, null, object or array);
    unchanged if a string is allowed or nothing matches, so that validation reports it. `python` also accepts Python
    literals for lists and objects, which some models are trained to write."""
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
    """Types that a schema allows; unions included; empty if unspecified."""
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
    """JSON value of a Python literal, without evaluation; `otherwise` for any other text."""
    if len(source) > _LONGEST_LITERAL:
        return otherwise
    try:
        value = ast.literal_eval(source.strip())
        # Tuples, sets, bytes and non-string keys are not JSON.
        return value if orjson.loads(orjson.dumps(value)) == value and not isinstance(value, tuple) else otherwise
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return otherwise
