"""Normalization of JSON Schemas: references inlined, keywords cleaned and repaired."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

import orjson
from pydantic import PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from services.refs import JsonObject

ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords with a schema as value."""
MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
"""Keywords with a list of schemas; `items` before draft 2020-12."""
NAMED = frozenset({"dependencies", "dependentSchemas", "patternProperties", "properties"})
"""Keywords with a mapping of names to schemas."""
DEFINITIONS = frozenset({"$defs", "definitions"})
"""Keywords that hold the usual targets of `$ref`."""
INTO_THE_VALUE = frozenset({"properties", "patternProperties", "prefixItems"}) | ONE - {"else", "if", "not", "then"}
"""Keywords whose schemas apply to parts of the value, so recursion through them ends with the value."""
FLAGS = frozenset({"additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"})
"""Keywords with boolean values that are kept instead of converted to schemas."""
LIMITS = frozenset(
    {
        "const",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "uniqueItems",
    }
)
"""Validation keywords that do not depend on other keywords."""
VALIDITY = LIMITS | ONE | MANY | NAMED | {"dependentRequired", "maxContains", "minContains", "required", "type"}
"""All validation keywords; the others are annotations."""
LATER = frozenset(
    {
        "$anchor",
        "$dynamicRef",
        "dependentRequired",
        "dependentSchemas",
        "maxContains",
        "minContains",
        "prefixItems",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that draft 7 does not know."""


DRAFT_7 = "http://json-schema.org/draft-07/schema"
DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"
"""Meta-schemas of the two drafts in use; validators have these built in."""


class UnusableSchema(ValueError):
    """The schema cannot describe the arguments of a function. The message has the location and the reason."""


def parts_of(node: Mapping[str, Any]) -> Iterator[Any]:
    """Direct subschemas of `node`, including its definitions."""
    for key, value in node.items():
        if key in NAMED | DEFINITIONS and isinstance(value, Mapping):
            yield from value.values()
        elif key in MANY and isinstance(value, list):
            yield from value
        elif key in ONE:
            yield value


class Target(NamedTuple):
    """Target of a reference."""

    schema: Any
    base: str
    """Base URI for references inside the target."""
    name: str
    """Name of the target in the reference."""


class References:
    """Resolver of references within a schema."""

    def __init__(self, root: Mapping[str, Any], *, alone: bool, draft: str = DRAFT_7) -> None:
        """`alone`: ignore keywords next to a `$ref`, as up to draft 7. `draft`: meta-schema of the schema's draft."""
        self._alone = alone
        self._draft = draft
        self._documents: dict[str, Any] = {"": root}
        self._anchors: dict[str, Any] = {}
        self._collect(root, "")

    def base_of(self, node: Mapping[str, Any], base: str) -> str:
        """Base URI within `node`: its `$id` resolved against `base`, the URI around it; `base` if it has none."""
        named = node.get("$id")
        if not isinstance(named, str) or named.startswith("#") or (self._alone and "$ref" in node):
            return base
        return _joined(base, named).partition("#")[0]

    def to_its_draft(self, reference: Any, base: str) -> str:
        """Absolute URI of a reference to the draft's meta-schema or to a part of it; empty for other references."""
        if not isinstance(reference, str):
            return ""
        document, _, fragment = _joined(base, reference).partition("#")
        if document in self._documents or _without_scheme(document) != _without_scheme(self._draft):
            return ""
        return f"{self._draft}#{fragment}" if fragment else self._draft

    def find(self, reference: Any, base: str) -> Target:
        """Target of `reference`. Raises UnusableSchema if it is not in this schema."""
        if not isinstance(reference, str):
            raise UnusableSchema(f"$ref must be a text, not {reference!r}")
        document, _, fragment = _joined(base, reference).partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            node, base = self._anchors.get(f"{document}#{fragment}"), document
        else:
            node, base = self._walked(self._documents.get(document), fragment, document)
        if not isinstance(node, Mapping | bool):
            raise UnusableSchema(f"$ref {reference!r} does not point into this schema, and nothing is fetched")
        return Target(node, base, fragment.rpartition("/")[2] or document.rpartition("/")[2])

    def _walked(self, node: Any, pointer: str, base: str) -> tuple[Any, str]:
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(name)] if isinstance(node, list) else node[name]
            except (LookupError, TypeError, ValueError):
                return None, base
            if isinstance(node, Mapping):
                base = self.base_of(node, base)
        return node, base

    def _collect(self, node: Any, base: str) -> None:
        if not isinstance(node, Mapping):
            return
        inner = self.base_of(node, base)
        if inner != base:
            self._documents.setdefault(inner, node)
        for anchor in (node.get("$anchor"), node.get("$id")):
            if isinstance(anchor, str) and anchor:
                self._anchors.setdefault(f"{inner}#{anchor.removeprefix('#')}", node)
        for part in parts_of(node):
            self._collect(part, inner)


def _without_scheme(uri: str) -> str:
    """`uri` without its scheme, since authors use http and https interchangeably for drafts."""
    return uri.removeprefix("https:").removeprefix("http:")


def _joined(base: str, reference: str) -> str:
    """Absolute URI of `reference`. A fragment is appended, also to a base without a path such as `urn:…`."""
    return base + reference if not reference or reference.startswith("#") else urljoin(base, reference)


# Type names of other schema languages.
_FOREIGN_TYPES = {
    "dict": "object",
    "map": "object",
    "hashmap": "object",
    "float": "number",
    "double": "number",
    "int": "integer",
    "long": "integer",
    "bool": "boolean",
    "str": "string",
    "char": "string",
    "tuple": "array",
    "list": "array",
    "set": "array",
}
_KNOWN_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
_DROPPED = DEFINITIONS | {"$anchor", "$comment", "$id", "$schema", "discriminator", "title"}
_IN_DEFINITIONS = "#/$defs/"
_MOST_NODES = 10_000
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


def cleaned(
    schema: Mapping[str, Any], *, drops_null: bool = True, refs_alone: bool = False, draft: str = DRAFT_7
) -> JsonObject:
    """`schema` with references inlined, titles dropped and foreign type names mapped. Recursive references stay a
    `$ref` into `$defs`. `drops_null`: an optional value is absent rather than null, so `X or null` becomes X, and a
    null default is dropped. `refs_alone`: only annotations next to a `$ref` are kept, as up to draft 7. `draft`:
    meta-schema of the schema's draft; references to it are kept. Raises UnusableSchema if it is nested too deep, or is
    no object."""
    try:
        references = References(schema, alone=refs_alone, draft=draft)
        result = _Cleaning(schema, references, drops_null=drops_null, refs_alone=refs_alone).whole()
    except RecursionError:
        raise UnusableSchema("it is nested too deep") from None
    if not isinstance(result, dict):
        raise UnusableSchema("a schema must be an object")
    return result


class _Place:
    """Position in a schema during cleaning."""

    __slots__ = ("base", "depth", "open")

    def __init__(self, base: str, depth: int, open_: Mapping[int, int]) -> None:
        self.base = base
        self.depth = depth
        """Number of steps into the value."""
        self.open = open_
        """Schemas being expanded around this position, with the depth at which each began."""

    def deeper(self) -> _Place:
        return _Place(self.base, self.depth + 1, self.open)

    def at(self, base: str) -> _Place:
        return self if base == self.base else _Place(base, self.depth, self.open)

    def within(self, target: Target) -> _Place:
        return _Place(target.base, self.depth, {**self.open, id(target.schema): self.depth})


class _Cleaning:
    """Cleaning of one schema."""

    def __init__(self, root: Mapping[str, Any], references: References, *, drops_null: bool, refs_alone: bool) -> None:
        self._root = root
        self._drops_null = drops_null
        self._refs_alone = refs_alone
        self._references = references
        self._nodes_left = _MOST_NODES
        self._repeated: dict[int, tuple[str, Target]] = {}
        """Recursive schemas by identity, with their names in `$defs`."""

    def whole(self) -> Any:
        root = Target(self._root, "", "root")
        result = self._clean(self._root, _Place("", 0, {}).within(root))
        definitions: JsonObject = {}
        while len(definitions) < len(self._repeated):
            name, target = list(self._repeated.values())[len(definitions)]
            definitions[name] = self._clean(target.schema, _Place("", 0, {}).within(target))
        while isinstance(result, dict) and "$ref" in result:
            # Expand a root reference, since not all consumers of a spec resolve it.
            reference = result.pop("$ref")
            written: JsonObject | None = definitions.get(reference.removeprefix(_IN_DEFINITIONS))
            result = {"allOf": [{"$ref": reference}], **result} if written is None else {**written, **result}
        return {**result, "$defs": definitions} if definitions else result

    def _clean(self, node: Any, place: _Place) -> Any:
        if isinstance(node, bool):
            return {} if node else {"not": {}}
        if not isinstance(node, Mapping):
            return node
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise UnusableSchema(f"it is too large: written out, it has more than {_MOST_NODES} parts")
        if "$ref" in node:
            return self._inlined(node, place)
        place = place.at(self._references.base_of(node, place.base))
        result: JsonObject = {}
        for key, value in node.items():
            if key == "type":
                _set_type(result, value, self._drops_null)
            elif key not in _DROPPED:
                # Pydantic uses the tuple keyword of later drafts.
                named = "items" if key == "prefixItems" and self._drops_null else key
                result[named] = self._value(key, value, place.deeper() if key in INTO_THE_VALUE else place)
        return _without_null(result) if self._drops_null else result

    def _value(self, key: str, value: Any, place: _Place) -> Any:
        """Clean the schemas in the value of `key`; other values stay unchanged. Raises UnusableSchema."""
        if key in NAMED and isinstance(value, Mapping):
            return {name: one if isinstance(one, list) else self._clean(one, place) for name, one in value.items()}
        if key in MANY and isinstance(value, list):
            return [self._clean(one, place) for one in value]
        if key in ONE and not (key in FLAGS and isinstance(value, bool)):
            return self._clean(value, place)
        return value

    def _inlined(self, node: Mapping[str, Any], place: _Place) -> Any:
        base = self._references.base_of(node, place.base)
        siblings = {
            key: value
            for key, value in node.items()
            if key != "$ref" and not (self._refs_alone and key in VALIDITY | {"$id"})
        }
        cleaned_siblings = self._clean(siblings, place) if siblings else {}
        elsewhere = self._references.to_its_draft(node["$ref"], base)
        if elsewhere:
            return _both({"$ref": elsewhere}, cleaned_siblings)
        target = self._references.find(node["$ref"], base)
        began = place.open.get(id(target.schema))
        if began == place.depth:
            raise UnusableSchema(f"$ref {node['$ref']!r} refers to itself without end")
        if began is None and id(target.schema) not in self._repeated:
            written = self._clean(target.schema, place.within(target))
            if id(target.schema) not in self._repeated:
                return _both(written, cleaned_siblings)
        return _both({"$ref": _IN_DEFINITIONS + self._name_of(target)}, cleaned_siblings)

    def _name_of(self, target: Target) -> str:
        known = self._repeated.get(id(target.schema))
        if known is not None:
            return known[0]
        used = {name for name, _ in self._repeated.values()}
        plain = _NOT_PLAIN.sub("_", target.name) or "root"
        name = next(one for one in (plain, *(f"{plain}_{n}" for n in range(2, 10_000))) if one not in used)
        self._repeated[id(target.schema)] = (name, target)
        return name


def _both(target: JsonObject, siblings: JsonObject) -> JsonObject:
    """Combine the target of a reference with the keywords next to it: merged if they only annotate or add limits,
    otherwise with the target in `allOf`."""
    if siblings.get("type") == target.get("type"):
        siblings = {key: value for key, value in siblings.items() if key != "type"}
    decides = siblings.keys() & VALIDITY
    if not decides or ("$ref" not in target and decides <= LIMITS and not decides & target.keys()):
        return {**target, **siblings}
    return {**siblings, "allOf": [target, *siblings.get("allOf", ())]}


def _set_type(result: JsonObject, value: Any, drops_null: bool) -> None:
    types = [_type_name(one) for one in value] if isinstance(value, list) else [_type_name(value)]
    if drops_null and len(types) > 1:
        types = [name for name in types if name != "null"]
    if "any" not in types:
        # Two foreign names may map to the same type.
        types = list(dict.fromkeys(types))
        result["type"] = types[0] if len(types) == 1 else types


def _type_name(value: Any) -> str:
    if not isinstance(value, str):
        raise UnusableSchema(f"type must be a name, not {value!r}")
    name = _FOREIGN_TYPES.get(value.lower(), value.lower())
    if name not in _KNOWN_TYPES and name != "any":
        raise UnusableSchema(f"unknown type {value!r}; JSON Schema knows {', '.join(sorted(_KNOWN_TYPES))}")
    return name


def _without_null(schema: JsonObject) -> JsonObject:
    for union in ("anyOf", "oneOf"):
        alternatives = schema.get(union)
        if not isinstance(alternatives, list):
            continue
        rest = [one for one in alternatives if not (isinstance(one, dict) and one.get("type") == "null")]
        if len(rest) == len(alternatives):
            continue
        del schema[union]
        schema = {**rest[0], **schema} if len(rest) == 1 else {union: rest, **schema}
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    return schema


_CLASS_THEN_HYPHEN = re.compile(r"(\[[^\]\[]*?\\[dDsSwW])-(?=[^\]])")
"""In brackets, a character class followed by a hyphen, which cannot mean a range."""
_NAMED_GROUP = re.compile(r"(?<!\\)\(\?P<")
_ENDS = re.compile(r"(?<!\\)((?:\\\\)*)\\([AZz])")
_ANCHORS = {"A": "^", "Z": "$", "z": "$"}


def nodes(node: Any) -> Iterator[JsonObject]:
    """Yield all subschemas of `node`, inner ones first, then `node` itself; nothing if it is not an object."""
    if not isinstance(node, dict):
        return
    for part in parts_of(node):
        yield from nodes(part)
    yield node


def everywhere(schema: JsonObject, change: Callable[[JsonObject], None]) -> None:
    """Apply `change` in place to the schema and all its subschemas."""
    for node in list(nodes(schema)):
        change(node)


def normalize(node: JsonObject) -> None:
    """Repair a schema in place: single `examples`, duplicates, patterns, misplaced `required` and limits of draft 4.
    Valid parts stay unchanged."""
    if "examples" in node and not isinstance(node["examples"], list):
        node["examples"] = [node["examples"]]
    for listed in ("required", "enum"):
        if isinstance(node.get(listed), list):
            node[listed] = _each_once(node[listed])
    if isinstance(node.get("pattern"), str):
        node["pattern"] = _pattern(node["pattern"])
    _normalize_required(node)
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        # In draft 4 this is a boolean that excludes the limit itself.
        if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and limit in node:
            node[exclusive] = node.pop(limit)
    _normalize_values(node)


def as_later(node: JsonObject) -> None:
    """Convert keywords of earlier drafts to draft 2020-12, in place."""
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
    """Convert Python and Rust regex syntax, and stray hyphens, to JSON Schema syntax."""
    text = _CLASS_THEN_HYPHEN.sub(r"\1\\-", text)
    text = _NAMED_GROUP.sub("(?<", text)
    return _ENDS.sub(lambda found: found[1] + _ANCHORS[found[2]], text)


def _normalize_required(node: JsonObject) -> None:
    """Move a property's own `required: true` into the object's `required` list."""
    properties = node.get("properties")
    if not isinstance(properties, dict):
        return
    listed = {
        name: one.pop("required")
        for name, one in properties.items()
        if isinstance(one, dict) and isinstance(one.get("required"), bool)
    }
    required = node.get("required", [])
    if any(listed.values()) and isinstance(required, list):
        node["required"] = [*required, *(name for name in listed if listed[name] and name not in required)]


def _normalize_values(node: JsonObject) -> None:
    """Move an `enum` of an array to its items if its values are items."""
    allowed, items = node.get("enum"), node.get("items")
    if node.get("type") not in ("array", "list", "tuple", "set") or not isinstance(allowed, list):
        return
    if not any(isinstance(one, list) for one in allowed):
        del node["enum"]
        node["items"] = {**(items if isinstance(items, dict) else {}), "enum": allowed}


EMPTY: JsonObject = {"type": "object", "properties": {}, "required": []}
_EARLY = re.compile(r"https?://json-schema\.org/draft-0[467]/schema#?")
_LATE = re.compile(r"https?://json-schema\.org/draft/20(19-09|20-12)/schema#?")
_TO_THE_LATEST = re.compile(r"https?://json-schema\.org/draft/2020-12/schema(#.*)?")


class _SchemaOfTypes(GenerateJsonSchema):
    """pydantic's JSON Schema, with a decimal number as a number only, since models and members write it so."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        described = super().decimal_schema(schema)
        number: JsonSchemaValue = described.get("anyOf", [described])[0]
        return number


class WithoutEnforcedEnums(_SchemaOfTypes):
    """Generates schemas with only those enums that pydantic does not enforce."""

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonObject:
        return _without_enum(super().literal_schema(schema))

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonObject:
        return _without_enum(super().enum_schema(schema))


def _without_enum(schema: JsonObject) -> JsonObject:
    return {key: value for key, value in schema.items() if key != "enum"}


def schema_of(arguments: Any, generator: type[GenerateJsonSchema] = _SchemaOfTypes) -> JsonObject:
    """Schema of a pydantic model or a dataclass, in the form for models. Raises UnusableSchema for recursive types and
    for types without a JSON form."""
    try:
        generated = TypeAdapter(arguments).json_schema(schema_generator=generator)
    except PydanticUserError as error:
        raise UnusableSchema(f"{arguments!r} cannot be described to a model: {error.message}") from None
    schema = cleaned(generated)
    everywhere(schema, _normalize_values)
    if "$defs" in schema:
        repeated = ", ".join(schema["$defs"])
        raise UnusableSchema(f"{repeated} refers to itself; such a type cannot be described to a model")
    if schema.get("type") != "object":
        raise UnusableSchema(f"{arguments!r} does not describe an object, so it cannot be the arguments of a function")
    # The docstring of the class is for authors, not for models.
    schema.pop("description", None)
    return _completed(schema)


def closed(schema: JsonObject) -> JsonObject:
    """Copy of `schema` that rejects unknown keys in every object with declared properties."""
    copy: JsonObject = deepcopy(schema)
    _close(copy)
    return copy


def imported(schema: object) -> JsonObject:
    """Normalize an imported schema without changing which arguments are valid. Obvious mistakes are repaired: foreign
    type names, an array's `enum` that is meant for its items, and `required: true` inside a property. Raises
    UnusableSchema if it is no object schema, refers outside itself, or recurses without end."""
    if not isinstance(schema, Mapping):
        raise UnusableSchema(f"parameters must be a JSON Schema object, not {type(schema).__name__}")
    try:
        normalized = deepcopy(dict(schema))
        everywhere(normalized, normalize)
        later = _is_later(normalized)
        if later:
            everywhere(normalized, as_later)
    except RecursionError:
        raise UnusableSchema("it is nested too deep") from None
    # The use of `$defs` implies a draft that honours keywords next to `$ref`.
    alone = not later and ("$defs" not in normalized or _states(normalized, _EARLY))
    ours = cleaned(normalized, drops_null=False, refs_alone=alone, draft=DRAFT_2020_12 if later else DRAFT_7)
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
    """`schema` with the keys that every exporter relies on, `type`, `properties` and `required`, in this order before
    the others. Raises UnusableSchema if one of them is of a wrong type."""
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
