"""What may stand in a slot, read from the parameter's JSON Schema, and how its raw text becomes a JSON value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.json_values import JsonObject, JsonValue
from services.lazy_patterns import lazy_pattern
from services.llm.numbers_in_words import is_number, number_in, with_digits
from services.llm.word_classes import FILLERS, OPERATORS
from services.text_index import is_unspaced, listed, scan, stem, terms


class SlotKind(StrEnum):
    """What the words of a slot look like."""

    CHOICE = "choice"  # one of the values of an enum
    NUMBER = "number"
    TIME = "time"
    EXPRESSION = "expression"
    LIST = "list"
    SHORT = "short"  # a few words: a name, a place, a unit
    LONG = "long"  # free text


TYPED = frozenset({SlotKind.CHOICE, SlotKind.NUMBER, SlotKind.TIME, SlotKind.EXPRESSION})
_TIME_FORMATS = frozenset({"time", "date", "date-time", "duration"})
_TIME_NAMES = frozenset(listed("time times when date day days due at until deadline moment weekday month"))
_EXPRESSION_NAMES = frozenset(listed("expression formula calculation equation sum"))
_LONG_NAMES = frozenset(
    listed("""
    text message title task query item items question note content description body what topic subject reason words
    """)
)
_LONG_LENGTH = 300
"""A string that may be longer than this is free text, whatever it is called."""
_WORDS_OF_ONE = 2
"""A list of one part that is longer than this is a sentence rather than a list."""
_EDGES = " \t\n.,;:!?\"'`“”‘’。，；：！？、"
_CURRENCY = lazy_pattern(r"[$€£¥]\s*(?=\d)")
_PARTS = lazy_pattern(r"\s*(?:,|;|/|、|，|；|\n|\bor\b|\band\b|\bvs\b|\bversus\b|还是|或者|或|和)\s*", re.IGNORECASE)
_NAME_PARTS = lazy_pattern(r"[^a-z]+")


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter of a function as a place that words can fill."""

    name: str
    kind: SlotKind
    required: bool
    schema: JsonObject
    choices: tuple[tuple[str, JsonValue], ...] = ()
    """For CHOICE: each value as people write it, longest first, and the value itself."""
    choice_stems: frozenset[str] = frozenset()


def slots_of(parameters: JsonObject) -> dict[str, Slot]:
    """The slots of a function by the names of its parameters."""
    required = set(parameters.get("required", ()))
    properties: Mapping[str, JsonObject] = parameters.get("properties", {})
    return {name: _slot(name, schema, required=name in required) for name, schema in properties.items()}


def _slot(name: str, schema: JsonObject, *, required: bool) -> Slot:
    plain = _without_null(schema)
    choices = tuple(sorted(_choices(plain), key=lambda choice: -len(choice[0])))
    stems = frozenset(term for written, _ in choices for term in terms(written) or [written])
    return Slot(name, _kind(name, plain, has_choices=bool(choices)), required, plain, choices, stems)


def _without_null(schema: JsonObject) -> JsonObject:
    """The branch that holds the value, where the schema allows several."""
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(key, ()):
            if branch.get("type") != "null":
                return {**{k: v for k, v in schema.items() if k != key}, **_without_null(branch)}
    kind = schema.get("type")
    if isinstance(kind, list):
        return {**schema, "type": next((one for one in kind if one != "null"), "string")}
    return schema


def _choices(schema: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    values = [schema["const"]] if "const" in schema else schema.get("enum", ())
    for value in values:
        if isinstance(value, str) and value:
            yield value.lower().replace("_", " "), value
    if schema.get("type") == "boolean":
        yield from (("yes", True), ("true", True), ("on", True), ("no", False), ("false", False), ("off", False))


def _kind(name: str, schema: JsonObject, *, has_choices: bool) -> SlotKind:
    parts = set(_NAME_PARTS.split(name.lower()))
    of_type = {"integer": SlotKind.NUMBER, "number": SlotKind.NUMBER, "array": SlotKind.LIST}.get(
        schema.get("type", "")
    )
    if has_choices:
        return SlotKind.CHOICE
    if of_type is not None:
        return of_type
    if schema.get("format") in _TIME_FORMATS or parts & _TIME_NAMES:
        return SlotKind.TIME
    if parts & _EXPRESSION_NAMES:
        return SlotKind.EXPRESSION
    long = parts & _LONG_NAMES or schema.get("maxLength", 0) > _LONG_LENGTH
    return SlotKind.LONG if long else SlotKind.SHORT


def value_of(raw: str, slot: Slot) -> JsonValue | None:
    """The value that `raw` means in `slot`, or None when it means none that the schema allows."""
    text = unicodedata.normalize("NFKC", raw).strip(_EDGES)
    if not text:
        return None
    match slot.kind:
        case SlotKind.CHOICE:
            return _choice(text.lower(), slot.choices)
        case SlotKind.NUMBER:
            return _number(text, slot.schema)
        case SlotKind.LIST:
            return _list(text, slot.schema)
        case SlotKind.EXPRESSION:
            return with_digits(_CURRENCY.sub("", text)) if _counts_something(text) else None
        case _:
            longest = slot.schema.get("maxLength")
            return None if longest is not None and len(text) > longest else text


def _counts_something(text: str) -> bool:
    """Whether `text` has a number, and beside it another one or a sign or word that does something with it."""
    words = [token.text for token in scan(text)]
    numbers = sum(is_number(word) for word in words)
    acting = sum(word in OPERATORS and word not in FILLERS for word in words)
    return numbers >= 1 and numbers + acting >= 2


def _choice(text: str, choices: Sequence[tuple[str, JsonValue]]) -> JsonValue | None:
    """The value of the longest choice that stands in `text` as whole words."""
    said = {stem(word) for word in re.findall(r"\w+", text)}
    for written, value in choices:
        if is_unspaced(written):
            if written in text:
                return value
        elif all(stem(word) in said for word in written.split()):
            return value
    return None


def _number(text: str, schema: JsonObject) -> JsonValue | None:
    number = number_in(text)
    if number is None:
        return None
    if schema.get("type") == "integer":
        if number != int(number):
            return None
        number = int(number)
    elif number == int(number):
        number = int(number)
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and number < low) or (high is not None and number > high):
        return None
    return number


def _list(text: str, schema: JsonObject) -> JsonValue | None:
    items = schema.get("items", {})
    slot = _slot("item", items, required=True)
    parts = [value_of(part, slot) for part in _PARTS.split(text) if part.strip(_EDGES)]
    known = [part for part in parts if part is not None]
    if len(known) == 1 and len(text.split()) > _WORDS_OF_ONE:
        return None
    if not known or len(known) != len(parts) or len(known) < schema.get("minItems", 0):
        return None
    return known
