"""What a function's usage line and its faults look like to people; made from its schema and the texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from config.texts import Phrases
from function_calls.spec import ArgumentFault, FunctionSpec
from services.json_values import JsonObject
from services.text_index import is_unspaced

_JOINTS = re.compile(r"[._\s]+")


def spoken_name(spec: FunctionSpec, language: str) -> str:
    """What people know the function as: its command, in the chat's language where there is one; else its name, as
    words."""
    if not spec.commands:
        return plain_name(spec.name)
    is_chinese = language == "zh"
    fitting = (word for word in spec.commands if is_unspaced(word) == is_chinese)
    return f"/{next(fitting, spec.commands[0])}"


def done_text(functions: Iterable[FunctionSpec | str], texts: Phrases) -> str:
    """Says of functions that said nothing themselves that they have run; empty where there are none. A name stands for
    one that is not there any more."""
    spoken = (plain_name(one) if isinstance(one, str) else spoken_name(one, texts.language) for one in functions)
    names = ", ".join(dict.fromkeys(spoken))
    return texts.say("claims.done", names=names) if names else ""


def plain_name(name: str) -> str:
    """The name of a function that is not there any more, or has no command, as words."""
    return _JOINTS.sub(" ", name).strip() or name


def usage_line(spec: FunctionSpec) -> str:
    """`/weather <city> [days]`, in the order in which a command line fills the parameters; those that are only named
    come last, as `[days=…]`. What has no command is not typed: of that the name alone."""
    if not spec.commands:
        return spec.name
    required = spec.parameters["required"]
    properties = [spec.line] if spec.line else spec.parameters["properties"]
    order = [name for name in properties if name in required] + [name for name in properties if name not in required]
    by_name = [name for name in order if spec.positional and name not in spec.positional]
    shown = [(name, name) for name in order if name not in by_name] + [(name, f"{name}=…") for name in by_name]
    parts = [f"<{text}>" if name in required else f"[{text}]" for name, text in shown]
    return " ".join([f"/{spec.commands[0]}", *parts])


KIND = "x-said-as"
"""In the schema of an argument fault: which of `arguments.kinds` of the texts says what people may write."""


def allowed(schema: JsonObject, texts: Phrases) -> str:
    """What a value may be: `a whole number from 1 to 7`, `one of low, normal, high`."""
    if "enum" in schema:
        return texts.say("arguments.one_of", values=", ".join(str(value) for value in schema["enum"]))
    if KIND in schema:
        return texts.say(f"arguments.kinds.{schema[KIND]}")
    kind = schema.get("type")
    words = texts.say(f"arguments.{kind}") if isinstance(kind, str) and texts.has(f"arguments.{kind}") else ""
    low, high = _bound(schema, "minimum", "minItems", "minLength"), _bound(schema, "maximum", "maxItems", "maxLength")
    if kind in ("integer", "number"):
        return _ranged(words, low, high, texts)
    if kind == "array" and (low is not None or high is not None):
        return texts.say("arguments.list_of", low=low or 0, high=high if high is not None else "…")
    if kind == "string" and high is not None:
        return texts.say("arguments.text_up_to", high=high)
    return words or texts.say("arguments.string")


def fault_text(spec: FunctionSpec, fault: ArgumentFault, texts: Phrases) -> str:
    """What is wrong, field by field, and the usage line of what can be typed."""
    lines = [
        texts.say("arguments.no_such", name=name)
        if schema is None
        else texts.say("arguments.wrong", name=name, allowed=allowed(schema, texts))
        for name, schema in fault.problems.items()
        if name
    ]
    lines += [texts.say("arguments.missing", name=name) for name in fault.missing]
    usage = [texts.say("arguments.usage", usage=usage_line(spec))] if spec.commands else []
    return "\n".join([*lines, *usage])


def _bound(schema: JsonObject, *keys: str) -> object | None:
    return next((schema[key] for key in keys if key in schema), None)


def _ranged(words: str, low: object | None, high: object | None, texts: Phrases) -> str:
    if low is not None and high is not None:
        return texts.say("arguments.between", kind=words, low=low, high=high)
    if low is not None:
        return texts.say("arguments.at_least", kind=words, low=low)
    if high is not None:
        return texts.say("arguments.at_most", kind=words, high=high)
    return words
