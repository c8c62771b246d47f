"""Expressions: operators and what binds closer, operands, and the keywords that may stand for a value.

From the loosest to the closest: OR; AND; NOT; = <> < <= > >= IN LIKE IS; &; + -; MOD; \\; * /; a sign; ^. Operators
of one rank go from left to right, `^` from right to left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, cast

from function_calls.basic.brackets import close, entries, items
from function_calls.basic.codes import Code, ScriptFault
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
    Want,
)
from function_calls.basic.quoted import Part
from function_calls.basic.reading import HIGHEST, Reading
from function_calls.basic.tokens import Cursor, Kind, Token

_WORD, _NUMBER, _TEXT, _SYMBOL = Kind.WORD, Kind.NUMBER, Kind.TEXT, Kind.SYMBOL
_LOOSEST, _COMPARISON, _SIGN, _POWER = 1, 4, 10, 11
_SYMBOL_RANKS = {
    "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "&": 5, "+": 6, "-": 6, "\\": 8, "*": 9, "/": 9, "^": _POWER,
}  # fmt: skip
_WORD_RANKS = {"OR": 1, "AND": 2, "IN": 4, "LIKE": 4, "IS": 4, "NOT": 4, "CONTAINS": 4, "MOD": 7}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None, "NOTHING": None}
_NO_OPERANDS = frozenset(["THEN", "ELSE", "ELSEIF", "AND", "OR", "MOD", "LIKE", "IS"])
_NO_OPERANDS_UNLESS_VARIABLES = frozenset(["IN", "TO", "STEP", "AS"])
_ENDS_OPERAND = _NO_OPERANDS | _NO_OPERANDS_UNLESS_VARIABLES
_OF_A_KEYWORD = 5
"""A keyword in an expression counts like so many brackets: reading its form takes that much more of the stack."""


def _no_entries(at: At) -> Expression:
    return MapOf(at, ())


def _no_items(at: At) -> Expression:
    return ListOf(at, ())


_EMPTY = {
    "OBJECT": _no_entries, "MAP": _no_entries, "DICTIONARY": _no_entries, "ARRAY": _no_items, "LIST": _no_items,
}  # fmt: skip


class MatchedForm(Protocol):
    """A keyword that was read."""

    @property
    def want(self) -> Want:
        """It, with its arguments."""

    @property
    def into(self) -> Target | None:
        """What receives its result, where the form says so."""


class KeywordForms(Protocol):
    """The forms of all keywords."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the keywords: `SEND MAIL`."""

    def match(self, cursor: Cursor, read: Expressions, *, inside: bool) -> MatchedForm | None:
        """The keyword that begins at the cursor, or None. Raises ScriptFault where it begins and goes wrong."""


class Expressions:
    """Reads the expressions of one script. All methods raise ScriptFault where something cannot be understood."""

    __slots__ = (
        "_brackets", "_first_words", "_forms", "_height", "_highest", "_phrases", "_reading", "_special",
    )  # fmt: skip

    def __init__(self, forms: KeywordForms, reading: Reading) -> None:
        self._forms = forms
        self._reading = reading
        self._first_words = first_words(forms.names)
        self._phrases = frozenset(" ".join(name.split()[:2]) for name in forms.names)
        self._height = 0
        """Of the expression that was read last."""
        self._highest = 0
        """Of those that were read since a keyword began."""
        self._brackets = {"(": self._group, "[": self._list, "{": self._map, "#{": self._map}
        self._special: dict[str, Callable[[Cursor, Token], Expression | None]] = {
            "NOT": self._not,
            "NEW": self._new,
            "CREATE": self._new,
            "CALL": self._called,
            "ERROR": self._error,
        }

    def expression(self, cursor: Cursor) -> Expression:
        """The expression at the cursor, as long as it goes."""
        reading = self._reading
        reading.enter(cursor.now.at)
        try:
            found = self._climb(cursor, _LOOSEST)
        finally:
            reading.depth -= 1
        if self._height > self._highest:
            self._highest = self._height
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
                for index in self._items(cursor, "]" if symbol.text == "[" else ")"):
                    found = Index(symbol.at, found, index)
            else:
                break
            count += 1
            self._check_height(count, symbol.at)
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
            height = max(height, self._height)
            if not cursor.is_line_end:
                cursor.fail(f"`}}` is missing, {cursor.found()}; `${{…}}` holds one value")
        self._height = height + 1
        return Template(token.at, tuple(found))

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
            height = self._height
            if rank == _COMPARISON and token.kind is _WORD:
                left = self._comparison(cursor, token, left)
            else:
                cursor.index += 1
                right = self._right(cursor, token, rank)
                operator = token.text if token.kind is _SYMBOL else token.value.lower()
                left = Binary(token.at, cast("Operator", operator), left, right)
            self._height = (height if height > self._height else self._height) + 1
            if self._height > HIGHEST:
                self._check_height(self._height, token.at)

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
        self._height = 0
        if kind is _WORD:
            found = self._word(cursor, token)
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
        self._height += 1
        return Unary(token.at, "-", operand)

    def _members(self, cursor: Cursor, found: Expression) -> Expression:
        while cursor.now.kind is _SYMBOL and cursor.now.text in (".", "["):
            symbol, height = cursor.now, self._height
            if symbol.text == ".":
                cursor.index += 1
                word = cursor.now
                name = self._name(cursor)
                if cursor.is_symbol("("):
                    arguments = (found, *self._items(cursor, ")"))
                    self._reading.check_call(word.at, name.lower(), len(arguments))
                    found = Apply(word.at, name.lower(), arguments)
                else:
                    self._height = 0
                    found = Member(symbol.at, found, name)
            else:
                for index in self._items(cursor, "]"):
                    found = Index(symbol.at, found, index)
            self._height = max(height, self._height) + 1
            self._check_height(self._height, symbol.at)
        return found

    def _word(self, cursor: Cursor, token: Token) -> Expression:
        value = token.value
        if value in _CONSTANTS:
            cursor.index += 1
            return Literal(token.at, _CONSTANTS[value])
        reading = self._reading
        name = token.text.lower()
        following = cursor.ahead()
        calls = following.kind is _SYMBOL and following.text == "("
        if calls and reading.knows(name):
            return self._call(cursor, token)
        if value in self._special and (special := self._special[value](cursor, following)) is not None:
            return special
        if value in self._first_words and (want := self._keyword(cursor, token, following)) is not None:
            return want
        if value in _NO_OPERANDS or (value in _NO_OPERANDS_UNLESS_VARIABLES and name not in reading.variables):
            cursor.fail(f"a value is missing before {value}")
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
        arguments = self._items(cursor, ")")
        if not self._reading.knows(name) and name in self._reading.variables and arguments:
            found: Expression = Name(token.at, name)
            for index in arguments:
                found = Index(token.at, found, index)
            return found
        self._reading.check_call(token.at, name, len(arguments))
        return Apply(token.at, name, arguments)

    def _keyword(self, cursor: Cursor, token: Token, following: Token) -> Expression | None:
        """The keyword that begins at the cursor; None where the word is a variable."""
        needs_nothing = not _begins_value(token, following)
        if token.text.lower() in self._reading.variables and (
            needs_nothing or not (following.kind is _TEXT or f"{token.value} {following.value}" in self._phrases)
        ):
            return None
        index, highest = cursor.index, self._highest
        self._highest = 0
        try:
            with self._reading.deeper(token.at, _OF_A_KEYWORD):
                matched = self._forms.match(cursor, self, inside=True)
        except ScriptFault as error:
            if not needs_nothing or error.fault.code is Code.TOO_DEEP:
                raise
            matched = None
        finally:
            self._height, self._highest = self._highest + 2, highest
        if matched is None:
            cursor.index = index
            self._height = 0
            return None
        self._check_height(self._height, token.at)
        if matched.into is not None:
            cursor.fail(
                f"{matched.want.keyword} names the variable itself that it gives something; write it alone", at=token.at
            )
        return matched.want

    def _not(self, cursor: Cursor, following: Token) -> Expression:
        at = cursor.take().at
        with self._reading.deeper(at):
            operand = self._climb(cursor, _COMPARISON)
        self._height += 1
        return Unary(at, "not", operand)

    def _new(self, cursor: Cursor, following: Token) -> Expression | None:
        """`NEW OBJECT`, `CREATE ARRAY`."""
        made = _EMPTY.get(following.value) if following.kind is _WORD else None
        if made is None:
            return None
        at = cursor.take().at
        cursor.index += 1
        if cursor.is_symbol("("):
            self._items(cursor, ")")
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
            height = max(height, self._height)
        self._height = height + 1
        return ListOf(at, tuple(found))

    def _map(self, cursor: Cursor) -> Expression:
        at, height = cursor.now.at, 0
        found: list[tuple[str, Expression]] = []
        for entry in entries(cursor, self.expression):
            found.append(entry)
            height = max(height, self._height)
        self._height = height + 1
        return MapOf(at, tuple(found))

    def _items(self, cursor: Cursor, closer: str) -> tuple[Expression, ...]:
        """Arguments, or what stands in an index."""
        at, height = cursor.now.at, 0
        found: list[Expression] = []
        for item in items(cursor, self.expression, closer):
            found.append(item)
            height = max(height, self._height)
        if not found and closer == "]":
            cursor.fail("an index is missing between `[` and `]`", at=at)
        self._height = height + 1
        return tuple(found)

    def _name(self, cursor: Cursor) -> str:
        if cursor.now.kind is not _WORD:
            cursor.fail(f"a name is missing behind `.`, {cursor.found()}")
        return cursor.take().text

    def _check_height(self, height: int, at: At) -> None:
        if height > HIGHEST:
            told = (
                f"more than {HIGHEST} operators or members follow one another here; divide this into several statements"
            )
            raise ScriptFault(at, Code.TOO_DEEP, told)


def first_words(names: Iterable[str]) -> frozenset[str]:
    """The words that keywords can begin with: `SEND`, and `SEND_MAIL` for SEND MAIL."""
    found = set()
    for name in names:
        words = name.split()
        found.add(words[0])
        found.add("_".join(words))
    return frozenset(found)


def _begins_value(word: Token, following: Token) -> bool:
    """Whether a value could begin with the token behind a word, so that the word rather is a keyword."""
    if following.kind is _SYMBOL:
        touches = following.at == (word.at.line, word.at.column + len(word.text))
        return following.text in ("(", "{", "#{") or (following.text == "[" and not touches)
    if following.kind is _WORD:
        return following.value not in _ENDS_OPERAND
    return following.kind in (_TEXT, _NUMBER, Kind.BLOCK)
