"""Filters of scripts: what is asked of the rows of a table, as a tree. A text (`city = 'Oslo' AND age > 30`) and a
condition that the form language has read become the same tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from services.json_values import JsonValue

Operator = Literal["=", "<>", "<", "<=", ">", ">=", "like", "contains", "in", "between"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the row, in any letter case; `a.b` is the field b of the map in a. `item` is the row itself."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Applied:
    """A function of `FUNCTIONS`, its name in upper case."""

    function: str
    arguments: tuple[Operand, ...]


Operand = Field | Constant | Applied


@dataclass(frozen=True, slots=True)
class Comparison:
    """`in` has any number of values on its right side, `between` two, all others one."""

    left: Operand
    operator: Operator
    right: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition


Condition = Comparison | AllOf | AnyOf | Not


@dataclass(frozen=True, slots=True)
class Order:
    """In which order rows come."""

    by: Operand
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows, in which order, and how many at the most; without anything all of them as they came."""

    condition: Condition | None = None
    orders: tuple[Order, ...] = ()
    """By the first one, and where that is equal by the next."""
    limit: int | None = None


class Problem(StrEnum):
    """What is wrong with a filter."""

    EMPTY = "empty"
    NO_FIELD = "no_field"
    NO_OPERATOR = "no_operator"
    OPEN_QUOTE = "open_quote"
    OPEN_BRACKET = "open_bracket"
    NO_BRACKET = "no_bracket"
    NO_AND = "no_and"
    NO_LIMIT = "no_limit"
    LEFT_OVER = "left_over"
    UNKNOWN_FUNCTION = "unknown_function"
    WRONG_COUNT = "wrong_count"
    TOO_DEEP = "too_deep"
    TOO_LONG = "too_long"
    TOO_MANY = "too_many"
    NO_CONDITION = "no_condition"
    VALUE_HERE = "value_here"
    """A value where the filter itself has to say what is meant."""


class FilterFault(ValueError):
    """A filter that cannot be understood."""

    def __init__(self, problem: Problem, position: int = 0, found: str = "") -> None:
        super().__init__(f"{problem} at {position}: {found}")
        self.problem = problem
        self.position = position
        """Of the character, from 1; 0 where there is no text."""
        self.found = found
        """The word that it is about."""


FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "LOWER": (1, 1), "LCASE": (1, 1), "UPPER": (1, 1), "UCASE": (1, 1), "TRIM": (1, 1), "LEN": (1, 1),
    "LENGTH": (1, 1), "ABS": (1, 1), "DATE": (1, 1), "YEAR": (1, 1), "MONTH": (1, 1), "DAY": (1, 1),
    "INSTR": (2, 2), "DATEDIFF": (2, 2), "NOW": (0, 0), "TODAY": (0, 0),
}  # fmt: skip
"""The functions of filters, with the fewest and the most arguments of each."""
MOST_COMPARISONS = 100
MOST_VALUES = 1000
"""Of one IN."""

_SPELLINGS: Mapping[str, Operator] = {
    "=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "like": "like", "ilike": "like", "contains": "contains", "in": "in", "between": "between",
}  # fmt: skip
_DEEPEST = 40


def operator_of(spelling: str) -> Operator | None:
    """The operator that is written so, in any letter case."""
    return _SPELLINGS.get(spelling.lower())


def applied(function: str, arguments: Sequence[Operand], position: int = 0) -> Applied:
    """A function of its arguments. Raises FilterFault."""
    name = function.upper()
    if name not in FUNCTIONS:
        raise FilterFault(Problem.UNKNOWN_FUNCTION, position, function[:40])
    fewest, most = FUNCTIONS[name]
    if not fewest <= len(arguments) <= most:
        raise FilterFault(Problem.WRONG_COUNT, position, name)
    return Applied(name, tuple(arguments))


def joined(connective: Literal["and", "or"], conditions: Sequence[Condition]) -> Condition:
    """One condition alone, or all of them together."""
    if len(conditions) == 1:
        return conditions[0]
    return AllOf(tuple(conditions)) if connective == "and" else AnyOf(tuple(conditions))


def count_of(condition: Condition) -> int:
    """How many comparisons are in it."""
    if isinstance(condition, Comparison):
        return 1
    if isinstance(condition, Not):
        return count_of(condition.condition)
    return sum(map(count_of, condition.conditions))


def is_null(left: Operand, *, negated: bool) -> Condition:
    """`left IS [NOT] NULL`."""
    comparison = Comparison(left, "=", (Constant(None),))
    return Not(comparison) if negated else comparison
