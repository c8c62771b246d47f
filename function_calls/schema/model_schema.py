"""What a model is told of a schema: as much of it as every provider takes. Nothing is validated by it.

Providers refuse a whole request for one schema that they do not take: for `anyOf` and its like beside the parameters,
for lists of `items`, for references that they cannot follow. That is told in words; what a model then gives is checked
against the schema itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from function_calls.schema.schema import DRAFT_7, MANY, NAMED, ONE, parts_of
from services.refs import JsonObject

_UNIONS = ("allOf", "anyOf", "oneOf")
_NOT_AT_THE_TOP = (*_UNIONS, "enum", "not")
_NEVER_TOLD = ("$defs", "$schema")
_IN_PROPERTIES = frozenset({"type", "properties", "required", "description"})
"""What a part of `allOf` may say without asking for anything that the parameters cannot say."""
_MOST_NAMES = 12
_MOST_WRITTEN_OUT = 12


def told(schema: JsonObject) -> JsonObject:
    """`schema`, which is in our form, as a model is told it; the same object where there is nothing to change."""
    if not (schema.keys() & {*_NEVER_TOLD, *_NOT_AT_THE_TOP} or _needs_words(schema)):
        return schema
    whole = {key: value for key, value in schema.items() if key not in _NEVER_TOLD}
    return _without_unions(_Telling(schema.get("$defs") or {}).told(whole))


def _needs_words(node: Any) -> bool:
    """Whether there is a tuple in it, or a reference."""
    if not isinstance(node, dict):
        return False
    is_told_in_words = "prefixItems" in node or isinstance(node.get("items"), list) or "$ref" in node
    return is_told_in_words or any(map(_needs_words, parts_of(node)))


class _Telling:
    """One schema being told: what refers to itself is written out where it begins, and in words where it does again."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._left = _MOST_WRITTEN_OUT

    def told(self, node: Any, around: frozenset[str] = frozenset()) -> Any:
        """`node`, which stands within the definitions `around`."""
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return self._repeated(node, around) if node["$ref"].startswith("#") else _as_schema(node)
        result: JsonObject = {}
        for key, value in node.items():
            if key in NAMED and isinstance(value, dict):
                result[key] = {name: self.told(one, around) for name, one in value.items()}
            elif key in MANY and isinstance(value, list):
                result[key] = [self.told(one, around) for one in value]
            else:
                result[key] = self.told(value, around) if key in ONE else value
        if "prefixItems" in result:
            return _as_array(result, result.pop("prefixItems"), result.pop("items", {}))
        if isinstance(result.get("items"), list):
            return _as_array(result, result.pop("items"), result.pop("additionalItems", {}))
        return result

    def _repeated(self, node: JsonObject, around: frozenset[str]) -> Any:
        name = node["$ref"].rpartition("/")[2]
        target = self._definitions.get(name) or {}
        beside = {key: value for key, value in node.items() if key != "$ref"}
        if name not in around and self._left > 0:
            self._left -= 1
            return {**self.told(target, around | {name}), **beside}
        again = f"of the same form as the {name} around it" if name in around else f"of the form {name}"
        names = list(target.get("properties") or ())
        if names:
            again += f", with {', '.join(names[:_MOST_NAMES])}{' …' if len(names) > _MOST_NAMES else ''}"
        kind = {"type": target["type"]} if "type" in target else {}
        return _saying({**kind, **beside}, again, beside.get("description") or target.get("description") or "")


def _as_schema(node: JsonObject) -> JsonObject:
    """A reference to what describes schemas themselves, which models know."""
    document, _, part = node["$ref"].partition("#")
    beside = {key: value for key, value in node.items() if key != "$ref"}
    draft = "draft 7" if document == DRAFT_7 else "draft 2020-12"
    if part:
        return _saying(beside, f"what {part} says in the schema of JSON Schema {draft}", beside.get("description", ""))
    return _saying({"type": "object", **beside}, f"a JSON Schema ({draft})", beside.get("description", ""))


def _as_array(node: JsonObject, listed: Sequence[Any], rest: Any) -> JsonObject:
    """A tuple as an array whose items are of any of its kinds, with their order in words."""
    kinds = {orjson.dumps(one): one for one in (*listed, *([rest] if isinstance(rest, dict) and rest else []))}
    node["items"] = next(iter(kinds.values())) if len(kinds) == 1 else {"anyOf": list(kinds.values())}
    if not all(listed):
        # One of them may be anything.
        node["items"] = {}
    if len(kinds) == 1:
        return node
    return _saying(node, f"the items are, in this order: {orjson.dumps(listed).decode()}", node.get("description", ""))


def _without_unions(schema: JsonObject) -> JsonObject:
    """The parameters without what concerns them together, which is told in words."""
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
    return _saying(schema, words, schema.get("description", ""))


def _is_only_described(part: JsonObject) -> bool:
    return "description" in part and "properties" not in part


def _offered_by(parts: Sequence[JsonObject]) -> JsonObject:
    """The properties of several schemas. One that looks different in two of them may look like either."""
    variants: dict[str, dict[bytes, Any]] = {}
    for part in parts:
        for name, one in (part.get("properties") or {}).items():
            variants.setdefault(name, {})[orjson.dumps(one)] = one
    return {
        name: next(iter(looks.values())) if len(looks) == 1 else {"anyOf": list(looks.values())}
        for name, looks in variants.items()
    }


def _saying(node: JsonObject, words: str, description: str) -> JsonObject:
    sentence = f"{description.rstrip().removesuffix('.')}; {words}" if description else words[0].upper() + words[1:]
    return {**node, "description": sentence}
