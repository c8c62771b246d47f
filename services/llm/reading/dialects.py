"""Parsing of calls in a model's text, in the dialect of its profile."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import orjson

from services.llm.model import Offer
from services.llm.reading.markup import ReadText, Visible, is_call, visible_text, without_markup
from services.llm.reading.tool_arguments import MAX_ARGUMENT_CHARACTERS, exact_json, python_literal, typed
from services.llm.reading.tool_calls import plain_name, read_calls
from services.patterns import lazy_pattern
from services.refs import JsonObject, JsonValue

_NAME = r"(?P<name>[\w.:-]{1,128})"
_OBJECT = r"\s*(?P<arguments>\{.*?\})\s*"


@dataclass(frozen=True, slots=True)
class Notation:
    """Notation of calls in a model's text, as patterns."""

    begins: re.Pattern[str]
    """Matches the start of the first call."""
    call: re.Pattern[str]
    """Matches a call. Groups: `json`, a call or a list of calls; or `python`, a list of calls; or `name` with either
    `arguments`, an object, or `tags`, parameters for `parameter`."""
    between: re.Pattern[str] = re.compile(r"\s*")
    """Matches separators before, between and after calls."""
    parameter: re.Pattern[str] | None = None
    """Matches a parameter: groups `key`, `value`, and optionally `is_text`, `true` or `false`."""


def _notation(begins: str, call: str, between: str = r"\s*", parameter: str | None = None) -> Notation:
    return Notation(
        lazy_pattern(begins),
        lazy_pattern(call, re.DOTALL),
        lazy_pattern(between, re.DOTALL),
        lazy_pattern(rf"\s*{parameter}\s*", re.DOTALL) if parameter else None,
    )


def _json_between(opening: str, closing: str) -> Notation:
    """Notation of JSON after the marker `opening`; the closing marker is optional at the end of the text."""
    ends = rf"(?:{closing}|\Z)" if closing else r"(?=\s*(?:" + opening + r"|\Z))"
    return _notation(opening, rf"{opening}\s*(?P<json>[\[{{].*?[\]}}])\s*(?:;\s*)?{ends}")


_HERMES = _json_between("<tool_call>", "</tool_call>")
_TOOL_CALLS_TAG = _json_between("<tool_calls>", "</tool_calls>")
_FUNCTION_TAGS = _notation(
    r"(?:<(?:seed:)?tool_call>\s*)?<function=",
    rf"<function={_NAME}>(?P<tags>.*?)</function>",
    r"(?:\s|</?(?:seed:)?tool_call>)*",
    r"<parameter=(?P<key>[^>]{1,64})>\n?(?P<value>.*?)\n?</parameter>",
)
_FUNCTION_JSON = _notation("<function=", rf"<function={_NAME}>{_OBJECT}</function>")
_KEYS_AND_VALUES = _notation(
    "<tool_call>",
    rf"<tool_call>\s*{_NAME}\s*(?P<tags>(?:<arg_key>.*?)?)</tool_call>",
    parameter=r"<arg_key>(?P<key>[^<]{1,64})</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>",
)
_PYTHON_TAG = _json_between(r"<\|python_tag\|>", r"(?:<\|eom_id\|>|<\|eot_id\|>|(?=<\|python_tag\|>))")
_BARE_JSON = _notation(r"\A\s*[\[{]", r"(?P<json>[\[{].*[\]}])")
_PYTHONIC = _notation(
    r"<\|tool_call_start\|>|<\|python_start\|>|\A\s*\[[A-Za-z_][\w.]*\(",
    r"(?:<\|tool_call_start\|>|<\|python_start\|>)?\s*(?P<python>\[.*?\)\s*\])\s*"
    r"(?:<\|tool_call_end\|>|<\|python_end\|>|\Z)",
)
_TOOL_CODE = _notation("```tool_code", r"```tool_code\s(?P<python>.*?)```")
_TOOL_CALLS = _json_between(r"\[TOOL_CALLS\]", "")
_TOOL_CALLS_BY_NAME = _notation(
    r"\[TOOL_CALLS\]", rf"\[TOOL_CALLS\]\s*{_NAME}(?:\[ARGS\])?\s*(?P<arguments>\{{.*?\}})\s*(?=\[TOOL_CALLS\]|\Z)"
)
_DEEPSEEK = _notation(
    "<｜tool▁calls▁begin｜>",
    rf"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?{_NAME}(?:<｜tool▁sep｜>|\n```json\n){_OBJECT}(?:```\s*)?"
    "<｜tool▁call▁end｜>",
    "(?:\\s|<｜tool▁calls▁begin｜>|<｜tool▁calls▁end｜>)*",
)
_DSML = _notation(
    "<｜DSML｜(?:function_calls|tool_calls)>",
    rf'<｜DSML｜invoke name="{_NAME}">(?P<tags>.*?)</｜DSML｜invoke>',
    "(?:\\s|</?｜DSML｜(?:function_calls|tool_calls)>)*",
    '<｜DSML｜parameter name="(?P<key>[^"]{1,64})"(?: string="(?P<is_text>true|false)")?>'
    "(?P<value>.*?)</｜DSML｜parameter>",
)
_SECTION = _notation(
    r"<\|tool_calls_section_begin\|>",
    rf"<\|tool_call_begin\|>\s*{_NAME}\s*<\|tool_call_argument_begin\|>{_OBJECT}<\|tool_call_end\|>",
    r"(?:\s|<\|tool_calls_section_begin\|>|<\|tool_calls_section_end\|>)*",
)
_CHANNELS = _notation(
    r"(?:<\|start\|>assistant\s*)?<\|channel\|>",
    r"<\|channel\|>commentary to=(?P<name>functions\.[\w.-]{1,64})\s*(?:<\|constrain\|>\s*)?(?:json\s*)?"
    rf"<\|message\|>{_OBJECT}(?:<\|call\|>|\Z)",
    r"(?:\s|<\|start\|>assistant|<\|channel\|>analysis<\|message\|>.*?<\|end\|>)*",
)
_INVOKES = _notation(
    r"<minimax:tool_call>|<function_calls>",
    rf'<invoke name="{_NAME}">(?P<tags>.*?)</invoke>',
    r"(?:\s|</?minimax:tool_call>|</?function_calls>)*",
    r'<parameter name="(?P<key>[^"]{1,64})">\n?(?P<value>.*?)\n?</parameter>',
)

DIALECTS: Mapping[str, tuple[Notation, ...]] = MappingProxyType(
    {
        "hermes": (_HERMES,),
        "qwen": (_HERMES, _FUNCTION_TAGS),
        "glm": (_KEYS_AND_VALUES, _HERMES),
        "llama": (_PYTHON_TAG, _FUNCTION_JSON, _PYTHONIC, _BARE_JSON),
        "mistral": (_TOOL_CALLS, _TOOL_CALLS_BY_NAME),
        "deepseek": (_DEEPSEEK, _DSML),
        "kimi": (_SECTION,),
        "gpt-oss": (_CHANNELS,),
        "minimax": (_INVOKES, _TOOL_CALLS_TAG),
        "gemma": (_TOOL_CODE,),
        "granite": (_json_between(r"<\|tool_call\|>", ""), _HERMES),
        "nemotron": (_json_between("<TOOLCALL>", "</TOOLCALL>"), _HERMES),
        "jamba": (_TOOL_CALLS_TAG,),
        "hunyuan": (_TOOL_CALLS_TAG,),
        "longcat": (_json_between("<longcat_tool_call>", "</longcat_tool_call>"),),
        "internlm": (_json_between(r"<\|action_start\|>\s*<\|plugin\|>", r"<\|action_end\|>"),),
        "seed": (_FUNCTION_TAGS,),
        "phi": (_json_between(r"<\|tool_call\|>", r"<\|/tool_call\|>"), _json_between(r"functools(?=\[)", "")),
    }
)
"""Notations that each family's models are trained on."""


_MOST_CALLS = 64
_NOT_READ = object()


def dialect_of(family: str) -> str | None:
    """Dialect of a model family or model name, such as `qwen` or `qwen3-coder`, by its beginning and regardless of
    case. None for an unknown family."""
    name = family.strip().lower()
    return next((dialect for dialect in DIALECTS if name.startswith(dialect)), None)


def reader_for(dialect: str | None, offer: Offer | None) -> ReadText:
    """Parser of answer texts for a request with `offer`. It parses calls only if all to the end of the text are
    readable and of offered functions. Without a dialect or functions it parses no calls."""
    if dialect is None or offer is None or not offer.functions:
        return visible_text
    notations, schemas = DIALECTS[dialect], _schemas(offer)

    def read(content: str, seed: str = "") -> Visible:
        text = without_markup(content)
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
    """Schemas of functions by original and offered name."""
    schemas = {function.original: function.parameters for function in offer.functions}
    return {**schemas, **{function.name: function.parameters for function in offer.functions}}


def _entries(text: str, notation: Notation, schemas: dict[str, JsonObject]) -> list[JsonValue]:
    """Parse `text` as calls only, as entries of `tool_calls`; empty if any part is not understood or names a function
    that is not offered."""
    entries: list[JsonValue] = []
    place = _after(notation.between, text, 0)
    while place < len(text):
        found = notation.call.match(text, place)
        added = _calls_in(found, notation, schemas) if found else []
        if found is None or not added or found.end() == place or len(entries) > _MOST_CALLS:
            return []
        entries += added
        place = _after(notation.between, text, found.end())
    names = [str(entry["name"]) for entry in entries if isinstance(entry, dict)]
    return entries if all(name in schemas or plain_name(name) in schemas for name in names) else []


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
    arguments = _of_tags(groups["tags"], notation, schemas.get(name) or schemas.get(plain_name(name), {}))
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
    """Parse tagged parameters to the types of `schema`; None for a duplicate or for other text between them."""
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
    """Schema for parsing a value: `schema`, empty if unknown; for a value marked as no text any JSON type but
    string."""
    if is_text == "false":
        return {"type": ["integer", "number", "boolean", "null", "object", "array"]}
    return schema or {}


def _of_python(source: str) -> list[JsonValue]:
    """Parse Python calls with keyword arguments only, one or a list, without evaluating them; empty if any part is
    something else."""
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
