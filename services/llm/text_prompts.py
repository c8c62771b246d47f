"""What a model without function calling is told about functions: how to call them, and each with a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.model import Offer, OfferedFunction

WriteCalls = Callable[[Sequence[tuple[str, Mapping[str, JsonValue]]]], str]
_MOST_DEPTH = 6

_RULES = """\
You can call functions. To do so, answer with one block in exactly the form of the samples below and nothing after it; \
put several calls into the same block. {form} You are then told the results, and answer in words.
Call only functions of this list. If you have to ask before you can tell what is wanted, call:
{insufficient}
If no function fits, just answer in words, without any block.

Functions:"""
_FORMS = {
    "json": "Write valid JSON.",
    "xml": "Write well-formed XML, with values that hold < or & in <![CDATA[ ]]>.",
}


def functions_prompt(offer: Offer, form: str, write: WriteCalls) -> str:
    """The instructions for the functions of `offer`; `form` is `json` or `xml`, and `write` writes its samples."""
    insufficient = write([("insufficient_arguments", {"question": "the question"})])
    rules = _RULES.format(form=_FORMS[form], insufficient=insufficient)
    return "\n\n".join([rules, *(_described(function, write) for function in offer.functions)])


def _described(function: OfferedFunction, write: WriteCalls) -> str:
    sample = write([(function.name, sample_arguments(function))])
    if function.system_prompt:
        said = function.system_prompt.replace("{schema}", sample)
        return f"### {function.name}\n{said}" if sample in said else f"### {function.name}\n{said}\n{sample}"
    schema = orjson.dumps(function.parameters).decode()
    return f"### {function.name}\n{function.description}\nArguments, as JSON Schema: {schema}\n{sample}"


def sample_arguments(function: OfferedFunction) -> JsonObject:
    """Arguments that show the form of each parameter: its own example or default, else a value of its type."""
    return {
        name: _sample(name, schema if isinstance(schema, dict) else {}, _MOST_DEPTH)
        for name, schema in (function.parameters.get("properties") or {}).items()
    }


def _sample(name: str, schema: JsonObject, depth: int) -> JsonValue:
    for key in ("example", "default", "const"):
        if schema.get(key) is not None:
            return schema[key]
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    union = next((schema[key] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None)
    if union and isinstance(union[0], dict):
        return _sample(name, union[0], depth - 1) if depth else "…"
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
    if kind == "object":
        properties = schema.get("properties") or {}
        return {one: _sample(one, sub, depth - 1) for one, sub in properties.items() if isinstance(sub, dict) and depth}
    if kind == "array":
        items = schema.get("items")
        item = _sample(name, items, depth - 1) if isinstance(items, dict) and depth else "…"
        # An object whose fields nobody knows shows nothing, and is hardly ever allowed.
        return [] if item == {} and not schema.get("minItems") else [item]
    return {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1.5), "boolean": True}.get(
        str(kind), f"the {name}"
    )
