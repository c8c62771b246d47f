"""Text of strangers, made fit to be read: without what nobody can see, and no longer than it has to be."""

from __future__ import annotations

import unicodedata
from typing import Any

from services.json_values import JsonObject

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and invisible characters: among them those that turn the direction of writing, and tags, by which whole
sentences can be hidden within a text."""
_SPACES = "\n\t"
_VARIATIONS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""Marks without a shape of their own, behind any character and as many as somebody likes."""
_DESCRIBING = ("description", "title", "$comment")


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


def described(schema: JsonObject, characters: int) -> JsonObject:
    """`schema` with every description in it cleaned and at most so long."""
    cleaned: JsonObject = _described(schema, characters)
    return cleaned


def _described(node: Any, characters: int, *, names: bool = False) -> Any:
    """`names`: the keys of `node` are names, and not words of a schema."""
    if isinstance(node, list):
        return [_described(one, characters) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: capped(value, characters)
        if key in _DESCRIBING and isinstance(value, str) and not names
        else _described(value, characters, names=key in ("properties", "patternProperties") and not names)
        for key, value in node.items()
    }


def _is_unseen(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    point = ord(character)
    return unicodedata.category(character) in _UNSEEN or any(point in one for one in _VARIATIONS)
