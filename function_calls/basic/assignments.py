"""Assignments: `x = 1`, LET, SET, `x += 1`, and DIM."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, cast

from function_calls.basic.expressions import Expressions
from function_calls.basic.nodes import (
    Apply,
    Assign,
    At,
    Binary,
    Dim,
    Expression,
    Literal,
    MapOf,
    Name,
    Operator,
    Statement,
)
from function_calls.basic.reading import Reading
from function_calls.basic.survey import is_assignment
from function_calls.basic.tokens import Cursor, Kind, Token

_STARTS: dict[str, Callable[[At], Expression]] = {
    **dict.fromkeys(("STRING", "TEXT", "CHAR", "VARCHAR"), lambda at: Literal(at, "")),
    **dict.fromkeys(
        ("NUMBER", "INTEGER", "INT", "LONG", "SINGLE", "DOUBLE", "FLOAT", "DECIMAL", "CURRENCY"),
        lambda at: Literal(at, 0),
    ),
    **dict.fromkeys(("BOOLEAN", "BOOL"), lambda at: Literal(at, value=False)),
    **dict.fromkeys(("OBJECT", "MAP", "DICTIONARY"), lambda at: MapOf(at, ())),
    **dict.fromkeys(("DATE", "DATETIME", "TIME", "VARIANT", "ANY"), lambda at: Literal(at, None)),
}
"""With what a variable of such a type begins; of all others with an empty list."""


class Assignments:
    """Reads them."""

    __slots__ = ("_read", "_reading")

    def __init__(self, reading: Reading, read: Expressions) -> None:
        self._reading = reading
        self._read = read

    def is_here(self, cursor: Cursor) -> bool:
        """Whether an assignment begins at the cursor."""
        return is_assignment(cursor.tokens, cursor.index)

    def simple(self, cursor: Cursor, into: list[Statement]) -> None:
        """`name = value`."""
        token = cursor.take()
        cursor.index += 1
        into.append(Assign(token.at, Name(token.at, token.text.lower()), self._value(cursor, token.at, token.text)))

    def assign(self, cursor: Cursor, into: list[Statement], at: At | None = None) -> None:
        """`target = value`, or with an operator before the `=`. `at` is where the statement begins."""
        first = cursor.now
        target = self._read.target(cursor)
        operator = "" if cursor.symbol("=") else cursor.take().text
        if operator:
            cursor.index += 1
        value = self._value(cursor, first.at, first.text if isinstance(target, Name) else "")
        if operator:
            value = Binary(first.at, cast("Operator", operator), target, value)
        into.append(Assign(at or first.at, target, value))

    def let(self, cursor: Cursor, into: list[Statement]) -> None:
        """LET target = value."""
        token = cursor.take()
        if cursor.now.kind is not Kind.WORD or not self.is_here(cursor):
            cursor.fail(f"behind LET stands `name = value`, {cursor.found()}")
        self.assign(cursor, into, token.at)

    def const(self, cursor: Cursor, into: list[Statement]) -> None:
        """CONST of one or more names, which then are variables like others."""
        token = cursor.take()
        while True:
            if cursor.now.kind is not Kind.WORD or cursor.ahead().text != "=":
                cursor.fail(f"behind CONST stands `name = value`, {cursor.found()}")
            self.assign(cursor, into, token.at)
            if not cursor.symbol(","):
                return

    def set(self, cursor: Cursor, into: list[Statement]) -> bool:
        """SET target = value; whether it is that and no keyword such as SET CONTEXT."""
        if cursor.ahead().kind is not Kind.WORD or not is_assignment(cursor.tokens, cursor.index + 1):
            return False
        token = cursor.take()
        self.assign(cursor, into, token.at)
        return True

    def dim(self, cursor: Cursor, into: list[Statement]) -> None:
        """DIM and REDIM of one or more variables."""
        token = cursor.take()
        if token.value == "REDIM" and cursor.is_at("PRESERVE"):
            cursor.fail("REDIM PRESERVE is not needed: a list grows by itself; write PUSH list, value")
        while True:
            self._declare(cursor, token, into)
            if not cursor.symbol(","):
                return

    def _declare(self, cursor: Cursor, token: Token, into: list[Statement]) -> None:
        name = cursor.now
        if name.kind is not Kind.WORD:
            cursor.fail(f"the name of a variable is missing behind {token.value}, {cursor.found()}")
        cursor.index += 1
        size = self._size(cursor, name.text)
        start = self._start(cursor)
        target = Name(name.at, name.text.lower())
        if cursor.symbol("="):
            into.append(Assign(token.at, target, self._value(cursor, name.at, name.text)))
        elif start is not None and size is None:
            into.append(Assign(token.at, target, start))
        else:
            into.append(Dim(token.at, target.name, size))

    def _size(self, cursor: Cursor, name: str) -> Expression | None:
        closer = {"(": ")", "[": "]"}.get(cursor.now.text) if cursor.now.kind is Kind.SYMBOL else None
        if closer is None:
            return None
        opener = cursor.take()
        if cursor.symbol(closer):
            return None
        size = self._read.expression(cursor)
        if cursor.words("TO"):
            size = self._read.expression(cursor)
        if cursor.is_symbol(","):
            cursor.fail(f"a list has one size; for a table give {name} lists as items: {name}[0] = [1, 2]")
        cursor.expect(closer, f"the size of {name} (`{opener.text}`)")
        return size

    def _start(self, cursor: Cursor) -> Expression | None:
        if not cursor.words("AS"):
            return None
        cursor.words("NEW")
        token = cursor.now
        if token.kind is not Kind.WORD:
            cursor.fail(f"a type is missing behind AS, {cursor.found()}")
        cursor.index += 1
        if cursor.symbol("("):
            cursor.expect(")", "the type")
        make = _STARTS.get(token.value)
        return make(token.at) if make else None

    def _value(self, cursor: Cursor, at: At, name: str) -> Expression:
        if cursor.is_line_end:
            self._missing(cursor)
        value = self._read.expression(cursor)
        # `today = TODAY` means the function: the variable has no value yet that it could be given.
        if isinstance(value, Name) and value.name == name.lower() and self._reading.takes_none(value.name):
            return Apply(value.at, value.name, ())
        return value

    def _missing(self, cursor: Cursor) -> NoReturn:
        cursor.fail(f"a value is missing behind `=`, {cursor.found()}")
