"""Calls as JSON in prose: how the protocol `json_text` writes and reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.markup import is_call
from services.llm.text_calls import CallForm, Schemas, UnreadableCalls
from services.llm.typed_text import exact_json
from services.refs import ErrorCode

_NAME = r'"(?:name|function)"\s{0,20}:\s{0,20}"(?P<name>[^"\\]{1,64})"'
_SIGNS = re.compile(rf'\{{\s{{0,20}}"tool_calls"\s{{0,20}}:|{_NAME}\s{{0,20}},\s{{0,20}}"arguments"\s{{0,20}}:')


def write_calls(calls: Sequence[tuple[str, Mapping[str, JsonValue]]]) -> str:
    """The block by which a model calls functions, each with its arguments."""
    value = {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}
    return f"```json\n{orjson.dumps(value).decode()}\n```"


def _calls_in(source: str, schemas: Schemas) -> list[JsonObject]:
    signs = _SIGNS.search(source)
    try:
        value = exact_json(source)
    except (ValueError, RecursionError) as error:
        if signs is None:
            return []
        ends_early = isinstance(error, orjson.JSONDecodeError) and error.pos >= len(source.rstrip())
        fault = ErrorCode.TRUNCATED if ends_early else ErrorCode.INVALID_JSON
        raise UnreadableCalls(fault, signs["name"] or _name_in(source)) from None
    found: list[JsonObject] = []
    for entry in value if isinstance(value, list) else [value]:
        calls = _entries(entry)
        if calls is None:
            if signs is None:
                return []
            raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER, signs["name"] or _name_in(source))
        found += calls
    return found


def _entries(value: JsonValue) -> list[JsonObject] | None:
    """The calls that `value` is; None when it is none."""
    if not isinstance(value, dict):
        return None
    if value.keys() == {"function", "arguments"} and isinstance(value["function"], str):
        return [{"name": value["function"], "arguments": value["arguments"]}]
    if not is_call(value):
        return None
    listed = value.get("tool_calls", [value.get("function_call", value)])
    entries: list[JsonObject] = []
    for one in listed if isinstance(listed, list) else [None]:
        function = one.get("function", one) if isinstance(one, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return None
        entries.append(function)
    return entries


def _name_in(source: str) -> str:
    named = re.search(_NAME, source)
    return named["name"] if named else ""


def _is_complete(source: str) -> bool:
    try:
        orjson.loads(source)
    except orjson.JSONDecodeError:
        return False
    return True


JSON_CALLS = CallForm(
    languages=frozenset({"", "json", "tool_calls"}),
    signs=_SIGNS,
    is_whole=lambda text: text.startswith(("{", "[")),
    is_complete=_is_complete,
    calls_in=_calls_in,
)
