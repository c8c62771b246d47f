"""Tokens of a script, and the cursor of the parser."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple, NoReturn

from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.nodes import At
from services.refs import JsonValue


class Kind(Enum):
    """Type of a token."""

    WORD = auto()  # keyword or name: letters of any script, digits, `_`; a trailing `$` is dropped
    NUMBER = auto()  # `value` is an int or a float
    TEXT = auto()  # quoted text; `value` is a tuple of its parts: str, or Inner for `${…}`
    SYMBOL = auto()  # operator or bracket: `text` is one of ( ) [ ] { } #{ , . : ; = <> < <= > >= + - * / \\ ^ &
    BLOCK = auto()  # lines between BEGIN … and END …, as written; `value` as for TEXT
    LINE = auto()  # end of a statement: a line end, or `:` between statements
    END = auto()  # end of the script


OPENING, CLOSING = frozenset({"(", "[", "{", "#{"}), frozenset({")", "]", "}"})


class Inner(NamedTuple):
    """Source of an expression in `${…}` within a text."""

    source: str
    at: At


class Token(NamedTuple):
    """A token with its position."""

    kind: Kind
    text: str
    """As written; operators are normalized (`!=` to `<>`, `==` to `=`)."""
    value: JsonValue
    """Value by `kind`; for a WORD the text in upper case."""
    at: At

    @property
    def end(self) -> At:
        """Position after the token, which is on one line."""
        return At(self.at.line, self.at.column + len(self.text))


def has_then(tokens: Sequence[Token], index: int) -> bool:
    """Whether THEN follows in the statement, from the token at `index` on."""
    while tokens[index].kind not in (Kind.LINE, Kind.END):
        if tokens[index].kind is Kind.WORD and tokens[index].value == "THEN":
            return True
        index += 1
    return False


def behind_bracket(tokens: Sequence[Token], index: int) -> int:
    """Index after the bracket at `index` is closed, or the end of its statement."""
    depth = 0
    while tokens[index].kind not in (Kind.LINE, Kind.END):
        token = tokens[index]
        index += 1
        if token.kind is Kind.SYMBOL:
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if token.text in CLOSING and not depth:
                break
    return index


class Cursor:
    """Position of the parser in the token list. The last token is END and is never passed."""

    __slots__ = ("index", "table_variables", "tokens")

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.index = 0
        """Index of the current token. May be reset to an earlier value."""
        self.table_variables: dict[str, int] | None = None
        """Cache of the keyword forms: variables (in upper case) that can hold the name of a table, each with the index
        of the token that first assigns such a value."""

    @property
    def now(self) -> Token:
        """The current token."""
        return self.tokens[self.index]

    def ahead(self, count: int = 1) -> Token:
        """The token `count` positions after the current one, or END; a negative count for those before it."""
        index = self.index + count
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def take(self) -> Token:
        """Return the current token and advance, except past END."""
        token = self.tokens[self.index]
        if token.kind is not Kind.END:
            self.index += 1
        return token

    def is_at(self, *words: str) -> bool:
        """Whether the next tokens are these words, in upper case."""
        for offset, word in enumerate(words):
            token = self.ahead(offset) if offset else self.now
            if token.kind is not Kind.WORD or token.value != word:
                return False
        return True

    def words(self, *words: str) -> bool:
        """Consume these words if they are next; returns whether they were."""
        if not self.is_at(*words):
            return False
        self.index += len(words)
        return True

    def is_symbol(self, *symbols: str) -> bool:
        """Whether the current token is one of these symbols."""
        return self.now.kind is Kind.SYMBOL and self.now.text in symbols

    def symbol(self, *symbols: str) -> bool:
        """Consume one of these symbols if it is next; returns whether it was."""
        if not self.is_symbol(*symbols):
            return False
        self.index += 1
        return True

    def expect(self, symbol: str, after: str) -> Token:
        """Consume this symbol. Raises ScriptError with `after` in its message if another token is next."""
        if not self.is_symbol(symbol):
            self.fail(f"expected `{symbol}` after {after}, {self.found()}")
        return self.take()

    @property
    def is_line_end(self) -> bool:
        """Whether the cursor is at the end of a statement."""
        return self.now.kind in (Kind.LINE, Kind.END)

    def found(self) -> str:
        """Description of the current token for messages, such as `found the end of the line`."""
        token = self.now
        if token.kind is Kind.END:
            return "found the end of the script"
        if token.kind in (Kind.LINE, Kind.BLOCK):
            return "found the end of the line"
        return f"found `{_short(token.text)}`"

    def fail(self, message: str, code: Code = Code.SYNTAX, at: At | None = None) -> NoReturn:
        """Raise ScriptError at `at`, or here. At the end of the script, or before a block's text, the position is that
        of the previous token."""
        raise ScriptError(at or self._place(), code, message)

    def _place(self) -> At:
        token, before = self.tokens[self.index], self.tokens[self.index - 1]
        if token.kind in (Kind.END, Kind.BLOCK) and self.index and before.at.line < token.at.line:
            return before.at
        return token.at


def _short(text: str, most: int = 40) -> str:
    first = text.splitlines()[0] if text.strip() else text.strip()
    return first if len(first) <= most else first[: most - 1] + "…"
