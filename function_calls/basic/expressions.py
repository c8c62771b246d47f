"""Expressions: operators and what binds closer, operands, and the keywords that may stand for a value.

From the loosest to the closest: OR; AND; NOT; = <> < <= > >= IN LIKE IS; &; + -; MOD; \\; * /; a sign; ^. Operators
of one rank go from left to right, `^` from right to left."""

from __future__ import annotations

from typing import cast

from function_calls.basic.brackets import close, entries, items
from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.keyword_forms import KeywordForms
from function_calls.basic.lexer import tokens_inside
from function_calls.basic.nodes import (
    Apply,
    At,
    Binary,
    Expression,
    Index,
    IsNull,
    ListOf,
    Literal,
    MapOf,
    Member,
    Name,
    Operator,
    Target,
    Template,
    Unary,
)
from function_calls.basic.quoted import Part
from function_calls.basic.reading import HIGHEST, Reading
from function_calls.basic.tokens import Cursor, Kind, Token
from function_calls.basic.word_values import WordValues

_WORD, _NUMBER, _TEXT, _SYMBOL = Kind.WORD, Kind.NUMBER, Kind.TEXT, Kind.SYMBOL
_LOOSEST, _COMPARISON, _SIGN, _POWER, _CLOSEST = 1, 4, 10, 11, 12
_SYMBOL_RANKS = {
    "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "&": 5, "+": 6, "-": 6, "\\": 8, "*": 9, "/": 9, "^": _POWER,
}  # fmt: skip
_WORD_RANKS = {"OR": 1, "AND": 2, "IN": 4, "LIKE": 4, "IS": 4, "NOT": 4, "CONTAINS": 4, "MOD": 7}


class Expressions:
    """Reads the expressions of one script. All methods raise ScriptFault where something cannot be understood."""

    __slots__ = ("_brackets", "_reading", "_words", "height", "highest")

    def __init__(self, forms: KeywordForms, reading: Reading) -> None:
        self._reading = reading
        self._words = WordValues(forms, reading, self)
        self.height = 0
        """Of the expression that was read last."""
        self.highest = 0
        """Of those that were read since a keyword began."""
        self._brackets = {"(": self._group, "[": self._list, "{": self._map, "#{": self._map}

    def expression(self, cursor: Cursor) -> Expression:
        """The expression at the cursor, as long as it goes."""
        reading = self._reading
        reading.enter(cursor.now.at)
        try:
            found = self._climb(cursor, _LOOSEST)
        finally:
            reading.depth -= 1
        if self.height > self.highest:
            self.highest = self.height
        return found

    def operand(self, cursor: Cursor) -> Expression:
        """The same up to the first operator."""
        with self._reading.deeper(cursor.now.at):
            found = self._climb(cursor, _CLOSEST)
        self.highest = max(self.highest, self.height)
        return found

    def target(self, cursor: Cursor) -> Target:
        """What can be assigned to: a variable, a member, an item; `a(1)` is `a[1]`."""
        token = cursor.now
        if token.kind is not _WORD:
            cursor.fail(f"the name of a variable is missing, {cursor.found()}")
        cursor.index += 1
        found: Target = Name(token.at, token.text.lower())
        count = 0
        while cursor.now.kind is _SYMBOL:
            symbol = cursor.now
            if symbol.text == ".":
                cursor.index += 1
                found = Member(symbol.at, found, self._name(cursor))
            elif symbol.text in ("[", "("):
                for index in self.items(cursor, "]" if symbol.text == "[" else ")"):
                    found = Index(symbol.at, found, index)
                    count += 1
            else:
                break
            count += 1
            self.check_height(count, symbol.at)
        return found

    def text(self, token: Token) -> Expression:
        """The Literal or Template of a TEXT or a BLOCK."""
        parts = cast("tuple[Part, ...]", token.value)
        if len(parts) == 1 and isinstance(parts[0], str):
            return Literal(token.at, parts[0])
        found: list[Expression] = []
        height = 0
        for part in parts:
            if isinstance(part, str):
                found.append(Literal(token.at, part))
                continue
            tokens, faults = tokens_inside(part)
            if faults:
                raise ScriptFault(*faults[0][:3])
            cursor = Cursor(tokens)
            if cursor.is_line_end:
                cursor.fail("nothing stands in `${}`; the name of a variable belongs there", at=part.at)
            found.append(self.expression(cursor))
            height = max(height, self.height)
            if not cursor.is_line_end:
                cursor.fail(f"`}}` is missing, {cursor.found()}; `${{…}}` holds one value")
        self.height = height + 1
        return Template(token.at, tuple(found))

    def compared(self, cursor: Cursor) -> Expression:
        """What begins at the cursor, with all operators that bind closer than NOT."""
        return self._climb(cursor, _COMPARISON)

    # Operators

    def _climb(self, cursor: Cursor, least: int) -> Expression:
        """What begins at the cursor, with all operators that bind at least so closely."""
        left = self._operand(cursor)
        while True:
            token = cursor.now
            if token.kind is _SYMBOL:
                rank = _SYMBOL_RANKS.get(token.text, 0)
            elif token.kind is _WORD:
                rank = _WORD_RANKS.get(token.value, 0)
            else:
                return left
            if rank < least or not rank:
                return left
            height = self.height
            if rank == _COMPARISON and token.kind is _WORD:
                left = self._comparison(cursor, token, left)
            else:
                cursor.index += 1
                right = self._right(cursor, token, rank)
                operator = token.text if token.kind is _SYMBOL else token.value.lower()
                left = Binary(token.at, cast("Operator", operator), left, right)
            self.height = (height if height > self.height else self.height) + 1
            if self.height > HIGHEST:
                self.check_height(self.height, token.at)

    def _right(self, cursor: Cursor, operator: Token, rank: int) -> Expression:
        if cursor.is_line_end or (cursor.now.kind is _SYMBOL and cursor.now.text in (")", "]", "}", ",")):
            cursor.fail(f"a value is missing behind `{operator.text}`, {cursor.found()}")
        if rank != _POWER:
            return self._climb(cursor, rank + 1)
        with self._reading.deeper(operator.at):
            return self._climb(cursor, rank)

    def _comparison(self, cursor: Cursor, token: Token, left: Expression) -> Expression:
        """`IN` and `LIKE`, both also with NOT, CONTAINS, and IS."""
        cursor.index += 1
        if token.value == "IS":
            return self._is_null(cursor, token, left)
        operator = token
        if token.value == "NOT":
            operator = cursor.now
            if not cursor.words("IN") and not cursor.words("LIKE"):
                cursor.fail("an operator is missing before NOT: AND NOT, OR NOT, or NOT IN, NOT LIKE", at=token.at)
        right = self._right(cursor, operator, _COMPARISON)
        if operator.value == "CONTAINS":
            self._reading.check_call(token.at, "contains", 2)
            return Apply(token.at, "contains", (left, right))
        found = Binary(token.at, cast("Operator", operator.value.lower()), left, right)
        return Unary(token.at, "not", found) if token.value == "NOT" else found

    def _is_null(self, cursor: Cursor, token: Token, left: Expression) -> Expression:
        negated = cursor.words("NOT")
        if not cursor.words("NULL") and not cursor.words("NOTHING"):
            cursor.fail("behind IS stands NULL or NOT NULL; to compare values write `=` or `<>`", at=token.at)
        return IsNull(token.at, left, negated)

    # Operands

    def _operand(self, cursor: Cursor) -> Expression:
        token = cursor.now
        kind = token.kind
        self.height = 0
        if kind is _WORD:
            found = self._words.value(cursor, token)
        elif kind is _TEXT:
            cursor.index += 1
            found = self.text(token)
        elif kind is _NUMBER:
            cursor.index += 1
            found = Literal(token.at, token.value)
        elif kind is _SYMBOL and token.text in self._brackets:
            found = self._brackets[token.text](cursor)
        elif kind is _SYMBOL and token.text in ("-", "+"):
            return self._signed(cursor, token)
        else:
            cursor.fail(f"a value is missing, {cursor.found()}")
        following = cursor.now
        if following.kind is _SYMBOL and following.text in (".", "["):
            return self._members(cursor, found)
        return found

    def _signed(self, cursor: Cursor, token: Token) -> Expression:
        cursor.index += 1
        with self._reading.deeper(token.at):
            operand = self._climb(cursor, _SIGN)
        if token.text == "+":
            return operand
        if isinstance(operand, Literal) and isinstance(operand.value, int | float) and operand.value is not True:
            return Literal(token.at, -operand.value)
        self.height += 1
        return Unary(token.at, "-", operand)

    def _members(self, cursor: Cursor, found: Expression) -> Expression:
        while cursor.now.kind is _SYMBOL and cursor.now.text in (".", "["):
            symbol, height, links = cursor.now, self.height, 1
            if symbol.text == ".":
                cursor.index += 1
                word = cursor.now
                name = self._name(cursor)
                if cursor.is_symbol("("):
                    arguments = (found, *self.items(cursor, ")"))
                    self._reading.check_call(word.at, name.lower(), len(arguments))
                    found = Apply(word.at, name.lower(), arguments)
                else:
                    self.height = 0
                    found = Member(symbol.at, found, name)
            else:
                for index in self.items(cursor, "]"):
                    found = Index(symbol.at, found, index)
                    links += 1
                links -= 1
            self.height = max(height, self.height) + links
            self.check_height(self.height, symbol.at)
        return found

    # Brackets

    def _group(self, cursor: Cursor) -> Expression:
        opener = cursor.take()
        found = self.expression(cursor)
        close(cursor, opener, ")")
        return found

    def _list(self, cursor: Cursor) -> Expression:
        at, height = cursor.now.at, 0
        found: list[Expression] = []
        for item in items(cursor, self.expression, "]", may_end_in_comma=True):
            found.append(item)
            height = max(height, self.height)
        self.height = height + 1
        return ListOf(at, tuple(found))

    def _map(self, cursor: Cursor) -> Expression:
        at, height = cursor.now.at, 0
        found: list[tuple[str, Expression]] = []
        for entry in entries(cursor, self.expression):
            found.append(entry)
            height = max(height, self.height)
        self.height = height + 1
        return MapOf(at, tuple(found))

    def items(self, cursor: Cursor, closer: str) -> tuple[Expression, ...]:
        """Arguments, or what stands in an index."""
        at, height = cursor.now.at, 0
        found: list[Expression] = []
        for item in items(cursor, self.expression, closer):
            found.append(item)
            height = max(height, self.height)
        if not found and closer == "]":
            cursor.fail("an index is missing between `[` and `]`", at=at)
        self.height = height + 1
        return tuple(found)

    def _name(self, cursor: Cursor) -> str:
        if cursor.now.kind is not _WORD:
            cursor.fail(f"a name is missing behind `.`, {cursor.found()}")
        return cursor.take().text

    def check_height(self, height: int, at: At) -> None:
        if height > HIGHEST:
            told = (
                f"more than {HIGHEST} operators or members follow one another here; divide this into several statements"
            )
            raise ScriptFault(at, Code.TOO_DEEP, told)
