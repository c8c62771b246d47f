"""Schemas for models, reduced to the features that all providers accept. Never used for validation.

Providers reject a whole request because of one unsupported schema: for `anyOf` and similar keywords at the top level,
lists of `items`, or unresolved references. These are described in words; arguments are validated against the original
schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from function_calls.schema.schema import DRAFT_7, MANY, NAMED, ONE, parts_of
from services.refs import JsonObject

_UNIONS = ("allOf", "anyOf", "oneOf")
_NOT_AT_THE_TOP = (*_UNIONS, "enum", "not")
_OMITTED_KEYS = ("$defs", "$schema")
_IN_PROPERTIES = frozenset({"type", "properties", "required", "description"})
"""Keywords of a part of `allOf` that can be merged into the parameters."""
_MOST_NAMES = 12
_MOST_EXPANDED = 12


def schema_for_model(schema: JsonObject) -> JsonObject:
    """`schema`, normalized before, in the form for models; the same object if nothing changes. Deprecated optional
    parameters are left out."""
    properties = schema.get("properties") or {}
    deprecated = {
        name for name, one in properties.items() if isinstance(one, dict) and one.get("deprecated") is True
    }.difference(schema.get("required") or ())
    if deprecated:
        schema = {**schema, "properties": {name: one for name, one in properties.items() if name not in deprecated}}
    if not (schema.keys() & {*_OMITTED_KEYS, *_NOT_AT_THE_TOP} or _needs_description(schema)):
        return schema
    whole = {key: value for key, value in schema.items() if key not in _OMITTED_KEYS}
    return _without_unions(_SchemaConversion(schema.get("$defs") or {}).converted(whole))


def _needs_description(node: Any) -> bool:
    """Whether the schema contains a tuple or a reference."""
    if not isinstance(node, dict):
        return False
    is_described = "prefixItems" in node or isinstance(node.get("items"), list) or "$ref" in node
    return is_described or any(map(_needs_description, parts_of(node)))


class _SchemaConversion:
    """Conversion of one schema. Recursive definitions are expanded at first use and described when repeated."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._left = _MOST_EXPANDED

    def converted(self, node: Any, around: frozenset[str] = frozenset()) -> Any:
        """Convert `node`, which is inside the definitions `around`, for models: references are expanded, and tuples
        become arrays. Returns other values than dicts unchanged."""
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return self._repeated(node, around) if node["$ref"].startswith("#") else _as_schema(node)
        result: JsonObject = {}
        for key, value in node.items():
            if key in NAMED and isinstance(value, dict):
                result[key] = {name: self.converted(one, around) for name, one in value.items()}
            elif key in MANY and isinstance(value, list):
                result[key] = [self.converted(one, around) for one in value]
            else:
                result[key] = self.converted(value, around) if key in ONE else value
        if "prefixItems" in result:
            return _as_array(result, result.pop("prefixItems"), result.pop("items", {}))
        if isinstance(result.get("items"), list):
            return _as_array(result, result.pop("items"), result.pop("additionalItems", {}))
        return result

    def _repeated(self, node: JsonObject, around: frozenset[str]) -> Any:
        name = node["$ref"].rpartition("/")[2]
        target = self._definitions.get(name) or {}
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        if name not in around and self._left > 0:
            self._left -= 1
            return {**self.converted(target, around | {name}), **siblings}
        reference_text = f"of the same form as the {name} around it" if name in around else f"of the form {name}"
        names = list(target.get("properties") or ())
        if names:
            reference_text += f", with {', '.join(names[:_MOST_NAMES])}{' …' if len(names) > _MOST_NAMES else ''}"
        kind = {"type": target["type"]} if "type" in target else {}
        return _with_description(
            {**kind, **siblings}, reference_text, siblings.get("description") or target.get("description") or ""
        )


def _as_schema(node: JsonObject) -> JsonObject:
    """Object schema that replaces a reference to the JSON Schema meta-schema, described in words, since models know
    it."""
    document, _, part = node["$ref"].partition("#")
    siblings = {key: value for key, value in node.items() if key != "$ref"}
    draft = "draft 7" if document == DRAFT_7 else "draft 2020-12"
    if part:
        return _with_description(
            siblings, f"what {part} says in the schema of JSON Schema {draft}", siblings.get("description", "")
        )
    return _with_description(
        {"type": "object", **siblings}, f"a JSON Schema ({draft})", siblings.get("description", "")
    )


def _as_array(node: JsonObject, listed: Sequence[Any], rest: Any) -> JsonObject:
    """A tuple as an array of any of its item types, with the order in words."""
    kinds = {orjson.dumps(one): one for one in (*listed, *([rest] if isinstance(rest, dict) and rest else []))}
    node["items"] = next(iter(kinds.values())) if len(kinds) == 1 else {"anyOf": list(kinds.values())}
    if not all(listed):
        # An unrestricted item makes all items unrestricted.
        node["items"] = {}
    if len(kinds) == 1:
        return node
    return _with_description(
        node, f"the items are, in this order: {orjson.dumps(listed).decode()}", node.get("description", "")
    )


def _without_unions(schema: JsonObject) -> JsonObject:
    """`schema` without top-level unions and similar keywords: their properties are merged, `required` of `allOf` too,
    and the rest is described in words. Changes `schema`, but the description is only in the result."""
    together = {key: schema.pop(key) for key in _NOT_AT_THE_TOP if key in schema}
    if not together:
        return schema
    parts = [part for key in _UNIONS for part in together.get(key) or () if isinstance(part, dict)]
    own = schema["properties"]
    schema["properties"] = {**own, **{name: one for name, one in _offered_by(parts).items() if name not in own}}
    all_of = [part for part in together.pop("allOf", ()) if isinstance(part, dict)]
    schema["required"] = list(
        dict.fromkeys([*schema["required"], *(name for part in all_of for name in part.get("required") or ())])
    )
    more = [one for one in all_of if not one.keys() <= _IN_PROPERTIES or _is_only_described(one)]
    if more:
        together["allOf"] = more
    if not together:
        return schema
    words = f"together the arguments must also fit this JSON Schema: {orjson.dumps(together).decode()}"
    return _with_description(schema, words, schema.get("description", ""))


def _is_only_described(part: JsonObject) -> bool:
    return "description" in part and "properties" not in part


def _offered_by(parts: Sequence[JsonObject]) -> JsonObject:
    """Properties of several schemas by name. Different schemas for one name become `anyOf`."""
    variants: dict[str, dict[bytes, Any]] = {}
    for part in parts:
        for name, one in (part.get("properties") or {}).items():
            variants.setdefault(name, {})[orjson.dumps(one)] = one
    return {
        name: next(iter(looks.values())) if len(looks) == 1 else {"anyOf": list(looks.values())}
        for name, looks in variants.items()
    }


def _with_description(node: JsonObject, words: str, description: str) -> JsonObject:
    sentence = f"{description.rstrip().removesuffix('.')}; {words}" if description else words[0].upper() + words[1:]
    return {**node, "description": sentence}
