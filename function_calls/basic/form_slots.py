"""What the slots of forms take: words, tables' names, assignments and conditions, beside plain values."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Protocol

from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.conditions import condition_at
from function_calls.basic.nodes import Expression, ListOf, Literal, MapOf, OfRow, Target
from function_calls.basic.tokens import Cursor, Kind, Token

_IN_WORDS = frozenset("./\\-:*#@&")
"""Signs that belong to a word where no space is around them: `bot.gbdialog/weather.bas`, `follow-up`."""
_GO_ON = frozenset({"+", "&", "*", "/", "\\", "^", "(", "["})
"""Behind a word, these make it the beginning of an expression."""
_GLUE = ("_", "-", ":", ".", "/", "#", " ", "@", "|")
"""A name of which more follows ends in one of these."""
_DECLARES = frozenset({"PARAM", "EACH", "FOR", "HEAR"})
_DEFINES = frozenset({"SUB", "FUNCTION"})
_BEFORE_ASSIGNMENT = frozenset({"LET", "SET", "CONST", "THEN", "ELSE"})


class Reads(Protocol):
    """What reads the expressions in a statement; all raise ScriptFault."""

    def expression(self, cursor: Cursor) -> Expression:
        """The expression that begins here, as long as it goes."""

    def operand(self, cursor: Cursor) -> Expression:
        """The same up to the first operator."""

    def target(self, cursor: Cursor) -> Target:
        """What can be assigned to."""

    def text(self, token: Token) -> Expression:
        """The Literal or Template of a TEXT or BLOCK."""


class Absent(Exception):
    """The slot could take nothing where the cursor stands."""

    def __init__(self, what: str = "") -> None:
        super().__init__(what)
        self.what = what
        """What is missing; empty: what the slot takes."""


@dataclass(slots=True)
class Slots:
    """Reads slots where the cursor stands. What was read once as an expression is not read again when another form is
    tried, so the effort does not grow with the depth of a statement."""

    cursor: Cursor
    read: Reads
    starts: Container[str]
    """The first words of all keywords."""
    known: dict[int, tuple[Expression, int]]
    """What begins at an index, and where it ends."""
    conditions: dict[int, tuple[Expression, int]] = field(default_factory=dict)
    """The same of conditions."""

    def value(self) -> Expression:
        """An expression. Raises Absent where none begins, ScriptFault where one goes wrong behind its beginning."""
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
        except ScriptFault as error:
            # A bracket that is not closed is told where it stands, though it is read up to the end of the line.
            is_open = opens and cursor.index > index and (cursor.is_line_end or cursor.is_symbol(","))
            if error.fault.at > begin or error.fault.code is not Code.SYNTAX or is_open:
                raise
            cursor.index = index
            raise Absent from None
        self.known[index] = expression, cursor.index
        return expression

    def quoted(self) -> Expression:
        """A value that begins with a text in quotes."""
        if self.cursor.now.kind is not Kind.TEXT:
            raise Absent
        return self.value()

    def values(self) -> Expression:
        """One or more, with commas between them."""
        at = self.cursor.now.at
        items = [self.value()]
        while self.cursor.symbol(","):
            items.append(self.value())
        return ListOf(at, tuple(items))

    def one_of(self, words: tuple[str, ...]) -> Expression:
        """One of `words`, which may be quoted, in upper case."""
        token = self.cursor.now
        if token.kind is Kind.WORD and token.value in words:
            self.cursor.take()
            return Literal(token.at, token.value)
        if token.kind is Kind.TEXT:
            text = self.read.text(token)
            if isinstance(text, Literal) and str(text.value).upper() in words:
                self.cursor.take()
                return Literal(token.at, str(text.value).upper())
        raise Absent

    def word(self, *, before: Container[str]) -> Expression:
        """A word as it is written. `before`: the signs that the form has next, before which the value ends."""
        token = self.cursor.now
        if token.kind is Kind.TEXT and "=" in before:
            self.cursor.take()
            return self.read.text(token)
        if token.kind not in (Kind.WORD, Kind.NUMBER):
            return self.value()
        index = self.cursor.index
        text = self._run()
        if self.cursor.is_symbol(*_GO_ON) and self.cursor.now.text not in before:
            self.cursor.index = index
            return self.value()
        return Literal(token.at, text)

    def semicolon(self) -> Expression:
        """TRUE where one stands."""
        at = self.cursor.now.at
        if not self.cursor.symbol(";"):
            raise Absent
        return Literal(at, value=True)

    def key(self) -> Expression:
        """A value under whose name something is kept. A text is the whole of it where an operator follows, so that
        `"visits" + 1` counts up what is kept under `visits`; but a text that ends in the middle of a name, `"visits_" +
        user`, is the beginning of one."""
        token = self.cursor.now
        if token.kind is not Kind.TEXT:
            return self.read.operand(self.cursor) if self.cursor.is_symbol("(") else self.value()
        text = self.read.text(token)
        is_whole = not isinstance(text, Literal) or not str(text.value).endswith(_GLUE)
        behind = self.cursor.ahead()
        joins = behind.kind is Kind.SYMBOL and behind.text in ("+", "&")
        if (joins and not is_whole) or (behind.kind is Kind.SYMBOL and behind.text in (".", "[")):
            return self.value()
        self.cursor.take()
        return text

    def name(self, *, before_names: bool = False) -> Expression:
        """The name of a table: a bare word means itself, unless the script has set a variable of that name.
        `before_names`: the form has columns in parentheses next."""
        token, after = self.cursor.now, self.cursor.ahead()
        if token.kind is not Kind.WORD:
            return self.value()
        goes_on = after.kind is Kind.SYMBOL and (after.text in _GO_ON or after.text == ".")
        goes_on = goes_on and not (before_names and after.text == "(")
        if goes_on or names_a_value(self.cursor, str(token.value), self.starts):
            return self.value()
        self.cursor.take()
        return Literal(token.at, token.text)

    def assignments(self, *, of_rows: bool = False) -> Expression:
        """`a = 1, b = 2`, or `a AS 1, b AS 2`, as a map. `of_rows`: names in the values may be columns."""
        cursor, at = self.cursor, self.cursor.now.at
        entries: list[tuple[str, Expression]] = []
        while True:
            token = cursor.now
            if token.kind not in (Kind.WORD, Kind.TEXT) or cursor.ahead().text.upper() not in ("=", "AS"):
                raise Absent
            key = self._key(cursor.take())
            cursor.take()
            value = self._assigned()
            entries.append((key, OfRow(value.at, value) if of_rows else value))
            if not cursor.symbol(","):
                return MapOf(at, tuple(entries))

    def condition(self) -> Expression:
        """`["and", ["column", "=", value], …]`; what is no comparison, such as a text, as it is."""
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
        """What stands between BEGIN … and END …."""
        cursor = self.cursor
        if cursor.now.kind is Kind.LINE and cursor.ahead().kind is Kind.BLOCK:
            cursor.take()
        if cursor.now.kind is not Kind.BLOCK:
            raise Absent
        return self.read.text(cursor.take())

    def target(self) -> Target:
        """What receives the result."""
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
        if not isinstance(text, Literal):
            raise ScriptFault(token.at, Code.SYNTAX, "a column's name cannot have `${}`")
        return str(text.value)

    def _run(self) -> str:
        """The tokens from here on that no space separates."""
        token = self.cursor.take()
        text, ends = token.text, token
        while True:
            token = self.cursor.now
            touches = token.at == (ends.at.line, ends.at.column + len(ends.text))
            fits = token.kind in (Kind.WORD, Kind.NUMBER) or (token.kind is Kind.SYMBOL and token.text in _IN_WORDS)
            if not touches or not fits:
                return text
            ends = self.cursor.take()
            text += ends.text


def names_a_value(cursor: Cursor, word: str, starts: Container[str]) -> bool:
    """Whether something before the cursor gives the variable `word`, in upper case, what can name a table. The rows of
    a keyword cannot: behind `customers = FIND customers` the word goes on to mean the table."""
    if cursor.given is None:
        cursor.given = _given(cursor, starts)
    return cursor.given.get(word, cursor.index) < cursor.index


def _given(cursor: Cursor, starts: Container[str]) -> dict[str, int]:
    """Where each variable first gets such a value. The cursor stands where it stood."""
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
    """Whether the word between `previous` and the cursor is given such a value there."""
    if previous is not None and previous.kind is Kind.WORD and previous.value in _DECLARES:
        return True
    begins = previous is None or previous.kind is Kind.LINE or previous.value in _BEFORE_ASSIGNMENT
    if not begins or not cursor.is_symbol("="):
        return False
    value = cursor.ahead()
    return value.kind is not Kind.WORD or value.value not in starts
