"""Calls that a model wrote into its text, read in the one dialect that its profile names.

Whoever can make a model repeat words can make it write such a call. So a call is read only after the model's
reasoning, only where everything from the first call to the end is understood without loss, and only of functions that
are on offer. Anything else stays what it is without a dialect: a leak, which is neither run nor shown.
"""

from __future__ import annotations

import ast
import re

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.dialect_notations import DIALECTS, Notation
from services.llm.markup import ReadText, Visible, is_call, spoken, visible_text
from services.llm.model import Offer
from services.llm.tool_arguments import MAX_ARGUMENT_CHARACTERS
from services.llm.tool_calls import plain_name, read_calls
from services.llm.typed_text import exact_json, python_literal, typed

_MOST_CALLS = 64
_NOT_READ = object()


def dialect_of(family: str) -> str | None:
    """The dialect of a family of models, by its own name or by a model's: `qwen`, `qwen3-coder`. None for a family that
    has none here."""
    name = family.strip().lower()
    return next((dialect for dialect in DIALECTS if name.startswith(dialect)), None)


def reader_for(dialect: str | None, offer: Offer | None) -> ReadText:
    """How the text of an answer to a request with `offer` is read. Without a dialect, or with nothing on offer, no call
    is read out of text."""
    if dialect is None or offer is None or not offer.functions:
        return visible_text
    notations, schemas = DIALECTS[dialect], _schemas(offer)

    def read(content: str, seed: str = "") -> Visible:
        text = spoken(content)
        for notation in notations:
            found = notation.begins.search(text)
            if found is None or len(text) - found.start() > MAX_ARGUMENT_CHARACTERS:
                continue
            entries = _entries(text[found.start() :], notation, schemas)
            calls = read_calls({"tool_calls": entries}, seed) if entries else None
            if calls is not None and calls.calls and all(call.fault is None for call in calls.calls):
                before = visible_text(text[: found.start()].rstrip())
                return before if before.leaked else Visible(before.text, leaked=False, calls=calls.calls)
        return visible_text(content)

    return read


def _schemas(offer: Offer) -> dict[str, JsonObject]:
    """The schemas of functions, by every name that they go by."""
    schemas = {function.original: function.parameters for function in offer.functions}
    return {**schemas, **{function.name: function.parameters for function in offer.functions}}


def _entries(text: str, notation: Notation, schemas: dict[str, JsonObject]) -> list[JsonValue]:
    """The calls that `text` consists of, as entries of `tool_calls`; none when anything in it is not understood."""
    entries: list[JsonValue] = []
    place = _after(notation.between, text, 0)
    while place < len(text):
        found = notation.call.match(text, place)
        added = _calls_in(found, notation, schemas) if found else []
        if found is None or not added or found.end() == place or len(entries) > _MOST_CALLS:
            return []
        entries += added
        place = _after(notation.between, text, found.end())
    names = [plain_name(str(entry["name"])) for entry in entries if isinstance(entry, dict)]
    return entries if all(name in schemas for name in names) else []


def _after(between: re.Pattern[str], text: str, place: int) -> int:
    found = between.match(text, place)
    return found.end() if found else place


def _calls_in(found: re.Match[str], notation: Notation, schemas: dict[str, JsonObject]) -> list[JsonValue]:
    groups = found.groupdict()
    if groups.get("json") is not None:
        return _of_json(groups["json"])
    if groups.get("python") is not None:
        return _of_python(groups["python"])
    name = str(groups["name"])
    if groups.get("arguments") is not None:
        return [{"name": name, "arguments": groups["arguments"]}]
    arguments = _of_tags(groups["tags"], notation, schemas.get(plain_name(name), {}))
    return [] if arguments is None else [{"name": name, "arguments": arguments}]


def _of_json(source: str) -> list[JsonValue]:
    try:
        value = exact_json(source)
    except (ValueError, RecursionError):
        return []
    calls = value if isinstance(value, list) else [value]
    if not all(is_call(call) and "name" in call.get("function", call) for call in calls):
        return []
    return [call.get("function", call) for call in calls]


def _of_tags(source: str, notation: Notation, schema: JsonObject) -> JsonObject | None:
    """Parameters in tags; None when one is given twice, or when something else stands between them."""
    assert notation.parameter is not None
    properties = schema.get("properties") or {}
    arguments: JsonObject = {}
    source = source.strip()
    place = 0
    while place < len(source):
        found = notation.parameter.match(source, place)
        key = found["key"].strip() if found else ""
        if found is None or key in arguments:
            return None
        value, is_text = found["value"], found.groupdict().get("is_text")
        if is_text != "true":
            value = typed(value, _stated(properties.get(key), is_text), python=True)
        arguments[key] = value
        place = found.end()
    return arguments


def _stated(schema: JsonObject | None, is_text: str | None) -> JsonObject:
    """The schema of a value; one that is said to be no text is JSON, whatever else is known of it."""
    if is_text == "false":
        return {"type": ["integer", "number", "boolean", "null", "object", "array"]}
    return schema or {}


def _of_python(source: str) -> list[JsonValue]:
    """Calls as Python writes them, one or a list, all arguments by name; nothing is evaluated."""
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    entries: list[JsonValue] = []
    for node in tree.elts if isinstance(tree, ast.List) else [tree]:
        if not isinstance(node, ast.Call) or node.args or any(word.arg is None for word in node.keywords):
            return []
        values = {str(word.arg): _literal(word.value, source.strip()) for word in node.keywords}
        if any(value is _NOT_READ for value in values.values()):
            return []
        entries.append({"name": ast.unparse(node.func), "arguments": orjson.dumps(values).decode()})
    return entries


def _literal(node: ast.expr, source: str) -> object:
    segment = ast.get_source_segment(source, node)
    return _NOT_READ if segment is None else python_literal(segment, _NOT_READ)
