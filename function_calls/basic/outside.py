"""Values on their way into a run and out of it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.measuring import DEEPEST
from services.json_values import JsonValue

_LARGEST_INT = 2**63 - 1
_SMALLEST_INT = -(2**63)


class Unfit(TypeError):
    """The host gave a script what no script can hold."""


def copied(value: JsonValue) -> JsonValue:
    """The same, sharing no list and no map with the run's."""
    if type(value) is list:
        return [copied(item) for item in value]
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    return value


def taken(value: object, deep: int = 0) -> JsonValue:
    """The value as a script may hold it, sharing nothing with what was given: lists and maps are copied, tuples become
    lists, keys texts; whole numbers beyond 64 bits become fractions; what is no number, or larger than any, is NULL;
    half a character is shown as a replacement. Raises RunFault (MEMORY) for what is nested too deep, and Unfit for
    what is no data at all."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return _number(value)
    if deep > DEEPEST:
        raise RunFault(RunCode.MEMORY, f"lists and maps stand more than {DEEPEST} deep within one another")
    if isinstance(value, list | tuple):
        return [taken(item, deep + 1) for item in value]
    if isinstance(value, Mapping):
        return {_text(str(key)): taken(item, deep + 1) for key, item in value.items()}
    raise Unfit(f"a value of a script cannot be a {type(value).__name__}")


def _text(text: str) -> str:
    if text.isascii():
        return str(text)
    # A lone surrogate can stand in no stored state and in no message.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _number(number: int | float) -> int | float | None:
    if isinstance(number, float):
        return float(number) if math.isfinite(number) else None
    if _SMALLEST_INT <= number <= _LARGEST_INT:
        return int(number)
    return float(number) if number.bit_length() <= 1023 else None
