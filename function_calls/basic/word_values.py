"""What a word stands for in an expression: a constant, a variable, the call of a function, a keyword, NOT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.keyword_forms import KeywordForms, Reads, words_of
from function_calls.basic.nodes import Apply, At, Expression, Index, ListOf, Literal, MapOf, Name, Unary
from function_calls.basic.reading import Reading
from function_calls.basic.tokens import Cursor, Kind, Token

_WORD, _NUMBER, _TEXT, _SYMBOL = Kind.WORD, Kind.NUMBER, Kind.TEXT, Kind.SYMBOL
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None, "NOTHING": None}
_NO_OPERANDS = frozenset(["THEN", "ELSE", "ELSEIF", "AND", "OR", "MOD", "LIKE", "IS"])
_NO_OPERANDS_UNLESS_VARIABLES = frozenset(["IN", "TO", "STEP", "AS"])
_ENDS_OPERAND = _NO_OPERANDS | _NO_OPERANDS_UNLESS_VARIABLES
_BEGIN_STATEMENTS = frozenset(["IF", "FOR", "WHILE", "WEND", "LOOP", "GOTO", "GOSUB", "ENDIF", "DIM", "LET", "RETURN"])
"""A value of such a name would be a statement that lost its line."""
_OF_A_KEYWORD = 5
"""A keyword in an expression counts like so many brackets: reading its form takes that much more of the stack."""


def _no_entries(at: At) -> Expression:
    return MapOf(at, ())


def _no_items(at: At) -> Expression:
    return ListOf(at, ())


_EMPTY = {
    "OBJECT": _no_entries, "MAP": _no_entries, "DICTIONARY": _no_entries, "ARRAY": _no_items, "LIST": _no_items,
}  # fmt: skip


class Operands(Reads, Protocol):
    """What reads the rest of an expression."""

    height: int
    """Of what was read last."""
    highest: int
    """Of all that was read since a keyword began."""

    def compared(self, cursor: Cursor) -> Expression:
        """What begins at the cursor, with all operators that bind closer than NOT."""

    def items(self, cursor: Cursor, closer: str) -> tuple[Expression, ...]:
        """The values in the brackets at the cursor."""

    def check_height(self, height: int, at: At) -> None:
        """Raise ScriptFault where too much stands on top of one another."""


class WordValues:
    """Reads them."""

    __slots__ = ("_forms", "_read", "_reading", "_special", "_words")

    def __init__(self, forms: KeywordForms, reading: Reading, read: Operands) -> None:
        self._forms = forms
        self._reading = reading
        self._read = read
        self._words = words_of(forms.names)
        self._special: dict[str, Callable[[Cursor, Token], Expression | None]] = {
            "NOT": self._not,
            "NEW": self._new,
            "CREATE": self._new,
            "CALL": self._called,
            "ERROR": self._error,
        }

    def value(self, cursor: Cursor, token: Token) -> Expression:
        """The value that begins with the word `token` at the cursor. Raises ScriptFault."""
        value = token.value
        if value in _CONSTANTS:
            cursor.index += 1
            return Literal(token.at, _CONSTANTS[value])
        reading = self._reading
        name = token.text.lower()
        following = cursor.ahead()
        calls = following.kind is _SYMBOL and following.text == "("
        if calls and reading.knows(name) and not (value in self._words.first and _goes_on_with_as(cursor)):
            return self._call(cursor, token)
        if value in self._special and (special := self._special[value](cursor, following)) is not None:
            return special
        if value in self._words.first and (want := self._keyword(cursor, token, following)) is not None:
            return want
        if value in _NO_OPERANDS or (value in _NO_OPERANDS_UNLESS_VARIABLES and name not in reading.variables):
            cursor.fail(f"a value is missing before {value}")
        if value in _BEGIN_STATEMENTS and name not in reading.variables:
            if value == "IF" and following.kind not in (Kind.LINE, Kind.END):
                cursor.fail("IF gives no value; write IIF(condition, value, otherwise)")
            cursor.fail(f"a value is missing, where {value} stands, which begins a statement of its own")
        if calls:
            return self._call(cursor, token)
        cursor.index += 1
        if name not in reading.variables and reading.takes_none(name):
            return Apply(token.at, name, ())
        return Name(token.at, name)

    def _call(self, cursor: Cursor, token: Token) -> Expression:
        """`name(…)`; of a variable that is no function it is an index."""
        cursor.index += 1
        name = token.text.lower()
        arguments = self._read.items(cursor, ")")
        if not self._reading.knows(name) and name in self._reading.variables and arguments:
            self._read.height += len(arguments)
            self._read.check_height(self._read.height, token.at)
            found: Expression = Name(token.at, name)
            for index in arguments:
                found = Index(token.at, found, index)
            return found
        self._reading.check_call(token.at, name, len(arguments), arguments)
        return Apply(token.at, name, arguments)

    def _keyword(self, cursor: Cursor, token: Token, following: Token) -> Expression | None:
        """The keyword that begins at the cursor; None where the word is a variable."""
        needs_nothing = not _begins_value(token, following)
        if token.text.lower() in self._reading.variables and (
            needs_nothing or not (following.kind is _TEXT or f"{token.value} {following.value}" in self._words.pairs)
        ):
            return None
        index, highest = cursor.index, self._read.highest
        self._read.highest = 0
        try:
            with self._reading.deeper(token.at, _OF_A_KEYWORD):
                matched = self._forms.match(cursor, self._read, inside=True)
        except ScriptFault as error:
            if not needs_nothing or error.fault.code is Code.TOO_DEEP:
                raise
            matched = None
        finally:
            self._read.height, self._read.highest = self._read.highest + 2, highest
        if matched is None:
            cursor.index = index
            self._read.height = 0
            return None
        self._read.check_height(self._read.height, token.at)
        if matched.into is not None:
            cursor.fail(
                f"{matched.want.keyword} names the variable itself that it gives something; write it alone", at=token.at
            )
        return matched.want

    def _not(self, cursor: Cursor, following: Token) -> Expression:
        at = cursor.take().at
        with self._reading.deeper(at):
            operand = self._read.compared(cursor)
        self._read.height += 1
        return Unary(at, "not", operand)

    def _new(self, cursor: Cursor, following: Token) -> Expression | None:
        """`NEW OBJECT`, `CREATE ARRAY`."""
        made = _EMPTY.get(following.value) if following.kind is _WORD else None
        if made is None:
            return None
        at = cursor.take().at
        cursor.index += 1
        if cursor.is_symbol("("):
            self._read.items(cursor, ")")
        return made(at)

    def _called(self, cursor: Cursor, following: Token) -> Expression | None:
        """`CALL name(…)` of what the script or the language has; all other CALLs are a keyword."""
        if following.kind is not _WORD or not self._reading.knows(following.text.lower()):
            return None
        cursor.index += 1
        if cursor.ahead().kind is _SYMBOL and cursor.ahead().text == "(":
            return self._call(cursor, following)
        cursor.index += 1
        self._reading.check_call(following.at, following.text.lower(), 0)
        return Apply(following.at, following.text.lower(), ())

    def _error(self, cursor: Cursor, following: Token) -> Expression | None:
        """`ERROR MESSAGE`, what the last error said."""
        if following.kind is not _WORD or following.value != "MESSAGE":
            return None
        at = cursor.take().at
        cursor.index += 1
        return Name(at, "error_message")


def _goes_on_with_as(cursor: Cursor) -> bool:
    """Whether AS stands behind the parentheses, as in `FORMAT (a + b) AS "0.00"`: that is a keyword, no call."""
    depth, count = 0, 1
    while (token := cursor.ahead(count)).kind not in (Kind.LINE, Kind.END):
        if token.kind is _SYMBOL and token.text == "(":
            depth += 1
        elif token.kind is _SYMBOL and token.text == ")":
            depth -= 1
            if not depth:
                following = cursor.ahead(count + 1)
                return following.kind is _WORD and following.value == "AS"
        count += 1
    return False


def _begins_value(word: Token, following: Token) -> bool:
    """Whether a value could begin with the token behind a word, so that the word rather is a keyword."""
    if following.kind is _SYMBOL:
        touches = following.at == (word.at.line, word.at.column + len(word.text))
        return following.text in ("(", "{", "#{") or (following.text == "[" and not touches)
    if following.kind is _WORD:
        return following.value not in _ENDS_OPERAND
    return following.kind in (_TEXT, _NUMBER, Kind.BLOCK)
