"""Calls that are statements: of a SUB, a FUNCTION or a function of the language."""

from __future__ import annotations

from function_calls.basic.codes import ScriptFault
from function_calls.basic.expressions import Expressions
from function_calls.basic.keyword_forms import KeywordWords
from function_calls.basic.nodes import Apply, Evaluate, Expression, Member, Statement
from function_calls.basic.open_blocks import is_over
from function_calls.basic.reading import Reading
from function_calls.basic.tokens import Cursor, Kind, Token


class Calls:
    """Reads them. All methods raise ScriptFault where something cannot be understood."""

    __slots__ = ("_read", "_reading", "_words")

    def __init__(self, reading: Reading, read: Expressions, words: KeywordWords) -> None:
        self._reading = reading
        self._read = read
        self._words = words

    def call(self, cursor: Cursor, into: list[Statement]) -> bool:
        """CALL of a SUB, a FUNCTION or a function of the language; whether it is that and not the keyword CALL."""
        token, named = cursor.now, cursor.ahead()
        if named.kind is not Kind.WORD or not self._reading.knows(named.text.lower()):
            if named.kind is Kind.WORD and "CALL" not in self._words.first:
                raise ScriptFault(*self._reading.no_function(named.at, named.text.lower())[:3])
            return False
        cursor.index += 1
        into.append(Evaluate(token.at, self.called(cursor)))
        return True

    def function(self, cursor: Cursor, token: Token, following: Token, into: list[Statement]) -> bool:
        """The call of a function: `name(…)`, `x.name(…)`, and `name …` where there is such a function; whether it is
        one."""
        is_known = token.text.lower() in self._reading.functions
        if following.kind is Kind.SYMBOL and following.text in ("(", ".", "["):
            if is_known or following.text != "(" or token.text.lower() in self._reading.variables:
                found = self._read.expression(cursor)
                if not isinstance(found, Apply | Member):
                    cursor.fail("this has a value, but nothing becomes of it; write `name = …` to keep it", at=token.at)
                into.append(Evaluate(token.at, found))
                return True
        elif is_known:
            into.append(Evaluate(token.at, self.called(cursor)))
            return True
        return False

    def called(self, cursor: Cursor) -> Expression:
        """`name(…)`, `name a, b` or `name`."""
        token, following = cursor.now, cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text == "(":
            return self._read.expression(cursor)
        cursor.index += 1
        arguments: list[Expression] = []
        while not is_over(cursor):
            arguments.append(self._read.expression(cursor))
            if not cursor.symbol(","):
                break
        name = token.text.lower()
        self._reading.check_call(token.at, name, len(arguments))
        return Apply(token.at, name, tuple(arguments))
