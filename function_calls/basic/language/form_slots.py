"""Parsers of keyword form slots: words, table names, columns, assignments and conditions."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, fields, is_dataclass

from function_calls.basic import nodes
from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.language.filter_texts import filter_text
from function_calls.basic.language.form_parts import ExpressionParser, SlotKind
from function_calls.basic.language.tokens import CLOSING, OPENING, Cursor, Kind, Token, behind_bracket
from function_calls.basic.nodes import At, Expression, Target

_SIGNS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_WORDS = frozenset({"LIKE", "ILIKE", "CONTAINS", "IN", "BETWEEN", "IS"})
_JOINS = frozenset({"AND", "OR"})
_STOPS = _WORDS | _JOINS | {"NOT"}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CONTINUE_OPERAND = _SIGNS | {"+", "-", "*", "/", "\\", "^", "&", ".", "["}
_HIGHEST = 60
"""Maximum height of a condition tree with its values; recursive functions over the tree rely on it."""
_MEANT = 'a condition compares columns with values, such as `status = "open" AND age > 18`'
_MOST_GROUPS = 30
_TOO_HIGH = "this condition is nested too deeply; split it"

ReadExpression = Callable[[Cursor], Expression]


def condition_at(cursor: Cursor, read: ReadExpression) -> Expression:
    """Parse the condition at the cursor to nested lists: `["and", ["status", "=", "open"], ["or", …]]`, also `["not",
    …]`. The outermost operator is "and" or "or". IS NULL becomes `=` with NULL; the value of IN is a list or an
    expression, that of BETWEEN a list of two. An expression without a comparison, such as a text, becomes a filter.
    `read` parses an expression. Raises ScriptError if the condition is invalid or too deeply nested."""
    found = _Reader(cursor, read).whole()
    if isinstance(found, _Bare):
        return filter_text(found.value)
    condition = found if _is_joined(found) else _list(found.at, "and", found)
    if _height(condition) > _HIGHEST:
        raise ScriptError(condition.at, Code.TOO_DEEP, _TOO_HIGH)
    return condition


@dataclass(frozen=True, slots=True)
class _Bare:
    """A value without a comparison."""

    value: Expression


@dataclass(slots=True)
class _Group:
    """The whole condition, or a part in parentheses."""

    at: At
    either: list[Expression | _Bare] = field(default_factory=list)
    """Operands of OR that are complete."""
    both: list[Expression | _Bare] = field(default_factory=list)
    """Operands of AND since the last OR."""
    negations: list[At] = field(default_factory=list)
    """Positions of NOT before the next operand."""

    def add(self, part: Expression | _Bare) -> None:
        while self.negations:
            part = _list(self.negations.pop(), "not", _compared(part))
        self.both.append(part)

    def next_or(self) -> None:
        """Complete an operand of OR."""
        self.either.append(_all("and", self.at, self.both))
        self.both = []

    def result(self) -> Expression | _Bare:
        self.next_or()
        return _all("or", self.at, self.either)


class _Reader:
    """Parser of one condition. Parentheses do not recurse, because conditions can be deeply nested."""

    def __init__(self, cursor: Cursor, read: ReadExpression) -> None:
        self._cursor = cursor
        self._read = read

    def whole(self) -> Expression | _Bare:
        """Parse the condition, or a value without a comparison. Raises ScriptError, for example for a missing
        parenthesis."""
        groups = [_Group(self._cursor.now.at)]
        while True:
            self._open(groups)
            part = self._comparison()
            while not self._goes_on(groups[-1], part):
                part = groups.pop().result()
                if not groups:
                    return part
                self._cursor.expect(")", "the condition in parentheses")

    def _open(self, groups: list[_Group]) -> None:
        """Consume NOT and opening parentheses, and add them to `groups`. Raises ScriptError for too many open
        parentheses."""
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
        """Add `part`; whether AND or OR follows."""
        group.add(part)
        if self._cursor.words("OR"):
            group.next_or()
            return True
        return self._cursor.words("AND")

    def _is_group(self) -> bool:
        """Whether the parenthesis here contains a condition, instead of beginning a value."""
        if not self._cursor.is_symbol("("):
            return False
        behind = self._cursor.tokens[behind_bracket(self._cursor.tokens, self._cursor.index)]
        return behind.kind is not Kind.SYMBOL or behind.text not in _CONTINUE_OPERAND

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
                cursor.fail(f"expected NULL or NOT NULL after IS, {cursor.found()}")
            return _list(at, _column(left), operator, nodes.Literal(at, None))
        value = self._range() if operator == "between" else self._members() if operator == "in" else self._operand()
        return _list(at, _column(left), negation + operator.removeprefix("i" if operator == "ilike" else ""), value)

    def _range(self) -> Expression:
        at, low = self._cursor.now.at, self._operand()
        if not self._cursor.words("AND"):
            self._cursor.fail(f"expected AND after BETWEEN, {self._cursor.found()}; write BETWEEN 1 AND 9")
        return nodes.ListOf(at, (low, self._operand()))

    def _members(self) -> Expression:
        cursor, at = self._cursor, self._cursor.now.at
        if not cursor.is_symbol("("):
            return self._operand()
        cursor.take()
        items = [self._read(cursor)]
        while cursor.symbol(","):
            items.append(self._read(cursor))
        cursor.expect(")", "the values of IN")
        return nodes.ListOf(at, tuple(items))

    def _operand(self) -> Expression:
        """Parse an expression that ends before the next comparison, AND or OR of this condition."""
        cursor = self._cursor
        length = self._operand_length()
        if not length:
            cursor.fail(f"expected a value, {cursor.found()}; {_MEANT}")
        tokens = [cursor.now, *(cursor.ahead(count) for count in range(1, length))]
        at = cursor.ahead(length).at
        inner = Cursor([*tokens, Token(Kind.LINE, "\n", None, at), Token(Kind.END, "", None, at)])
        found = self._read(inner)
        cursor.index += inner.index
        return found

    def _operand_length(self) -> int:
        """Number of tokens of the operand."""
        depth, count = 0, 0
        while True:
            token = self._cursor.ahead(count)
            if token.kind in (Kind.LINE, Kind.END):
                return count
            if token.kind is Kind.SYMBOL:
                depth += (token.text in OPENING) - (token.text in CLOSING)
                if depth < 0:
                    return count
            count += 1
            if depth == 0 and _stops(self._cursor.ahead(count)):
                return 0 if _stops_at_once(self._cursor.now) else count


def _turned(at: At, left: Expression, operator: str, right: Expression) -> Expression:
    """Build a comparison; a literal on the left is swapped with the column on the right."""
    if isinstance(left, nodes.Literal | nodes.Template) and isinstance(right, nodes.Name):
        return _list(at, _column(right), _TURNED[operator], left)
    return _list(at, _column(left), operator, right)


def _stops(token: Token) -> bool:
    if token.kind is Kind.SYMBOL:
        return token.text in _SIGNS or token.text == ","
    return token.kind is Kind.WORD and token.value in _STOPS


def _stops_at_once(token: Token) -> bool:
    """Whether no operand can begin here. Functions may share a name with operators: `CONTAINS(name, "x")`."""
    return (token.kind is Kind.SYMBOL and _stops(token)) or (token.kind is Kind.WORD and token.value in _JOINS)


def _compared(part: Expression | _Bare) -> Expression:
    """Convert a part of a condition; a single column is compared with TRUE. Raises ScriptError for another single
    value."""
    if not isinstance(part, _Bare):
        return part
    value = part.value
    if isinstance(value, nodes.Name | nodes.Member) or (isinstance(value, nodes.Apply) and not value.arguments):
        return _list(value.at, _column(value), "=", nodes.Literal(value.at, True))
    raise ScriptError(value.at, Code.SYNTAX, _MEANT)


def _all(word: str, at: At, parts: list[Expression | _Bare]) -> Expression | _Bare:
    return parts[0] if len(parts) == 1 else _list(at, word, *map(_compared, parts))


def _height(node: Expression) -> int:
    """Maximum nesting of lists and operators in the expression `node`, which counts as 1."""
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
    first = condition.items[0] if isinstance(condition, nodes.ListOf) else None
    return isinstance(first, nodes.Literal) and first.value in ("and", "or")


def _column(expression: Expression) -> Expression:
    return nodes.Literal(expression.at, _name_of(expression))


def _name_of(expression: Expression) -> str:
    names: list[str] = []
    of = expression
    while isinstance(of, nodes.Member):
        names.append(of.name)
        of = of.of
    if isinstance(of, nodes.Name):
        names.append(of.name)
    elif isinstance(of, nodes.Literal) and isinstance(of.value, str) and not names:
        return of.value
    elif isinstance(of, nodes.Apply) and not names:
        # A call such as `LOWER(name)` refers to a column; without arguments it is a column named like a function.
        inside = ", ".join(map(_name_of, of.arguments))
        return f"{of.name}({inside})" if of.arguments else of.name
    else:
        raise ScriptError(expression.at, Code.SYNTAX, _MEANT)
    return ".".join(reversed(names))


def _list(at: At, *items: Expression | str) -> nodes.ListOf:
    return nodes.ListOf(at, tuple(nodes.Literal(at, one) if isinstance(one, str) else one for one in items))


_IN_WORDS = frozenset("./\\-:*#@&")
"""Signs that are part of a word if no space surrounds them: `bot.gbdialog/weather.bas`, `follow-up`."""
_FORM_SLOTS_GO_ON = frozenset({"+", "&", "*", "/", "\\", "^", "(", "["})
"""Signs that make a preceding word the beginning of an expression."""
_GLUE = ("_", "-", ":", ".", "/", "#", " ", "@", "|")
"""Endings that mark an incomplete name."""
_DECLARES = frozenset({"PARAM", "EACH", "FOR", "HEAR"})
_DEFINES = frozenset({"SUB", "FUNCTION"})
_BEFORE_ASSIGNMENT = frozenset({"LET", "SET", "CONST", "THEN", "ELSE"})


class Absent(Exception):
    """Raised when the slot matches nothing at the cursor."""

    def __init__(self, what: str = "") -> None:
        super().__init__(what)
        self.what = what
        """Description of the missing part; empty for the slot itself."""


@dataclass(slots=True)
class Slots:
    """Parsers of slots at the cursor. Expressions are cached by token index when other forms are tried, so that the
    cost does not grow with nesting."""

    cursor: Cursor
    read: ExpressionParser
    starts: Container[str]
    """First words of all keywords."""
    known: dict[int, tuple[Expression, int]]
    """Parsed expression and end index, by start index."""
    conditions: dict[int, tuple[Expression, int]] = field(default_factory=dict)
    """The same for conditions."""

    def value(self) -> Expression:
        """Parse an expression. Raises Absent if none begins here, or ScriptError if its later part is invalid."""
        cursor, index = self.cursor, self.cursor.index
        if index in self.known:
            expression, cursor.index = self.known[index]
            return expression
        if not self._may_begin():
            raise Absent
        begin = cursor.now.at
        opens = cursor.is_symbol("(", "[", "{", "#{")
        try:
            expression = self.read.expression(cursor)
        except ScriptError as error:
            # An unclosed bracket is reported at the bracket, although the parser reads to the end of the line.
            is_open = opens and cursor.index > index and (cursor.is_line_end or cursor.is_symbol(","))
            if error.fault.at > begin or error.fault.code is not Code.SYNTAX or is_open:
                raise
            cursor.index = index
            raise Absent from None
        self.known[index] = expression, cursor.index
        return expression

    def quoted(self) -> Expression:
        """Parse a value that begins with a quoted text. Raises Absent if another token is at the cursor."""
        if self.cursor.now.kind is not Kind.TEXT:
            raise Absent
        return self.value()

    def values(self) -> Expression:
        """Parse one or more values separated by commas to a list; a later `*` is the text `*`. Raises Absent if a value
        is missing."""
        at = self.cursor.now.at
        items = [self.value()]
        while self.cursor.symbol(","):
            any_at = self.cursor.now.at
            items.append(nodes.Literal(any_at, "*") if self.cursor.symbol("*") else self.value())
        return nodes.ListOf(at, tuple(items))

    def one_of(self, words: tuple[str, ...]) -> Expression:
        """Parse one of `words`, quoted or not; returned in upper case. Raises Absent for another word or value."""
        token = self.cursor.now
        if token.kind is Kind.WORD and token.value in words:
            self.cursor.take()
            return nodes.Literal(token.at, token.value)
        if token.kind is Kind.TEXT:
            text = self.read.text(token)
            if isinstance(text, nodes.Literal) and str(text.value).upper() in words:
                self.cursor.take()
                return nodes.Literal(token.at, str(text.value).upper())
        raise Absent

    def word(self, *, before: Container[str], or_variable: bool = False) -> Expression:
        """Parse a bare word as written, or a value. `before`: signs that follow in the form and end the value. Raises
        Absent if neither begins here.
        `or_variable`: a word that the script has assigned before is a variable."""
        token = self.cursor.now
        if token.kind is Kind.TEXT and ("=" in before or self.cursor.ahead().text == "="):
            self.cursor.take()
            return self.read.text(token)
        if token.kind not in (Kind.WORD, Kind.NUMBER):
            return self.value()
        index = self.cursor.index
        text = self._run()
        if self.cursor.is_symbol(*_FORM_SLOTS_GO_ON) and self.cursor.now.text not in before:
            self.cursor.index = index
            return self.value()
        if or_variable and text == token.text and names_a_value(self.cursor, str(token.value), self.starts):
            return nodes.Name(token.at, str(token.value).lower())
        return nodes.Literal(token.at, text)

    def semicolon(self) -> Expression:
        """Parse `;` as TRUE. Raises Absent without it."""
        at = self.cursor.now.at
        if not self.cursor.symbol(";"):
            raise Absent
        return nodes.Literal(at, value=True)

    def key(self) -> Expression:
        """Parse the name of a stored value. A text before an operator is the whole name, as in `"visits" + 1`, unless
        it is incomplete: `"visits_" + user` is an expression. Raises Absent if no value begins here."""
        token = self.cursor.now
        if token.kind is not Kind.TEXT:
            return self.read.operand(self.cursor) if self.cursor.is_symbol("(") else self.value()
        text = self.read.text(token)
        is_whole = not isinstance(text, nodes.Literal) or not str(text.value).endswith(_GLUE)
        behind = self.cursor.ahead()
        joins = behind.kind is Kind.SYMBOL and behind.text in ("+", "&")
        if (joins and not is_whole) or (behind.kind is Kind.SYMBOL and behind.text in (".", "[")):
            return self.value()
        self.cursor.take()
        return text

    def name(self, *, before_names: bool = False) -> Expression:
        """Parse a table name. A bare word is a literal name, unless the script has assigned a variable of that name.
        `before_names`: the form continues with columns in parentheses. Raises Absent if no value begins here."""
        token, after = self.cursor.now, self.cursor.ahead()
        if token.kind is not Kind.WORD:
            return self.value()
        goes_on = after.kind is Kind.SYMBOL and (after.text in _FORM_SLOTS_GO_ON or after.text == ".")
        goes_on = goes_on and not (before_names and after.text == "(")
        if goes_on or names_a_value(self.cursor, str(token.value), self.starts):
            return self.value()
        self.cursor.take()
        return nodes.Literal(token.at, token.text)

    def assignments(self, *, of_rows: bool = False) -> Expression:
        """Parse `a = 1, b = 2` or `a AS 1, b AS 2` to a map. `of_rows`: names in the values may be columns. Raises
        Absent if there is no `=` or AS after a name."""
        cursor, at = self.cursor, self.cursor.now.at
        entries: list[tuple[str, Expression]] = []
        while True:
            token = cursor.now
            if token.kind not in (Kind.WORD, Kind.TEXT) or cursor.ahead().text.upper() not in ("=", "AS"):
                raise Absent
            key = self._key(cursor.take())
            cursor.take()
            value = self._assigned()
            entries.append((key, nodes.RowExpression(value.at, value) if of_rows else value))
            if not cursor.symbol(","):
                return nodes.MapOf(at, tuple(entries))

    def condition(self) -> Expression:
        """Parse a condition to `["and", ["column", "=", value], …]`; without a comparison it becomes a filter. Raises
        Absent if none begins here, or ScriptError if it is invalid."""
        cursor, index = self.cursor, self.cursor.index
        if index in self.conditions:
            condition, cursor.index = self.conditions[index]
            return condition
        if not self._may_begin():
            raise Absent
        condition = condition_at(cursor, self.read.expression)
        self.conditions[index] = condition, cursor.index
        return condition

    def block(self) -> Expression:
        """Parse the text between BEGIN … and END …. Raises Absent if there is no block."""
        cursor = self.cursor
        if cursor.now.kind is Kind.LINE and cursor.ahead().kind is Kind.BLOCK:
            cursor.take()
        if cursor.now.kind is not Kind.BLOCK:
            raise Absent
        return self.read.text(cursor.take())

    def target(self) -> Target:
        """Parse the target that receives the result. Raises Absent if there is no word here, or ScriptError if it is
        invalid."""
        if self.cursor.now.kind is not Kind.WORD:
            raise Absent
        return self.read.target(self.cursor)

    def _may_begin(self) -> bool:
        return not (self.cursor.is_line_end or self.cursor.is_symbol(",", ")", "]", "}", "="))

    def _assigned(self) -> Expression:
        try:
            return self.value()
        except Absent:
            raise Absent("a value") from None

    def _key(self, token: Token) -> str:
        if token.kind is Kind.WORD:
            return token.text
        text = self.read.text(token)
        if not isinstance(text, nodes.Literal):
            raise ScriptError(token.at, Code.SYNTAX, "a column name cannot contain `${}`")
        return str(text.value)

    def _run(self) -> str:
        """Consume tokens that are not separated by spaces; returns their text."""
        token = self.cursor.take()
        text, ends = token.text, token
        while True:
            token = self.cursor.now
            fits = token.kind in (Kind.WORD, Kind.NUMBER) or (token.kind is Kind.SYMBOL and token.text in _IN_WORDS)
            if token.at != ends.end or not fits:
                return text
            ends = self.cursor.take()
            text += ends.text


def names_a_value(cursor: Cursor, word: str, starts: Container[str]) -> bool:
    """Whether the variable `word` (in upper case) was assigned before the cursor a value that can name a table or
    a function. Rows cannot: after `customers = FIND customers` the word still names the table."""
    if cursor.table_variables is None:
        cursor.table_variables = _table_variables(cursor, starts)
    return cursor.table_variables.get(word, cursor.index) < cursor.index


def _table_variables(cursor: Cursor, starts: Container[str]) -> dict[str, int]:
    """Token index of the first assignment of a value that can name a table, by variable in upper case. Searches the
    whole script; the cursor is restored."""
    here, cursor.index = cursor.index, 0
    found: dict[str, int] = {}
    previous: Token | None = None
    is_header = False
    while cursor.now.kind is not Kind.END:
        token = cursor.take()
        if previous is None or previous.kind is Kind.LINE:
            is_header = token.kind is Kind.WORD and token.value in _DEFINES
        if token.kind is Kind.WORD and (is_header or _is_set(previous, cursor, starts)):
            found.setdefault(token.value, cursor.index - 1)
        previous = token
    cursor.index = here
    return found


def _is_set(previous: Token | None, cursor: Cursor, starts: Container[str]) -> bool:
    """Whether the word between `previous` and the cursor is assigned such a value."""
    if previous is not None and previous.kind is Kind.WORD and previous.value in _DECLARES:
        return True
    begins = previous is None or previous.kind is Kind.LINE or previous.value in _BEFORE_ASSIGNMENT
    if not begins or not cursor.is_symbol("="):
        return False
    value = cursor.ahead()
    return value.kind is not Kind.WORD or value.value not in starts


def _named(slots: Slots) -> nodes.MapOf:
    """Parse values, keyed by their source name: the variable, the last member of `a.b`, or the text in `a["b"]`.
    Unnamed values are `#1`, `#2` by position; a repeated name gets a suffix, `_2`."""
    at = slots.cursor.now.at
    entries: dict[str, Expression] = {}
    while True:
        value = slots.value()
        name = known = _form_columns_name_of(value) or f"#{len(entries) + 1}"
        count = 1
        while name in entries:
            count += 1
            name = f"{known}_{count}"
        entries[name] = value
        if not slots.cursor.symbol(","):
            return nodes.MapOf(at, tuple(entries.items()))


def _form_columns_name_of(value: Expression) -> str:
    if isinstance(value, nodes.Name | nodes.Member):
        return value.name
    if isinstance(value, nodes.Index) and isinstance(value.index, nodes.Literal) and isinstance(value.index.value, str):
        return value.index.value
    return ""


def _names(slots: Slots) -> nodes.ListOf:
    """Parse column names in parentheses, bare words or texts, to a list. Raises Absent, which names the missing part
    after `(`."""
    cursor, at = slots.cursor, slots.cursor.now.at
    if not cursor.symbol("("):
        raise Absent
    names: list[Expression] = []
    while True:
        token = cursor.now
        if token.kind not in (Kind.WORD, Kind.TEXT):
            raise Absent("a column name")
        names.append(
            nodes.Literal(token.at, cursor.take().text) if token.kind is Kind.WORD else slots.read.text(cursor.take())
        )
        if not cursor.symbol(","):
            break
    if not cursor.symbol(")"):
        raise Absent("`)`")
    return nodes.ListOf(at, tuple(names))


def _row(slots: Slots) -> nodes.ListOf:
    """Parse values in parentheses to a list. Raises Absent if a parenthesis or a value is missing."""
    cursor, at = slots.cursor, slots.cursor.now.at
    if not cursor.symbol("("):
        raise Absent
    values = [slots.value()]
    while cursor.symbol(","):
        values.append(slots.value())
    if not cursor.symbol(")"):
        raise Absent("`)`")
    return nodes.ListOf(at, tuple(values))


def _pair(slots: Slots) -> nodes.ListOf:
    """Parse `key = value` to a list of both; a value with a comparison needs parentheses. Raises Absent for another
    expression."""
    expression = slots.value()
    if not isinstance(expression, nodes.Binary) or expression.operator != "=":
        raise Absent
    return nodes.ListOf(expression.at, (expression.left, expression.right))


PARSERS: Mapping[SlotKind, Callable[[Slots], Expression]] = {
    SlotKind.VALUE: Slots.value,
    SlotKind.TEXT: Slots.quoted,
    SlotKind.LIST: Slots.values,
    SlotKind.SEMICOLON: Slots.semicolon,
    SlotKind.KEY: Slots.key,
    SlotKind.ASSIGNMENTS: Slots.assignments,
    SlotKind.CHANGES: lambda slots: slots.assignments(of_rows=True),
    SlotKind.CONDITION: Slots.condition,
    SlotKind.FILTER: lambda slots: filter_text(slots.value()),
    SlotKind.BLOCK: Slots.block,
    SlotKind.NAMED: _named,
    SlotKind.NAMES: _names,
    SlotKind.ROW: _row,
    SlotKind.PAIR: _pair,
}
"""Parsers of the slots that do not depend on their form; they raise like the methods of Slots."""
