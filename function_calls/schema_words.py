"""The words of JSON Schema: which hold schemas, and which say nothing about what is valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
"""Each holds one schema."""
MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
"""Each holds a list of schemas; `items` did so until draft 2019-09."""
NAMED = frozenset({"dependencies", "dependentSchemas", "patternProperties", "properties"})
"""Each holds schemas by name."""
DEFINITIONS = frozenset({"$defs", "definitions"})
"""What `$ref`s usually point to."""
INTO_THE_VALUE = frozenset({"properties", "patternProperties", "prefixItems"}) | ONE - {"else", "if", "not", "then"}
"""Their schemas are for parts of the value, so what refers to itself there comes to an end with the value."""
FLAGS = frozenset({"additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"})
"""Where true and false are more usual than a schema."""
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
"""What each says does not depend on the words beside it."""
VALIDITY = LIMITS | ONE | MANY | NAMED | {"dependentRequired", "maxContains", "minContains", "required", "type"}
"""All that decide what is valid; the others are remarks."""
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
"""What draft 7 does not know."""


DRAFT_7 = "http://json-schema.org/draft-07/schema"
DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"
"""The two drafts of our form, by the schemas that describe their schemas: whatever validates by one has its own."""


class UnusableSchema(ValueError):
    """A schema that cannot describe the arguments of a function; says where and why."""


def parts_of(node: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that the schema `node` holds directly, its definitions too."""
    for key, value in node.items():
        if key in NAMED | DEFINITIONS and isinstance(value, Mapping):
            yield from value.values()
        elif key in MANY and isinstance(value, list):
            yield from value
        elif key in ONE:
            yield value
