"""Parser of row filters in text, such as `city = 'Oslo' AND age > 30 ORDER BY name LIMIT 5`, or as JSON trees."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from services.refs import JsonValue
from services.scripts import filters
from services.scripts.filters import Comparison, Condition, Constant, Filter, FilterError, Not, Operand, Problem
from services.scripts.values import as_number, as_text

MARKS = "\U000f0000-\U000ffffd"
"""Range of the placeholder characters, for a character class. No pattern treats them as letters, digits or spaces."""
_FIRST, _LAST = map(ord, MARKS.split("-"))
_MARK = re.compile(f"[{MARKS}]")
_NAME = re.compile(r"[^\W\d][\w$-]*(?:\.[\w$-]+)*")
PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_ORDERS = {"desc": True, "asc": False, "": False}


@dataclass(frozen=True, slots=True)
class Marks:
    """Values of a text, in the order of their placeholders."""

    values: Sequence[JsonValue] = ()
    texts: Sequence[str] = field(default=())
    """The values in text form."""

    def filled(self, text: str) -> str:
        """`text` with the placeholders replaced by the values' texts."""
        return _MARK.sub(lambda mark: self.texts[ord(mark[0]) - _FIRST], text) if self.values else text

    def alone(self, text: str) -> bool:
        """Whether `text` is a single placeholder and nothing else."""
        return len(text) == 1 and _FIRST <= ord(text) <= _LAST

    def value(self, mark: str) -> JsonValue:
        """The value of this placeholder; a numeric text becomes a number, as it would without quotes in the filter."""
        value = self.values[ord(mark) - _FIRST]
        return as_number(value) if isinstance(value, str) and PLAIN_NUMBER.fullmatch(value) else value

    def values_in_list(self, mark: str) -> Sequence[JsonValue]:
        """The items of a value that is the only operand of an IN: of a list, or of a text separated by commas, with or
        without quotes; else the value itself."""
        value = self.value(mark)
        if isinstance(value, list):
            return value
        if not isinstance(value, str):
            return (value,)
        items = [_unquoted(one.strip()) for one in value.split(",")]
        return [as_number(one) if PLAIN_NUMBER.fullmatch(one) else one for one in items]

    def name(self, text: str, position: int) -> str:
        """`text` with its values as a field name. Raises FilterError if it is more than a name."""
        filled = self.filled(text)
        if not _NAME.fullmatch(filled):
            raise FilterError(Problem.VALUE_HERE, position, filled[:40])
        return filled

    def count(self, mark: str, position: int) -> int:
        """The value of a LIMIT. Raises FilterError unless it is a whole number from 0."""
        number = as_number(self.values[ord(mark) - _FIRST])
        if number is None or number < 0 or number != int(number):
            raise FilterError(Problem.NO_LIMIT, position)
        return int(number)

    def descends(self, mark: str, position: int) -> bool:
        """Whether the value after a field of ORDER BY is DESC (not ASC or empty). Raises FilterError for other
        values."""
        said = self.filled(mark).strip().lower()
        if said not in _ORDERS:
            raise FilterError(Problem.VALUE_HERE, position, said[:40])
        return _ORDERS[said]


NO_MARKS = Marks()


def marked(parts: Sequence[JsonValue]) -> tuple[str, Marks]:
    """The text with placeholders, and the values. In `parts` a text belongs to the filter; a list has a value, followed
    by its text form if that differs. Raises FilterError for too many values."""
    text, values, texts = "", list[JsonValue](), list[str]()
    for part in parts:
        if isinstance(part, list) and part:
            if not as_text(part[-1]):
                continue  # an empty value leaves no placeholder
            text += chr(_FIRST + len(values))
            values.append(part[0])
            texts.append(as_text(part[-1]))
            if _FIRST + len(values) > _LAST:
                raise FilterError(Problem.TOO_MANY)
        else:
            text += _MARK.sub("\ufffd", as_text(part))
    return text, Marks(values, texts)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


LONGEST = 10_000
DEEPEST = 40
MOST_ORDERS = 5

_SPACE = re.compile(r"\s*")
_FIELD = re.compile(r"[^\W\d][\w$-]*(?:\.[\w$-]+)*")
_QUOTED_FIELD = re.compile(r'\[([^\]]{1,200})\]|`([^`]{1,200})`|"([^"]{1,200})"')
_CALL = re.compile(r"([^\W\d]\w*)\s{0,8}\(")
_OPERATOR = re.compile(r"<=|>=|<>|!=|==|=|<|>|(?:LIKE|ILIKE|IN|BETWEEN|CONTAINS|IS)(?!\w)", re.IGNORECASE)
_FIELD_OF_VALUES = re.compile(rf"[\w$.-]*[{MARKS}][\w$.{MARKS}-]*")
_QUOTED_VALUE = re.compile(rf'"([^"]*[{MARKS}][^"]*|)"')
_LIMIT = re.compile(rf"LIMIT\s{{1,9}}(\d{{1,9}}|[{MARKS}])$", re.IGNORECASE)
_ORDER = re.compile(r"ORDER\s{1,9}BY(?!\w)", re.IGNORECASE)
_CONTINUATION = re.compile(
    rf"(?:AND|OR)(?!\w)|ORDER\s{{1,9}}BY(?!\w)|LIMIT\s{{1,9}}(?:\d{{1,9}}|[{MARKS}])$", re.IGNORECASE
)
_STOPS = re.compile(r"[(),]|\s(?:AND|OR|ORDER|LIMIT)(?!\w)", re.IGNORECASE)
_SECOND_CONDITION = re.compile(rf"\s[\w.${MARKS}-]{{1,100}}\s{{0,5}}[=<>!]")
_WORDS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}


def filter_of(text: str) -> Filter:
    """Parse a filter; an empty text selects everything. Raises FilterError with the position, also above 10,000
    characters."""
    return _filter_of(text, NO_MARKS)


def filter_of_parts(parts: Sequence[JsonValue]) -> Filter:
    """Parse a filter in parts: texts are parsed, and lists hold a value, optionally with its text form. Values never
    add a comparison, like bound SQL parameters; a value in the position of a field is its name. Raises FilterError."""
    return _filter_of(*marked(parts))


def _filter_of(text: str, marks: Marks) -> Filter:
    if len(text) > LONGEST:
        raise FilterError(Problem.TOO_LONG)
    reader = _Reader(text.rstrip(), marks)
    condition = None if reader.is_at_tail() else reader.any_of(0)
    found = Filter(condition, reader.orders(), reader.limit())
    reader.end()
    return found


def read_operand(text: str) -> Operand:
    """Parse a field or a function of fields. Raises FilterError for anything else."""
    if len(text) > LONGEST:
        raise FilterError(Problem.TOO_LONG)
    reader = _Reader(text.rstrip())
    operand = reader.operand(0)
    reader.end()
    return operand


class _Reader:
    """Recursive descent parser of one filter text; everything before `_at` is parsed. Its methods raise FilterError."""

    def __init__(self, text: str, marks: Marks = NO_MARKS) -> None:
        self._text = text
        self._marks = marks
        self._at = 0
        self._brackets = 0
        self._comparisons = 0
        self._skip()

    def is_at_tail(self) -> bool:
        return self._at == len(self._text) or bool(self._ahead(_ORDER) or self._ahead(_LIMIT))

    def orders(self) -> tuple[filters.Order, ...]:
        if not self._pass(_ORDER):
            return ()
        orders: list[filters.Order] = []
        while True:
            by = self.operand(0)
            orders.append(filters.Order(by, self._descends()))
            if len(orders) > MOST_ORDERS:
                self._fail(Problem.TOO_MANY)
            if not self._symbol(","):
                return tuple(orders)

    def _descends(self) -> bool:
        at = self._at
        mark = self._pass(_MARK)
        if mark is not None:
            return self._marks.descends(mark[0], self._position(at))
        return self._word("DESC") or (self._word("ASC") and False)

    def limit(self) -> int | None:
        at = self._at
        found = self._pass(_LIMIT)
        if found is None and self._word("LIMIT"):
            self._fail(Problem.NO_LIMIT)
        if found is not None and self._marks.alone(found[1]):
            return self._marks.count(found[1], self._position(at))
        return int(found[1]) if found else None

    def end(self) -> None:
        if self._at < len(self._text):
            self._fail(Problem.LEFT_OVER)

    def any_of(self, deep: int) -> Condition:
        return self._series("or", self._all_of, deep)

    def _all_of(self, deep: int) -> Condition:
        return self._series("and", self._one, deep)

    def _series(self, connective: Literal["and", "or"], part: Callable[[int], Condition], deep: int) -> Condition:
        conditions = [part(deep)]
        while self._word(connective.upper()):
            conditions.append(part(deep))
        return filters.joined(connective, conditions)

    def _one(self, deep: int) -> Condition:
        if deep > DEEPEST:
            self._fail(Problem.TOO_DEEP)
        if self._word("NOT"):
            return Not(self._one(deep + 1))
        opened = self._at
        if not self._symbol("("):
            return self._comparison(deep)
        self._brackets += 1
        condition = self.any_of(deep + 1)
        self._close(opened)
        return condition

    def _comparison(self, deep: int) -> Condition:
        self._comparisons += 1
        if self._comparisons > filters.MOST_COMPARISONS:
            self._fail(Problem.TOO_MANY)
        left = self.operand(deep)
        negated = self._word("NOT")
        spelling = self._pass(_OPERATOR)
        if spelling is None:
            self._fail(Problem.NO_OPERATOR)
        if spelling[0].upper() == "IS":
            return self._is(left, deep)
        operator = filters.operator_of(spelling[0])
        if operator is None:
            self._fail(Problem.NO_OPERATOR)
        comparison = Comparison(left, operator, self._right(operator, deep))
        return Not(comparison) if negated else comparison

    def _is(self, left: Operand, deep: int) -> Condition:
        negated = self._word("NOT")
        if self._word("NULL"):
            return filters.is_null(left, negated=negated)
        comparison = Comparison(left, "=", (self._value(deep),))
        return Not(comparison) if negated else comparison

    def _right(self, operator: filters.Operator, deep: int) -> tuple[Operand, ...]:
        if operator == "in":
            return self._list(deep)
        first = self._value(deep)
        if operator != "between":
            return (first,)
        if not self._word("AND"):
            self._fail(Problem.NO_AND)
        return first, self._value(deep)

    def _list(self, deep: int) -> tuple[Operand, ...]:
        opened = self._at
        if not self._symbol("("):
            self._fail(Problem.NO_BRACKET)
        self._brackets += 1
        values: list[Operand] = []
        mark, opening = self._ahead(_MARK), self._at
        if mark is not None and self._pass(_MARK) and self._is_symbol(")"):
            values += map(Constant, self._marks.values_in_list(mark[0]))
        else:
            self._at = opening
        while not self._is_symbol(")"):
            values.append(self._value(deep, in_list=True))
            if len(values) > filters.MOST_VALUES:
                self._fail(Problem.TOO_MANY)
            if not self._symbol(","):
                break
        if len(values) > filters.MOST_VALUES:
            self._fail(Problem.TOO_MANY)
        self._close(opened)
        return tuple(values)

    def operand(self, deep: int) -> Operand:
        """Parse a field or a function. Constants are allowed only on the right side. Raises FilterError."""
        call = self._call()
        if call is not None:
            return self._applied(call, deep)
        quoted = self._pass(_QUOTED_FIELD)
        if quoted is not None:
            return filters.Field(self._marks.filled(quoted[1] or quoted[2] or quoted[3]).strip())
        at = self._at
        valued = self._pass(_FIELD_OF_VALUES)
        if valued is not None:
            return filters.Field(self._marks.name(valued[0], self._position(at)))
        found = self._pass(_FIELD)
        if found is None:
            self._fail(Problem.EMPTY if self._at == len(self._text) else Problem.NO_FIELD)
        return filters.Field(found[0])

    def _call(self) -> re.Match[str] | None:
        found = self._ahead(_CALL)
        return found if found is not None and filters.operator_of(found[1]) is None else None

    def _applied(self, call: re.Match[str], deep: int) -> filters.Applied:
        if deep > DEEPEST:
            self._fail(Problem.TOO_DEEP)
        start = self._at
        self._at = call.end()
        self._skip()
        self._brackets += 1
        arguments: list[Operand] = []
        while not self._is_symbol(")"):
            arguments.append(self._argument(deep + 1))
            if not self._symbol(","):
                break
        self._close(call.end() - 1)
        return filters.applied(call[1], arguments, start + 1)

    def _argument(self, deep: int) -> Operand:
        if self._text[self._at : self._at + 1] == "'":
            return Constant(self._quoted("'", in_list=True))
        mark = self._pass(_MARK)
        if mark is not None:
            return Constant(self._marks.value(mark[0]))
        quoted = self._pass(_QUOTED_VALUE)
        if quoted is not None:
            return Constant(self._marks.filled(quoted[1]))
        number = self._pass(PLAIN_NUMBER)
        return Constant(as_number(number[0])) if number else self.operand(deep)

    def _value(self, deep: int, *, in_list: bool = False) -> Operand:
        quote = self._text[self._at : self._at + 1]
        if quote in ("'", '"'):
            return Constant(self._quoted(quote, in_list=in_list))
        call = self._call()
        if call is not None and call[1].upper() in filters.FUNCTIONS:
            return self._applied(call, deep)
        return Constant(self._plain(in_list=in_list))

    def _quoted(self, quote: str, *, in_list: bool) -> str:
        """Parse a quoted text and return it with its values; a doubled quote is part of it. Raises FilterError for a
        missing quote or AND."""
        start = at = self._at + 1
        parts: list[str] = []
        while True:
            end = self._text.find(quote, at)
            if end < 0:
                self._fail(Problem.OPEN_QUOTE)
            parts.append(self._text[at:end])
            if self._may_end(end + 1, in_list=in_list):
                self._at = end + 1
                self._skip()
                return self._marks.filled("".join(parts))
            second = _SECOND_CONDITION.match(self._text, end + 1)
            if second is not None:
                raise FilterError(Problem.LEFT_OVER, end + 3, self._marks.filled(second[0]).strip()[:40])
            parts.append(quote)
            at = end + (2 if end > start - 1 and self._text[end + 1 : end + 2] == quote else 1)

    def _may_end(self, at: int, *, in_list: bool) -> bool:
        after = self._space_end(at)
        if after == len(self._text):
            return True
        following = self._text[after]
        if (following == ")" and self._brackets) or (following == "," and in_list):
            return True
        return _CONTINUATION.match(self._text, after) is not None

    def _plain(self, *, in_list: bool) -> JsonValue:
        """Parse a value without quotes. It may contain brackets; a following condition needs an AND. Raises FilterError
        without it."""
        start, end, open_brackets = self._at, len(self._text), 0
        space_before = start > 0 and self._text[start - 1].isspace()
        for stop in _STOPS.finditer(self._text, start - space_before):
            if stop[0] == "(":
                open_brackets += 1
            elif stop[0] == ")" and (open_brackets or not self._brackets):
                open_brackets = max(open_brackets - 1, 0)
            elif self._ends_plain(stop, in_list=in_list and not open_brackets):
                end = stop.start()
                break
        self._at = max(end, start)
        self._skip()
        second = _SECOND_CONDITION.search(self._text, start, end)
        if second is not None:
            raise FilterError(Problem.LEFT_OVER, second.start() + 2, self._marks.filled(second[0]).strip()[:40])
        text = self._text[start:end].strip()
        if self._marks.alone(text):
            return self._marks.value(text)
        filled = self._marks.filled(text)
        if filled != text:  # a value in it makes it a number or a text, never a keyword
            return as_number(filled) if PLAIN_NUMBER.fullmatch(filled) else filled
        return _plain_value(text)

    def _ends_plain(self, stop: re.Match[str], *, in_list: bool) -> bool:
        if stop[0] == ",":
            return in_list
        return stop[0] == ")" or _CONTINUATION.match(self._text, stop.start() + 1) is not None

    def _close(self, opened: int) -> None:
        if not self._symbol(")"):
            if self._at == len(self._text):
                raise FilterError(Problem.OPEN_BRACKET, opened + 1)
            self._fail(Problem.LEFT_OVER)
        self._brackets -= 1

    def _word(self, word: str) -> bool:
        """Skip this word (in upper case) if it is next, ignoring case; returns whether it was."""
        end = self._at + len(word)
        if self._text[self._at : end].upper() != word or _is_of_a_word(self._text[end : end + 1]):
            return False
        self._at = end
        self._skip()
        return True

    def _symbol(self, symbol: str) -> bool:
        if not self._is_symbol(symbol):
            return False
        self._at += 1
        self._skip()
        return True

    def _is_symbol(self, symbol: str) -> bool:
        return self._text[self._at : self._at + 1] == symbol

    def _ahead(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self._text, self._at)

    def _pass(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = self._ahead(pattern)
        if found is not None:
            self._at = found.end()
            self._skip()
        return found

    def _skip(self) -> None:
        self._at = self._space_end(self._at)

    def _space_end(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _fail(self, problem: Problem) -> NoReturn:
        rest = self._text[self._at : self._at + 60].split()
        if rest and self._marks.alone(rest[0][0]):
            raise FilterError(Problem.VALUE_HERE, self._position(self._at), self._marks.filled(rest[0])[:40])
        raise FilterError(problem, self._position(self._at), self._marks.filled(rest[0])[:40] if rest else "")

    def _position(self, at: int) -> int:
        """Position of that character, from 1, in the text with its values."""
        return len(self._marks.filled(self._text[:at])) + 1


def _is_of_a_word(character: str) -> bool:
    return character == "_" or character.isalnum()


def _plain_value(text: str) -> JsonValue:
    """Value of a text without quotes: TRUE, FALSE, NULL, a number or the text; `007` and `+47` stay texts."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return as_number(text) if PLAIN_NUMBER.fullmatch(text) else text


_BOTH_ENDS = 2


def condition_of(tree: JsonValue) -> Condition:
    """Parse `["and", c, …]`, `["or", c, …]`, `["not", c]` or `[field, operator, value]`. The value of IN is a list,
    that of BETWEEN a list of two; IS NULL has none. Raises FilterError for another shape or above 100 comparisons."""
    condition = _condition(tree, 0)
    if filters.count_of(condition) > filters.MOST_COMPARISONS:
        raise FilterError(Problem.TOO_MANY)
    return condition


def _condition(tree: JsonValue, deep: int) -> Condition:
    if deep > DEEPEST:
        raise FilterError(Problem.TOO_DEEP)
    match tree:
        case ["and" | "or" as connective, [*_] as first, *others]:
            return filters.joined(connective, [_condition(one, deep + 1) for one in (first, *others)])
        case ["not", [*_] as inner]:
            return Not(_condition(inner, deep + 1))
        case [str() as left, str() as spelling, *values]:
            return _comparison(read_operand(left), " ".join(spelling.lower().split()), values)
    raise FilterError(Problem.NO_CONDITION)


def _comparison(left: Operand, spelling: str, values: Sequence[JsonValue]) -> Condition:
    if spelling in ("is null", "is not null"):
        return filters.is_null(left, negated=spelling == "is not null")
    negated = spelling.startswith("not ")
    operator = filters.operator_of(spelling.removeprefix("not "))
    if operator is None or not values:
        raise FilterError(Problem.NO_OPERATOR, 0, spelling[:40])
    of = values[0] if operator in ("in", "between") and isinstance(values[0], list) else values
    if operator == "between" and len(of) != _BOTH_ENDS:
        raise FilterError(Problem.NO_AND)
    if operator == "in" and len(of) > filters.MOST_VALUES:
        raise FilterError(Problem.TOO_MANY)
    if operator not in ("in", "between"):
        of = of[:1]
    comparison = Comparison(left, operator, tuple(map(Constant, of)))
    return Not(comparison) if negated else comparison
