"""Tokens: the words of a script, and a cursor over them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple, NoReturn

from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.nodes import At
from services.refs import JsonValue


class Kind(Enum):
    """What a token is."""

    WORD = auto()  # a keyword or a name: letters of any script, digits, `_`, a trailing `$` is dropped
    NUMBER = auto()  # `value` is an int or a float
    TEXT = auto()  # a text in quotes; `value` is a tuple of its parts: str, or Inner for `${…}`
    SYMBOL = auto()  # an operator or a bracket: `text` is one of ( ) [ ] { } #{ , . : ; = <> < <= > >= + - * / \\ ^ &
    BLOCK = auto()  # what stands between BEGIN … and END …; `value` as of TEXT, its lines as written
    LINE = auto()  # the end of a statement: a line's end, or `:` between statements
    END = auto()  # the end of the script


class Inner(NamedTuple):
    """What stands in `${…}` of a text."""

    source: str
    at: At


class Token(NamedTuple):
    """One of them."""

    kind: Kind
    text: str
    """As written; of a SYMBOL its one spelling (`!=` is `<>`, `==` is `=`)."""
    value: JsonValue
    """Of a WORD its upper case."""
    at: At


class Cursor:
    """Where the parser is. The last token is END and is never passed."""

    __slots__ = ("given", "index", "tokens")

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.index = 0
        """May be set back to what it was."""
        self.given: dict[str, int] | None = None
        """Kept by the forms of keywords: the words, in upper case, that can name a table as variables, each with the
        index of the token that first gives it such a value."""

    @property
    def now(self) -> Token:
        """The token that is to be read."""
        return self.tokens[self.index]

    def ahead(self, count: int = 1) -> Token:
        """The token so many behind this one."""
        index = self.index + count
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def take(self) -> Token:
        """The token that was to be read; the next one is now."""
        token = self.tokens[self.index]
        if token.kind is not Kind.END:
            self.index += 1
        return token

    def is_at(self, *words: str) -> bool:
        """Whether these words, in upper case, are next."""
        for offset, word in enumerate(words):
            token = self.ahead(offset) if offset else self.now
            if token.kind is not Kind.WORD or token.value != word:
                return False
        return True

    def words(self, *words: str) -> bool:
        """Pass these words if they are next; whether they were."""
        if not self.is_at(*words):
            return False
        self.index += len(words)
        return True

    def is_symbol(self, *symbols: str) -> bool:
        """Whether one of these is next."""
        return self.now.kind is Kind.SYMBOL and self.now.text in symbols

    def symbol(self, *symbols: str) -> bool:
        """Pass one of these if it is next; whether it was."""
        if not self.is_symbol(*symbols):
            return False
        self.index += 1
        return True

    def expect(self, symbol: str, after: str) -> Token:
        """Pass this symbol. Raises ScriptError, which names what it should stand behind."""
        if not self.is_symbol(symbol):
            self.fail(f"`{symbol}` is missing behind {after}, {self.found()}")
        return self.take()

    @property
    def is_line_end(self) -> bool:
        """Whether the statement is over."""
        return self.now.kind in (Kind.LINE, Kind.END)

    def found(self) -> str:
        """What stands here, for a fault."""
        token = self.now
        if token.kind is Kind.END:
            return "where the script ends"
        if token.kind in (Kind.LINE, Kind.BLOCK):
            return "where the line ends"
        return f"where `{_short(token.text)}` stands"

    def fail(self, message: str, code: Code = Code.SYNTAX, at: At | None = None) -> NoReturn:
        """Raise ScriptError here, or at that place. What is missing where the script ends, or before a block's text, is
        told where its statement stands."""
        raise ScriptError(at or self._place(), code, message)

    def _place(self) -> At:
        token, before = self.tokens[self.index], self.tokens[self.index - 1]
        if token.kind in (Kind.END, Kind.BLOCK) and self.index and before.at.line < token.at.line:
            return before.at
        return token.at


def _short(text: str, most: int = 40) -> str:
    first = text.splitlines()[0] if text.strip() else text.strip()
    return first if len(first) <= most else first[: most - 1] + "…"
