"""What authors of foreign schemas often get wrong, put right where it is plain what is meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from function_calls.schema_words import parts_of
from services.json_values import JsonObject

_CLASS_THEN_HYPHEN = re.compile(r"(\[[^\]\[]*?\\[dDsSwW])-(?=[^\]])")
"""In brackets, a class of characters and a hyphen that cannot mean a range."""
_NAMED_GROUP = re.compile(r"(?<!\\)\(\?P<")
_ENDS = re.compile(r"(?<!\\)((?:\\\\)*)\\([AZz])")
_ANCHORS = {"A": "^", "Z": "$", "z": "$"}


def nodes(node: Any) -> Iterator[JsonObject]:
    """The schema `node` and every schema within it, the inner ones first."""
    if not isinstance(node, dict):
        return
    for part in parts_of(node):
        yield from nodes(part)
    yield node


def everywhere(schema: JsonObject, change: Callable[[JsonObject], None]) -> None:
    """Apply `change` to the schema and all within it, in place."""
    for node in list(nodes(schema)):
        change(node)


def mend(node: JsonObject) -> None:
    """Put one schema right, in place. What was right stays as it is."""
    if "examples" in node and not isinstance(node["examples"], list):
        node["examples"] = [node["examples"]]
    for listed in ("required", "enum"):
        if isinstance(node.get(listed), list):
            node[listed] = _each_once(node[listed])
    if isinstance(node.get("pattern"), str):
        node["pattern"] = _pattern(node["pattern"])
    _mend_required(node)
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        # Draft 4 says by yes or no whether the limit itself is excluded.
        if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and limit in node:
            node[exclusive] = node.pop(limit)
    _mend_values(node)


def as_later(node: JsonObject) -> None:
    """Say in place, as draft 2020-12 does, what an author has said as earlier ones do."""
    if isinstance(node.get("items"), list):
        node["prefixItems"] = node.pop("items")
        if "additionalItems" in node:
            node["items"] = node.pop("additionalItems")
    dependencies = node.get("dependencies")
    if isinstance(dependencies, dict):
        del node["dependencies"]
        for name, needs in dependencies.items():
            kind = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
            node.setdefault(kind, {})[name] = needs


def _each_once(values: list[Any]) -> list[Any]:
    try:
        return list({orjson.dumps(one, option=orjson.OPT_SORT_KEYS): one for one in reversed(values)}.values())[::-1]
    except TypeError:
        return values


def _pattern(text: str) -> str:
    """`text` as a regular expression of JSON Schema: Python's and Rust's words, and a stray hyphen, in its own."""
    text = _CLASS_THEN_HYPHEN.sub(r"\1\\-", text)
    text = _NAMED_GROUP.sub("(?<", text)
    return _ENDS.sub(lambda found: found[1] + _ANCHORS[found[2]], text)


def _mend_required(node: JsonObject) -> None:
    """A property that says of itself whether it is required."""
    properties = node.get("properties")
    if not isinstance(properties, dict):
        return
    said = {
        name: one.pop("required")
        for name, one in properties.items()
        if isinstance(one, dict) and isinstance(one.get("required"), bool)
    }
    required = node.get("required", [])
    if any(said.values()) and isinstance(required, list):
        node["required"] = [*required, *(name for name in said if said[name] and name not in required)]


def _mend_values(node: JsonObject) -> None:
    """Values that are listed for an array and meant for its items."""
    allowed, items = node.get("enum"), node.get("items")
    if node.get("type") not in ("array", "list", "tuple", "set") or not isinstance(allowed, list):
        return
    if not any(isinstance(one, list) for one in allowed):
        del node["enum"]
        node["items"] = {**(items if isinstance(items, dict) else {}), "enum": allowed}
