"""Filters that the form language has read: `WHERE city = x AND age > 30` comes as nested lists."""

from __future__ import annotations

from collections.abc import Sequence

from services.json_values import JsonValue
from services.script_filter_texts import DEEPEST, read_operand
from services.script_filters import (
    MOST_COMPARISONS,
    MOST_VALUES,
    Comparison,
    Condition,
    Constant,
    FilterFault,
    Not,
    Operand,
    Problem,
    count_of,
    is_null,
    joined,
    operator_of,
)

_BOTH_ENDS = 2


def condition_of(tree: JsonValue) -> Condition:
    """The condition in `["and", c, …]`, `["or", c, …]`, `["not", c]` or `[field, operator, value]`; the same as that of
    the text. IN has a list as its value, BETWEEN a list of two, IS NULL none. Raises FilterFault."""
    condition = _condition(tree, 0)
    if count_of(condition) > MOST_COMPARISONS:
        raise FilterFault(Problem.TOO_MANY)
    return condition


def _condition(tree: JsonValue, deep: int) -> Condition:
    if deep > DEEPEST:
        raise FilterFault(Problem.TOO_DEEP)
    match tree:
        case ["and" | "or" as connective, [*_] as first, *others]:
            return joined(connective, [_condition(one, deep + 1) for one in (first, *others)])
        case ["not", [*_] as inner]:
            return Not(_condition(inner, deep + 1))
        case [str() as left, str() as spelling, *values]:
            return _comparison(read_operand(left), " ".join(spelling.lower().split()), values)
    raise FilterFault(Problem.NO_CONDITION)


def _comparison(left: Operand, spelling: str, values: Sequence[JsonValue]) -> Condition:
    if spelling in ("is null", "is not null"):
        return is_null(left, negated=spelling == "is not null")
    negated = spelling.startswith("not ")
    operator = operator_of(spelling.removeprefix("not "))
    if operator is None or not values:
        raise FilterFault(Problem.NO_OPERATOR, 0, spelling[:40])
    of = values[0] if operator in ("in", "between") and isinstance(values[0], list) else values
    if operator == "between" and len(of) != _BOTH_ENDS:
        raise FilterFault(Problem.NO_AND)
    if operator == "in" and len(of) > MOST_VALUES:
        raise FilterFault(Problem.TOO_MANY)
    if operator not in ("in", "between"):
        of = of[:1]
    comparison = Comparison(left, operator, tuple(map(Constant, of)))
    return Not(comparison) if negated else comparison
