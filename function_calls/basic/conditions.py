"""Conditions on the rows of a table: `status = "open" AND (age > 18 OR name LIKE "A%")`. On the left of a comparison
stands a column, on its right a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass

from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.filter_texts import filter_text
from function_calls.basic.nodes import Apply, At, Expression, ListOf, Literal, Member, Name, Template
from function_calls.basic.tokens import Cursor, Kind, Token

_SIGNS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_WORDS = frozenset({"LIKE", "ILIKE", "CONTAINS", "IN", "BETWEEN", "IS"})
_JOINS = frozenset({"AND", "OR"})
_STOPS = _WORDS | _JOINS | {"NOT"}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPENS, _CLOSES = frozenset({"(", "[", "{", "#{"}), frozenset({")", "]", "}"})
_GO_ON = _SIGNS | {"+", "-", "*", "/", "\\", "^", "&", ".", "["}
_HIGHEST = 60
"""Of a tree, with what stands in its values. Whoever walks it goes as deep."""
_MEANT = 'a condition compares columns with values, as in `status = "open" AND age > 18`'
_MOST_GROUPS = 30
_TOO_HIGH = "this condition holds too much within one another; divide it"

ReadExpression = Callable[[Cursor], Expression]


def condition_at(cursor: Cursor, read: ReadExpression) -> Expression:
    """The condition at the cursor, which then stands behind it: `["and", ["status", "=", "open"], ["or", …]]`, with
    `["not", …]` alike. The outermost is always "and" or "or"; IS NULL is `=` with NULL, the value of IN is a list or
    what gives one, that of BETWEEN a list of two. What compares nothing, such as a text that holds a condition, stays
    the filter that it is. `read` gives the expression at a cursor. Raises ScriptFault."""
    found = _Reader(cursor, read).whole()
    if isinstance(found, _Bare):
        return filter_text(found.value)
    condition = found if _is_joined(found) else _list(found.at, "and", found)
    if _height(condition) > _HIGHEST:
        raise ScriptFault(condition.at, Code.TOO_DEEP, _TOO_HIGH)
    return condition


@dataclass(frozen=True, slots=True)
class _Bare:
    """A value that nothing compares."""

    value: Expression


@dataclass(slots=True)
class _Group:
    """What stands between parentheses, or the whole condition."""

    at: At
    either: list[Expression | _Bare] = field(default_factory=list)
    """What OR joins, up to the last OR."""
    both: list[Expression | _Bare] = field(default_factory=list)
    """What AND joins behind that."""
    negations: list[At] = field(default_factory=list)
    """The NOTs before what comes next."""

    def add(self, part: Expression | _Bare) -> None:
        while self.negations:
            part = _list(self.negations.pop(), "not", _compared(part))
        self.both.append(part)

    def next_or(self) -> None:
        """What AND has joined is one side of an OR."""
        self.either.append(_all("and", self.at, self.both))
        self.both = []

    def result(self) -> Expression | _Bare:
        self.next_or()
        return _all("or", self.at, self.either)


class _Reader:
    """Reads one condition. Conditions may stand within one another, so parentheses take nothing of the stack."""

    def __init__(self, cursor: Cursor, read: ReadExpression) -> None:
        self._cursor = cursor
        self._read = read

    def whole(self) -> Expression | _Bare:
        """The condition, or the value that compares nothing."""
        groups = [_Group(self._cursor.now.at)]
        while True:
            self._open(groups)
            part = self._comparison()
            while not self._goes_on(groups[-1], part):
                part = groups.pop().result()
                if not groups:
                    return part
                self._cursor.expect(")", "a condition in parentheses")

    def _open(self, groups: list[_Group]) -> None:
        """Pass what may stand before a comparison."""
        while True:
            at = self._cursor.now.at
            if self._cursor.words("NOT"):
                groups[-1].negations.append(at)
            elif self._is_group():
                if len(groups) > _MOST_GROUPS:
                    self._cursor.fail(_TOO_HIGH, Code.TOO_DEEP)
                self._cursor.take()
                groups.append(_Group(self._cursor.now.at))
            else:
                return

    def _goes_on(self, group: _Group, part: Expression | _Bare) -> bool:
        """Add `part`; whether something is joined to it."""
        group.add(part)
        if self._cursor.words("OR"):
            group.next_or()
            return True
        return self._cursor.words("AND")

    def _is_group(self) -> bool:
        """Whether the parenthesis here holds a condition, and not the beginning of a value."""
        if not self._cursor.is_symbol("("):
            return False
        count = self._operand_length(stops=False)
        behind = self._cursor.ahead(count) if count else self._cursor.now
        return behind.kind is not Kind.SYMBOL or behind.text not in _GO_ON

    def _comparison(self) -> Expression | _Bare:
        cursor, at = self._cursor, self._cursor.now.at
        left = self._operand()
        negation = (
            "not " if cursor.is_at("NOT") and cursor.ahead().value in _WORDS - {"IS"} and cursor.words("NOT") else ""
        )
        token = cursor.now
        if token.kind is Kind.SYMBOL and token.text in _SIGNS:
            cursor.take()
            return _turned(at, left, token.text, self._operand())
        if token.kind is not Kind.WORD or token.value not in _WORDS:
            return _Bare(left)
        cursor.take()
        operator = str(token.value).lower()
        if operator == "is":
            operator = "<>" if cursor.words("NOT") else "="
            if not cursor.words("NULL"):
                cursor.fail(f"NULL or NOT NULL is missing behind IS, {cursor.found()}")
            return _list(at, _column(left), operator, Literal(at, None))
        value = self._range() if operator == "between" else self._members() if operator == "in" else self._operand()
        return _list(at, _column(left), negation + operator.removeprefix("i" if operator == "ilike" else ""), value)

    def _range(self) -> Expression:
        at, low = self._cursor.now.at, self._operand()
        if not self._cursor.words("AND"):
            self._cursor.fail(f"AND is missing behind BETWEEN, {self._cursor.found()}; write BETWEEN 1 AND 9")
        return ListOf(at, (low, self._operand()))

    def _members(self) -> Expression:
        cursor, at = self._cursor, self._cursor.now.at
        if not cursor.is_symbol("("):
            return self._operand()
        cursor.take()
        items = [self._read(cursor)]
        while cursor.symbol(","):
            items.append(self._read(cursor))
        cursor.expect(")", "the values of IN")
        return ListOf(at, tuple(items))

    def _operand(self) -> Expression:
        """The expression that ends before the next comparison, AND or OR of this condition."""
        cursor = self._cursor
        length = self._operand_length(stops=True)
        if not length:
            cursor.fail(f"a value is missing, {cursor.found()}; {_MEANT}")
        tokens = [cursor.now, *(cursor.ahead(count) for count in range(1, length))]
        at = cursor.ahead(length).at
        inner = Cursor([*tokens, Token(Kind.LINE, "\n", None, at), Token(Kind.END, "", None, at)])
        found = self._read(inner)
        cursor.index += inner.index
        return found

    def _operand_length(self, *, stops: bool) -> int:
        """How many tokens there are up to what ends an operand; without `stops` only the bracket here."""
        depth, count = 0, 0
        while True:
            token = self._cursor.ahead(count) if count else self._cursor.now
            if token.kind in (Kind.LINE, Kind.END):
                return count
            if token.kind is Kind.SYMBOL:
                depth += (token.text in _OPENS) - (token.text in _CLOSES)
                if depth < 0:
                    return count
            count += 1
            if depth == 0 and (not stops or _stops(self._cursor.ahead(count))):
                return count if not stops or not _stops_at_once(self._cursor.now) else 0


def _turned(at: At, left: Expression, operator: str, right: Expression) -> Expression:
    """A comparison; the column may stand on the right of a value that is written out."""
    if isinstance(left, Literal | Template) and isinstance(right, Name):
        return _list(at, _column(right), _TURNED[operator], left)
    return _list(at, _column(left), operator, right)


def _stops(token: Token) -> bool:
    if token.kind is Kind.SYMBOL:
        return token.text in _SIGNS or token.text == ","
    return token.kind is Kind.WORD and token.value in _STOPS


def _stops_at_once(token: Token) -> bool:
    """Whether no operand begins with this. A function may be called as an operator is: `CONTAINS(name, "x")`."""
    return (token.kind is Kind.SYMBOL and _stops(token)) or (token.kind is Kind.WORD and token.value in _JOINS)


def _compared(part: Expression | _Bare) -> Expression:
    """A part of a condition; alone, a column has to be TRUE."""
    if not isinstance(part, _Bare):
        return part
    value = part.value
    if isinstance(value, Name | Member) or (isinstance(value, Apply) and not value.arguments):
        return _list(value.at, _column(value), "=", Literal(value.at, True))
    raise ScriptFault(value.at, Code.SYNTAX, _MEANT)


def _all(word: str, at: At, parts: list[Expression | _Bare]) -> Expression | _Bare:
    return parts[0] if len(parts) == 1 else _list(at, word, *map(_compared, parts))


def _height(node: Expression) -> int:
    """How many lists and operators stand within one another."""
    highest = 0
    left: list[tuple[object, int]] = [(node, 1)]
    while left:
        one, depth = left.pop()
        if isinstance(one, tuple):
            left += [(inner, depth) for inner in one]
        elif is_dataclass(one):
            highest = max(highest, depth)
            left += [(getattr(one, name.name), depth + 1) for name in fields(one)]
    return highest


def _is_joined(condition: Expression) -> bool:
    first = condition.items[0] if isinstance(condition, ListOf) else None
    return isinstance(first, Literal) and first.value in ("and", "or")


def _column(expression: Expression) -> Expression:
    return Literal(expression.at, _name_of(expression))


def _name_of(expression: Expression) -> str:
    names: list[str] = []
    of = expression
    while isinstance(of, Member):
        names.append(of.name)
        of = of.of
    if isinstance(of, Name):
        names.append(of.name)
    elif isinstance(of, Literal) and isinstance(of.value, str) and not names:
        return of.value
    elif isinstance(of, Apply) and not names:
        # `LOWER(name)` is of a column; without arguments it is a column that is called as a function is.
        inside = ", ".join(map(_name_of, of.arguments))
        return f"{of.name}({inside})" if of.arguments else of.name
    else:
        raise ScriptFault(expression.at, Code.SYNTAX, _MEANT)
    return ".".join(reversed(names))


def _list(at: At, *items: Expression | str) -> ListOf:
    return ListOf(at, tuple(Literal(at, one) if isinstance(one, str) else one for one in items))
