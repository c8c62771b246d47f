"""Row filters of scripts as syntax trees, and their evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from services.refs import JsonValue
from services.scripts.values import as_moment, as_number, as_text, is_empty, key_of, order, same

Operator = Literal["=", "<>", "<", "<=", ">", ">=", "like", "contains", "in", "between"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the row, ignoring case; `a.b` is the field b of the map in a. `item` is the row itself."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant value as an operand."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Applied:
    """A function of `FUNCTIONS`, its name in upper case."""

    function: str
    arguments: tuple[Operand, ...]


Operand = Field | Constant | Applied


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of operands. `in` has any number of operands on its right side, `between` two, the others one."""

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
    """One sort criterion: an operand and its direction."""

    by: Operand
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """Condition, order and maximum number of rows; by default all rows in their original order."""

    condition: Condition | None = None
    orders: tuple[Order, ...] = ()
    """Sort criteria, most significant first."""
    limit: int | None = None


class Problem(StrEnum):
    """Reason why a filter is invalid."""

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
    """A value is not allowed in this position."""


class FilterError(ValueError):
    """An invalid filter: its problem and where in the text."""

    def __init__(self, problem: Problem, position: int = 0, found: str = "") -> None:
        super().__init__(f"{problem} at {position}: {found}")
        self.problem = problem
        self.position = position
        """Position of the character, from 1; 0 if there is no text."""
        self.found = found
        """The word at that position."""


MOST_COMPARISONS = 100
MOST_VALUES = 1000
"""Maximum for one IN."""

_SPELLINGS: Mapping[str, Operator] = {
    "=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "like": "like", "ilike": "like", "contains": "contains", "in": "in", "between": "between",
}  # fmt: skip


def operator_of(spelling: str) -> Operator | None:
    """The operator for that spelling, ignoring case; None if unknown."""
    return _SPELLINGS.get(spelling.lower())


def applied(function: str, arguments: Sequence[Operand], position: int = 0) -> Applied:
    """The Applied for a call of `function`, ignoring case. Raises FilterError for an unknown function or a wrong number
    of arguments."""
    name = function.upper()
    if name not in FUNCTIONS:
        raise FilterError(Problem.UNKNOWN_FUNCTION, position, function[:40])
    if len(arguments) != FUNCTIONS[name].arguments:
        raise FilterError(Problem.WRONG_COUNT, position, name)
    return Applied(name, tuple(arguments))


def joined(connective: Literal["and", "or"], conditions: Sequence[Condition]) -> Condition:
    """Combine the conditions, at least one, by `connective`; a single one is returned as it is."""
    if len(conditions) == 1:
        return conditions[0]
    return AllOf(tuple(conditions)) if connective == "and" else AnyOf(tuple(conditions))


def count_of(condition: Condition) -> int:
    """Number of comparisons in a condition, nested ones included."""
    if isinstance(condition, Comparison):
        return 1
    if isinstance(condition, Not):
        return count_of(condition.condition)
    return sum(map(count_of, condition.conditions))


def is_null(left: Operand, *, negated: bool) -> Condition:
    """Condition `left IS NULL`, or `IS NOT NULL` if `negated`; true also for the empty text."""
    comparison = Comparison(left, "=", (Constant(None),))
    return Not(comparison) if negated else comparison


Test = Callable[[JsonValue], bool]
Getter = Callable[[JsonValue], JsonValue]
LONGEST_PATTERN = 1000
LONGEST_PATTERN_WITH_GAPS = 100
_ITEM = ("item", "value")
_WANTED = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}


def test_of(condition: Condition | None, now: datetime) -> Test:
    """Compile a condition to a predicate on rows; None accepts every row. `now`: aware, in the chat's zone. A missing
    field is NULL. For NULL all comparisons except `=` and `<>` are false. Raises FilterError for a LIKE pattern that is
    too long."""
    if condition is None:
        return lambda _: True
    match condition:
        case AllOf(conditions):
            tests = [test_of(one, now) for one in conditions]
            return lambda row: all(test(row) for test in tests)
        case AnyOf(conditions):
            tests = [test_of(one, now) for one in conditions]
            return lambda row: any(test(row) for test in tests)
        case Not(inner):
            test = test_of(inner, now)
            return lambda row: not test(row)
        case Comparison():
            return _comparison(condition, now)


def getter_of(operand: Operand, now: datetime) -> Getter:
    """Compile an operand to a function that returns its value for a row; NOW and TODAY are those of `now` (aware)."""
    match operand:
        case Constant(value):
            return lambda _: value
        case Field(name):
            return field_getter(name)
        case Applied(function, arguments):
            work = FUNCTIONS[function].work
            of = [getter_of(one, now) for one in arguments]
            return lambda row: work([get(row) for get in of], now)


def field_getter(name: str) -> Getter:
    """Function that returns the field `name` of a row, ignoring case; `a.b` is the field b of the map in a, unless a
    field has the whole name. `item` is the row, and `item.a` its field a. Missing fields are NULL."""
    folded = name.casefold()
    first, _, rest = name.partition(".")
    inner = field_getter(rest) if rest else None

    def get(row: JsonValue) -> JsonValue:
        if not isinstance(row, dict):
            if folded in _ITEM:
                return row
            return inner(row) if inner is not None and first.casefold() in _ITEM else None
        if name in row:
            return row[name]
        for key in row:
            if key.casefold() == folded:
                return row[key]
        if inner is None:
            return None
        of = outer(row)
        if of is None and first.casefold() == "item":
            of = row
        return inner(of)

    outer = field_getter(first) if inner is not None else get
    return get


def id_asked_for(condition: Condition | None) -> str | None:
    """The only row id that can fulfil the condition; None if several can, for example because of different spellings of
    a number."""
    match condition:
        case Comparison(Field(name), "=", (Constant(str() as value),)) if value and name.casefold() == "id":
            number = as_number(value)
            return value if number is None or key_of(number) == value else None
        case AllOf(conditions):
            return next((found for found in map(id_asked_for, conditions) if found is not None), None)
    return None


def _comparison(comparison: Comparison, now: datetime) -> Test:
    left = getter_of(comparison.left, now)
    right = [getter_of(one, now) for one in comparison.right]
    if comparison.operator == "in":
        return _in(left, comparison.right, right)
    if comparison.operator == "between":
        low, high = right
        return lambda row: order(low(row), left(row)) in (-1, 0) and order(left(row), high(row)) in (-1, 0)
    if comparison.operator == "like":
        return _like(left, comparison.right[0], right[0])
    (other,) = right
    match comparison.operator:
        case "contains":
            return lambda row: _contains(left(row), other(row))
        case "=":
            return lambda row: same(left(row), other(row))
        case "<>":
            return lambda row: not same(left(row), other(row))
    wanted = _WANTED[comparison.operator]
    return lambda row: order(left(row), other(row)) in wanted


def _in(left: Getter, operands: Sequence[Operand], right: Sequence[Getter]) -> Test:
    """Predicate for IN by look-up in sets, so that the time does not depend on the number of values."""
    if not all(isinstance(one, Constant) for one in operands):
        return lambda row: any(same(left(row), get(row)) for get in right)
    values = [get(None) for get in right]
    texts = {value for value in values if isinstance(value, str)}
    numbers = {number for value in values if (number := as_number(value)) is not None}
    plain_numbers = {as_number(value) for value in values if isinstance(value, int | float)} - {None}
    others = [value for value in values if not isinstance(value, str) and as_number(value) is None]

    def test(row: JsonValue) -> bool:
        value = left(row)
        if isinstance(value, str):
            found = value in texts or as_number(value) in plain_numbers
        elif as_number(value) is not None:
            found = as_number(value) in numbers
        else:
            return any(same(value, one) for one in values)
        return found or any(same(value, one) for one in others)

    return test


def _like(left: Getter, operand: Operand, pattern: Getter) -> Test:
    if isinstance(operand, Constant):
        fits = like_test(as_text(operand.value))
        return lambda row: not is_empty(left(row)) and fits(as_text(left(row)))
    return lambda row: not is_empty(left(row)) and like_test(as_text(pattern(row)))(as_text(left(row)))


def like_test(pattern: str) -> Callable[[str], bool]:
    """Compile a LIKE pattern to a predicate that ignores case: `%` and `*` match any characters, `_` one. Pieces
    between wildcards are found from the left without backtracking. Raises FilterError if the pattern is too long."""
    if len(pattern) > (LONGEST_PATTERN_WITH_GAPS if "_" in pattern else LONGEST_PATTERN):
        raise FilterError(Problem.TOO_LONG, 0, pattern[:40])
    pieces = re.split("[%*]+", pattern.casefold())
    if len(pieces) == 1:
        return lambda text: _is_at(pieces[0], text.casefold(), 0) and len(text.casefold()) == len(pieces[0])
    first, *inner, last = pieces

    def fits(text: str) -> bool:
        folded = text.casefold()
        at, end = len(first), len(folded) - len(last)
        if at > end or not _is_at(first, folded, 0) or not _is_at(last, folded, end):
            return False
        for piece in inner:
            at = _place_of(piece, folded, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True

    return fits


def _is_at(piece: str, text: str, at: int) -> bool:
    if "_" not in piece:
        return text.startswith(piece, at)
    return _piece(piece).match(text, at) is not None


def _place_of(piece: str, text: str, start: int, end: int) -> int:
    if "_" not in piece:
        return text.find(piece, start, end)
    found = _piece(piece).search(text, start, end)
    return found.start() if found else -1


def _piece(text: str) -> re.Pattern[str]:
    """Regular expression for a piece of a LIKE pattern without `%` and `*`; `_` matches any character."""
    return re.compile("".join("." if one == "_" else re.escape(one) for one in text), re.DOTALL)


def _contains(value: JsonValue, part: JsonValue) -> bool:
    if isinstance(value, list):
        return any(same(item, part) for item in value)
    return not is_empty(value) and as_text(part).casefold() in as_text(value).casefold()


_Work = Callable[[list[Any], datetime], JsonValue]
"""Value for the arguments at a time (aware, in the chat's zone)."""


def _text_function(change: Callable[[str], JsonValue]) -> _Work:
    return lambda arguments, _: None if arguments[0] is None else change(as_text(arguments[0]))


def _moment_function(part: Callable[[datetime], JsonValue]) -> _Work:
    def work(arguments: list[Any], _: datetime) -> JsonValue:
        moment = as_moment(arguments[0])
        return None if moment is None else part(moment)

    return work


def _absolute(arguments: list[Any], _: datetime) -> JsonValue:
    number = as_number(arguments[0])
    return None if number is None else abs(number)


def _place_in(arguments: list[Any], _: datetime) -> JsonValue:
    return as_text(arguments[0]).casefold().find(as_text(arguments[1]).casefold()) + 1


def _days_between(arguments: list[Any], now: datetime) -> JsonValue:
    """Whole days from the second argument to the first, as in `DATEDIFF(NOW(), seen_at) >= 90`; None unless both are
    dates or times."""
    late, early = as_moment(arguments[0]), as_moment(arguments[1])
    if late is None or early is None:
        return None
    days = [(one if one.tzinfo is None else one.astimezone(now.tzinfo)).date() for one in (late, early)]
    return (days[0] - days[1]).days


class _Function(NamedTuple):
    arguments: int
    """Number of arguments."""
    work: _Work


FUNCTIONS: Mapping[str, _Function] = {
    **dict.fromkeys(("LOWER", "LCASE"), _Function(1, _text_function(str.lower))),
    **dict.fromkeys(("UPPER", "UCASE"), _Function(1, _text_function(str.upper))),
    **dict.fromkeys(("LEN", "LENGTH"), _Function(1, _text_function(len))),
    "TRIM": _Function(1, _text_function(str.strip)),
    "ABS": _Function(1, _absolute),
    "DATE": _Function(1, _moment_function(lambda moment: moment.date().isoformat())),
    "YEAR": _Function(1, _moment_function(lambda moment: moment.year)),
    "MONTH": _Function(1, _moment_function(lambda moment: moment.month)),
    "DAY": _Function(1, _moment_function(lambda moment: moment.day)),
    "INSTR": _Function(2, _place_in),
    "DATEDIFF": _Function(2, _days_between),
    "NOW": _Function(0, lambda _, now: now.isoformat(timespec="seconds")),
    "TODAY": _Function(0, lambda _, now: now.date().isoformat()),
}
"""Functions of filters by name in upper case."""
