"""Arguments of tool calls, decoded losslessly or not at all, from JSON or from text between tags."""

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
"""An escape that stands for a control character other than tab and line breaks: nearly always a Windows path whose
backslashes were not doubled."""


class Reading(NamedTuple):
    """The arguments of one call: `arguments` or a `fault`, never both."""

    raw: str
    arguments: JsonObject | None
    fault: ErrorCode | None = None


def read_arguments(value: JsonValue) -> tuple[Reading, ...]:
    """What `value`, the `arguments` of one tool call, means: one reading, or one for each of several objects in a row.

    A fault is `invalid_json`, `not_an_object`, or `truncated` when the text is the beginning of valid JSON.
    """
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
    """`text` as JSON values that lose nothing. Raises ValueError where a key is given twice or a number does not fit
    into 64 bits, and RecursionError when it is nested too deep."""
    return _EXACT.decode(text)


def same_arguments(one: JsonObject | None, other: JsonObject | None) -> bool:
    """Whether both are the same JSON: `1`, `1.0` and `true` are three values, and order of keys does not count."""
    return one is other or _canonical(one) == _canonical(other)


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
    """`text` is no JSON document, and reading stopped at `position`: perhaps because another object begins there."""
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
    """One reading for each different object. If one is at fault, all are: half of what was meant is not run."""
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
    # Some servers open a call with `{}` and send the real object after it.
    meant = [reading for reading in readings.values() if reading.arguments]
    return tuple(meant or readings.values())


def _checked(raw: str, text: str, value: JsonObject) -> Reading:
    """`value`, which orjson read from `text`, unless reading it lost something."""
    if "\\" in text and _CONTROL_ESCAPE.search(text):
        return Reading(raw, None, ErrorCode.INVALID_JSON)
    if is_surely_exact(text, value):
        return Reading(raw, value)
    try:
        loads_unique(text)
    except (ValueError, RecursionError):
        return Reading(raw, None, ErrorCode.INVALID_JSON)
    return Reading(raw, value)


def is_surely_exact(text: str, value: JsonObject) -> bool:
    """True for the usual small object. Each key needs a colon, so as many colons as keys leave no room for a second
    value of a key; a whole number that does not fit was read as a float, so an object without floats has none."""
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
