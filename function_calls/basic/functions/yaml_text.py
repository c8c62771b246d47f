"""YAML of a value: for people to read, and for programs to read back as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from function_calls.basic.conversions import as_number, text_of
from function_calls.basic.measuring import LARGEST, check_length, size_of, too_large
from services.json_values import JsonValue

_PLAIN = re.compile(r"[^\W\d_][\w ()/+.%°€$-]*(?<! )")
_OTHER_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"))


def yaml_of(value: JsonValue) -> str:
    """In blocks, ended by a line's end. Raises RunFault (MEMORY) for what would be too large or is too deep."""
    if size_of(value, LARGEST) > LARGEST:
        raise too_large("the YAML")
    made: list[str] = []
    length = 0
    for line in _lines(value, ""):
        length += len(line) + 1
        check_length(length, "the YAML")
        made.append(line)
    return "\n".join(made) + "\n"


def _lines(value: JsonValue, indent: str) -> Iterator[str]:
    if type(value) is dict and value:
        for key, item in value.items():
            yield from _entry(f"{indent}{_scalar(key)}:", item, indent)
    elif type(value) is list and value:
        for item in value:
            yield from _entry(f"{indent}-", item, indent)
    else:
        yield indent + _scalar(value)


def _entry(head: str, item: JsonValue, indent: str) -> Iterator[str]:
    if type(item) in (list, dict) and item:
        yield head
        yield from _lines(item, indent + "  ")
    else:
        yield f"{head} {_scalar(item)}"


def _scalar(value: JsonValue) -> str:
    if type(value) is not str:
        return "null" if value is None else text_of(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _OTHER_WORDS and as_number(value) is None:
        return value
    return json.dumps(value, ensure_ascii=False)
