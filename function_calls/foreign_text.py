"""Text of strangers, made fit to be read: without what nobody can see, and no longer than it has to be."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from services.json_values import JsonObject, JsonValue

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and invisible characters: among them those that turn the direction of writing, and tags, by which whole
sentences can be hidden within a text."""
_SPACES = "\n\t"
_VARIATIONS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""Marks without a shape of their own, behind any character and as many as somebody likes."""
_LINE_ENDS = dict.fromkeys(map(ord, "\n\r\t"))
_DESCRIBING = ("description", "title", "$comment")
_NAMING = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
"""Words of a schema under which names of the server's own stand."""
_COUNTING = frozenset(
    {"const", "default", "dependentRequired", "enum", "format", "pattern", "required"}
    | {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema"}
)
"""Words of a schema whose values arguments are held against, or taken from."""


def cleaned_text(text: str, *, lines: bool) -> str:
    """`text` without control and invisible characters; without `lines` in one line."""
    kept = "".join(one for one in text if one in _SPACES or not _is_unseen(one))
    return kept if lines else " ".join(kept.split())


def has_unseen(text: str) -> bool:
    """Whether something in `text` cannot be seen."""
    return any(_is_unseen(one) for one in text)


def capped(text: str, characters: int) -> str:
    """`text` cleaned, at most so many characters of it."""
    cleaned = cleaned_text(text, lines=True).strip()
    return cleaned if len(cleaned) <= characters else cleaned[: characters - 1].rstrip() + "…"


def cleaned_value(value: JsonValue) -> JsonValue:
    """`value` with every text and every key in it cleaned. Keys that are the same then are told apart by a number."""
    if isinstance(value, str):
        return cleaned_text(value, lines=True)
    if isinstance(value, list):
        return [cleaned_value(one) for one in value]
    if not isinstance(value, dict):
        return value
    cleaned: JsonObject = {}
    for key, one in value.items():
        name = plain = cleaned_text(key, lines=True)
        number = 1
        while name in cleaned or (name != key and name in value):
            number += 1
            name = f"{plain} ({number})"
        cleaned[name] = cleaned_value(one)
    return cleaned


class UnseenIn(ValueError):
    """Something in a schema cannot be seen and cannot be left out: it would not mean the same without. The text names
    the place, with escapes."""


def described(schema: Mapping[str, Any], characters: int) -> JsonObject:
    """`schema` with everything that only describes cleaned, and descriptions at most so long. Raises UnseenIn for names
    and for values that count, such as those of an enum, when they have characters that cannot be seen."""
    cleaned: JsonObject = _described(dict(schema), characters, ())
    return cleaned


def _described(node: Any, characters: int, at: tuple[str, ...], *, names: bool = False) -> Any:
    """`names`: the keys of `node` are names, and not words of a schema."""
    if isinstance(node, list):
        return [_described(one, characters, at) for one in node]
    if isinstance(node, str):
        return cleaned_text(node, lines=True)
    if not isinstance(node, dict):
        return node
    cleaned: JsonObject = {}
    for key, value in node.items():
        place = (*at, key)
        if has_unseen(key):
            raise UnseenIn(_place(place))
        if names:
            cleaned[key] = _described(value, characters, place)
        elif key in _DESCRIBING and isinstance(value, str):
            cleaned[key] = capped(value, characters)
        elif key in _COUNTING:
            if not _is_seen(value):
                raise UnseenIn(_place(place))
            cleaned[key] = value
        else:
            cleaned[key] = _described(value, characters, place, names=key in _NAMING)
    return cleaned


def _is_seen(value: Any) -> bool:
    """Whether all of a value that counts can be seen: ends of lines are escapes wherever a schema is read."""
    if isinstance(value, str):
        return not has_unseen(value.translate(_LINE_ENDS))
    if isinstance(value, list):
        return all(map(_is_seen, value))
    if isinstance(value, dict):
        return all(_is_seen(key) and _is_seen(one) for key, one in value.items())
    return True


def _place(keys: Sequence[str]) -> str:
    return ascii(".".join(keys))


def _is_unseen(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    point = ord(character)
    return unicodedata.category(character) in _UNSEEN or any(point in one for one in _VARIATIONS)
